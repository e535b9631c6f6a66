"""Ingestion: results become rows of the lake, each once. Files that are no results are set aside."""

import contextlib
import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from datetime import date
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._clean import json_of
from .._files import own_directory, replace_below
from . import _parse
from ._errors import FleetError
from ._lake import Lake, day_filter, new_batch
from ._parse import Parsed, Parser, unpacked
from ._schema import KEYS, TABLES
from ._sources import Item

#: The most runs, and bytes of rows, of a batch: what is held in memory, and lost when an ingestion is killed.
BATCH_RUNS = 500
BATCH_BYTES = 256 << 20

#: Runs whose rows are written at once, so that little memory holds their keys.
WRITTEN_RUNS = 50

#: The most files, and bytes of them, that a process is given at once, if they are more than one.
CHUNK = 4
CHUNK_BYTES = 8 << 20

#: Bytes of files that are held or read at once: no more are begun above it.
HELD_BYTES = 128 << 20


@dataclass
class Account:
    """Account of an ingestion: runs added, runs that were there, files set aside with their reasons, and
    files that were set aside before."""

    added: int = 0
    known: int = 0
    left: int = 0
    aside: list[tuple[str, str]] = field(default_factory=list)
    bytes: int = 0


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
    account, held, batch, size = Account(), list[Parsed](), new_batch(), 0
    for parsed in _parse_all(items, day, processes or os.cpu_count() or 1):
        account.bytes += parsed.size
        if parsed.fault is not None:
            with own_directory(aside) as directory:
                if _set_aside(directory, parsed):
                    account.aside.append((parsed.name, parsed.fault))
                else:
                    account.left += 1
        else:
            held.append(parsed)
            size += len(parsed.h) + len(parsed.points)
        if len(held) >= BATCH_RUNS or size > BATCH_BYTES:
            _write(lake, held, batch, account, day)
            held, batch, size = [], new_batch(), 0
        yield account
    _write(lake, held, batch, account, day)
    yield account


def _parse_all(items: Iterable[Item], day: date | None, processes: int) -> Iterator[Parsed]:
    """Parses results in processes, in order; no more than a few of them are held at once."""
    if processes == 1:
        yield from map(Parser(day).parse, items)
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, context, _parse.start, (day,)) as pool:
        yield from _in_order(items, 3 * processes, lambda chunk: pool.submit(_parse.parse, chunk))


def _in_order(
    items: Iterable[Item], most: int, submit: Callable[[list[Item]], "Future[list[Parsed]]"]
) -> Iterator[Parsed]:
    """Yields what is parsed, in order: at most `most` chunks, and HELD_BYTES and a chunk, are under way."""
    chunks, waiting, held = _chunks(items), deque[tuple[str, int, "Future[list[Parsed]]"]](), 0
    while True:
        while len(waiting) < most and held < HELD_BYTES and (chunk := next(chunks, None)):
            size = sum(item.size for item in chunk)
            held += size
            waiting.append((chunk[0].name, size, submit(chunk)))
        if not waiting:
            return
        name, size, future = waiting.popleft()
        try:
            found = future.result()
        except BrokenProcessPool:
            raise FleetError(
                f"a process ended while it read {name} or the {CHUNK - 1} files after it: "
                "is there enough memory?"
            ) from None
        held -= size
        yield from found


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    chunk: list[Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == CHUNK or sum(one.size for one in chunk) >= CHUNK_BYTES:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _write(lake: Lake, held: Sequence[Parsed], batch: int, account: Account, day: date | None) -> None:
    """Writes one batch: runs last, since the rows of a batch count from then on."""
    if not held:
        return
    runs = pa.Table.from_pylist([(one.run or {}) | {"batch": batch} for one in held], schema=TABLES["runs"])
    fresh = _fresh(lake, runs, day is not None)
    account.known += len(held) - len(fresh)
    account.added += len(fresh)
    series = [row for one in held for row in one.series]
    if series:
        # Also those of runs that are not fresh: a parser gives each series once.
        lake.append("series", _new_series(lake, pa.Table.from_pylist(series, schema=TABLES["series"])))
    runs = runs.take(pa.array(fresh, pa.int64()))
    if runs.num_rows:
        for name in ("h", "points"):
            parts = [getattr(held[place], name) for place in fresh]
            lake.append(name, _keyed(name, parts, runs))
        lake.append("runs", runs)


def _keyed(name: str, parts: Sequence[bytes], runs: pa.Table) -> Callable[[], pa.RecordBatchReader]:
    """Returns a function that reads rows of some runs, with the keys of the runs."""

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, len(parts), WRITTEN_RUNS):
            tables = [unpacked(part) for part in parts[first : first + WRITTEN_RUNS]]
            rows = pa.concat_tables(tables).combine_chunks()
            of = pa.array(np.repeat(np.arange(len(tables)) + first, [table.num_rows for table in tables]))
            keys = runs.select(KEYS).take(of).combine_chunks()
            columns = dict(zip(KEYS, keys.columns, strict=True)) | dict(
                zip(rows.column_names, rows.columns, strict=True)
            )
            yield from pa.table(columns, schema=TABLES[name]).combine_chunks().to_batches()

    return lambda: pa.RecordBatchReader.from_batches(TABLES[name], batches())


def _fresh(lake: Lake, runs: pa.Table, any_day: bool) -> list[int]:
    """Returns the rows of runs that are not in the lake, or are there unfinished and are finished now; each
    run once. With `any_day` they may be there on other days."""
    days = sorted(set(runs["day"].to_pylist()))
    there = lake.table("runs").to_pyarrow_table(
        filters=None if any_day else day_filter(days[0], days[-1]), columns=["run_id", "finished"]
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


def _new_series(lake: Lake, table: pa.Table) -> pa.Table:
    there = lake.table("series").to_pyarrow_table(columns=["series_id"])["series_id"]
    table = table.filter(pc.invert(pc.is_in(table["series_id"], there.combine_chunks())))
    first = {series: place for place, series in reversed(list(enumerate(table["series_id"].to_pylist())))}
    return table.take(pa.array(sorted(first.values()), pa.int64()))


def _set_aside(directory: int, parsed: Parsed) -> bool:
    """Keeps a file that is no result, under the hash of its text, with its name and the reason beside it.
    Only this user may read it: who placed it may not have been allowed to. Returns false if its text was kept
    before, and so was reported."""
    packed = parsed.packed
    name = hashlib.sha256(packed or parsed.name.encode(errors="replace")).hexdigest()[:32]
    if packed is not None:
        with contextlib.suppress(FileNotFoundError):
            os.stat(f"{name}.json", dir_fd=directory, follow_symlinks=False)
            return False
        replace_below(directory, f"{name}.gz", packed, 0o600)
    reason = {"name": parsed.name, "reason": parsed.fault, "bytes": parsed.size}
    replace_below(directory, f"{name}.json", (json_of(reason) + "\n").encode(), 0o600)
    return True
