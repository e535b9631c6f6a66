"""Which machines are sick: distances of each machine from its peers, and how likely chance makes them.

A distance is divided by its median absolute deviation over the peers. How often a healthy machine is that
far out is not assumed to be normal: a power law (an exponential for families) is fitted to the upper tail of
what the peers show (between their 90th and 98th percentiles, so that sick ones do not enter). The false
discovery rate is controlled over all machines and series.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

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


def judge(found: Distances, family: list[str], rate: float) -> list[Finding]:
    """Returns what speaks against machines, at a false discovery rate, the least probable by chance first.
    `family` has the family of each series."""
    chosen: list[Finding] = []
    with warnings.catch_warnings():
        # A series that all machines lack has no median.
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        for kind, distance in (("body", found.body), ("tail", found.tail)):
            chosen += _judge_kind(found, family, kind, distance, rate / 2)
    return sorted(chosen, key=lambda one: (one.p, one.machine, one.series or 0, one.kind))


def _judge_kind(
    found: Distances, family: list[str], kind: str, distance: Floats, rate: float
) -> list[Finding]:
    """Judges one kind of distance: half of the rate is for families, of which there are few, half for
    series."""
    score = scores(distance, LEAST_SCALES[kind])
    groups = {
        name: [place for place, one in enumerate(family) if one == name] for name in sorted(set(family))
    }
    groups = {name: places for name, places in groups.items() if len(places) >= FEWEST_SERIES}
    tests: list[tuple[Floats, Floats, Floats, list[int | None], list[str]]]
    tests = [(distance, score, by_chance(score, heavy=True), list(found.series), family)]
    if groups:
        shift, medians = (
            np.stack([np.nanmedian(each[:, places], axis=1) for places in groups.values()], axis=1)
            for each in (distance, score)
        )
        together = scores(medians, LEAST_TOGETHER)
        tests.append(
            (
                shift,
                together,
                by_chance(together, heavy=False),
                cast("list[int | None]", [None] * len(groups)),
                list(groups),
            )
        )
    return [
        Finding(
            found.machines[row],
            ids[at],
            names[at],
            kind,
            float(far[row, at]),
            float(score[row, at]),
            float(p[row, at]),
        )
        for far, score, p, ids, names in tests
        for row, at in _discoveries(p, rate / 2)
    ]


def _discoveries(p: Floats, rate: float) -> list[tuple[int, int]]:
    """Returns the places that Benjamini and Hochberg's procedure names."""
    flat = p[~np.isnan(p)]
    if not flat.size:
        return []
    ordered = np.sort(flat)
    below = np.flatnonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / len(ordered))
    if not below.size:
        return []
    limit = ordered[below[-1]]
    return [(int(row), int(column)) for row, column in np.argwhere(p <= limit)]
