"""Tables of results: rows as dictionaries, which become pandas DataFrames or Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ._point import QUANTILES, ROUND_FIGURES, Point
from ._read import Run

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row: TypeAlias = dict[str, object]

#: Units of the columns that every table has; those of `value.*` are in the results.
UNITS = {
    "ops": "operations of a batch",
    "count": "samples",
    "rejected": "samples",
    "missed": "activations",
    **dict.fromkeys(["min", *QUANTILES, "max", "mean"], "ns"),
    "cycles": "core cycles",
}

#: Unit of a parameter that is a number, unless it counts something.
PARAM_UNIT = "ns of times, bytes of sizes"


def point_rows(runs: Sequence[Run]) -> Iterator[Row]:
    """Returns a row for each point of each run."""
    for place, run in enumerate(runs):
        for point in run.points:
            about = {
                "times": point.times,
                "sampling": point.sampling,
                "ops": point.ops,
                "level": point.level,
                "reasons": ",".join(reason.id for reason in point.reasons),
                "incomplete": point.incomplete,
                "verdict": point.verdict,
            }
            values = {f"value.{name}": value.value for name, value in point.values.items()}
            yield {**_named(place, run, point), **about, **point.figures(), **_params(point, run), **values}


def round_rows(runs: Sequence[Run]) -> Iterator[Row]:
    """Returns a row for each round of each point of each run."""
    for place, run in enumerate(runs):
        for point in run.points:
            for number, one in enumerate(point.all_rounds()):
                figures = {name: getattr(one, name) for name in ("count", *ROUND_FIGURES)}
                values = {f"value.{name}": value for name, value in one.values.items()}
                yield {
                    **_named(place, run, point),
                    "round": number,
                    **figures,
                    **_params(point, run),
                    **values,
                }


def units_of(runs: Sequence[Run]) -> dict[str, str]:
    """Returns the units of columns; several of one value name, if probes differ, with " or " between them."""
    units: dict[str, set[str]] = {}
    for point in (point for run in runs for point in run.points):
        for name, value in point.values.items():
            units.setdefault(f"value.{name}", set()).add(value.unit)
    return UNITS | {name: " or ".join(sorted(found)) for name, found in sorted(units.items())}


def frame(rows: Iterator[Row], units: dict[str, str]) -> pd.DataFrame:
    """Returns a DataFrame. Whole numbers are Int64, numbers float64; a column of numbers and texts has
    objects."""
    import pandas as pd  # noqa: PLC0415

    columns = _columns(rows)
    table = pd.DataFrame(
        {name: pd.Series(values, dtype=_pandas_type(name, values)) for name, values in columns.items()}
    )
    table.attrs["units"] = {
        name: unit for name in columns if (unit := _unit(name, columns[name], units)) is not None
    }
    return table


def _unit(name: str, values: Sequence[object], units: dict[str, str]) -> str | None:
    """Returns the unit of a column; None if it has none."""
    is_number = _kind(name, values) in ("whole", "number")
    return PARAM_UNIT if name.startswith("param.") and is_number else units.get(name)


def arrow(rows: Iterator[Row], units: dict[str, str]) -> pa.Table:
    """Returns an Arrow table, whose fields have their unit as metadata. A column of numbers and texts has
    texts."""
    import pyarrow as pa  # noqa: PLC0415

    arrays, fields = [], []
    for name, values in _columns(rows).items():
        kind = _kind(name, values)
        texts = [None if value is None else str(value) for value in values]
        types = {"whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
        unit = _unit(name, values, units)
        metadata = None if unit is None else {"unit": unit}
        fields.append(pa.field(name, types.get(kind, pa.string()), metadata=metadata))
        arrays.append(pa.array(values if kind in types else texts, type=fields[-1].type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _named(place: int, run: Run, point: Point) -> Row:
    return {
        "run": place,
        "source": run.source,
        "run_id": run.run_id,
        "started": run.started,
        "probe": point.probe,
        "revision": point.revision,
        "title": point.title,
        "row": point.row,
    }


def _params(point: Point, run: Run) -> Row:
    labels = {f"label.{name}": value for name, value in run.labels.items()}
    return labels | {f"param.{name}": value for name, value in point.params.items()}


def _columns(rows: Iterator[Row]) -> dict[str, list[Any]]:
    """Returns the columns of all rows, None where a row lacks one: usual ones, labels, parameters, then
    values."""
    every = list(rows)
    names = dict.fromkeys(name for row in every for name in row)
    groups = ("", "label", "param", "value")
    order = sorted(names, key=lambda name: groups.index(name.split(".")[0] if "." in name else ""))
    return {name: [row.get(name) for row in every] for name in order}


def _kind(name: str, values: Sequence[object]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if name in UNITS and not kinds:
        return "number"
    large = any(isinstance(value, int) and abs(value) >= 2**63 for value in values)
    for kind, members in (("truth", {bool}), ("whole", {int}), ("number", {int, float}), ("text", {str})):
        if kinds <= members and not (large and kind == "whole"):
            return kind if kinds else "text"
    return "mixed"


def _pandas_type(name: str, values: Sequence[object]) -> str:
    types = {"whole": "Int64", "number": "float64", "truth": "bool"}
    return types.get(_kind(name, values), "object")
