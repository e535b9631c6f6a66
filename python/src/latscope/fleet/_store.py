"""Files of a lake that is in a store (`s3://…`). delta-rs reads them, so that they need no extension of an
engine, and the store's address and keys are given once, in the environment."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pf
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler

from ._lake import File


def is_in_store(uri: str) -> bool:
    """Returns true if an address is in a store, and no path."""
    return "://" in uri


def dataset_of(table: DeltaTable, files: Iterable[File], schema: pa.Schema) -> ds.Dataset:
    """Returns rows of some files of a table, with the columns of `schema`; those that a file lacks are
    null."""
    wanted = {file.uri: file.day for file in files}
    # The order of columns is that of a directory's files: the day is in no file.
    ordered = sorted(schema, key=lambda field: field.name == "day")
    whole = table.to_pyarrow_dataset(schema=pa.schema(ordered))
    root = table.table_uri.rstrip("/")
    kept = []
    for one in whole.get_fragments():
        uri = f"{root}/{one.path}"
        if uri in wanted:
            # delta-rs says of a column without values that nothing in it matches, not even IS NULL.
            day = None if wanted[uri] is None else ds.field("day") == wanted[uri]
            kept.append(whole.format.make_fragment(one.path, whole.filesystem, day))
    return ds.FileSystemDataset(kept, whole.schema, whole.format, whole.filesystem)


def source(table: DeltaTable, file: File) -> str | pa.NativeFile:
    """Returns what Parquet's reader takes for a file of a table. Raises OSError if the store does not give
    it."""
    if not is_in_store(file.uri):
        return file.uri
    path = file.uri.removeprefix(table.table_uri.rstrip("/") + "/")
    return filesystem_of(table).open_input_file(path)


def filesystem_of(table: DeltaTable) -> pf.FileSystem:
    """Returns the directory of a table, or its place in the store."""
    return pf.PyFileSystem(DeltaStorageHandler(table.table_uri))
