"""Plots of the pages, drawn by Matplotlib as SVG: light or dark, wide or narrow."""

import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from . import _judge
from ._table import Row, time_text

# Text stays text; ids do not change from one drawing to the next.
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "latscope",
    "font.family": "sans-serif",
    "font.size": 9.5,
}

#: Matplotlib's settings are those of the process.
_DRAWING = threading.Lock()

P = ParamSpec("P")


@dataclass(frozen=True)
class Look:
    """Colours and width of a plot."""

    dark: bool = False
    narrow: bool = False

    @property
    def ink(self) -> str:
        """Colour of text."""
        return "#a5a9ae" if self.dark else "#5a5a5a"

    @property
    def line(self) -> str:
        """Colour of axes and grids."""
        return "#3a3f45" if self.dark else "#dcdcdc"

    @property
    def peers(self) -> str:
        """Colour of the peers."""
        return "#60656b" if self.dark else "#b4b8bd"

    @property
    def own(self) -> str:
        """Colour of the machine that is marked."""
        return "#ff8a73" if self.dark else "#b0200c"

    @property
    def width(self) -> float:
        """Width in inches."""
        return 3.7 if self.narrow else 8.6


def _drawn(draw: Callable[P, Figure]) -> Callable[P, bytes]:
    """Returns a function that draws with our settings, and returns SVG."""

    @wraps(draw)
    def drawn(*words: P.args, **named: P.kwargs) -> bytes:
        sink = io.BytesIO()
        with _DRAWING, mpl.rc_context(_SETTINGS):
            draw(*words, **named).savefig(
                sink, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
            )
        return sink.getvalue()

    return drawn


@_drawn
def families(shifts: dict[str, _judge.Floats], row: int, look: Look) -> Figure:
    """Returns a plot of where a machine lies among its peers, a line for each family. `shifts` are the
    ratios of all machines to their peers by family, `row` is the machine's place in them."""
    names = list(shifts)[::-1]
    figure, axes = _figure(look, 0.6 + 0.3 * len(names))
    reach = 1.1
    for height, name in enumerate(names):
        ratios = shifts[name]
        known = ratios[~np.isnan(ratios)]
        if not known.size:
            continue
        low, high = np.quantile(known, [0.05, 0.95])
        axes.plot([low, high], [height, height], color=look.peers, linewidth=7, solid_capstyle="butt")
        axes.plot(np.median(known), height, "|", color=look.ink, markersize=11)
        if not np.isnan(ratios[row]):
            axes.plot(ratios[row], height, "D", color=look.own, markersize=6)
            reach = max(reach, ratios[row], 1 / ratios[row])
        reach = max(reach, high, 1 / low)
    axes.set_xscale("log")
    reach = float(reach) ** 1.1
    axes.set_xlim(1 / reach, reach)
    axes.xaxis.set_major_locator(FixedLocator(_ratios(reach)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}×"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    return figure


#: Columns of `bench` that its plot has, with the names of their lines.
_OF_FLEETS = {
    "MB": "size of a day, MB",
    "sick": "sick, s",
    "quantiles": "quantiles from buckets, s",
    "rolled up": "quantiles from the roll-up, s",
}


@_drawn
def fleets(rows: Sequence[Row], look: Look) -> Figure:
    """Returns a plot of the rows of `bench` that are days of fleets, by their number of machines."""
    figure, axes = _figure(look, 2.8)
    for mark, (name, title) in zip("oDs^", _OF_FLEETS.items(), strict=True):
        axes.plot([row["machines"] for row in rows], [row[name] for row in rows], f"{mark}-", label=title)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("machines", color=look.ink)
    _legend(figure, look)
    return figure


def _ratios(reach: float) -> list[float]:
    """Returns ratios to be named on an axis that has `1 / reach` to `reach`."""
    steps = next((steps for most, steps in _STEPS if reach <= most), (2.0, 10.0, 100.0, 1000.0))
    return [1.0, *steps, *(1 / step for step in steps)]


_STEPS = ((1.18, (1.1,)), (1.6, (1.25, 1.5)), (3.2, (1.5, 2.0, 3.0)), (12.0, (2.0, 5.0, 10.0)))


@_drawn
def machines(rows: Sequence[Row], machine: str, look: Look) -> Figure:
    """Returns a plot of the machines' medians and 99th percentiles of a series (rows of page_places.sql), one
    of them marked."""
    kinds = [(name, title) for name, title in (("p50", "median"), ("p99", "99th percentile"))]
    kinds = [(name, title) for name, title in kinds if any(row[name] for row in rows)]
    figure, _ = _figure(look, 0.5 + 1.15 * max(len(kinds), 1), parts=max(len(kinds), 1))
    for axes, (name, title) in zip(figure.axes, kinds, strict=False):
        values = np.array([row[name] for row in rows if row[name]])
        edges = _edges(values, 30 if look.narrow else 60)
        axes.hist(values, bins=list(edges), color=look.peers)
        own = next((row[name] for row in rows if row["machine_id"] == machine and row[name]), None)
        if own is not None:
            axes.axvline(own, color=look.own, linewidth=2)
        _times(axes, edges[0], edges[-1], look)
        axes.set_ylabel("machines", color=look.ink)
        axes.set_title(title, loc="left", color=look.ink, fontsize=9.5)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    return figure


@_drawn
def samples(rows: Sequence[Row], tick_ps: int, has_own: bool, look: Look) -> Figure:
    """Returns a plot of how the samples of a series are distributed (rows of page_samples.sql): of the
    peers, and of one machine."""
    buckets = np.array([row["bucket"] for row in rows])
    middles = np.exp(_judge.log_of_bucket(buckets)) * tick_ps / 1000
    own = np.array([row["own"] for row in rows], dtype=float)
    others = np.array([row["total"] for row in rows], dtype=float) - own
    edges = _edges(middles, 45 if look.narrow else 90)
    figure, axes = _figure(look, 2.3)
    sides: list[tuple[Any, dict[str, Any]]] = [
        (
            others,
            {"color": look.peers, "label": "peers" if has_own else "all machines", "histtype": "stepfilled"},
        )
    ]
    if has_own:
        mark = {"color": look.own, "label": "this machine", "histtype": "step", "linewidth": 1.8}
        sides.append((own, mark))
    for counts, how in sides:
        if counts.sum():
            axes.hist(middles, bins=list(edges), weights=100 * counts / counts.sum(), **how)
    _times(axes, edges[0], edges[-1], look)
    axes.set_ylabel("% of samples", color=look.ink)
    _legend(figure, look)
    return figure


@_drawn
def trend(rows: Sequence[Row], look: Look) -> Figure:
    """Returns a plot of a series' median by day (rows of page_trend.sql): the band of the fleet, and one
    machine."""
    figure, axes = _figure(look, 2.2)
    days = np.array([np.datetime64(row["day"]) for row in rows])
    low, middle, high, own = (
        np.array([row[name] if row[name] is not None else np.nan for row in rows], dtype=float)
        for name in ("low", "middle", "high", "own")
    )
    axes.fill_between(days, low, high, color=look.peers, alpha=0.5, linewidth=0, label="5 to 95 % of runs")
    axes.plot(days, middle, color=look.ink, linewidth=1, label="median of runs")
    if not np.all(np.isnan(own)):
        axes.plot(days, own, "D-", color=look.own, markersize=4, linewidth=1.5, label="this machine")
    known = np.concatenate([low, high, own])
    known = known[~np.isnan(known)]
    if known.max() > 4 * known.min():
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(known.min() * 0.9, known.max() * 1.1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ns, _: _tick(ns)))
    axes.set_xticks(days[:: max(1, len(days) // (3 if look.narrow else 8))])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda day, _: str(np.datetime64(int(day), "D"))[5:]))
    _legend(figure, look)
    return figure


def _figure(look: Look, height: float, parts: int = 1) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(look.width, height), layout="constrained", facecolor="none")
    for place in range(parts):
        axes = figure.add_subplot(parts, 1, place + 1, facecolor="none")
        axes.tick_params(colors=look.ink, which="both", length=3)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x", color=look.line, linewidth=0.8)
        axes.set_axisbelow(True)
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(look.line)
    return figure, figure.axes[0]


def _legend(figure: Figure, look: Look) -> None:
    columns = 2 if look.narrow else 3
    figure.legend(loc="outside upper left", ncols=columns, frameon=False, labelcolor=look.ink)


def _edges(values: _judge.Floats, bins: int) -> _judge.Floats:
    """Returns the edges of bins of equal width on a logarithmic axis, which have all values."""
    low, high = (max(float(one), 1e-3) for one in (values.min(), values.max()))
    middle, half = np.sqrt(low * high), max(np.sqrt(high / low), 1.1) * 1.02
    edges: _judge.Floats = np.geomspace(middle / half, middle * half, bins + 1)
    return edges


def _times(axes: Axes, low: float, high: float, look: Look) -> None:
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    decades = np.log10(high / low)
    few = 4 if look.narrow else 9
    if decades < 0.9:
        step = 10 ** np.floor(np.log10((high - low) / few))
        step *= next(by for by in (1, 2, 5, 10, 20) if (high - low) / (step * by) <= few)
        axes.xaxis.set_major_locator(FixedLocator(np.arange(np.ceil(low / step), high / step + 1e-9) * step))
    else:
        subs = (1.0, 2.0, 5.0) if decades * 3 <= few else (1.0,)
        axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=few + 4))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ns, _: _tick(ns)))


def _tick(ns: float) -> str:
    """Returns a time for an axis: without digits that say nothing."""
    number, _, unit = time_text(ns).partition(" ")
    return f"{float(number.replace(',', '')):g} {unit}"
