"""Results: one or more runs, as tables, series and pages."""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import _command, _frames
from ._errors import Error, MergeError, SelectionError
from ._histogram import Histogram
from ._point import ParamValue, Point
from ._read import Run

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# The name that `--redact` gives to a machine.
_REDACTED = re.compile(r"machine-\d+")

#: The most runs whose pages a notebook shows.
PAGES = 4


@dataclass(frozen=True, repr=False)
class Results:
    """Runs, in the order read. `latscope.read` and `latscope.run` make it; `Results(a.runs + b.runs)` joins
    two."""

    runs: tuple[Run, ...]

    def __repr__(self) -> str:
        points = sum(len(run.points) for run in self.runs)
        return (
            f"Results: {len(self.runs)} runs, {points} points, of {_few([run.source for run in self.runs])}"
        )

    def points(self) -> pd.DataFrame:
        """Returns one row a point and run, as a pandas DataFrame.

        Columns: `run` (index in `runs`), `source`, `run_id`, `started`, `probe`, `revision`, `title`, `row`,
        `times`, `sampling`, `ops`, `level`, `reasons` (ids), `incomplete`, `verdict`, the figures of
        `summary`, `label.*` of the user, `param.*` and `value.*` (quantities beside the duration); missing
        where a row has none.

        Units, also in `df.attrs["units"]`: times and quantiles are ns, `cycles` core cycles, `count`,
        `rejected`, `missed` numbers of samples and activations, parameters ns (times) or bytes (sizes),
        values as the dictionary says. A quantile is missing as `summary` of docs/result-schema.md has it.
        Where `sampling` is batch, quantiles are of means over `ops` operations, not of single ones
        (docs/method.md). Raises ImportError without pandas.
        """
        return _frames.frame(_frames.point_rows(self.runs), _frames.units_of(self.runs))

    def rounds(self) -> pd.DataFrame:
        """Returns one row a round, point and run, as a pandas DataFrame: the first columns of `points()`,
        `round` (from 0, in order of time), `count`, `min`, `p50`, `p90`, `p99`, `p99_9`, `max` in ns,
        `cycles`, `label.*`, `param.*` and `value.*`. The fields are those of docs/result-schema.md
        ("rounds"). Raises ImportError without pandas."""
        return _frames.frame(_frames.round_rows(self.runs), _frames.units_of(self.runs))

    def to_arrow(self, table: Literal["points", "rounds"] = "points") -> pa.Table:
        """Returns the rows of `points()` or `rounds()` as an Arrow table, with the unit of a column in its
        field's metadata (`unit`). A parameter that is a number in some points and text in others is text in
        all. Raises ImportError without pyarrow."""
        rows = {"points": _frames.point_rows, "rounds": _frames.round_rows}[table]
        return _frames.arrow(rows(self.runs), _frames.units_of(self.runs))

    def select(self, probe: str, /, **params: ParamValue) -> list[Point]:
        """Returns all points of a probe in all runs that have these parameters (times in ns, sizes in bytes).
        Where Python reserves a name, give `**{"from": 1}`."""
        every = (point for run in self.runs for point in run.points)
        return [point for point in every if point.probe == probe and params.items() <= point.params.items()]

    def point(self, probe: str, /, **params: ParamValue) -> Point:
        """Returns the only point of `select()`. Raises SelectionError if none or several match: then
        `merge()` adds up runs, and further parameters choose among the points of one run."""
        found = self.select(probe, **params)
        if len(found) == 1:
            return found[0]
        raise SelectionError(self._why_not_one(probe, found))

    def histogram(self, *, probe: str, **params: ParamValue) -> Histogram:
        """Returns the histogram of one point, with all clean samples: `edges()` in ns and `counts()`. Raises
        SelectionError as `point()`. The geometry is that of docs/result-schema.md ("histogram, blocks")."""
        return self.point(probe, **params).histogram

    def quantile(self, q: float, /, *, probe: str, **params: ParamValue) -> float | None:
        """Returns the figure of one point at a quantile (0 to 1), ns, exactly as the command prints it; None
        where fewer than ten samples lie above it (docs/method.md, "From samples to figures").

        The median is that over the medians of the rounds, after `merge()` that of all samples. Raises
        SelectionError as `point()`, and ValueError if q is not within 0 to 1.
        """
        return self.point(probe, **params).quantile(q)

    def merge(self, *, across_machines: bool = False) -> Results:
        """Returns a result of one run, in which the histograms of equal series are added up; of one run,
        these results as they are.

        Series are equal if their probe, revision, parameters, kind of sample, planned length of a batch and
        meaning of the time are (docs/result-schema.md, `revision`). Counts and extremes are exact; what does
        not add up is left out: rounds, cycles, values, verdicts. A run in which few samples were taken counts
        for little: to judge a change, use `compare()`, whose unit is the run. Raises MergeError for runs of
        several machines, or of redacted machines, which may be several, unless `across_machines`; and
        without runs.
        """
        if len(self.runs) == 1:
            return self
        if not self.runs:
            raise MergeError("there are no runs to merge")
        machines = {(run.machine.get("id"), run.machine.get("name")) for run in self.runs}
        if len(machines) > 1 and not across_machines:
            names = _few([str(name) for _, name in machines])
            raise MergeError(
                f"the runs are of {len(machines)} machines ({names}): merge(across_machines=True)"
            )
        redacted = sorted({str(name) for _, name in machines if _REDACTED.fullmatch(str(name))})
        if redacted and not across_machines:
            raise MergeError(
                f"whether the runs are of one machine is not known ({', '.join(redacted)}: redacted"
                " results of several machines can have the same name): merge(across_machines=True)"
            )
        groups: dict[str, list[Point]] = {}
        for point in (point for run in self.runs for point in run.points):
            _add(groups.setdefault(point.name, []), point)
        first = self.runs[0]
        labels = dict(
            first.labels.items() & set.intersection(*(set(run.labels.items()) for run in self.runs))
        )
        merged = Run(
            source=f"merged: {_few([run.source for run in self.runs])}",
            run_id="",
            labels=labels,
            tool=first.tool,
            started=min((run.started for run in self.runs if run.started), default=None),
            finished=max((run.finished for run in self.runs if run.finished), default=None),
            machine=first.machine if len(machines) == 1 and not redacted else {},
            warnings=tuple(warning for run in self.runs for warning in run.warnings),
            findings=(),
            points=tuple(point for group in groups.values() for point in group),
        )
        return Results((merged,))

    def compare(self, other: Results, **options: Any) -> dict[str, Any]:
        """Returns the comparison of these runs (A) with others (B) by `latscope compare`: an object
        latscope-compare/1, whose fields and units are those of docs/compare.md ("JSON").

        Options are those of the command: `same="2%"`, `only="sync"`. Raises CommandError if it fails, and
        Error for a merged run, since the run is the unit of a comparison.
        """
        return _command.compare(self.runs, other.runs, options)

    def page(self) -> str:
        """Returns the page of the only run, as HTML that needs no other file (docs/report.md). Raises
        SelectionError if there are several runs, and CommandError if the command fails."""
        if len(self.runs) != 1:
            raise SelectionError(f"a page is of one run, and there are {len(self.runs)}: Results(x.runs[:1])")
        return _command.page(self.runs[0])

    def _repr_html_(self) -> str:
        """Returns the pages of the first four runs, each in a frame; the reason where there is no page."""
        frames = [_framed(run) for run in self.runs[:PAGES]]
        return f"<p>{html.escape(repr(self))}</p>{''.join(frames)}"

    def _why_not_one(self, probe: str, found: Sequence[Point]) -> str:
        if not found:
            probes = sorted({point.probe for run in self.runs for point in run.points})
            if probe not in probes:
                near = difflib.get_close_matches(probe, probes, 8) or probes
                return f"no point is of the probe {probe!r}; there are {_few(near)}"
            return f"no point of {probe} has these parameters; there are {_few(_names(self.select(probe)))}"
        names = _names(found)
        if len(names) == 1:
            return f"{len(found)} runs have {names[0]}: merge() them, or choose one by Results(x.runs[:1])"
        return f"{len(names)} points of {probe} have these parameters: {_few(names)}"


def _names(points: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(point.name for point in points))


def _few(names: Sequence[str]) -> str:
    """Returns up to eight names, and how many more there are."""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


def _add(group: list[Point], point: Point) -> None:
    """Adds a point to the series of its name that it belongs to."""
    for place, series in enumerate(group):
        if series.is_addable(point):
            group[place] = series.add(point)
            return
    group.append(point)


def _framed(run: Run) -> str:
    try:
        page = html.escape(_command.page(run), quote=True)
    except Error as error:
        return f"<pre>{html.escape(str(error))}</pre>"
    # The page has a script of its own, which may not reach the notebook.
    allowed = "allow-scripts allow-downloads"
    return f'<iframe sandbox="{allowed}" style="width:100%;height:800px;border:0" srcdoc="{page}"></iframe>'
