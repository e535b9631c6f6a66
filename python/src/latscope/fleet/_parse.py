"""One result becomes rows, in a process of its own."""

import gc
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from .._errors import ForeignError, ResultError
from .._files import open_regular
from ._document import document_of, text_of
from ._rows import Row, Rows, rows_of
from ._sources import Item

#: Objects that are made before Python looks for cycles: a result is many objects without any.
OBJECTS = 200_000


@dataclass(frozen=True)
class Parsed:
    """Rows of one result, those of `points` and `h` in Arrow's stream format; or what is wrong with it, and
    its text as gzip packs it: a long one may have come from few bytes."""

    name: str
    size: int
    run: Row | None = None
    series: Sequence[Row] = ()
    points: bytes = b""
    h: bytes = b""
    fault: str | None = None
    packed: bytes | None = None


class Parser:
    """Parser of results. `day` is the day of all of them, if not None."""

    def __init__(self, day: date | None) -> None:
        self.day = day
        self.known: set[int] = set()

    def parse(self, item: Item) -> Parsed:
        """Returns the rows of one result; those of `series` only of a series that is new to this parser."""
        text = b""
        try:
            text = _text(item)
            rows = rows_of(document_of(text, item.name), text, item.name, self.day, self.known)
            return _packed(item.name, len(text), rows)
        except (ResultError, ForeignError) as error:
            fault = error.reason
        except OSError as error:
            fault = error.strerror or str(error)
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            OverflowError,
            pa.ArrowException,
        ) as error:
            fault = f"its fields are not those of a result: {error!s:.200}"
        return Parsed(
            item.name, len(text), fault=fault, packed=gzip.compress(text, 1, mtime=0) if text else None
        )


_parser = Parser(None)


def start(day: date | None) -> None:
    """Makes the parser of this process."""
    global _parser  # noqa: PLW0603
    _parser = Parser(day)
    gc.set_threshold(OBJECTS)


def parse(items: Sequence[Item]) -> list[Parsed]:
    """Returns the rows of some results."""
    return [_parser.parse(item) for item in items]


def _text(item: Item) -> bytes:
    if item.fault is not None:
        raise ResultError(item.name, item.fault)
    if item.text is not None:
        return text_of(io.BytesIO(item.text), item.name)
    try:
        with open_regular(item.name, item.below) as file:
            return text_of(file, item.name)
    except FileNotFoundError:
        raise ResultError(item.name, "there is no such file") from None


def _packed(name: str, size: int, rows: Rows) -> Parsed:
    return Parsed(name, size, rows.run, rows.series, _stream(rows.points), _stream(rows.h))


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpacked(stream: bytes) -> pa.Table:
    """Returns a table from Arrow's stream format."""
    return pa.ipc.open_stream(stream).read_all()
