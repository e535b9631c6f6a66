"""Which machines are sick: one score a machine, and how likely chance makes it.

A machine has many series, which move together, and now and then a healthy machine is odd in one of them, or
in several. So its peers say what is usual: of each series how far above the others a machine may be, and of
whole machines how far out their oddest series are. Only whole machines are tested: few tests share the false
discovery rate.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

#: Fewest peers, the machine included, that are judged.
FEWEST = 100

#: Fewest series of a family that have a common shift.
FEWEST_SERIES = 4

#: Least deviation of a distance, in logarithms: machines that differ by less are not told apart, whatever
#: their peers do.
LEAST = 0.01

#: Places of a machine's series, from the oddest on, that are judged: one, some and many of them. A fault may
#: move a single series far, or many a little.
PLACES = (1, 4, 16)

#: Shapes of the tails (of generalised Pareto distributions) of the oddest series, and of all else that is
#: judged: single series of healthy machines are far out more often than several, or a family.
SHAPE_OF_ONE, SHAPE = 0.2, 0.1

#: Kind of a finding about the time that threads waited for a CPU.
WAITED = "waited"

#: Least difference of the quantiles of machines, in steps.
LEAST_STEP = 0.1


@dataclass(frozen=True)
class Usual:
    """Shares of the peers that say what is usual: of a series, where a step goes from the first to the
    second, and of machines, where the tail of their scores goes through both. Sick peers that are fewer than
    those above the second do not change what is usual."""

    series: tuple[float, float]
    machines: tuple[float, float]


#: What is usual among idle machines. What one healthy machine in forty does is seen as usual, and one machine
#: in eighty may have the same fault.
IDLE = Usual((0.95, 0.9875), (0.90, 0.97))

#: What is usual among busy machines. Many faults make a machine busy: one in twelve may be sick.
BUSY = Usual((0.80, 0.92), (0.60, 0.88))

#: Normal distribution, of which the least steps are.
NORMAL = NormalDist()


@dataclass(frozen=True)
class Distances:
    """Distances of M machines from their peers in S series: `body` (median shift of three deciles) and
    `mean`, as natural logarithms of ratios, M by S, NaN where a machine lacks a series. `waited` are the
    shares of the time that its threads waited for a CPU, 0 to 1: quantiles over its points, M by Q."""

    machines: list[str]
    series: list[int]
    body: Floats
    mean: Floats
    waited: Floats

    def of_series(self, places: Sequence[int]) -> "Distances":
        """Returns the distances in some of the series alone."""
        series = [self.series[at] for at in places]
        nothing = np.full((len(self.machines), 0), np.nan)
        return Distances(self.machines, series, self.body[:, places], self.mean[:, places], nothing)


@dataclass(frozen=True)
class Finding:
    """What is oddest about a machine: a series, all of a family (`series` is None), or how long its threads
    waited for a CPU (`family` is empty too). `kind` is body, mean or waited, `distance` the logarithm of the
    ratio to the peers, or the share of the time, `score` how far it is in deviations of the peers, without
    what the family has in common, `p` the probability that chance makes a healthy machine as odd."""

    machine: str
    series: int | None
    family: str
    kind: str
    distance: float
    score: float
    p: float


@dataclass(frozen=True)
class _Column:
    """What may be odd: the common shift of all series of a family, a single series apart from that, or how
    long threads waited. `places` are their columns of the distances."""

    kind: str
    family: str
    places: list[int]
    is_common: bool = False

    @property
    def is_single(self) -> bool:
        return self.kind != WAITED and not self.is_common


def log_of_bucket(bucket: Ints) -> Floats:
    """Returns natural logarithms of the middles of buckets, in ticks."""
    bucket = bucket.astype(np.int64)
    shift = np.maximum((bucket >> 7) - 1, 0)
    low = (bucket - (shift << 7)) << shift
    middle: Floats = np.log(low + ((1 << shift) - 1) / 2 + 0.5)
    return middle


def distances(
    columns: Mapping[str, NDArray[Any]], waited: Floats, names: Sequence[str], reference: int
) -> tuple[Distances, Distances]:
    """Returns the distances of the machines of one group of peers, and those of all other machines, all from
    the medians of the group `reference`. `columns` are those of sick.sql, one row a machine and series;
    `names` are the ids of machines by their numbers, from 1, and `waited` has a row for each of them."""
    others = columns["peers"] != reference
    keys, rows = np.unique(others * len(names) + columns["machine"] - 1, return_inverse=True)
    series, places = np.unique(columns["series_id"], return_inverse=True)
    own = int(np.sum(keys < len(names)))

    def shift(figures: Floats) -> Floats:
        filled = np.full((len(keys), len(series)), np.nan)
        filled[rows, places] = figures
        return _shift(filled, filled[:own])

    # Of few samples, one that took long may be a decile, but hardly two.
    body = np.median([shift(log_of_bucket(columns[name])) for name in ("q30", "q50", "q70")], axis=0)
    mean = shift(np.log(columns["mean"] + 0.5))
    machines, ids = [names[one % len(names)] for one in keys], [int(one) for one in series]
    waited = waited[keys % len(names)]
    return (
        Distances(machines[:own], ids, body[:own], mean[:own], waited[:own]),
        Distances(machines[own:], ids, body[own:], mean[own:], waited[own:]),
    )


def together(parts: Sequence[Distances]) -> Distances:
    """Returns the distances of machines of several groups, from the medians of all of them."""
    series = sorted({one for part in parts for one in part.series})
    machines = [name for part in parts for name in part.machines]
    body, mean = np.full((2, len(machines), len(series)), np.nan)
    first = 0
    for part in parts:
        own = np.ix_(np.arange(first, first + len(part.machines)), np.searchsorted(series, part.series))
        body[own], mean[own] = part.body, part.mean
        first += len(part.machines)
    waited = np.concatenate([part.waited for part in parts])
    return Distances(machines, series, _shift(body, body), _shift(mean, mean), waited)


def _quantile(figures: Floats, share: float) -> Floats:
    """Returns a quantile of each column, by nearest rank; NaN where there are no figures."""
    count = np.sum(~np.isnan(figures), axis=0)
    rank = np.maximum(np.ceil(share * count).astype(np.int64) - 1, 0)
    found: Floats = np.sort(figures, axis=0)[rank, np.arange(figures.shape[1])]
    return found


def _shift(figures: Floats, peers: Floats) -> Floats:
    """Returns figures from the median of their column among peers: NaN where fewer than FEWEST of them have
    one."""
    few = np.sum(~np.isnan(peers), axis=0) < FEWEST
    shifted: Floats = figures - np.where(few, np.nan, _quantile(peers, 0.5))
    return shifted


def spreads(shift: Floats) -> Floats:
    """Returns the robust standard deviation of each column, whose median is zero."""
    return 1.4826 * _quantile(np.abs(shift), 0.5)


def scores(shift: Floats) -> Floats:
    """Returns shifts in deviations of their column."""
    scored: Floats = shift / np.maximum(spreads(shift), LEAST)
    return scored


def judge(found: Distances, family: list[str], usual: Usual) -> list[Finding]:
    """Returns what is oddest about each machine. `family` has the family of each series."""
    parts = [*_parts("body", found.body, family), *_parts("mean", found.mean, family), _waits(found.waited)]
    columns = [one for of_part, _ in parts for one in of_part]
    if not columns or not found.machines:
        return []
    score = np.concatenate([of_part for _, of_part in parts], axis=1)
    steps = _steps(score, usual.series)
    tails, of_tails = [], []
    for shape, place, chosen in _tails(columns):
        ordered = -np.sort(-steps[:, chosen], axis=1)
        if place <= ordered.shape[1]:
            tails.append(by_chance(ordered[:, place - 1], shape, usual.machines))
            of_tails.append(chosen)
    # The least of several probabilities.
    p = np.minimum(np.min(tails, axis=0) * len(tails), 1)
    # The columns that the least one is of.
    steps[~np.array(of_tails)[np.argmin(tails, axis=0)] | np.isnan(score)] = -np.inf
    rows = enumerate(steps.argmax(axis=1).tolist())
    return [_finding(found, columns[at], row, float(score[row, at]), float(p[row])) for row, at in rows]


def _tails(columns: list[_Column]) -> Iterator[tuple[float, int, NDArray[np.bool_]]]:
    """Returns what is judged: the shape of a tail, and which place, from the oddest on, of which columns."""
    yield SHAPE, 1, np.array([one.is_common for one in columns])
    yield SHAPE, 1, np.array([one.kind == WAITED for one in columns])
    for place in PLACES:
        yield SHAPE_OF_ONE if place == 1 else SHAPE, place, np.array([one.is_single for one in columns])


def _waits(waited: Floats) -> tuple[list[_Column], Floats]:
    """Returns columns of the time that threads waited, in hundredths of the time."""
    return [_Column(WAITED, "", [at]) for at in range(waited.shape[1])], waited / LEAST


def _parts(kind: str, distance: Floats, family: list[str]) -> Iterator[tuple[list[_Column], Floats]]:
    """Returns columns of one kind of distance, in deviations of the peers."""
    score = scores(distance)
    known = ~np.isnan(spreads(distance))
    for name in sorted(set(family)):
        places = [at for at, one in enumerate(family) if one == name and known[at]]
        apart = score[:, places]
        if len(places) >= FEWEST_SERIES:
            common = _quantile(apart.T, 0.5)[:, np.newaxis]
            common = common - _quantile(common, 0.5)
            yield [_Column(kind, name, places, True)], common
            # A series is not odd because the others of its family are shorter.
            apart = apart - np.maximum(common, 0)
        yield [_Column(kind, name, [at]) for at in places], apart


def _steps(score: Floats, usual: tuple[float, float]) -> Floats:
    """Returns how far above the first quantile of the peers each machine is, in steps from there to the
    second: at least those of a normal distribution. A series that a machine lacks is not odd."""
    lower, upper = (_quantile(score, share) for share in usual)
    least = NORMAL.inv_cdf(usual[1]) - NORMAL.inv_cdf(usual[0])
    steps: Floats = np.nan_to_num((score - lower) / np.maximum(upper - lower, least), nan=0.0)
    return steps


def by_chance(score: Floats, shape: float, usual: tuple[float, float]) -> Floats:
    """Returns how likely chance makes the scores of machines as large: 1 below a quantile of them, and from
    there on a tail through it and a second one. Of few machines the second may be too small by chance: it is
    taken a standard error higher."""
    first, second = usual
    safe = second + math.sqrt(second * (1 - second) / len(score))
    (lower,), (upper,) = (_quantile(score[:, np.newaxis], share) for share in (first, safe))
    steps = np.maximum(score - lower, 0) / max(upper - lower, LEAST_STEP)
    growth = ((1 - first) / (1 - second)) ** shape - 1
    p: Floats = np.where(score > lower, (1 - first) * (1 + growth * steps) ** (-1 / shape), 1.0)
    return p


def _finding(found: Distances, column: _Column, row: int, score: float, p: float) -> Finding:
    """Returns the finding that a column makes against a machine."""
    if column.kind == WAITED:
        share = float(found.waited[row, column.places[0]])
        return Finding(found.machines[row], None, "", WAITED, share, score, p)
    own = (found.body if column.kind == "body" else found.mean)[row, column.places]
    series = None if column.is_common else found.series[column.places[0]]
    own = own[~np.isnan(own)]
    distance = float(np.median(own)) if own.size else 0.0
    return Finding(found.machines[row], series, column.family, column.kind, distance, score, p)


def limit(p: Sequence[float], rate: float) -> float:
    """Returns the largest probability that Benjamini and Hochberg's procedure names; below 0 if it names
    none."""
    ordered = np.sort(p)
    named = ordered[ordered * len(ordered) <= rate * np.arange(1, len(ordered) + 1)]
    return float(named[-1]) if named.size else -1.0
