"""Rows as text: a table, CSV, JSON; or a Parquet file."""

import csv
import io
import sys
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .._clean import cell, clean, json_of, one_line
from .._files import write_whole
from ._errors import FleetError

FORMATS = ("table", "csv", "json", "parquet")

#: The most characters of a cell of a table.
WIDEST = 60


def text_of(rows: Sequence[dict[str, Any]], form: str, widest: int = WIDEST) -> str:
    """Returns rows as text that ends with a line feed. JSON is a list of objects, one a line; cells of a
    table have at most `widest` characters."""
    if form == "json":
        lines = ",\n ".join(json_of(_plain(row)) for row in rows)
        return f"[{lines}]\n"
    names = list(rows[0]) if rows else []
    if form == "csv" and not rows:
        return ""
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows(
            [[cell(name) for name in names], *([cell(_cell(row[name])) for name in names] for row in rows)]
        )
        return clean(out.getvalue())
    heading = [one_line(name) for name in names]
    cells = [heading, *([_short(_cell(row[name]), widest) for name in names] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    numeric = [all(row[name] is None or isinstance(row[name], int | float) for row in rows) for name in names]
    texts = (
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in cells
    )
    return clean("\n".join(texts)) + "\n" if rows else "nothing\n"


def write(rows: Sequence[dict[str, Any]] | pa.Table, form: str, output: Path | None) -> None:
    """Prints rows in a form, or writes them to a file. Raises FleetError."""
    if form == "parquet":
        if output is None:
            raise FleetError("--format parquet needs --output FILE")
        made = pa.BufferOutputStream()
        pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), made)
        write_whole(output, made.getvalue().to_pybytes())
        return
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    if output is not None:
        write_whole(output, text_of(listed, form).encode())
    else:
        # A pipe, unlike a terminal, has room for whole cells.
        sys.stdout.write(text_of(listed, form, WIDEST if sys.stdout.isatty() else sys.maxsize))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, Decimal):
        # DuckDB's sum of integers is one.
        return int(value) if value == int(value) else float(value)
    return value.isoformat() if isinstance(value, date | datetime) else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    plain = _plain(value)
    return plain if isinstance(plain, str) else json_of(plain)


def _short(text: str, widest: int) -> str:
    text = one_line(text)
    return text if len(text) <= widest else text[: widest - 1] + "…"


def toml_of(rows: Sequence[dict[str, Any]]) -> str:
    """Returns the bands of `normal` as TOML: a table for each processor and series, ns."""
    parts = []
    for row in rows:
        parts.append(
            "[[band]]\n"
            + "".join(
                f"{name} = {json_of(value, is_toml=True)}\n"
                for name, value in row.items()
                if value is not None
            )
        )
    return "\n".join(parts)
