"""Ingestion: results become rows of the lake, each once. Files that are no results are set aside."""

import gzip
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from .._errors import ForeignError, ResultError
from .._read import _limited, run_from_text
from ._errors import FleetError
from ._lake import Lake, day_filter, new_batch
from ._rows import rows_of
from ._schema import TABLES
from ._sources import Item

#: The most runs, and bytes of rows, of a batch: what is held in memory, and lost when an ingestion is killed.
BATCH_RUNS = 500
BATCH_BYTES = 256 << 20

_TABLES = ("runs", "series", "points", "h")


@dataclass
class Account:
    """Account of an ingestion: runs added, runs that were there, and files set aside with their reasons."""

    added: int = 0
    known: int = 0
    aside: list[tuple[str, str]] = field(default_factory=list)
    bytes: int = 0


@dataclass(frozen=True)
class Parsed:
    """Rows of one result, by table, in Arrow's stream format; or what is wrong with it."""

    name: str
    size: int
    tables: dict[str, bytes] = field(default_factory=dict)
    fault: str | None = None
    text: bytes | None = None


def ingest(
    lake: Lake,
    items: Iterable[Item],
    *,
    day: date | None = None,
    processes: int | None = None,
    aside: str | None = None,
) -> Iterator[Account]:
    """Adds results to a lake, and yields the account after each file. Rows are in the lake when it ends;
    several ingestions may write to one lake at once, and a run that is there is not added again.

    `day` is the day of all results, for those of machines with a wrong clock. `aside` is the directory for
    files that are no results, by default `set-aside` in the lake. Raises FleetError if the lake cannot be
    written.
    """
    if aside is None:
        if not lake.is_local:
            raise FleetError("a lake in a store needs --set-aside DIRECTORY, for files that are no results")
        aside = f"{lake.root}/set-aside"
    account, held, batch = Account(), list[Parsed](), new_batch()
    for parsed in _parse_all(items, day, processes or os.cpu_count() or 1):
        account.bytes += parsed.size
        if parsed.fault is not None:
            account.aside.append((parsed.name, parsed.fault))
            _set_aside(Path(aside), parsed)
        else:
            held.append(parsed)
        if (
            len(held) >= BATCH_RUNS
            or sum(len(part["h"]) for part in (one.tables for one in held)) > BATCH_BYTES
        ):
            _write(lake, held, batch, account)
            held, batch = [], new_batch()
        yield account
    _write(lake, held, batch, account)
    yield account


def _parse_all(items: Iterable[Item], day: date | None, processes: int) -> Iterator[Parsed]:
    """Parses results in processes, in order; no more than a few of them are held at once."""
    if processes == 1:
        yield from (parse(item, day) for item in items)
        return
    rest = iter(items)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting: list[tuple[Item, Future[Parsed]]] = []
        while True:
            waiting += [
                (item, pool.submit(parse, item, day)) for item in islice(rest, 4 * processes - len(waiting))
            ]
            if not waiting:
                return
            item, future = waiting.pop(0)
            try:
                yield future.result()
            except BrokenProcessPool:
                raise FleetError(
                    f"a process ended while it read {item.name}: is there enough memory?"
                ) from None


def parse(item: Item, day: date | None) -> Parsed:
    """Returns the rows of one result, with 0 for their batch."""
    text = item.text
    try:
        if item.fault is not None:
            raise ResultError(item.name, item.fault)
        if text is None:
            path = Path(item.name)
            if not path.is_file():
                raise ResultError(
                    item.name, "it is no plain file" if path.exists() else "there is no such file"
                )
            text = path.read_bytes()
        run = run_from_text(_limited(io.BytesIO(text), item.name), item.name)
        rows = rows_of(run, 0, day)
        return Parsed(item.name, len(text), {name: _packed(rows.arrow(name)) for name in _TABLES})
    except (ResultError, ForeignError) as error:
        fault = error.reason
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        pa.ArrowException,
    ) as error:
        fault = f"its fields are not those of a result: {error!s:.200}"
    return Parsed(item.name, len(text or b""), fault=fault, text=text)


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _write(lake: Lake, held: Sequence[Parsed], batch: int, account: Account) -> None:
    """Writes one batch: runs last, since the rows of a batch count from then on."""
    if not held:
        return
    runs = [_unpacked(one.tables["runs"]) for one in held]
    fresh = _fresh(lake, pa.concat_tables(runs))
    account.known += len(held) - len(fresh)
    account.added += len(fresh)
    for name in ("h", "points", "series", "runs"):
        parts = [_unpacked(held[place].tables[name]) for place in fresh]
        table = pa.concat_tables(parts) if parts else TABLES[name].empty_table()
        if name == "series":
            table = _new_series(lake, table)
        else:
            column = pa.repeat(pa.scalar(batch, pa.int64()), table.num_rows)
            table = table.set_column(table.schema.get_field_index("batch"), "batch", column)
        if table.num_rows:
            lake.append(name, table)


def _fresh(lake: Lake, runs: pa.Table) -> list[int]:
    """Returns the rows of runs that are not in the lake, or are there unfinished and are finished now; each
    run once."""
    days = sorted(set(runs["day"].to_pylist()))
    there = lake.table("runs").to_pyarrow_table(
        filters=day_filter(days[0], days[-1]), columns=["run_id", "finished"]
    )
    best = dict(zip(there["run_id"].to_pylist(), there["finished"].is_valid().to_pylist(), strict=True))
    for run, is_finished in zip(
        there["run_id"].to_pylist(), there["finished"].is_valid().to_pylist(), strict=True
    ):
        best[run] = best[run] or is_finished
    fresh: dict[str, int] = {}
    ended = zip(runs["run_id"].to_pylist(), runs["finished"].is_valid().to_pylist(), strict=True)
    for place, (run, is_finished) in enumerate(ended):
        if run not in best or (is_finished and not best[run]):
            best[run], fresh[run] = is_finished, place
    return sorted(fresh.values())


def _unpacked(stream: bytes) -> pa.Table:
    return pa.ipc.open_stream(stream).read_all()


def _new_series(lake: Lake, table: pa.Table) -> pa.Table:
    there = lake.table("series").to_pyarrow_table(columns=["series_id"])["series_id"]
    table = table.filter(pc.invert(pc.is_in(table["series_id"], there.combine_chunks())))
    first = {series: place for place, series in reversed(list(enumerate(table["series_id"].to_pylist())))}
    return table.take(pa.array(sorted(first.values()), pa.int64()))


def _set_aside(directory: Path, parsed: Parsed) -> None:
    """Keeps a file that is no result, under the hash of its text, with its name and the reason beside it."""
    text = parsed.text or b""
    name = hashlib.sha256(text or parsed.name.encode()).hexdigest()[:32]
    directory.mkdir(parents=True, exist_ok=True)
    if text:
        (directory / f"{name}.gz").write_bytes(gzip.compress(text, 1, mtime=0))
    reason = {"name": parsed.name, "reason": parsed.fault, "bytes": len(text)}
    (directory / f"{name}.json").write_text(json.dumps(reason) + "\n")
