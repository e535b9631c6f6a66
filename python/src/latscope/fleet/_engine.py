"""Engines, which answer SQL over the files of a snapshot: DuckDB in this process, Spark on many machines."""

import os
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from ._errors import FleetError
from ._lake import Snapshot
from ._schema import TABLES
from ._store import dataset_of, is_in_store
from ._views import views


class Engine(Protocol):
    """Engine with the tables and views of a snapshot."""

    def query(self, sql: str, **words: Any) -> pa.Table:
        """Returns the rows of a query, in which `:word` stands for a value of `words`: a number, a text or a
        list of texts. Raises FleetError, with the engine's text, if it fails."""

    def answer(self, sql: str) -> pa.Table:
        """Returns the rows of a user's query. Raises FleetError if it fails, or has more rows than
        `MOST_ANSWER`."""

    def check(self, sql: str) -> None:
        """Raises FleetError unless a text is one query that only reads."""

    def close(self) -> None:
        """Ends the engine and its processes."""


#: Rows of an answer that are read at once.
BATCH = 50_000

#: The most rows of an answer to a user's query: they are held in memory.
MOST_ANSWER = 1_000_000


def too_many() -> FleetError:
    """Returns the refusal of an answer that is too long."""
    return FleetError(f"the answer has more than {MOST_ANSWER} rows: add LIMIT to the query")


#: What DuckDB holds in memory; the rest goes to a temporary directory. Python and its tables need as much
#: again.
MEMORY = "1GB"


class DuckDb:
    """DuckDB: no process, no service."""

    def __init__(self, snapshot: Snapshot, in_order: bool = False) -> None:
        """Makes the views, and shuts all files but those of the snapshot. Only with `in_order` do batches of
        a sorted answer come in its order: two threads give them out otherwise."""
        self.spill = tempfile.TemporaryDirectory(prefix="latscope-fleet-")
        self.connection = duckdb.connect(
            config={
                "temp_directory": self.spill.name,
                "threads": os.cpu_count() or 1,
                "memory_limit": MEMORY,
                "preserve_insertion_order": in_order,
            }
        )
        self.uris = [file.uri for files in snapshot.files.values() for file in files]
        try:
            self._open(snapshot)
        except duckdb.Error as error:
            self.close()
            raise self._refusal(error) from None

    def _open(self, snapshot: Snapshot) -> None:
        # A file's footer is read for its columns, and again for its rows.
        self.connection.execute("LOAD parquet; SET parquet_metadata_cache = true; SET TimeZone = 'UTC'")
        # From here on no statement reads or writes another file, whatever a lake has in it.
        self.connection.execute("SET allowed_paths = ?", [self.uris])
        self.connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        for name, schema in TABLES.items():
            files = [file.uri for file in snapshot.files[name]]
            if not files:
                self.connection.register(f"{name}_files", schema.empty_table())
            elif is_in_store(snapshot.root):
                rows = dataset_of(snapshot.tables[name], snapshot.files[name], schema)
                self.connection.register(f"{name}_files", rows)
            else:
                self.connection.read_parquet(
                    files,
                    hive_partitioning="day" in schema.names,
                    # Columns that files lack are looked for in each of them.
                    union_by_name=not snapshot.has_all_columns,
                ).create_view(f"{name}_files")
        self.connection.register("lost", lost_of(snapshot))
        for name, text in views(bool(snapshot.lost)).items():
            self.connection.sql(text).create_view(name)

    def query(self, sql: str, **words: Any) -> pa.Table:
        """Returns the rows of a query, in which `:word` stands for a value of `words`."""
        try:
            if words:
                # DuckDB's sign of a value is another one.
                sql = re.sub(r"(?<!:):(?=[a-z])", "$", sql)
                return self.connection.sql(sql, params=words).to_arrow_table()
            return self.connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise self._refusal(error) from None

    def answer(self, sql: str) -> pa.Table:
        """Returns the rows of a user's query, read batch by batch, so that a signal ends a long one."""
        try:
            reader = self.connection.sql(sql).to_arrow_reader(BATCH)
            batches: list[pa.RecordBatch] = []
            for batch in reader:
                batches.append(batch)
                if sum(batch.num_rows for batch in batches) > MOST_ANSWER:
                    raise too_many()
            return pa.Table.from_batches(batches, reader.schema)
        except duckdb.Error as error:
            raise self._refusal(error) from None

    def _refusal(self, error: duckdb.Error) -> FleetError:
        named = next((uri for uri in self.uris if uri in str(error)), None)
        if named is None:
            return FleetError(f"DuckDB refuses the query: {error!s:.500}")
        return FleetError(
            f"the file {named} of the lake is damaged or missing: choose other days by --since and --until; "
            "`latscope-fleet verify` names all such files"
        )

    def check(self, sql: str) -> None:
        """Raises FleetError unless a text is one query that only reads."""
        try:
            statements = self.connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise FleetError("give one query that only reads: SELECT … or WITH … SELECT")
        except duckdb.Error as error:
            raise FleetError(f"DuckDB refuses the query: {error!s:.500}") from None

    def close(self) -> None:
        """Frees the memory and the directory for what did not fit into it."""
        self.connection.close()
        self.spill.cleanup()


def lost_of(snapshot: Snapshot) -> pa.Table:
    """Returns the table of the copies of runs that do not count."""
    runs, batches = zip(*snapshot.lost, strict=True) if snapshot.lost else ((), ())
    return pa.table({"run_id": pa.array(runs, pa.string()), "batch": pa.array(batches, pa.int64())})


@contextmanager
def engine(name: str, snapshot: Snapshot, master: str = "local-cluster[2,1,1024]") -> Iterator[Engine]:
    """Gives an engine, `duckdb` or `spark`, over a snapshot. Raises FleetError if it is not installed."""
    made: Engine
    if name == "spark":
        try:
            from ._spark import Spark  # noqa: PLC0415
        except ImportError:
            raise FleetError(
                "Spark is not installed: pip install 'latscope[spark]', and Java 17 or newer"
            ) from None
        made = Spark(snapshot, master)
    else:
        made = DuckDb(snapshot)
    try:
        yield made
    finally:
        made.close()


def question(name: str) -> str:
    """Returns the text of a question of sql/. Its `:word`s are for values that `query` is given."""
    return (Path(__file__).parent / "sql" / f"{name}.sql").read_text()


def words_of(by: str, known: Collection[str]) -> dict[str, str]:
    """Returns the words of a question by groups: `by` is one of the `known` ones, or `label=NAME`. Raises
    ValueError."""
    if not by.startswith("label=") and by not in known:
        raise ValueError(f"--by {by}: choose {', '.join(known)} or label=NAME")
    by, _, label = by.partition("=")
    return {"by": by, "label": label}


def dicts(table: pa.Table) -> Sequence[dict[str, Any]]:
    """Returns the rows of a table."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
