"""The lake: Delta tables under one directory, and snapshots of them that all questions read. See
docs/lake.md."""

import contextlib
import os
import random
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from ._errors import FleetError
from ._schema import FILE, MUTES, PROPERTY, RUN_ID, TABLES, VERSION

#: Description of a table of a lake.
DESCRIPTION = "latscope-fleet: docs/lake.md"

#: Rows of a row group: a question to one machine reads one. It has the rows of about 25 machines.
GROUP_ROWS = {"points": 1 << 13}
MOST_GROUP_ROWS = 1 << 20

#: Columns whose first bytes lie together, then their second ones, and so on: they have few equal values, and
#: Zstandard finds nothing in them as they are. All other columns have dictionaries.
SPLIT = {"points": ("count", "min", "max", "sum", "low", "high"), "h": ("bucket", "n")}

#: Level of Zstandard: 9 would save 1 % more.
LEVEL = 6

#: How often a write is tried again where another one came first.
TRIES = 30

#: Age at which a batch without its runs counts as one whose ingestion was killed, s.
ORPHANED_AFTER = 3600.0


@dataclass(frozen=True)
class File:
    """Data file of a table: its address, its day, its number of rows, its size, and the batch of all its
    rows, None if they are of several: then the file was compacted. `machines` are the first and the last one
    in it, in order, where the log has them."""

    uri: str
    day: date | None
    rows: int
    bytes: int
    batch: int | None
    machines: tuple[str, str] | None = None

    def may_have(self, machine: str) -> bool:
        """Returns false if no row is of a machine."""
        return self.machines is None or self.machines[0] <= machine <= self.machines[1]


@dataclass(frozen=True)
class Snapshot:
    """What a question reads: files of whole batches only, and the copies of runs that do not count.

    `lost` are pairs (run_id, batch) of rows that another batch has too. `pending` are the days that have
    files of batches whose runs are not there: an ingestion is at work, or was killed; with the newest such
    batch. `has_all_columns` is true if no file can lack a column: an older schema made none of the tables.
    """

    root: str
    tables: dict[str, DeltaTable]
    files: dict[str, tuple[File, ...]]
    lost: tuple[tuple[str, int], ...]
    pending: dict[date, int]
    has_all_columns: bool

    def of_machine(self, machine: str, names: Sequence[str]) -> "Snapshot":
        """Returns the snapshot with the files of some tables that may have rows of a machine, and no
        others."""
        files = {
            name: tuple(file for file in files if name in names and file.may_have(machine))
            for name, files in self.files.items()
        }
        return replace(self, files=files)

    def days(self) -> list[date]:
        """Returns the days that have runs, ascending."""
        return sorted({file.day for file in self.files["runs"] if file.day is not None})


class Lake:
    """Lake in a directory, or in a store that delta-rs knows (`s3://bucket/path`)."""

    def __init__(self, root: str | os.PathLike[str], create: bool = False) -> None:
        """Opens a lake; with `create`, makes what is missing. Raises FleetError if there is none, or if it
        has a newer schema."""
        self.root = os.fspath(root).rstrip("/")
        self.is_local = "://" not in self.root
        for name in TABLES if create else ():
            self.create(name)
            self.table(name)
        if not create:
            # The others are checked when they are read.
            self.table("runs")

    def uri(self, name: str) -> str:
        """Returns the address of a table."""
        return f"{self.root}/{name}"

    def table(self, name: str) -> DeltaTable:
        """Returns a table as it is now. Raises FleetError if it is missing, damaged or has a newer schema."""
        try:
            table = DeltaTable(self.uri(name))
        except TableNotFoundError:
            raise FleetError(
                f"{self.root} is no lake: it has no table {name} (`latscope-fleet ingest` makes one)"
            ) from None
        except (DeltaError, OSError, ValueError) as error:
            raise FleetError(f"the table {name} of {self.root} cannot be read: {error!s:.300}") from None
        metadata = table.metadata()
        # A table of ours without the property: the process that made it was killed before it was set.
        version = metadata.configuration.get(PROPERTY, "1" if metadata.description == DESCRIPTION else "")
        if not re.fullmatch(r"[0-9]{1,9}", version):
            raise FleetError(f"{self.uri(name)} is a table of something else: it has no property {PROPERTY}")
        if int(version) > VERSION:
            raise FleetError(
                f"{self.root} has schema {version}, and this program knows {VERSION}: use a newer latscope"
            )
        return table

    def optional(self, name: str) -> DeltaTable | None:
        """Returns a table that a lake need not have."""
        return self.table(name) if DeltaTable.is_deltatable(self.uri(name)) else None

    def create(self, name: str) -> None:
        """Makes a table unless it is there."""
        schema = MUTES if name == "mutes" else TABLES[name]
        partition = ["day"] if "day" in schema.names else None
        if self.is_local:
            Path(self.root).mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(CommitFailedError):
            # Another process may make it at the same time.
            DeltaTable.create(
                self.uri(name),
                schema,
                mode="ignore",
                partition_by=partition,
                description=DESCRIPTION,
            )
            # delta-rs takes no property of its user's at once.
            table = DeltaTable(self.uri(name))
            if PROPERTY not in table.metadata().configuration and table.metadata().description == DESCRIPTION:
                table.alter.set_table_properties({PROPERTY: str(VERSION)}, raise_if_not_exists=False)

    def append(self, name: str, rows: pa.Table | Callable[[], pa.RecordBatchReader]) -> None:
        """Adds rows, or those that a function reads, to a table. Raises FleetError if they cannot be
        written."""
        self.commit(
            lambda: write_deltalake(
                self.table(name),
                rows() if callable(rows) else rows,
                mode="append",
                schema_mode="merge",
                writer_properties=writer(name),
            )
        )

    def commit(self, write: Callable[[], Any]) -> None:
        """Calls a function that writes, again where another process wrote first. Raises FleetError."""
        for attempt in range(TRIES):
            try:
                write()
                return
            except CommitFailedError as error:
                if attempt == TRIES - 1:
                    raise FleetError(f"{self.root}: others write all the time: {error!s:.300}") from None
                time.sleep(random.uniform(0.01, 0.1) * (attempt + 1))
            except (DeltaError, OSError) as error:
                raise FleetError(f"{self.root} cannot be written: {error!s:.600}") from None

    def snapshot(
        self, since: date | None = None, until: date | None = None, only: Sequence[str] = tuple(TABLES)
    ) -> Snapshot:
        """Returns the files of the days from `since` to `until`, both included; None leaves a side open.
        Tables that are not in `only`, which has `runs`, are empty."""
        # First runs: an ingestion writes them last, so that all other rows of these runs are there.
        tables = {name: self.table(name) for name in sorted(only, key=lambda name: name != "runs")}
        files: dict[str, tuple[File, ...]] = dict.fromkeys(TABLES, ())
        files |= {name: tuple(_within(files_of(table), since, until)) for name, table in tables.items()}
        batches = {file.batch for file in files["runs"]}
        days = [file.day for file in files["runs"]]
        # A day that was compacted has one file of runs, each of them once.
        unsettled = {day for day, files_of_day in Counter(days).items() if files_of_day > 1}
        unsettled |= {
            file.day
            for name in ("points", "h")
            for file in files[name]
            if file.batch is not None and file.batch not in batches
        }
        copies = _copies(tables["runs"], unsettled)
        batches |= {batch for _, batch, _ in copies}
        pending: dict[date, int] = {}
        for name in ("points", "h"):
            for file in files[name]:
                if file.batch is not None and file.batch not in batches:
                    assert file.day is not None
                    pending[file.day] = max(pending.get(file.day, 0), file.batch)
            files[name] = tuple(file for file in files[name] if file.batch is None or file.batch in batches)
        made = {table.metadata().configuration.get(PROPERTY) for table in tables.values()}
        return Snapshot(self.root, tables, files, _lost(copies), pending, made == {str(VERSION)})


def writer(name: str) -> WriterProperties:
    """Returns how files of a table are written."""
    split = ColumnProperties(dictionary_enabled=False, encoding="BYTE_STREAM_SPLIT")
    return WriterProperties(
        compression="ZSTD",
        compression_level=LEVEL,
        max_row_group_size=GROUP_ROWS.get(name, MOST_GROUP_ROWS),
        # A page ends at its size, not after the default of 20,000 rows, which is two runs.
        data_page_row_count_limit=1_000_000,
        column_properties=dict.fromkeys(SPLIT.get(name, ()), split),
    )


def new_batch() -> int:
    """Returns the id of a new batch, which grows with time: µs since 1970, and 10 random bits."""
    return (time.time_ns() // 1000 << 10) | random.getrandbits(10)


def batch_age(batch: int) -> float:
    """Returns the age of a batch in s."""
    return time.time() - (batch >> 10) / 1e6


def files_of(table: DeltaTable) -> Iterator[File]:
    """Yields the data files of a table. Raises FleetError if one is not below it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actions = pa.table(table.get_add_actions(flatten=True))
    # There is a column for the least and the greatest value of each column of the table.
    ranges = ("min.batch", "max.batch", "min.machine_id", "max.machine_id")
    needed = ("path", "num_records", "size_bytes", "partition.day", *ranges)
    root = table.table_uri.rstrip("/").removeprefix("file://")
    for action in actions.select([name for name in needed if name in actions.column_names]).to_pylist():
        if not FILE.fullmatch(action["path"]):
            raise FleetError(f"{root} has a file that no latscope names so: {action['path']!r:.200}")
        day = action.get("partition.day")
        low, high, first, last = (action.get(name) for name in ranges)
        yield File(
            uri=f"{root}/{action['path']}",
            day=date.fromisoformat(day) if isinstance(day, str) else day,
            rows=action["num_records"],
            bytes=action["size_bytes"],
            batch=low if low == high else None,
            machines=None if first is None or last is None else (first, last),
        )


def day_filter(since: date | None, until: date | None) -> list[tuple[str, str, date]] | None:
    """Returns a filter of delta-rs for days."""
    limits = [("day", ">=", since), ("day", "<=", until)]
    return [(name, sign, day) for name, sign, day in limits if day is not None] or None


def _within(files: Iterable[File], since: date | None, until: date | None) -> Iterator[File]:
    for file in files:
        if file.day is None or (
            (since is None or file.day >= since) and (until is None or file.day <= until)
        ):
            yield file


def _copies(runs: DeltaTable, days: set[date | None]) -> list[tuple[str, int, bool]]:
    """Returns the run_id, the batch, and whether the run has finished, of all rows of `runs` of some days.
    Raises FleetError if a run_id is malformed: no ingestion wrote it."""
    if not days:
        return []
    rows = runs.to_pyarrow_table(
        filters=[("day", "in", sorted(day for day in days if day is not None))],
        columns=["run_id", "batch", "finished"],
    )
    ids = rows["run_id"].to_pylist()
    odd = next((one for one in ids if not RUN_ID.fullmatch(one)), None)
    if odd is not None:
        raise FleetError(f"{runs.table_uri} has a run that no ingestion wrote: its run_id is {odd!r:.200}")
    return list(
        zip(
            ids,
            rows["batch"].to_pylist(),
            rows["finished"].is_valid().to_pylist(),
            strict=True,
        )
    )


def _lost(copies: list[tuple[str, int, bool]]) -> tuple[tuple[str, int], ...]:
    """Returns the copies that do not count: of each run the first finished one counts, else the first."""
    best: dict[str, tuple[bool, int]] = {}
    for run, batch, finished in copies:
        rank = (not finished, batch)
        best[run] = min(best.get(run, rank), rank)
    return tuple(sorted({(run, batch) for run, batch, _ in copies if best[run][1] != batch}))


def today() -> date:
    """Returns the day now, UTC."""
    return datetime.now(timezone.utc).date()
