"""Steps in daily medians: which sides (machines, or groups of them) changed, on which day, and in what.

All series of a side are judged together: a change moves a family, or some of its series, from one day on.
What chance does is known from the sides themselves: their days in random order, without the best step of
each, say how large the largest step of a side without a change is. All sides share the error."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _judge, _past
from ._nothing import SIDE_DAYS

Floats: TypeAlias = NDArray[np.float64]

#: Random orders of days, and the sides, at most, whose days they are.
ORDERS, MOST_SIDES = 2400, 60

#: Probability of a false step on any side, as computed. Of 60 drawn fleets without a change none had one.
ERROR = 0.002

#: Least deviation of a day, in logarithms.
LEAST = 0.005

#: Places, from the farthest series of a family on, that are judged apart from all of its series together, and
#: the days that the farthest one needs on each side: a single series is odd on some days in a row by chance.
PLACES, ALONE_DAYS = (1, 4, 8), 6

#: Deviations by which a series counts as moved.
MOVED = 4.0

#: Share of the best place's deviations by which another place may be worse, and be the place as well.
TIE = 0.02


@dataclass(frozen=True)
class Step:
    """Step of a side: its place among the days (the first one after it; `first` to `last` are as likely), the
    moved series, the logarithms of their ratios, the probability that chance makes as large a step, and a
    series of the family that it was found in."""

    place: int
    first: int
    last: int
    moved: NDArray[np.int64]
    sizes: Floats
    p: float
    of: int


def steps(sides: Sequence[Floats], family: Sequence[str], least: float, seed: int = 0) -> list[list[Step]]:
    """Returns the steps of each side, in order of time. A side is the logarithms of its medians, days by
    series, NaN where it has none; `family` has the family of each series, and moved ones differ by at least
    `least`.

    A side with a step is judged again on both sides of it.
    """
    found: list[list[Step]] = [[] for _ in sides]
    parts = [(side, 0, len(days)) for side, days in enumerate(sides)]
    random, listed = np.random.default_rng(seed), sorted(set(family))
    of = [np.flatnonzero([one == name for one in family]) for name in listed]
    chance = _Chance([days for days in sides if len(days) >= 2 * SIDE_DAYS], of, random)
    while parts:
        again = []
        for side, first, last in parts:
            step = chance.step(sides[side][first:last], least) if last - first >= 2 * SIDE_DAYS else None
            if step is not None:
                found[side].append(
                    replace(step, place=first + step.place, first=first + step.first, last=first + step.last)
                )
                again += [(side, first, first + step.place), (side, first + step.place, last)]
        parts = again
    return [sorted(own, key=lambda step: step.place) for own in found]


class _Chance:
    """What chance does on sides without a step."""

    def __init__(
        self, sides: Sequence[Floats], of: Sequence[NDArray[np.int64]], random: np.random.Generator
    ) -> None:
        rest = [_without_step(days, of) for days in sides]
        self.of, self.sides = of, len(sides)
        # The family of each figure.
        figures = (1 + 2 * sum(place <= len(places) for place in PLACES) for places in of)
        self.families = [family for family, many in enumerate(figures) for _ in range(many)]
        if not rest:
            return
        self.spread = _spread(rest)
        chosen = random.permutation(len(rest))[:MOST_SIDES]
        orders = -(-ORDERS // len(chosen))
        null = [_largest(_shuffled(rest[one] / self.spread, orders, random), of)[0] for one in chosen]
        self.null = np.concatenate(null)
        self.shares = _past.tail(len(self.null))

    def step(self, days: Floats, least: float) -> Step | None:
        """Returns the step of the days of a side; None if chance may have made it, on any of the sides."""
        value, places = _largest(days[np.newaxis] / self.spread, self.of)
        peers = np.append(np.ones(len(self.null), bool), False)
        p = np.array(
            [
                _judge.by_chance(np.append(of_chance, one), _judge.SHAPE_OF_ONE, self.shares, peers)[-1]
                for of_chance, one in zip(self.null.T, value[0], strict=True)
            ]
        )
        # No step is less likely than the share of random orders with one as large.
        p = np.maximum(p, np.mean(self.null >= value[0], axis=0))
        best = float(p.min()) * len(p)
        if best * self.sides > ERROR:
            return None
        place, family = int(places[0, p.argmin()]), self.of[self.families[int(p.argmin())]]
        moved = np.intersect1d(_moved(days, place, self.spread, least), family)
        if not moved.size:
            return None
        around = _place(days[:, moved], self.spread[moved])
        moved = _moved(days, around[0], self.spread, least)
        if not np.intersect1d(moved, family).size or not _is_dated(days[:, moved], around[0]):
            return None
        return Step(*around, moved, size_at(days, around[0])[moved], best, int(family[0]))


def _shuffled(days: Floats, orders: int, random: np.random.Generator) -> Floats:
    """Returns the days in some random orders: orders by days by series."""
    return days[np.argsort(random.random((orders, len(days))), axis=1)]


def _largest(scored: Floats, of: Sequence[NDArray[np.int64]]) -> tuple[Floats, NDArray[np.int64]]:
    """Returns for each order of the days (the first axis), family and figure the largest step, in deviations,
    over all places, and where it is. The figures are the median of a family's series, and the farthest ones
    upwards and downwards."""
    sizes, many = _sizes(scored), scored.shape[1]
    columns, at = [], np.arange(SIDE_DAYS, many - SIDE_DAYS + 1)
    alone = ((at >= ALONE_DAYS) & (at <= many - ALONE_DAYS)).astype(float)
    for places in of:
        own = np.sort(np.nan_to_num(sizes[:, :, places]), axis=2)
        columns.append(np.abs(own[:, :, len(places) // 2]))
        for place in PLACES:
            if place <= len(places):
                weight = alone if place == 1 else 1.0
                columns += [own[:, :, -place] * weight, -own[:, :, place - 1] * weight]
    table = np.stack(columns, axis=2)
    return table.max(axis=1), table.argmax(axis=1) + SIDE_DAYS


def _sizes(days: Floats) -> Floats:
    """Returns the steps of all series at all places (orders by places by series): those with SIDE_DAYS days
    on each side. A step of few days scatters more."""
    many = days.shape[1]
    parts = []
    for place in range(SIDE_DAYS, many - SIDE_DAYS + 1):
        size = _middle(days[:, place:]) - _middle(days[:, :place])
        parts.append(size / np.sqrt(1 / place + 1 / (many - place)))
    return np.stack(parts, axis=1)


def _middle(days: Floats) -> Floats:
    """Returns the median of each series over the days, the second axis but one; NaN where it has none."""
    if not np.isnan(days).any():
        ordered = np.sort(days, axis=-2)
        many = days.shape[-2]
        middle: Floats = (ordered[..., (many - 1) // 2, :] + ordered[..., many // 2, :]) / 2
        return middle
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        found: Floats = np.nanmedian(days, axis=-2)
    return found


def size_at(days: Floats, place: int) -> Floats:
    """Returns the step of each series at a place, as the logarithm of its ratio; NaN where it has none."""
    return _middle(days[place:]) - _middle(days[:place])


def _without_step(days: Floats, of: Sequence[NDArray[np.int64]]) -> Floats:
    """Returns the days without the step of each family that leaves least of it."""
    rests = np.stack([_rest(days, place) for place in range(SIDE_DAYS, len(days) - SIDE_DAYS + 1)])
    least = np.empty_like(days)
    for places in of:
        left = np.nansum(np.abs(rests[:, :, places]), axis=(1, 2))
        least[:, places] = rests[left.argmin()][:, places]
    # Two medians were taken from the days.
    freed: Floats = least * np.sqrt(len(days) / (len(days) - 2))
    return freed


def _rest(days: Floats, place: int) -> Floats:
    return np.concatenate([days[:place] - _middle(days[:place]), days[place:] - _middle(days[place:])])


def _spread(rest: Sequence[Floats]) -> Floats:
    """Returns the robust deviation of the days of each series, over all sides."""
    away = np.abs(np.concatenate(rest))
    found: Floats = np.maximum(1.4826 * np.nan_to_num(_middle(away)), LEAST)
    return found


def _place(days: Floats, spread: Floats) -> tuple[int, int, int]:
    """Returns the place of the step of some series that leaves least, and the first and the last place around
    it that leave hardly more."""
    own = days / spread
    places = range(SIDE_DAYS, len(days) - SIDE_DAYS + 1)
    left = {one: float(np.nansum(np.abs(_rest(own, one)))) for one in places}
    best = min(left, key=lambda one: left[one])
    near = [one for one in places if abs(one - best) <= 1 and left[one] <= left[best] * (1 + TIE)]
    return best, min(near), max(near)


def _is_dated(days: Floats, place: int) -> bool:
    """Returns whether the days next to a step are on its sides. Otherwise it is nearer to an end than a step
    can be found, and its day is not known yet."""
    before, after = _middle(days[:place]), _middle(days[place:])
    old, new = days[place - 1], days[place]
    is_new = np.nanmean(np.abs(new - after) < np.abs(new - before))
    is_old = np.nanmean(np.abs(old - before) < np.abs(old - after))
    return bool(is_new > 0.5 and is_old > 0.5)


def _moved(days: Floats, place: int, spread: Floats, least: float) -> NDArray[np.int64]:
    """Returns the series that a step at a place moves by as much as `least`, and by MOVED deviations."""
    size = np.nan_to_num(_middle(days[place:]) - _middle(days[:place]))
    scatter = spread * np.sqrt(1 / place + 1 / (len(days) - place))
    return np.flatnonzero((np.abs(size) >= np.log1p(least)) & (np.abs(size) >= MOVED * scatter))
