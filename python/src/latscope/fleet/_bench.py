"""Measurements of the lake itself: ingestion, sizes, questions. Other work on the machine lengthens them."""

import gzip
import json
import os
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import latscope

from . import _questions
from ._compact import compact
from ._engine import DuckDb
from ._errors import FleetError
from ._generate import generate
from ._ingest import ingest
from ._lake import Lake
from ._sources import Item

Row: TypeAlias = dict[str, Any]

DAY = date(2026, 11, 23)

#: Results that are ingested.
COPIES = 100

_YEAR = """
    SELECT day, series_id, bucket, CAST(SUM(n) AS BIGINT) AS n FROM h
    WHERE machine_id = 'm000000' GROUP BY day, series_id, bucket"""


def bench(lake: Lake, machines: int) -> list[Row]:
    """Returns what was measured, a row each: what, value, unit. Raises FleetError if the lake is not
    empty."""
    if lake.snapshot().days():
        raise FleetError(f"{lake.root} has results: choose a new directory")
    rows = _ingestion(Lake(f"{lake.root}/ingestion", create=True))
    runs = latscope.read(Path(__file__).parent / "demo").runs
    generate(lake, runs, machines, DAY, {})
    rows.append(_timed("compaction of a day", lambda: list(compact(lake))))
    snapshot = lake.snapshot()
    size = sum(file.bytes for name in ("runs", "points", "h") for file in snapshot.files[name])
    rows.append({"what": "compacted size of a day", "value": size / 1e6, "unit": "MB"})
    rows.append(
        {"what": "buckets of a day", "value": sum(file.rows for file in snapshot.files["h"]), "unit": "rows"}
    )
    engine = DuckDb(snapshot)
    try:
        for what, sql in (
            ("p50, p99, p99.9 of all series, from buckets", "SELECT * FROM quantiles"),
            ("the same from the roll-up", "SELECT * FROM daily_quantiles"),
            ("all buckets of one machine", _YEAR),
        ):
            rows.append(_timed(what, partial(engine.query, sql)))
        rows.append(_timed("sick", lambda: _questions.sick(engine)))
    finally:
        engine.close()
    return [{"what": f"{machines} machines", "value": None, "unit": ""}, *rows]


def _timed(what: str, work: Callable[[], object]) -> Row:
    begin = time.perf_counter()
    work()
    return {"what": what, "value": round(time.perf_counter() - begin, 3), "unit": "s"}


def _ingestion(lake: Lake) -> list[Row]:
    text = gzip.decompress(sorted((Path(__file__).parent / "demo").iterdir())[0].read_bytes())
    document = json.loads(text)
    items = [
        Item(f"{number}", json.dumps(document | {"run_id": f"bench-{number}"}).encode())
        for number in range(COPIES)
    ]
    row = _timed("", lambda: list(ingest(lake, items, processes=os.cpu_count())))
    size = sum(len(item.text or b"") for item in items) / 1e6
    return [
        {"what": f"ingestion of {COPIES} results", "value": size / row["value"], "unit": "MB/s"},
        {"what": "the same", "value": COPIES / row["value"], "unit": "results/s"},
    ]
