"""Care of a lake: a day's files become one, what is not needed is removed, and all is read and counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from ._days import replace_day
from ._engine import DuckDb, question
from ._errors import FleetError
from ._lake import ORPHANED_AFTER, TRIES, File, Lake, Snapshot, batch_age, writer
from ._schema import ORDER, RUN_ID, TABLES
from ._series import hash_of
from ._store import source

#: Rows that are sorted or written at a time.
BATCH_ROWS = 1 << 15

#: Rows of a day's tables, in the order of a compacted file.
_SORTED = {
    name: f"SELECT * FROM {name} ORDER BY {', '.join(ORDER[name])}" for name in ("h", "points", "runs")
}
_SORTED["daily"] = """
    SELECT h.day, r.cpu_model, r.kernel, h.series_id, h.bucket, CAST(SUM(h.n) AS BIGINT) n,
           (SELECT COUNT(DISTINCT run_id) FROM runs) AS runs
    FROM h JOIN runs r ON r.run_id = h.run_id GROUP BY ALL ORDER BY ALL"""


@dataclass(frozen=True)
class Done:
    """What was done to a day: `compacted`, `left` (it is compact), or `busy` (an ingestion is at work)."""

    day: date
    what: str


def compact(
    lake: Lake, since: date | None = None, until: date | None = None, orphaned_after: float = ORPHANED_AFTER
) -> Iterator[Done]:
    """Makes one file a table of each day, without copies of runs, and the day's roll-up. Yields what was
    done.

    It may be killed at any instant and called again: each table is replaced at once, and has the same rows
    before and after. A day that has rows of a batch without its runs is left until the batch is
    `orphaned_after` s old: then its ingestion was killed, and its rows are removed. Raises FleetError if the
    lake cannot be read or written.
    """
    days = lake.snapshot(since, until).days()
    for day in days:
        for attempt in range(TRIES):
            try:
                yield Done(day, _compact_day(lake, day, orphaned_after))
                break
            except CommitFailedError as error:
                # An ingestion wrote rows of this day: they must be in it.
                if attempt == TRIES - 1:
                    raise FleetError(f"{day}: others write all the time: {error!s:.200}") from None
            except (DeltaError, FleetError, OSError, duckdb.Error, pa.ArrowException) as error:
                raise FleetError(f"{day} cannot be compacted, and is as before: {error!s:.300}") from None
    _compact_series(lake)
    if days:
        # A question reads one file of the log then, not one of each write.
        for name in TABLES:
            lake.table(name).create_checkpoint()


def _compact_day(lake: Lake, day: date, orphaned_after: float) -> str:
    snapshot = lake.snapshot(day, day)
    if day in snapshot.pending and batch_age(snapshot.pending[day]) < orphaned_after:
        return "busy"
    # A compacted day has one file of runs, and several of the others if it is large.
    many = len(snapshot.files["runs"]) > 1
    if not many and not snapshot.lost and not snapshot.pending and is_rolled_up(snapshot):
        return "left"
    engine = DuckDb(snapshot, in_order=True)
    try:
        for name, text in _SORTED.items():
            rows = engine.connection.sql(text).to_arrow_reader(BATCH_ROWS)
            replace_day(snapshot.tables[name], name, day, rows)
    finally:
        engine.close()
    return "compacted"


def is_rolled_up(snapshot: Snapshot) -> bool:
    """Returns true if the roll-up of a snapshot's only day has all of its runs."""
    day = snapshot.days()[0]
    rolled = snapshot.tables["daily"].to_pyarrow_table(filters=[("day", "=", day)], columns=["runs"])
    runs = snapshot.tables["runs"].to_pyarrow_table(filters=[("day", "=", day)], columns=["run_id"])
    is_whole: bool = rolled.num_rows > 0 and rolled["runs"][0].as_py() == len(set(runs["run_id"].to_pylist()))
    return is_whole


def _compact_series(lake: Lake) -> None:
    def write() -> None:
        table = lake.table("series")
        rows = table.to_pyarrow_table()
        first = {series: place for place, series in reversed(list(enumerate(rows["series_id"].to_pylist())))}
        if len(first) < rows.num_rows or len(table.file_uris()) > 1:
            kept = rows.take(pa.array(sorted(first.values()), pa.int64())).cast(TABLES["series"])
            write_deltalake(table, kept, mode="overwrite", writer_properties=writer("series"))

    lake.commit(write)


def vacuum(lake: Lake, hours: int, dry: bool) -> list[str]:
    """Removes files that no version of the last `hours` needs, and returns their names; with `dry` only
    names them.

    A question that began before may still read them: less than 24 hours is for lakes that nothing reads.
    """
    removed: list[str] = []
    for name in TABLES:
        table = lake.table(name)
        found = table.vacuum(hours, dry_run=dry, enforce_retention_duration=False)
        removed += [f"{name}/{path}" for path in found]
        if not dry:
            table.create_checkpoint()
            table.cleanup_metadata()
    return removed


def verify(lake: Lake) -> list[str]:
    """Reads all files of a lake, and returns what is wrong: files that are damaged or missing, points whose
    buckets do not add up to their count, ids of series that are not the hash of their identity, ids that
    several machines share."""
    snapshot = lake.snapshot()
    faults = [
        fault
        for name, files in snapshot.files.items()
        for file in files
        for fault in _damage(snapshot.tables[name], file)
    ]
    if faults:
        return faults
    engine = DuckDb(snapshot)
    try:
        for row in engine.query("SELECT series_id, identity FROM series_files").to_pylist():
            if hash_of(row["identity"]) != row["series_id"]:
                faults.append(f"series {row['series_id']} is not the hash of {row['identity']:.200}")
        for row in engine.query("SELECT DISTINCT run_id FROM runs").to_pylist():
            if not RUN_ID.fullmatch(row["run_id"]):
                faults.append(f"no ingestion wrote the run_id {row['run_id']!r:.200}")
        for row in engine.query(question("sums")).to_pylist():
            faults.append(
                f"run {row['run_id']}, series {row['series_id']}: {row['total']} counts, "
                f"{row['expected']} expected"
            )
        for row in engine.query(question("doubles"), since=date.min.isoformat()).to_pylist():
            faults.append(
                f"several machines have the id {row['machine_id']} on {row['day']}: "
                f"{row['one']}, {row['other']}"
            )
    finally:
        engine.close()
    return faults


def _damage(table: DeltaTable, file: File) -> list[str]:
    try:
        with pq.ParquetFile(source(table, file)) as opened:
            for _ in opened.iter_batches(1_000_000):
                pass
    except (OSError, pa.ArrowException) as error:
        return [f"{file.uri} is damaged: {error!s:.200}"]
    return []
