"""Measurements of the lake itself: ingestion, sizes, questions. Other work on the machine lengthens them."""

import gzip
import json
import os
import resource
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import latscope

from .._read import Run
from . import _questions
from ._compact import compact
from ._days import replace_day
from ._engine import DuckDb
from ._errors import FleetError
from ._generate import generate
from ._ingest import ingest
from ._lake import Lake, new_batch
from ._rows import rows_of
from ._schema import KEYS, QUANTILES, TABLES
from ._sources import Item

Row: TypeAlias = dict[str, Any]

DAY = date(2026, 11, 23)

#: Results that are ingested, the length of their blocks, and the days of a year with its machines.
COPIES = 400
BLOCKS = 2_000_000
YEAR = (365, 100)

#: How often a question is asked after the first time: its median counts.
REPEATS = 10

#: From this number of machines on only each tenth series is made; sizes and times are multiplied by ten.
SAMPLED = 50_000

_TIMES = ("min", "max", "sum", "low", "high", *QUANTILES)

_ONE = "SELECT series_id, bucket, n FROM h WHERE machine_id = 'm000000'"


def bench(lake: Lake, machines: Sequence[int], with_year: bool = True) -> list[Row]:
    """Returns what was measured for days of several numbers of machines, a row each: s, MB. Raises FleetError
    if the lake is not empty."""
    if lake.snapshot().days():
        raise FleetError(f"{lake.root} has results: choose a new directory")
    runs = latscope.read(Path(__file__).parent / "demo").runs
    rows = [_ingestion(Lake(f"{lake.root}/ingestion", create=True))]
    if with_year:
        rows.append(_year(Lake(f"{lake.root}/year", create=True), runs[0]))
    rows += [_day(Lake(f"{lake.root}/{number}", create=True), runs, number) for number in machines]
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _day(lake: Lake, runs: Sequence[Run], machines: int) -> Row:
    """Measures a day of a made fleet."""
    factor = 10 if machines >= SAMPLED else 1
    made = [_each_tenth(run) for run in runs] if factor > 1 else runs
    generate(lake, made, machines, DAY, {}, points=True)
    row: Row = {"what": f"{machines} machines" + (", 1 of 10 series" if factor > 1 else "")}
    row["machines"] = machines
    row["compact"] = factor * _timed(lambda: list(compact(lake)))
    files = lake.snapshot().files
    row["MB"] = round(factor * sum(file.bytes for one in files.values() for file in one) / 1e6, 1)
    row["MB of h"] = round(factor * sum(file.bytes for file in files["h"]) / 1e6, 1)
    row["buckets"] = factor * sum(file.rows for file in files["h"])

    def ask(question: Callable[[DuckDb], object]) -> float:
        forget(lake)
        engine = DuckDb(lake.snapshot())
        try:
            return factor * _timed(lambda: question(engine))
        finally:
            engine.close()

    row["quantiles"] = ask(lambda engine: engine.query("SELECT * FROM quantiles"))
    row["rolled up"] = ask(lambda engine: engine.query("SELECT * FROM daily_quantiles"))
    row["one machine"] = ask(lambda engine: engine.query(_ONE))
    row["sick"] = ask(_questions.sick)
    row["GB so far"] = _peak()
    return row


def _peak() -> float:
    """Returns the most memory that this process and the largest of its children had so far, GB."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return round(sum(resource.getrusage(who).ru_maxrss for who in whose) / 1e6, 2)


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _each_tenth(run: Run) -> Run:
    document = run.document
    document["measurements"] = document["measurements"][::10]
    return replace(run, packed=zlib.compress(json.dumps(document).encode(), 1), points=run.points[::10])


def _ingestion(lake: Lake) -> Row:
    """Measures the ingestion of quick surveys of the usual size: the shipped ones have no blocks."""
    text = gzip.decompress(sorted((Path(__file__).parent / "demo").iterdir())[0].read_bytes())
    document = json.loads(text)
    points = document["measurements"]
    block = {"from": 6601417982, "count": 1, "sum": 29713, "max": 29713, "median": 29713}
    each = BLOCKS // len(json.dumps(block)) // len(points)
    for point in points:
        point["blocks"] = [block] * each
    names = [f"bench-{number}" for number in range(COPIES)]
    items = [Item(name, json.dumps(document | {"run_id": name}).encode()) for name in names]
    seconds = _timed(lambda: list(ingest(lake, items, processes=os.cpu_count())))
    size = sum(len(item.text or b"") for item in items) / 1e6
    what = f"ingestion of {COPIES} results"
    return {"what": what, "MB/s": size / seconds, "results/s": COPIES / seconds, "GB so far": _peak()}


def _year(lake: Lake, run: Run) -> Row:
    """Measures a year of one of some machines, whose files are as compaction leaves them."""
    days, machines = YEAR
    rows = rows_of(run.document, run.text, run.source, DAY)
    lake.append("series", pa.Table.from_pylist(rows.series, schema=TABLES["series"]))
    points = pa.concat_tables([rows.points] * machines)
    names = [f"m{number:06}" for number in range(machines)]
    random = np.random.default_rng(0)
    for number in range(days):
        day, batch = DAY - timedelta(days=number), new_batch()
        own = [{"day": day, "batch": batch, "run_id": f"{name}:{day}", "machine_id": name} for name in names]
        keys = pa.Table.from_pylist(own, schema=pa.schema([TABLES["h"].field(name) for name in KEYS]))
        columns = {
            name: keys[name].take(np.repeat(np.arange(machines), rows.points.num_rows)) for name in KEYS
        }
        factor = np.exp(random.normal(0, 0.03, points.num_rows))
        columns |= {name: points[name] for name in points.column_names}
        columns |= {name: _stretched(points[name], factor) for name in _TIMES}
        made = pa.table(columns, schema=TABLES["points"])
        replace_day(lake.table("points"), "points", day, made.to_batches())
        made = pa.Table.from_pylist([rows.run | one for one in own], schema=TABLES["runs"])
        replace_day(lake.table("runs"), "runs", day, made.to_batches())
    for name in TABLES:
        lake.table(name).create_checkpoint()

    def ask(probe: str) -> None:
        engine = DuckDb(_questions.snapshot_of(lake, names[machines // 2], probe))
        try:
            found = _questions.machine(engine, names[machines // 2], probe)
            assert len({row["day"] for row in found}) == days
        finally:
            engine.close()

    row: Row = {"what": f"a machine's year ({days} days of {machines} machines)"}
    for title, probe in (("one series", "cpu.cycle"), ("all series", "%")):
        forget(lake)
        row[f"{title}, cold"] = _timed(partial(ask, probe))
        row[title] = median([_timed(partial(ask, probe)) for _ in range(REPEATS)])
    return row


def _stretched(column: pa.ChunkedArray, factor: Any) -> pa.ChunkedArray:
    """Returns a column of ticks or times, each multiplied by its factor."""
    return pc.multiply(column.cast(pa.float64()), factor).cast(column.type, safe=False)


def forget(lake: Lake) -> None:
    """Makes the kernel forget the files of a lake in a directory, so that they are read from the disk."""
    os.sync()
    for path in Path(lake.root).rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
