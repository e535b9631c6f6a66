"""Points of a result: a probe with its parameters, how far it can be trusted, and its figures.

The semantics are those of docs/result-schema.md ("Measurement") and docs/method.md ("From samples to
figures").
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from . import _json
from ._histogram import Histogram

ParamValue: TypeAlias = int | float | str

#: Names of the quantiles that result files have, with the quantiles.
QUANTILES = {
    "p10": 0.10,
    "p50": 0.50,
    "p90": 0.90,
    "p95": 0.95,
    "p99": 0.99,
    "p99_9": 0.999,
    "p99_99": 0.9999,
    "p99_999": 0.99999,
    "p99_9999": 0.999999,
}

#: Levels of quality, from the best to the worst.
LEVELS = ("ok", "unstable", "degraded", "unsupported")

#: Figures of a round beside its count, in ns but for the cycles.
ROUND_FIGURES = ("min", "p50", "p90", "p99", "p99_9", "max", "cycles")


@dataclass(frozen=True)
class Value:
    """Quantity beside the duration, in `unit`; `better` is less, more or neither."""

    value: float
    unit: str
    better: str


@dataclass(frozen=True)
class Reason:
    """Reason against a better level of quality; `remedy` is None where there is none."""

    id: str
    level: str
    text: str
    remedy: str | None = None


@dataclass(frozen=True)
class Round:
    """Figures of one round: number of samples, times in ns, core cycles; None as in a summary. `run` is the
    place of the run in a merged result."""

    count: int
    min: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    p99_9: float | None
    max: float | None
    cycles: float | None
    values: Mapping[str, float] = field(default_factory=dict)
    run: int | None = None


@dataclass(frozen=True)
class Point:
    """Measured point. The fields are those of `measurements[]` in a result file (docs/result-schema.md).

    `sampling` is event (quantiles are of single operations) or batch (quantiles are of means over `ops`
    operations). `times` is operation, one-way or round-trip. `batch_ns` is the planned length of a batch,
    part of the identity; None for events. `rejected` and `missed` are None where an imported result does not
    say. `rounds` is empty where there was one round. `corrected` also has the activations that never took
    place. `verdict` is pass, inconclusive, exceeded or None without criteria.
    """

    probe: str
    revision: int
    params: Mapping[str, ParamValue]
    title: str
    row: bool
    sampling: str
    ops: int | None
    batch_ns: int | None
    times: str
    level: str
    reasons: tuple[Reason, ...]
    incomplete: bool
    rejected: int | None
    missed: int | None
    measured_cycles: float | None
    rounds: tuple[Round, ...]
    values: Mapping[str, Value]
    histogram: Histogram
    corrected: Histogram | None
    verdict: str | None

    @property
    def name(self) -> str:
        """Stable name of the point: its probe and all parameters, `wake.timer[cpu=0,interval=1000000]`."""
        params = ",".join(f"{name}={value}" for name, value in sorted(self.params.items()))
        return f"{self.probe}[{params}]" if params else self.probe

    @property
    def cycles(self) -> float | None:
        """Core cycles of one operation, the median over the rounds; None where they were not measured."""
        if self._round_medians():
            return _median(_shown([one.cycles for one in self.rounds if one.cycles is not None]))
        return self.measured_cycles

    def quantile(self, q: float) -> float | None:
        """Returns the figure at a quantile (0 to 1), ns, exactly as the command prints it.

        The median is that over the medians of the rounds. All other quantiles are `Histogram.quantile` of all
        samples, None where fewer than ten lie above. Raises ValueError if q is not within 0 to 1. See
        docs/method.md ("From samples to figures").
        """
        figure = self.histogram.quantile(q)
        medians = self._round_medians() if q == 0.5 else []
        return median_of_rounds(medians) if medians else figure

    def figures(self) -> dict[str, float | int | None]:
        """Returns the fields of `summary` in docs/result-schema.md, computed from histogram and rounds:
        counts, times in ns, core cycles."""
        figures: dict[str, float | int | None] = {"count": self.histogram.count}
        figures |= {"rejected": self.rejected, "missed": self.missed, "min": self.histogram.min}
        figures |= {name: self.quantile(q) for name, q in QUANTILES.items()}
        return figures | {"max": self.histogram.max, "mean": self.histogram.mean, "cycles": self.cycles}

    def all_rounds(self) -> tuple[Round, ...]:
        """Returns the figures of each round, in order of time; of the point itself where there was one
        round."""
        if self.rounds:
            return self.rounds
        figures = self.figures()
        values = {name: value.value for name, value in self.values.items()}
        numbers = {name: figures[name] for name in ROUND_FIGURES}
        return (Round(count=self.histogram.count, values=values, run=None, **numbers),)

    def is_addable(self, other: "Point") -> bool:
        """Returns true if two points are of one series: probe, revision, parameters, and, where both have
        samples, the kind of sample, the planned length of a batch and the meaning of the time are equal."""
        if (self.probe, self.revision, self.params) != (other.probe, other.revision, other.params):
            return False
        if self.histogram.count == 0 or other.histogram.count == 0:
            return True
        return (self.sampling, self.batch_ns, self.times) == (other.sampling, other.batch_ns, other.times)

    def add(self, other: "Point") -> "Point":
        """Returns the sum of two points of one series: histograms and counts are added, the level is the
        worse one, with the reasons of both. What does not add up is left out: rounds, cycles, values,
        verdict. Raises MergeError if their ticks differ."""
        base = other if self.histogram.count == 0 else self
        histogram = self.histogram.merge(other.histogram)
        reasons = tuple(dict.fromkeys(self.reasons + other.reasons))
        level = max(self.level, other.level, key=LEVELS.index)
        if histogram.count > 0 and level == "unsupported":
            # It was measured, though not in all runs.
            level = "degraded"
        corrected = None
        if self.corrected is not None and other.corrected is not None:
            corrected = self.corrected.merge(other.corrected)
        return replace(
            base,
            level=level,
            reasons=reasons,
            incomplete=self.incomplete or other.incomplete,
            rejected=_sum(self.rejected, other.rejected),
            missed=_sum(self.missed, other.missed),
            histogram=histogram,
            corrected=corrected,
            measured_cycles=None,
            rounds=(),
            values={},
            verdict=None,
        )

    def _round_medians(self) -> list[float]:
        return enough_medians([(one.count, one.p50, one.run) for one in self.rounds])


def enough_medians(rounds: Sequence[tuple[int, float | None, int | None]]) -> list[float]:
    """Returns the medians of rounds, of which counts, medians and merged runs are given; none of fewer than
    two rounds. A round with less than a quarter of the samples of the largest one is left out, unless it is a
    merged run. None either if a round has its median beyond the last bin."""
    if len(rounds) < 2:
        return []
    enough = max(count for count, _, _ in rounds) / 4.0
    medians = [p50 for count, p50, run in rounds if count > 0 and (count >= enough or run is not None)]
    known = [p50 for p50 in medians if p50 is not None]
    return known if len(known) == len(medians) else []


def median_of_rounds(medians: list[float]) -> float:
    """Returns the median of medians of rounds, ns, to a tenth of a picosecond: half of a sum has digits that
    no clock has. Of two groups with half of the rounds each it is that of the lower group."""
    return _rounded(_interpolated(_shown(medians)) * 1e4) / 1e4


def _shown(figures: list[float]) -> list[float]:
    """Returns the lower of two groups with half of the figures each, or all."""
    low, high = sorted(figures)[: len(figures) // 2], sorted(figures)[len(figures) // 2 :]
    if len(low) != len(high) or len(low) < 2 or low[0] <= 0.0:
        return figures
    gap = math.log(high[0] / low[-1])
    ranges = math.log(low[-1] / low[0]), math.log(high[-1] / high[0])
    return low if gap >= math.log(1.2) and gap > max(ranges) else figures


def point_from_json(fields: _json.Object, batch_ns: int | None) -> Point:
    """Returns the point of an item of `measurements`. Raises ValueError if a field is missing or has another
    type."""
    sampling, ops = _sampling(fields.get("sampling"))
    summary = _json.get(fields, "summary", dict)
    quality = _json.get(fields, "quality", dict, {})
    level = _json.get(quality, "level", str, "ok")
    if level not in LEVELS:
        raise ValueError(f"quality.level is {level!r:.60}")
    corrected = fields.get("corrected")
    verdict = _json.get(fields, "verdict", dict, {})
    return Point(
        probe=_json.get(fields, "probe", str),
        revision=_json.natural(fields, "revision", 1),
        params=_params(_json.get(fields, "params", dict)),
        title=_json.get(fields, "title", str, ""),
        row=_json.get(fields, "row", bool, False),
        sampling=sampling,
        ops=ops,
        batch_ns=batch_ns if sampling == "batch" else None,
        times=_json.get(fields, "times", str),
        level=level,
        reasons=tuple(_reason(item) for item in _json.objects(quality, "reasons")),
        incomplete=_json.get(fields, "incomplete", bool, False),
        rejected=_json.count(summary, "rejected"),
        missed=_json.count(summary, "missed"),
        measured_cycles=_json.number(summary, "cycles"),
        rounds=tuple(_round(item) for item in _json.objects(fields, "rounds")),
        values={name: _value(item) for name, item in _json.get(fields, "values", dict, {}).items()},
        histogram=Histogram.from_json(_json.get(fields, "histogram", dict)),
        corrected=None if corrected is None else Histogram.from_json(_json.get(fields, "corrected", dict)),
        verdict=_json.get(verdict, "status", str) if verdict else None,
    )


def _sampling(value: object) -> tuple[str, int | None]:
    if value == "event":
        return "event", None
    return "batch", _json.natural(_json.get(_json.checked(value, "sampling", dict), "batch", dict), "ops")


def _params(params: Mapping[str, Any]) -> Mapping[str, ParamValue]:
    for name, value in params.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"params.{name} is {value!r:.60}, neither a number nor text")
    return params


def _reason(item: _json.Object) -> Reason:
    remedy = None if item.get("remedy") is None else _json.get(item, "remedy", str)
    return Reason(
        _json.get(item, "id", str), _json.get(item, "level", str), _json.get(item, "text", str, ""), remedy
    )


def _round(item: _json.Object) -> Round:
    values = _json.get(item, "values", dict, {})
    numbers = {name: _json.checked(value, f"values.{name}", float) for name, value in values.items()}
    figures = {name: _json.number(item, name) for name in ROUND_FIGURES}
    run = None if item.get("run") is None else _json.natural(item, "run")
    return Round(count=_json.natural(item, "count"), values=numbers, run=run, **figures)


def _value(item: object) -> Value:
    fields = _json.checked(item, "values", dict)
    return Value(
        _json.get(fields, "value", float), _json.get(fields, "unit", str), _json.get(fields, "better", str)
    )


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _median(values: list[float]) -> float | None:
    return _interpolated(values) if values else None


def _interpolated(values: list[float]) -> float:
    """Returns the median, between neighbours as latscope computes it: `median` may differ in the last
    digit."""
    values = sorted(values)
    low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
    return low if low == high else low + (high - low) * 0.5


def _rounded(value: float) -> float:
    """Returns the nearest whole number, from a half on the higher: `round` would take the even one."""
    below = math.floor(value)
    return float(below + 1 if value - below >= 0.5 else below)
