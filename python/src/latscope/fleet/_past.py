"""Machines that are odder than they used to be: each against its own days before, and against what such days
of all machines scatter by.

A day's peers may be few, and machines of one model differ for good. A machine's own days do not: what is
judged is how far a day is from the machine's median of the days before. One odd day is a suspicion. Two in a
row are evidence, since the days of a healthy machine are independent: then the probability is the square of
that of the less odd day, or, of a family as a whole, of little more than this day."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _judge
from ._judge import Finding, Floats, Ints

#: Days before the one that is judged, at most, and those of them that a machine needs.
DAYS, FEWEST_DAYS = 14, 6

#: Machines of a group that have a median of a day: to say what all of them have in common, and to compare
#: each with it.
FEWEST, FEWEST_PEERS = 5, 20

#: Fewest days of all machines that say what is usual, and the machines that are judged and the days of which
#: the tail has no error to speak of.
FEWEST_ROWS, MANY, MANY_ROWS = 40, 9, 80

#: Rows beyond the second quantile of a tail: a share of them, and so many at least; beyond the first are some
#: times as many, but no more than a share of all.
BEYOND, FEWEST_BEYOND, TIMES, MOST_BEYOND = 0.002, 6, 8, 0.4

#: Independent tests that the tests of a family are as good as: on drawn healthy days the least of their
#: probabilities for two days is below 0.001 about twice as often as that of one test would be.
TESTS = 2

#: Part of the less odd day's figure by which the odder day's may be larger and count.
LARGER = 0.5

#: Parts of the days that say what is usual, each of which is judged by the others.
FOLDS = 5

#: Roles of a day: what is usual, the day before the one that is judged, and this.
USUAL, BEFORE, NOW = 0, 1, 2

Columns: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Days:
    """Days of machines in S series: a row for each, N in all, with the number of its machine, the day (0 is
    the one that is judged) and its group of peers. `figures` has logarithms of ticks: three deciles and the
    mean, 4 by N by S, NaN where a machine lacks a series."""

    machines: list[str]
    machine: Ints
    day: Ints
    peers: Ints
    series: list[int]
    figures: Floats


@dataclass(frozen=True)
class Odd:
    """What is oddest about a machine on its last two days, and on the last one `alone`, and the probabilities
    that chance makes a healthy one as odd: on this day (`once`), and on both, in the same test (`twice`).
    `rows` say what is usual, and `days` are those of its own that it is compared with, 0 for its peers."""

    finding: Finding
    alone: Finding
    once: float
    twice: float
    rows: int
    days: int


def dense(columns: Columns, names: Sequence[str], chosen: NDArray[np.bool_]) -> Days:
    """Returns the days of machines from the chosen rows of sick.sql. `names` are the ids of machines by their
    numbers, from 1."""
    part = {name: column[chosen] for name, column in columns.items()}
    keys = np.stack([part["machine"] - 1, part["day"], part["peers"]])
    rows, row = np.unique(keys, axis=1, return_inverse=True)
    series, place = np.unique(part["series_id"], return_inverse=True)
    figures = np.full((4, rows.shape[1], len(series)), np.nan)
    for at, name in enumerate(("q30", "q50", "q70")):
        figures[at, row.ravel(), place] = _judge.log_of_bucket(part[name])
    figures[3, row.ravel(), place] = np.log(part["mean"] + 0.5)
    machine, day, peers = (each.astype(np.int64) for each in rows)
    return Days(list(names), machine, day, peers, [int(one) for one in series], figures)


def judge(days: Days, family: Sequence[str], own: bool, without: frozenset[str] = frozenset()) -> list[Odd]:
    """Returns what is oddest about each machine: in comparison with its own past, or with its peers of the
    last two days. `family` has the family of each series. The machines in `without` do not say what is
    usual."""
    away, role, past = _from_own(days) if own else _from_peers(days)
    kept = ~np.isnan(away[3]).all(axis=1)
    named = np.isin(days.machine, [at for at, one in enumerate(days.machines) if one in without])
    usual, now = (role == USUAL if own else kept) & kept & ~named, np.flatnonzero((role == NOW) & kept)
    rows = int(usual.sum())
    if rows < (FEWEST_ROWS if own else 2 * _judge.FEWEST) or not now.size:
        return []
    chosen = np.flatnonzero(kept & ((role != USUAL) | usual))
    part = _Part(days.machine[chosen], np.searchsorted(chosen, now), usual[chosen])
    before = _before(days, role, now)
    before = np.where(before >= 0, np.searchsorted(chosen, before), -1)
    body, mean, nothing = (
        np.median(away[:3, chosen], axis=0),
        away[3, chosen],
        np.full((len(chosen), 0), np.nan),
    )
    # The median of the days before scatters as well: into the days that are none of them, and out of its own.
    shared = np.divide(np.pi / 2, past[chosen], where=past[chosen] > 0, out=np.zeros(len(chosen)))
    shrunk = np.where(part.usual, 1.0, np.sqrt((1 - shared) / (1 + shared)))[:, np.newaxis]
    tests = list(
        _judge.tests_of(
            body * shrunk,
            mean * shrunk,
            nothing,
            list(family),
            part.usual,
            _judge.IDLE.series,
            FOLDS if own else 1,
        )
    )
    p, part = _by_chance(tests, part, before, own)
    found, odd = _judge.Distances([], days.series, body, mean, nothing), []
    for row, best, once, twice in _least(p, tests, part, own):
        machine = days.machines[part.machine[row]]
        told, alone = (_judge.finding(found, test, row, once, machine) for test in best)
        odd.append(Odd(told, alone, once, twice, rows, int(past[chosen[row]])))
    return odd


@dataclass(frozen=True)
class _Part:
    """Rows that are judged: of each its machine and whether it says what is usual, and the places of the last
    days."""

    machine: Ints
    now: Ints
    usual: NDArray[np.bool_]


def _by_chance(tests: Sequence[_judge.Test], part: _Part, before: Ints, own: bool) -> tuple[Floats, _Part]:
    """Returns how likely chance makes the figures of all rows as large, and of a row for both last days of
    each machine, which come last; and all these rows. What happens now and then to other healthy machines is
    no fault, however far out it is: no row is less likely than that."""
    many = len(part.now)
    usual = int(part.usual.sum())
    shares = tail(usual) if own else _judge.IDLE.machines
    # The own days of some machines are enough for a tail of a family without an error of its own.
    is_sure = own and many >= MANY and usual >= MANY_ROWS
    rows = _Part(
        np.append(part.machine, part.machine[part.now]), part.now, np.append(part.usual, np.zeros(many, bool))
    )
    columns = []
    for test in tests:
        value = np.append(test.value, _of_both(test, part.now, before))
        errors = 0 if is_sure and test.columns[0].is_common else 1
        columns.append(_judge.by_chance(value, test.shape, shares, rows.usual, errors))
    p, judged = np.column_stack(columns), np.append(part.now, len(part.machine) + np.arange(many))
    p[judged] = np.maximum(p[judged], _ranks(p, judged, rows))
    return p, rows


def _of_both(test: _judge.Test, now: Ints, before: Ints) -> Floats:
    """Returns the figure that both last days of each machine have: that of the less odd one, and for a family
    as a whole (usual is 0) half of what the odder one has in addition, as far as this is no more than LARGER.
    One odd day, however far out, says little then. Without a day before nothing is odd."""
    first, second = test.value[before], test.value[now]
    low, more = np.minimum(first, second), np.abs(second - first)
    if test.columns[0].is_common:
        low = low + np.minimum(more, LARGER * np.maximum(low, 0)) / 2
    return np.where(before >= 0, low, -np.inf)


def _twice(p: Floats, tests: Sequence[_judge.Test]) -> Floats:
    """Returns how likely chance makes a figure of both days as large, from the probability of one day: the
    square, and where the odder day counts as well what such days add to it, if the tail is exponential."""
    wide = np.array([LARGER / (1 + LARGER / 2) if one.columns[0].is_common else 0.0 for one in tests])
    squared: Floats = p**2 * (1 - wide * np.log(p))
    return squared


def _least(
    p: Floats, tests: Sequence[_judge.Test], part: _Part, own: bool
) -> Iterator[tuple[int, tuple[_judge.Test, _judge.Test], float, float]]:
    """Yields for each last day the tests that tell most of both days and of it alone, and the probabilities
    of the day alone and of both days. Every family has the same share of the error."""
    share = _judge.shares(tests)
    once = np.minimum(p[part.now] * share, 1)
    if own:
        # Single series keep their share: some are odd on many days. So do all from the peers, from whom
        # machines differ for good, on both days.
        is_common = np.array([one.columns[0].is_common for one in tests])
        few = TESTS * len({one.family for one in tests})
        share = np.where(is_common, np.minimum(share, few), share)
    twice = np.minimum(_twice(p[-len(part.now) :], tests) * share, 1)
    for at, row in enumerate(part.now.tolist()):
        best = int(np.lexsort((once[at], twice[at]))[0])
        chosen = (tests[best], tests[int(once[at].argmin())])
        yield row, chosen, float(once[at].min()), float(twice[at].min())


def _ranks(p: Floats, rows: Ints, part: _Part) -> Floats:
    """Returns in which share of the rows of other machines that say what is usual each test is as odd."""
    usual, shares = np.flatnonzero(part.usual), np.empty((len(rows), p.shape[1]))
    for test in range(p.shape[1]):
        count = np.searchsorted(np.sort(p[usual, test]), p[rows, test], side="right").astype(float)
        for machine in np.unique(part.machine[rows[count > 0]]):
            of, at = usual[part.machine[usual] == machine], part.machine[rows] == machine
            count[at] -= np.sum(p[of, test] <= p[rows[at], test][:, np.newaxis], axis=1)
        shares[:, test] = count / len(usual)
    return shares


def tail(rows: int) -> tuple[float, float]:
    """Returns the quantiles that a tail of so many rows goes through."""
    beyond = max(BEYOND, FEWEST_BEYOND / rows)
    return 1 - min(TIMES * beyond, MOST_BEYOND), 1 - beyond


def _from_own(days: Days) -> tuple[Floats, Ints, Ints]:
    """Returns how far the figures of each row are from the median of the machine's days before the last two,
    less the median of all machines of its group on this day; the role of each row, and the number of days
    before. Rows without enough of them are NaN."""
    away, role = np.full(days.figures.shape, np.nan), np.zeros(len(days.machine), np.int64)
    past = np.zeros(len(days.machine), np.int64)
    for rows in _of_machines(days):
        if len(rows) - 2 >= FEWEST_DAYS:
            role[rows[-1]], role[rows[-2]], past[rows] = NOW, BEFORE, len(rows) - 2
            away[:, rows] = days.figures[:, rows] - _median(days.figures[:, rows[:-2]])
    return _less_the_day(days, away, FEWEST), role, past


def _from_peers(days: Days) -> tuple[Floats, Ints, Ints]:
    """Returns the same of the last two days of each machine, from the median of its peers alone."""
    away, role = np.full(days.figures.shape, np.nan), np.zeros(len(days.machine), np.int64)
    for rows in _of_machines(days):
        role[rows[-2:]] = (BEFORE, NOW)[-len(rows[-2:]) :]
        away[:, rows[-2:]] = days.figures[:, rows[-2:]]
    away = _less_the_day(days, away, FEWEST_PEERS)
    return away, role, np.zeros(len(days.machine), np.int64)


def _of_machines(days: Days) -> Iterator[Ints]:
    """Yields the rows of each machine that has the day that is judged, this one last: those with its
    processor and kernel."""
    order = np.lexsort((np.where(days.day == 0, 1 << 40, days.day), days.machine))
    for rows in np.split(order, np.flatnonzero(np.diff(days.machine[order])) + 1):
        if days.day[rows[-1]] == 0:
            yield rows[days.peers[rows] == days.peers[rows[-1]]]


def _less_the_day(days: Days, away: Floats, fewest: int) -> Floats:
    """Returns figures less the median of their group on their day. Where that has fewer machines, figures
    from the own past stay, and those from the peers are NaN."""
    there = ~np.isnan(away[3]).all(axis=1)
    keys, group = np.unique(np.stack([days.peers, days.day]), axis=1, return_inverse=True)
    for one in range(keys.shape[1]):
        rows = np.flatnonzero((group.ravel() == one) & there)
        if len(rows) >= fewest:
            away[:, rows] -= _median(away[:, rows])
        elif fewest == FEWEST_PEERS:
            away[:, rows] = np.nan
    return away


def _median(figures: Floats) -> Floats:
    """Returns the medians over the second axis, which stays; NaN where there are no figures."""
    if not np.isnan(figures).any():
        return np.median(figures, axis=1, keepdims=True)
    ordered = np.sort(figures, axis=1)
    count = np.sum(~np.isnan(figures), axis=1, keepdims=True)
    low, high = (
        np.take_along_axis(ordered, np.maximum(at, 0), axis=1)
        for at in ((count - 1) // 2, count // 2 - (count == 0))
    )
    middle: Floats = (low + high) / 2
    return middle


def _before(days: Days, role: Ints, now: Ints) -> Ints:
    """Returns the row of the day before of the machine of each row of `now`; -1 where it has none."""
    rows = {int(days.machine[row]): int(row) for row in np.flatnonzero(role == BEFORE)}
    return np.array([rows.get(int(days.machine[row]), -1) for row in now], np.int64)
