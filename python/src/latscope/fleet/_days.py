"""Files of a compacted day: sorted rows, in row groups and files that end at their numbers of rows.

delta-rs mixes the rows of a table while it writes them, so that a question to one machine would read several
row groups and files of each day; only the commit is its own.
"""

import inspect
import json
import time
import uuid
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pf
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction

from ._lake import GROUP_ROWS, LEVEL, MOST_GROUP_ROWS, SPLIT
from ._schema import TABLES
from ._store import filesystem_of

#: Row groups of a file: a question to one machine opens the file that has it.
GROUPS = {"points": 32}
MOST_GROUPS = 8

#: Rows of a page, where a page does not end at its size alone: a question to one machine unpacks one.
PAGE_ROWS = {"points": 1 << 12}

#: True if pyarrow knows a limit of rows. Older ones end a page at its size alone.
_LIMITS_PAGES = "max_rows_per_page" in inspect.signature(pq.ParquetWriter.__init__).parameters


def replace_day(table: DeltaTable, name: str, day: date, rows: Iterable[pa.RecordBatch]) -> None:
    """Replaces the files of a day of a table, as it was when it was read, by files with some rows. Files that
    others add meanwhile stay. Raises CommitFailedError if others replaced the day."""
    filesystem = filesystem_of(table)
    schema = pa.schema([field for field in TABLES[name] if field.name != "day"])
    actions: list[Any] = []
    groups: list[pa.Table] = []
    for group in _groups(rows, schema, GROUP_ROWS.get(name, MOST_GROUP_ROWS)):
        groups.append(group)
        if len(groups) == GROUPS.get(name, MOST_GROUPS):
            actions.append(_write(filesystem, name, day, groups))
            groups = []
    if groups:
        actions.append(_write(filesystem, name, day, groups))
    of_day: Any = [("day", "=", day.isoformat())]
    table.create_write_transaction(actions, "overwrite", Schema.from_arrow(TABLES[name]), ["day"], of_day)


def _groups(rows: Iterable[pa.RecordBatch], schema: pa.Schema, size: int) -> Iterator[pa.Table]:
    """Yields rows with the columns of a schema in tables of `size` rows; the last one may have fewer."""
    held = schema.empty_table()
    for batch in rows:
        held = pa.concat_tables([held, _typed(batch, schema)])
        while held.num_rows >= size:
            yield held.slice(0, size)
            held = held.slice(size)
    if held.num_rows:
        yield held


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Returns a batch with the columns of a schema in their order; missing ones are null."""
    columns = [
        batch[field.name].cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _write(filesystem: pf.FileSystem, name: str, day: date, groups: list[pa.Table]) -> AddAction:
    """Writes a file with some row groups, and returns what the log says about it."""
    schema, split = groups[0].schema, SPLIT.get(name, ())
    path = f"day={day.isoformat()}/part-{uuid.uuid4()}.zstd.parquet"
    filesystem.create_dir(path.partition("/")[0])
    with filesystem.open_output_stream(path) as sink:
        with pq.ParquetWriter(
            sink,
            schema,
            compression="zstd",
            compression_level=LEVEL,
            use_dictionary=[leaf for leaf in _leaves(schema) if leaf not in split],
            column_encoding=dict.fromkeys(split, "BYTE_STREAM_SPLIT"),
            **({"max_rows_per_page": PAGE_ROWS.get(name, MOST_GROUP_ROWS)} if _LIMITS_PAGES else {}),
        ) as writer:
            for group in groups:
                writer.write_table(group, row_group_size=group.num_rows)
        size = sink.tell()
    now, said = time.time_ns() // 1_000_000, json.dumps(_statistics(groups))
    return AddAction(path, size, {"day": day.isoformat()}, now, True, said)


def _leaves(schema: pa.Schema) -> Iterator[str]:
    """Yields the paths of Parquet's columns."""
    for field in schema:
        inner = ("key", "value") if pa.types.is_map(field.type) else ()
        yield from (f"{field.name}.key_value.{part}" for part in inner) if inner else (field.name,)


def _statistics(groups: list[pa.Table]) -> dict[str, Any]:
    """Returns what the log of Delta Lake says about the rows of a file. Readers take a column of numbers,
    texts or times without a least value for one without rows."""
    rows = pa.concat_tables(groups)
    plain = [
        field.name for field in rows.schema if not pa.types.is_nested(field.type) and field.name != "root"
    ]
    ranges = {name: pc.min_max(rows[name]).as_py() for name in plain}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: _said(one["min"]) for name, one in ranges.items()},
        "maxValues": {name: _said(one["max"]) for name, one in ranges.items()},
        "nullCount": {name: rows[name].null_count for name in plain},
    }


def _said(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
