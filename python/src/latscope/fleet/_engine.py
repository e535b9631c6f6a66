"""Engines, which answer SQL over the files of a snapshot: DuckDB in this process, Spark on many machines."""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
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

    def query(self, sql: str) -> pa.Table:
        """Returns the rows of a query. Raises FleetError, with the engine's text, if it fails."""

    def check(self, sql: str) -> None:
        """Raises FleetError unless a text is one query that only reads."""

    def close(self) -> None:
        """Ends the engine and its processes."""


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
        self.connection.execute("SET TimeZone = 'UTC'")
        self.uris = [file.uri for files in snapshot.files.values() for file in files]
        try:
            self._open(snapshot)
        except duckdb.Error as error:
            self.close()
            raise self._refusal(error) from None

    def _open(self, snapshot: Snapshot) -> None:
        # A file's footer is read for its columns, and again for its rows.
        self.connection.execute("LOAD parquet; SET parquet_metadata_cache = true")
        # Columns that files lack are looked for in each of them.
        unites = str(not snapshot.has_all_columns).lower()
        for name, schema in TABLES.items():
            files = [file.uri for file in snapshot.files[name]]
            if not files:
                self.connection.register("nothing", schema.empty_table())
                self.connection.execute(f"CREATE TABLE {name}_files AS FROM nothing")
            elif is_in_store(snapshot.root):
                rows = dataset_of(snapshot.tables[name], snapshot.files[name], schema)
                self.connection.register(f"{name}_files", rows)
            else:
                types = "{'day': DATE}" if "day" in schema.names else "{}"
                options = f"hive_partitioning = {str(types != '{}').lower()}, union_by_name = {unites}"
                options += f", hive_types = {types}" if types != "{}" else ""
                listed = ", ".join(_literal(uri) for uri in files)
                self.connection.execute(
                    f"CREATE VIEW {name}_files AS FROM read_parquet([{listed}], {options})"
                )
        for name, text in views(snapshot).items():
            self.connection.execute(f"CREATE VIEW {name} AS {text}")
        allowed = ", ".join(_literal(uri) for uri in self.uris)
        self.connection.execute(f"SET allowed_paths = [{allowed}]")
        for setting in ("enable_external_access = false", "lock_configuration = true"):
            self.connection.execute(f"SET {setting}")

    def query(self, sql: str) -> pa.Table:
        """Returns the rows of a query."""
        try:
            return self.connection.sql(sql).to_arrow_table()
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


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


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


def question(name: str, **words: Any) -> str:
    """Returns the text of a question of sql/, its `:word`s replaced by numbers, quoted texts, or lists of
    texts or of tuples of numbers."""
    text = (Path(__file__).parent / "sql" / f"{name}.sql").read_text()

    def value(found: re.Match[str]) -> str:
        word = words[found[1]]
        if isinstance(word, list):
            return ", ".join(_literal(one) if isinstance(one, str) else str(one) for one in word)
        return str(word) if isinstance(word, int | float) else _literal(str(word))

    # All at once: a name of a machine may look like a word.
    return re.sub(rf":({'|'.join(words)})\b", value, text) if words else text


def dicts(table: pa.Table) -> Sequence[dict[str, Any]]:
    """Returns the rows of a table."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
