"""Rows as text: a table, CSV, JSON; or a Parquet file."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

FORMATS = ("table", "csv", "json", "parquet")

#: The most characters of a cell of a table.
WIDEST = 60


def text_of(rows: Sequence[dict[str, Any]], form: str, widest: int = WIDEST) -> str:
    """Returns rows as text that ends with a line feed. JSON is a list of objects, one a line; cells of a
    table have at most `widest` characters."""
    if form == "json":
        lines = ",\n ".join(json.dumps(_plain(row), ensure_ascii=False) for row in rows)
        return f"[{lines}]\n"
    names = list(rows[0]) if rows else []
    if form == "csv" and not rows:
        return ""
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([names, *([_cell(row[name]) for name in names] for row in rows)])
        return out.getvalue()
    cells = [names, *([_short(_cell(row[name]), widest) for name in names] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    numeric = [all(row[name] is None or isinstance(row[name], int | float) for row in rows) for name in names]
    texts = (
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in cells
    )
    return "\n".join(texts) + "\n" if rows else "nothing\n"


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
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _short(text: str, widest: int) -> str:
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return text if len(text) <= widest else text[: widest - 1] + "…"


def toml_of(rows: Sequence[dict[str, Any]]) -> str:
    """Returns the bands of `normal` as TOML: a table for each processor and series, ns."""
    parts = []
    for row in rows:
        parts.append(
            "[[band]]\n"
            + "".join(f"{name} = {json.dumps(value)}\n" for name, value in row.items() if value is not None)
        )
    return "\n".join(parts)
