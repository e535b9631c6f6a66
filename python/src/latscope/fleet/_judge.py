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

#: Fewest peers, the machine included, of which one day is enough to name a machine; of which two days are, or
#: one for its waiting and if they are busy; and of which is said how far it is from them.
ENOUGH, FEWEST, FEWEST_SHOWN = 1000, 100, 5

#: Least number of machines among which the error is shared.
FEWEST_TESTS = 600

#: Fewest series of a family that have a common shift.
FEWEST_SERIES = 2

#: Quantiles over the series of a family that are a common shift: half of the series, and three quarters of
#: them, are longer than so. A healthy run may be odd in some of the series, but hardly in nearly all.
SHARES = (0.5, 0.25)

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

#: What is usual among so many idle machines that one day is enough: what one healthy machine in forty does
#: now and then, in a family of its own, must not look like the end of the tail.
MANY = Usual(IDLE.series, (0.95, 0.9875))

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

    def of_waiting(self) -> "Distances":
        """Returns the waiting alone."""
        return Distances(self.machines, [], self.body[:, :0], self.mean[:, :0], self.waited)


@dataclass(frozen=True)
class Finding:
    """What is oddest about a machine: a series, all of a family (`series` is None), or how long its threads
    waited for a CPU (`family` is empty as well). `kind` is body, mean or waited, `distance` the logarithm of
    the ratio to the peers, or the share of the time, `score` how far it is in deviations of the peers,
    without what the family has in common, `p` the probability that chance makes a healthy machine as odd."""

    machine: str
    series: int | None
    family: str
    kind: str
    distance: float
    score: float
    p: float


@dataclass(frozen=True)
class _Column:
    """What may be odd: the common shift of the series of a family, a single series apart from that, or how
    long threads waited. `places` are their columns of the distances."""

    kind: str
    family: str
    places: list[int]
    is_common: bool = False


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

    figures = np.full((4, len(keys), len(series)), np.nan)
    for at, name in enumerate(("q30", "q50", "q70")):
        figures[at, rows, places] = log_of_bucket(columns[name])
    figures[3, rows, places] = np.log(columns["mean"] + 0.5)
    body, mean = from_peers(figures, own)
    machines, ids = [names[one % len(names)] for one in keys], [int(one) for one in series]
    waited = waited[keys % len(names)]
    return (
        Distances(machines[:own], ids, body[:own], mean[:own], waited[:own]),
        Distances(machines[own:], ids, body[own:], mean[own:], waited[own:]),
    )


def from_peers(figures: Floats, own: int) -> tuple[Floats, Floats]:
    """Returns `body` and `mean` of the distances of machines from the medians of the first `own` of them.
    `figures` are logarithms of ticks: three deciles and the mean, 4 by M by S."""
    shifted = [_shift(one, one[:own]) for one in figures]
    # Of few samples, one that took long may be a decile, but hardly two.
    return np.median(shifted[:3], axis=0), shifted[3]


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
    rank = np.clip(np.ceil(share * count).astype(np.int64) - 1, 0, len(figures) - 1)
    # NaN is sorted to the end. Columns that lie together are sorted several times as fast.
    ordered = np.partition(np.ascontiguousarray(figures.T), np.unique(rank), axis=1)
    found: Floats = ordered[np.arange(len(ordered)), rank]
    return found


def _shift(figures: Floats, peers: Floats) -> Floats:
    """Returns figures from the median of their column among peers: NaN where fewer than FEWEST_SHOWN of them
    have one."""
    few = np.sum(~np.isnan(peers), axis=0) < FEWEST_SHOWN
    shifted: Floats = figures - np.where(few, np.nan, _quantile(peers, 0.5))
    return shifted


def spreads(shift: Floats) -> Floats:
    """Returns the robust standard deviation of each column, whose median is zero."""
    return 1.4826 * _quantile(np.abs(shift), 0.5)


def scores(shift: Floats, peers: NDArray[np.bool_] | None = None) -> Floats:
    """Returns shifts in deviations of their column among the peers, which are all machines without them."""
    spread = spreads(shift if peers is None else shift[peers])
    scored: Floats = shift / np.maximum(spread, LEAST)
    return scored


def judge(
    found: Distances, family: list[str], usual: Usual, peers: NDArray[np.bool_] | None = None
) -> list[Finding]:
    """Returns what is oddest about each machine. `family` has the family of each series, `peers` the
    machines that say what is usual: all without it."""
    peers = np.ones(len(found.machines), bool) if peers is None else peers
    tests = list(tests_of(found.body, found.mean, found.waited, family, peers, usual.series, 1))
    if not tests or not peers.any():
        return []
    p = np.column_stack([by_chance(one.value, one.shape, usual.machines, peers) for one in tests])
    if peers.sum() < FEWEST:
        # Few peers have no tail: the oddest of them is as odd by chance.
        p = np.maximum(p, 1 / peers.sum())
    best, place = of_families(p, tests)
    return [
        finding(found, tests[at], row, float(chance), found.machines[row])
        for row, (at, chance) in enumerate(zip(place.tolist(), best.tolist(), strict=True))
    ]


def shares(tests: "Sequence[Test]") -> Floats:
    """Returns by what the probability of each test counts: every family has the same share of the error, and
    so has every test of a family."""
    families = [one.family for one in tests]
    return np.array([families.count(family) * len(set(families)) for family in families], float)


def of_families(p: Floats, tests: "Sequence[Test]") -> tuple[Floats, Ints]:
    """Returns the probability of each machine and the place of the test that makes it: every family has the
    same share of the error, and so has every test of a family."""
    share = shares(tests)
    shared = np.minimum(p * share, 1)
    # Where all are 1 the oddest is still wanted.
    place = np.argmin(p * share, axis=1)
    return shared[np.arange(len(p)), place], place


@dataclass(frozen=True)
class Test:
    """Figure of all machines that is judged: of a family, how odd most of its series are together, or the
    oddest ones. `telling` has the column that tells most of each machine, `score` how far it is out in
    deviations of the peers."""

    family: str
    shape: float
    value: Floats
    columns: list[_Column]
    telling: Ints
    score: Floats


def tests_of(
    body: Floats,
    mean: Floats,
    waited: Floats,
    family: list[str],
    peers: NDArray[np.bool_],
    usual: tuple[float, float],
    folds: int,
) -> Iterator[Test]:
    """Yields what is judged of each family. With several folds the scale of each series for a part of the
    peers is that of the others, as it is for machines that are none of the peers: a scale that few peers
    happen to make too small would show in the latter alone."""
    scored = {"body": scores(body, peers), "mean": scores(mean, peers)}
    for name in sorted(set(family)):
        places = [
            at
            for at, one in enumerate(family)
            if one == name and not np.isnan(scored["body"][peers, at]).all()
        ]
        if places:
            yield from _of_family(scored, name, places, peers, usual, folds)
    if waited.shape[1] and not np.isnan(waited[peers]).all():
        columns, steps = _waits(waited)
        yield _oddest(WAITED, SHAPE, columns, steps, steps, 1)


def _of_family(
    scored: dict[str, Floats],
    name: str,
    places: list[int],
    peers: NDArray[np.bool_],
    usual: tuple[float, float],
    folds: int,
) -> Iterator[Test]:
    columns, apart = list[_Column](), list[Floats]()
    for kind, score in scored.items():
        own = score[:, places]
        if len(places) >= FEWEST_SERIES:
            # Of two series half are three quarters as well, and few peers do not show the rare days on which
            # nearly all of a family is odd.
            is_both = kind == "body" and len(places) > FEWEST_SERIES and peers.sum() >= FEWEST
            for share in SHARES if is_both else SHARES[:1]:
                common = _quantile(score[:, places].T, share)[:, np.newaxis]
                common = common - _quantile(common[peers], 0.5)
                yield _oddest(name, SHAPE, [_Column(kind, name, places, True)], common, common, 1)
                if share == SHARES[0]:
                    # A series is not odd because the others of its family are shorter.
                    own = own - np.maximum(common, 0)
        columns += [_Column(kind, name, [at]) for at in places]
        apart.append(own)
    score = np.concatenate(apart, axis=1)
    steps = _steps(score, score[peers], usual)
    for fold in range(folds if folds > 1 else 0):
        rows = np.flatnonzero(peers)
        part, others = rows[fold::folds], np.delete(rows, np.s_[fold::folds])
        steps[part] = _steps(score[part], score[others], usual)
    for place in PLACES:
        if place <= len(columns):
            yield _oddest(name, SHAPE_OF_ONE if place == 1 else SHAPE, columns, steps, score, place)


def _oddest(
    family: str, shape: float, columns: list[_Column], steps: Floats, score: Floats, place: int
) -> Test:
    """Returns the test of the column at a place, from the oddest of each machine."""
    steps = np.nan_to_num(steps, nan=-np.inf)
    value = -np.partition(-steps, place - 1, axis=1)[:, place - 1]
    telling = steps.argmax(axis=1)
    rows = np.arange(len(steps))
    return Test(family, shape, np.maximum(value, -1e9), columns, telling, np.nan_to_num(score[rows, telling]))


def _waits(waited: Floats) -> tuple[list[_Column], Floats]:
    """Returns columns of the time that threads waited, in hundredths of the time."""
    return [_Column(WAITED, "", [at]) for at in range(waited.shape[1])], waited / LEAST


def _steps(score: Floats, peers: Floats, usual: tuple[float, float]) -> Floats:
    """Returns how far above the first quantile of the peers' scores each score is, in steps from there to the
    second: at least those of a normal distribution. A series that a machine lacks is not odd."""
    lower, upper = (_quantile(peers, share) for share in usual)
    least = NORMAL.inv_cdf(usual[1]) - NORMAL.inv_cdf(usual[0])
    steps: Floats = np.nan_to_num((score - lower) / np.maximum(upper - lower, least), nan=-1e9)
    return steps


def by_chance(
    score: Floats,
    shape: float,
    usual: tuple[float, float],
    peers: NDArray[np.bool_] | None = None,
    errors: int = 1,
) -> Floats:
    """Returns how likely chance makes the scores of machines as large: by rank up to a quantile of the peers,
    and from there on a tail through it and a second one. Of few peers the second may be too small by chance:
    it is taken some standard errors higher."""
    own = score if peers is None else score[peers]
    first, second = usual
    safe = min(second + errors * math.sqrt(second * (1 - second) / len(own)), 1.0)
    (lower,), (upper,) = (_quantile(own[:, np.newaxis], share) for share in (first, safe))
    steps = np.maximum(score - lower, 0) / max(upper - lower, LEAST_STEP)
    growth = ((1 - first) / (1 - second)) ** shape - 1
    rank = 1 - np.searchsorted(np.sort(own), score, side="left") / len(own)
    p: Floats = np.where(
        score > lower, (1 - first) * (1 + growth * steps) ** (-1 / shape), np.maximum(rank, 1 - first)
    )
    return p


def finding(found: Distances, test: Test, row: int, p: float, machine: str) -> Finding:
    """Returns the finding that a test makes against a machine."""
    column, score = test.columns[test.telling[row]], float(test.score[row])
    if column.kind == WAITED:
        share = float(found.waited[row, column.places[0]])
        return Finding(machine, None, "", WAITED, share, score, p)
    own = (found.body if column.kind == "body" else found.mean)[row, column.places]
    series = None if column.is_common else found.series[column.places[0]]
    own = own[~np.isnan(own)]
    distance = float(np.median(own)) if own.size else 0.0
    return Finding(machine, series, column.family, column.kind, distance, score, p)


def limit(p: Sequence[float], rate: float, tests: int = FEWEST_TESTS) -> float:
    """Returns the largest probability that Benjamini and Hochberg's procedure names; below 0 if it names
    none. Of few machines it names no more than if they were
    `tests`: a small fleet is asked as often as a large
    one."""
    ordered = np.sort(p)
    named = ordered[ordered * max(len(ordered), tests) <= rate * np.arange(1, len(ordered) + 1)]
    return float(named[-1]) if named.size else -1.0
