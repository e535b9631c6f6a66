"""Which machines are sick: distances of each machine from its peers, and how likely chance makes them.

A distance is divided by its median absolute deviation over the peers. How often a healthy machine is that
far out is not assumed to be normal: a power law (an exponential for families) is fitted to the upper tail of
what the peers show (between their 90th and 98th percentiles, so that sick ones do not enter). The false
discovery rate is controlled over all machines and series.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

#: Fewest peers, the machine included, that are judged.
FEWEST = 8

#: Fewest series of a family that are judged together.
FEWEST_SERIES = 4

#: Least scale of a distance, in logarithms: machines that differ by less are not told apart, whatever their
#: peers do.
LEAST_SCALES = {"body": 0.01, "tail": 0.2}

#: Least scale of a family's score, which is the median of scores.
LEAST_TOGETHER = 0.25

#: Numbers of the largest pieces of evidence against a machine that are added.
LARGEST = (1, 8, 64)

#: Least scale of these sums.
LEAST_SUM = 0.05

#: Fewest samples of a machine in a series for a share of those in the tail.
FEWEST_SAMPLES = 200

#: Range of the tail that is fitted, and of that of a single column with few rows.
FIT = (0.90, 0.98)
FIT_OF_FEW = (0.80, 0.95)


@dataclass(frozen=True)
class Distances:
    """Distances of M machines from their peers in S series: `body` (mean shift of five deciles) and `tail`
    (samples above the peers' 95th percentile, against the expected number), as natural logarithms, M by S,
    NaN where a machine lacks a series."""

    machines: list[str]
    series: list[int]
    body: Floats
    tail: Floats


@dataclass(frozen=True)
class Finding:
    """Finding against a machine: in a series, or in a family (`series` is None). `kind` is body or tail,
    `distance` the logarithm of the ratio to the peers, `score` the same in robust deviations, `p` its
    probability by chance."""

    machine: str
    series: int | None
    family: str
    kind: str
    distance: float
    score: float
    p: float


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
    body, tail = np.zeros(shape), np.full(shape, np.nan)
    for name in ("q10", "q30", "q50", "q70", "q90"):
        figure = np.full(shape, np.nan)
        figure[rows, places] = log_of_bucket(columns[name])
        body += (figure - _peers_median(figure)) / 5
    expected = columns["total"] / 20 + 0.5
    share = np.log((columns["above"] + 0.5) / expected)
    # Of few samples, those above are too few to be counted as a share.
    tail[rows, places] = np.where(columns["total"] >= FEWEST_SAMPLES, share, np.nan)
    tail -= _peers_median(tail)
    return Distances([names[one - 1] for one in machines], [int(one) for one in series], body, tail)


def _peers_median(figures: Floats) -> Floats:
    """Returns the median of all other rows, for each row: NaN where fewer than FEWEST rows have a figure."""
    ordered = np.sort(figures, axis=0)
    count = np.sum(~np.isnan(figures), axis=0)
    columns = np.arange(figures.shape[1])

    def without(place: Ints) -> Floats:
        # The place-th of the others: without the row itself, those from its place on move up by one.
        own = ordered[place, columns]
        chosen: Floats = np.where(
            figures <= own, ordered[np.minimum(place + 1, len(figures) - 1), columns], own
        )
        return chosen

    others = count - 1
    median = (without((others - 1) // 2) + without(others // 2)) / 2
    median[:, count < FEWEST] = np.nan
    return median


def scores(distance: Floats, least: float) -> Floats:
    """Returns distances in robust standard deviations of their column, of at least `least`."""
    scale = 1.4826 * np.nanmedian(np.abs(distance - np.nanmedian(distance, axis=0)), axis=0)
    scored: Floats = distance / np.maximum(scale, least)
    return scored


def by_chance(score: Floats, heavy: bool) -> Floats:
    """Returns how likely chance makes scores as large. The tail is a power law if it is `heavy`, else
    exponential: the scores of a family are medians. Below 500 rows a column is too short to show its tail:
    it takes that of all columns, and its own if that is longer, as it is where the peers fall into two
    groups."""
    if len(score) >= 500:
        return _tail(score, heavy, FIT)
    together = _tail(score.reshape(-1, 1), heavy, FIT).reshape(score.shape)
    longer: Floats = np.maximum(together, _tail(score, heavy, FIT_OF_FEW))
    return longer


def _tail(score: Floats, heavy: bool, fit: tuple[float, float]) -> Floats:
    lower, upper = np.nanquantile(score, fit, axis=0, method="lower")
    lower = np.maximum(lower, 0.5)
    upper = np.maximum(upper, lower * 1.05)
    outside = score > lower
    reach = (lambda score: np.log(np.maximum(score, 1e-9))) if heavy else np.asarray
    with np.errstate(invalid="ignore"):
        # Those above `upper` are counted as censored there: the fit does not see how far out they are.
        excess = np.nansum(np.where(outside, reach(np.minimum(score, upper)) - reach(lower), 0), axis=0)
        slope = np.sum(outside & (score <= upper), axis=0) / np.maximum(excess, 1e-9)
        slope = np.minimum(slope, 12.0)
        share = (np.sum(outside, axis=0) + 1) / (np.sum(~np.isnan(score), axis=0) + 1)
        p = share * np.exp(-slope * (reach(np.maximum(score, lower)) - reach(lower)))
    return np.where(np.isnan(score), np.nan, np.where(outside, p, 1.0))


def judge(groups: Sequence[tuple[Distances, list[str]]], rate: float) -> list[list[Finding]]:
    """Returns what speaks against the machines that are named, for each group, the least probable by chance
    first. A group has distances and the family of each series.

    Two tests of each machine, with half of the rate each: its families, and the sums of its largest pieces of
    evidence. How large these sums are on healthy machines is what the machines of all groups show. The
    false discovery rate is controlled over machines.
    """
    with warnings.catch_warnings():
        # A series that all machines lack has no median.
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        evidence = [Evidence.of(found, family) for found, family in groups]
    if not evidence:
        return []
    sums = by_chance(np.vstack([one.sums() for one in evidence]), heavy=False)
    families = np.concatenate([one.family_p() for one in evidence])
    p = np.minimum(2 * np.minimum(families, sums.min(axis=1) * sums.shape[1]), 1)
    limit = _limit(p, rate)
    ends = np.cumsum([len(found.machines) for found, _ in groups])
    return [
        sorted(
            (
                one.finding(found.machines[row], row, float(own[row]))
                for row in range(len(own))
                if own[row] <= limit
            ),
            key=lambda finding: (finding.p, finding.machine),
        )
        for (found, _), one, own in zip(groups, evidence, np.split(p, ends[:-1]), strict=True)
    ]


@dataclass(frozen=True)
class Evidence:
    """Pieces of evidence against the machines of a group, a column each: of a series, or of a family (None).
    `weight` is the negative logarithm of a piece's probability by chance; 0 where the machine lacks it."""

    series: list[int | None]
    family: list[str]
    kind: list[str]
    distance: Floats
    score: Floats
    weight: Floats

    @staticmethod
    def of(found: Distances, family: list[str]) -> "Evidence":
        """Returns the evidence of distances, with the family of each series."""
        named = {name: [at for at, one in enumerate(family) if one == name] for name in sorted(set(family))}
        named = {name: places for name, places in named.items() if len(places) >= FEWEST_SERIES}
        distance, score, kinds = [], [], []
        for kind, far in (("body", found.body), ("tail", found.tail)):
            own = scores(far, LEAST_SCALES[kind])
            shift, together = (
                np.stack([np.nanmedian(one[:, at], axis=1) for at in named.values()], axis=1)
                if named
                else one[:, :0]
                for one in (far, own)
            )
            distance += [far, shift]
            score += [own, scores(together, LEAST_TOGETHER)]
            kinds += [kind] * (far.shape[1] + len(named))
        columns = np.hstack(score)
        # Nothing is less likely than a number can say.
        weight = np.nan_to_num(-np.log(np.maximum(by_chance(columns, heavy=False), 1e-300)))
        ids = [*found.series, *[None] * len(named)]
        return Evidence(ids * 2, [*family, *named] * 2, kinds, np.hstack(distance), columns, weight)

    def family_p(self) -> Floats:
        """Returns the least probability of each machine's families, times their number."""
        weight = self.weight[:, [at for at, one in enumerate(self.series) if one is None]]
        least: Floats = np.exp(-weight.max(axis=1, initial=0)) * max(weight.shape[1], 1)
        return least

    def sums(self) -> Floats:
        """Returns the means of the largest pieces against each machine, in robust deviations of the group."""
        ordered = -np.sort(-self.weight, axis=1)
        means = np.stack([ordered[:, :many].mean(axis=1) for many in LARGEST], axis=1)
        return scores(means - np.median(means, axis=0), LEAST_SUM)

    def finding(self, machine: str, row: int, p: float) -> Finding:
        """Returns the weightiest piece against a machine."""
        at = int(np.argmax(self.weight[row]))
        figures = float(self.distance[row, at]), float(self.score[row, at])
        return Finding(machine, self.series[at], self.family[at], self.kind[at], *figures, p)


def _limit(p: Floats, rate: float) -> float:
    """Returns the largest probability that Benjamini and Hochberg's procedure names, or -1."""
    ordered = np.sort(p)
    below = np.flatnonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / len(ordered))
    return float(ordered[below[-1]]) if below.size else -1.0
