"""Which machines are sick: one score a machine, and how likely chance makes it.

A machine has many series, which move together, and now and then a healthy machine is odd in a whole family of
them. So its peers say what is usual: of a series, of a family, and of whole machines, by their 90th and 97th
percentiles. Up to one sick machine in thirty does not change these. Only whole machines are tested: few tests
share the false discovery rate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

#: Fewest peers, the machine included, that are judged.
FEWEST = 100

#: Fewest series of a family that have a common shift.
FEWEST_SERIES = 4

#: Least scale of a distance, in logarithms: machines that differ by less are not told apart, whatever their
#: peers do.
LEAST_SCALES = {"body": 0.01, "tail": 0.2}

#: Least scale of the common shift of a family, in robust deviations of its series.
LEAST_COMMON = 1.0

#: Fewest samples of a machine in a series for a share of those in the tail.
FEWEST_SAMPLES = 200

#: Quantiles of the peers that say how far out a score usually is.
USUAL = (0.90, 0.97)

#: Deviations of a normal distribution up to the second of them.
DEVIATIONS = 1.881

#: Deviations beyond which a series counts.
OUTSIDE = 3.0

#: Least difference of the two quantiles of a family's score: that of a normal distribution.
LEAST_STEP = 0.60

#: Quantiles of the machines' scores that a tail goes through: all sick machines may lie above them.
MACHINES = (0.70, 0.90)

#: Shape of that tail (of a generalised Pareto distribution).
SHAPE = 0.3

#: Growth of that tail from the first quantile to the second.
GROWTH = ((1 - MACHINES[0]) / (1 - MACHINES[1])) ** SHAPE - 1


@dataclass(frozen=True)
class Distances:
    """Distances of M machines from their peers in S series: `body` (median shift of three deciles) and `tail`
    (samples above the peers' 95th percentile, against the expected number), as natural logarithms, M by S,
    NaN where a machine lacks a series."""

    machines: list[str]
    series: list[int]
    body: Floats
    tail: Floats


@dataclass(frozen=True)
class Finding:
    """What is oddest about a machine: a series, or all of a family (`series` is None). `kind` is body or
    tail, `distance` the logarithm of the ratio to the peers, `score` the same in deviations of the peers, `p`
    the probability that chance makes a healthy machine as odd."""

    machine: str
    series: int | None
    family: str
    kind: str
    distance: float
    score: float
    p: float


@dataclass(frozen=True)
class _Part:
    """Part of what may be odd: the common shift of a family (one column), or its series apart from that (a
    column each), in deviations of the peers. `places` are the family's columns of the distances, `slower`
    says where a machine is slower than its peers."""

    kind: str
    family: str
    places: list[int]
    common: bool
    score: Floats
    slower: NDArray[np.bool_]

    def oddness(self) -> Floats:
        """Returns how odd each machine is. A series that is no longer than on the peers is not odd because
        the others of its family are shorter."""
        if self.common:
            return self.score[:, 0]
        odd: Floats = (np.maximum(self.score - OUTSIDE, 0) * self.slower).sum(axis=1)
        return odd


def log_of_bucket(bucket: Ints) -> Floats:
    """Returns natural logarithms of the middles of buckets, in ticks."""
    bucket = bucket.astype(np.int64)
    shift = np.maximum((bucket >> 7) - 1, 0)
    low = (bucket - (shift << 7)) << shift
    middle: Floats = np.log(low + ((1 << shift) - 1) / 2 + 0.5)
    return middle


def distances(columns: Mapping[str, Ints], names: Sequence[str]) -> Distances:
    """Returns the distances of machines of one group. `columns` are those of sick.sql, one row a machine and
    series; `names` are the ids of machines by their numbers, from 1."""
    machines, rows = np.unique(columns["machine"], return_inverse=True)
    series, places = np.unique(columns["series_id"], return_inverse=True)
    shape = (len(machines), len(series))
    tail, deciles = np.full(shape, np.nan), np.full((3, *shape), np.nan)
    for decile, name in zip(deciles, ("q30", "q50", "q70"), strict=True):
        decile[rows, places] = log_of_bucket(columns[name])
        decile[:] = _shift(decile)
    share = np.log((columns["above"] + 0.5) / (columns["total"] / 20 + 0.5))
    # Of few samples, those above are too few to be counted as a share.
    tail[rows, places] = np.where(columns["total"] >= FEWEST_SAMPLES, share, np.nan)
    # Of few samples, one that took long may be a decile, but hardly two.
    body = np.median(deciles, axis=0)
    return Distances([names[one - 1] for one in machines], [int(one) for one in series], body, _shift(tail))


def _quantile(figures: Floats, share: float) -> Floats:
    """Returns a quantile of each column, by nearest rank; NaN where there are no figures."""
    count = np.sum(~np.isnan(figures), axis=0)
    rank = np.maximum(np.ceil(share * count).astype(np.int64) - 1, 0)
    found: Floats = np.sort(figures, axis=0)[rank, np.arange(figures.shape[1])]
    return found


def _shift(figures: Floats) -> Floats:
    """Returns figures from the median of their column: NaN where fewer than FEWEST rows have one."""
    few = np.sum(~np.isnan(figures), axis=0) < FEWEST
    shifted: Floats = figures - np.where(few, np.nan, _quantile(figures, 0.5))
    return shifted


def spreads(shift: Floats) -> Floats:
    """Returns the robust standard deviation of each column, whose median is zero."""
    return 1.4826 * _quantile(np.abs(shift), 0.5)


def scores(shift: Floats, least: float) -> Floats:
    """Returns shifts in deviations of their column: the robust standard deviation, or that of a normal
    distribution with the same 97th percentile, or `least`, whichever is largest."""
    upper = _quantile(shift, USUAL[1]) / DEVIATIONS
    scored: Floats = shift / np.maximum(np.maximum(spreads(shift), upper), least)
    return scored


def judge(found: Distances, family: list[str]) -> list[Finding]:
    """Returns what is oddest about each machine. `family` has the family of each series."""
    parts = [*_parts("body", found.body, family), *_parts("tail", found.tail, family)]
    if not parts:
        return []
    odd = np.stack([part.oddness() for part in parts], axis=1)
    lower, step = _usual(odd)
    beyond = (odd - lower) / step
    p, oddest = by_chance(beyond.max(axis=1)), beyond.argmax(axis=1)
    return [_finding(found, parts[oddest[row]], row, float(p[row])) for row in range(len(p))]


def _parts(kind: str, distance: Floats, family: list[str]) -> Iterator[_Part]:
    """Returns the parts of one kind of distance."""
    least = LEAST_SCALES[kind]
    spread = np.maximum(spreads(distance), least)
    for name in sorted(set(family)):
        places = [at for at, one in enumerate(family) if one == name and not np.isnan(spread[at])]
        apart = shift = distance[:, places]
        if len(places) >= FEWEST_SERIES:
            common = _shift(_quantile((shift / spread[places]).T, 0.5)[:, np.newaxis])
            score = np.nan_to_num(scores(common, LEAST_COMMON))
            yield _Part(kind, name, places, True, score, common > 0)
            apart = _shift(shift - common * spread[places])
        if places:
            yield _Part(kind, name, places, False, np.nan_to_num(scores(apart, least)), shift > 0)


def _usual(odd: Floats, shares: tuple[float, float] = USUAL) -> tuple[Floats, Floats]:
    """Returns a quantile of each column, and how far above it a second one lies."""
    lower, upper = (_quantile(odd, share) for share in shares)
    return lower, np.maximum(upper - lower, LEAST_STEP)


def by_chance(score: Floats) -> Floats:
    """Returns how likely chance makes the scores of machines as large: 1 below the first quantile of
    MACHINES, and from there on a tail through it and the second."""
    (lower,), (step,) = _usual(score[:, np.newaxis], MACHINES)
    steps = np.maximum(score - lower, 0) / step
    p: Floats = np.where(score > lower, (1 - MACHINES[0]) * (1 + GROWTH * steps) ** (-1 / SHAPE), 1.0)
    return p


def _finding(found: Distances, part: _Part, row: int, p: float) -> Finding:
    """Returns the finding that a part of what is odd about a machine makes."""
    own = (found.body if part.kind == "body" else found.tail)[row, part.places]
    at = int((part.score[row] * part.slower[row]).argmax())
    distance = np.nanmedian(own) if part.common else own[at]
    series = None if part.common else found.series[part.places[at]]
    score = float(part.score[row, at])
    return Finding(found.machines[row], series, part.family, part.kind, float(distance), score, p)


def limit(p: Sequence[float], rate: float) -> float:
    """Returns the largest probability that Benjamini and Hochberg's procedure names; below 0 if it names
    none."""
    ordered = np.sort(p)
    named = ordered[ordered * len(ordered) <= rate * np.arange(1, len(ordered) + 1)]
    return float(named[-1]) if named.size else -1.0
