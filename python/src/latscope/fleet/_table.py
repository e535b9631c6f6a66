"""Tables of the pages: what a reader searches and sorts by, and how cells are written."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

Row = dict[str, Any]

#: Rows of a part of a table.
PART = 100

#: Columns of text: they begin with the first letter, numbers with the greatest.
_TEXTS = ("name", "machine_id", "probe", "title", "cpu_model", "kernel", "level", "state")


def table(
    words: Mapping[str, str],
    rows: Sequence[Row],
    searched: Sequence[str],
    sort: str,
    key: Callable[[Row, str], Any] = dict.get,
) -> dict[str, Any]:
    """Returns what a template shows of rows, by the words of an address: those that have all of `q` in a
    column of `searched`, by the column `sort` (in the order `order`: up or down), a part of them.

    `sort` here is the column without one in the address; `key` returns the value of a row in a column. Rows
    without one come last.
    """
    sort = words.get("sort", sort)
    found = _matching(rows, words.get("q", ""), searched)
    backwards = words.get("order", "up" if sort in _TEXTS else "down") == "down"
    keyed = [(_folded(key(row, sort)), row) for row in found]
    known = [pair for pair in keyed if pair[0] is not None]
    with contextlib.suppress(TypeError):
        # A column of what has no order, as labels, leaves the rows as they are.
        known.sort(key=lambda pair: pair[0], reverse=backwards)
    found = [row for _, row in known] + [row for value, row in keyed if value is None]
    page = _number(words.get("page", "1"))
    shown = found[(page - 1) * PART : page * PART]
    return {"rows": shown, "found": found, "sort": sort, "page": page, "last": -(-len(found) // PART)}


def _matching(rows: Sequence[Row], text: str, searched: Sequence[str]) -> list[Row]:
    wanted = text.lower().split()
    texts = (" ".join(str(row[name]) for name in searched).lower() for row in rows)
    return [row for row, text in zip(rows, texts, strict=True) if all(word in text for word in wanted)]


def _folded(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _number(text: str) -> int:
    return max(1, int(text)) if text.isdecimal() and len(text) < 8 else 1


def link(path: str, /, **words: object) -> str:
    """Returns an address of a page with its words, without those that are None or empty."""
    given = {name: str(value) for name, value in words.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def ratio_text(ratio: float | None) -> str:
    """Returns a ratio with two digits of fraction: `1.02×`; a dash for None."""
    return "–" if ratio is None else f"{ratio:.2f}×" if ratio < 99.5 else f"{ratio:,.0f}×"


def heat(score: float) -> str:
    """Returns the class of a cell: how many deviations of the peers it is away from them."""
    if score <= -3:
        return "faster"
    return "far" if score >= 8 else "slower" if score >= 5 else "bit" if score >= 3 else "same"


def time_text(ns: float | None) -> str:
    """Returns a time with three digits and its unit: `1.23 µs`; a dash for None."""
    if ns is None:
        return "–"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= 0.9995 * size:
            return f"{_three(ns / size)} {unit}"
    return f"{_three(ns)} ns"


def _three(number: float) -> str:
    digits = 2 if abs(number) < 9.995 else 1 if abs(number) < 99.95 else 0
    return f"{number:,.{digits}f}"
