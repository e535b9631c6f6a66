"""All histograms of a result at once, as arrays: checked, and their figures by latscope's rule.

`latscope.Histogram` is the reference; tests compare the two. See docs/method.md ("From samples to figures").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._histogram import RANGE_BITS, SUB_BITS
from .._json import LARGEST
from .._point import QUANTILES
from ._series import BUCKETS

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


#: Largest error of a sum of floating-point numbers, as a share.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Histograms:
    """Histograms of P points, with B buckets that have values in all.

    Of each point: `count`, `overflow`, `least`, `greatest`, `total` (0 without values) and `tick_ps`, ticks
    but for the counts, and the number of its buckets, `length`. Of each bucket: its index (BUCKETS for the
    overflow) and the number of values `n`.
    """

    count: Ints
    overflow: Ints
    least: Ints
    greatest: Ints
    total: Ints
    tick_ps: Ints
    length: Ints
    bucket: Ints
    n: Ints

    def quantile(self, q: float) -> Floats:
        """Returns the value at a quantile of each point, ns: NaN where `Histogram.quantile` has None."""
        rank = np.clip(np.ceil(q * self.count - 1e-6).astype(np.int64), 1, np.maximum(self.count, 1))
        seen = np.cumsum(self.n)
        before = np.concatenate([[0], seen])[np.cumsum(self.length) - self.length]
        place = np.searchsorted(seen, before + rank)
        # A quantile in the overflow has no value; past the last bucket are points without values.
        bucket = np.concatenate([self.bucket, [BUCKETS]])[place]
        low, high = bounds(bucket)
        middle = np.clip((low + high) / 2.0, self.least, self.greatest)
        middle[bucket == BUCKETS] = np.nan
        ticks = np.where(rank == 1, self.least, np.where(rank == self.count, self.greatest, middle))
        ticks[(self.count == 0) | ((q > 0.5) & (self.count - rank < 10))] = np.nan
        figure: Floats = ticks * self.tick_ps / 1e3
        return figure

    def figures(self) -> dict[str, Floats]:
        """Returns the quantiles that result files have, by name, ns, NaN where there is none."""
        return {name: self.quantile(q) for name, q in QUANTILES.items()}


def bounds(bucket: Ints) -> tuple[Ints, Ints]:
    """Returns the bounds of buckets by their indices, both inclusive, in ticks."""
    shift = np.maximum((bucket >> SUB_BITS) - 1, 0)
    low = (bucket - (shift << SUB_BITS)) << shift
    return low, low + (1 << shift) - 1


def index_of(low: Ints) -> Ints:
    """Returns the indices of the buckets of values from 0 to 2^48 - 1, in ticks."""
    # Below 2^53 the exponent of a floating-point number is its length in bits.
    shift = np.maximum(np.frexp(low.astype(np.float64))[1] - SUB_BITS - 1, 0).astype(np.int64)
    index: Ints = (shift << SUB_BITS) + (low >> shift)
    return index


def histograms_of(fields: Sequence[Mapping[str, Any]]) -> Histograms:
    """Returns the histograms of valid documents' fields. Raises ValueError, with the place of the point in
    front, if bounds are not those of the layout or not ascending, if counts exceed 2^53 or the extremes or
    the sum lie outside of the buckets; OverflowError beyond 63 bits."""
    length = np.array([len(one["buckets"]) for one in fields], np.int64)
    parts = chain.from_iterable(chain.from_iterable(one["buckets"] for one in fields))
    low, high, n = np.fromiter(parts, np.int64).reshape(-1, 3).T
    point = np.repeat(np.arange(len(fields)), length)
    if n.astype(np.float64).sum() >= 2.0**62:
        raise ValueError("its counts have more than 62 bits")
    bucket = _index_or_overflow(low)
    fits = np.equal(bounds(bucket), (low, high)).all(axis=0) & (bucket < BUCKETS)
    _refuse(point[~fits], "a bucket's bounds are not those of the layout")
    _refuse(point[1:][(np.diff(low) <= 0) & (np.diff(point) == 0)], "a bucket is out of order")
    tick_ps, overflow = (
        np.array([one[name] for one in fields], np.int64) for name in ("tick_ps", "overflow")
    )
    _refuse(np.flatnonzero(tick_ps == 0), "tick_ps is 0")
    kept, over = np.flatnonzero(n), np.flatnonzero(overflow)
    order = np.argsort(np.concatenate([point[kept], over]), kind="stable")
    point = np.concatenate([point[kept], over])[order]
    n = np.concatenate([n[kept], overflow[over]])[order]
    bucket = np.concatenate([bucket[kept], np.full(len(over), BUCKETS)])[order]
    length = np.bincount(point, minlength=len(fields))
    seen = np.concatenate([[0], np.cumsum(n)])
    end = np.cumsum(length)
    count = seen[end] - seen[end - length]
    _refuse(np.flatnonzero((count > LARGEST) | (overflow > LARGEST)), "more than 2^53 counts")
    extremes = _extremes(fields, count)
    first = np.concatenate([bucket, [BUCKETS]])[end - length]
    # The smallest value of a wide bin may be in another bucket.
    exact = np.array([one.get("bins") is None for one in fields], bool) & (first < BUCKETS) & (count > 0)
    wrong = (exact & (_index_or_overflow(extremes[0]) != first)) | (extremes[0] > extremes[1])
    _refuse(np.flatnonzero(wrong), "min and max do not fit the buckets")
    found = Histograms(count, overflow, *extremes, tick_ps, length, bucket, n)
    _refuse(np.flatnonzero(exact & ~_has_possible_sums(found)), "its sum does not fit the buckets")
    return found


def _has_possible_sums(found: Histograms) -> NDArray[np.bool_]:
    """Returns of which points the sum lies between those of the lower and of the upper bounds."""
    point = np.repeat(np.arange(len(found.length)), found.length)
    least, most = (
        np.bincount(point, found.n * one.astype(np.float64), len(found.length))
        for one in bounds(found.bucket)
    )
    # The overflow has no upper bound.
    is_below = (found.overflow > 0) | (found.total <= most * (1 + ROUNDING))
    possible: NDArray[np.bool_] = is_below & (found.total >= least * (1 - ROUNDING))
    return possible


def _extremes(fields: Sequence[Mapping[str, Any]], count: Ints) -> tuple[Ints, Ints, Ints]:
    """Returns the least, the greatest, and the sum of the values of points, 0 without values."""
    chosen = [one if some else None for one, some in zip(fields, count, strict=True)]
    least, greatest, total = (
        np.array([0 if one is None else one[name] for one in chosen], np.int64)
        for name in ("min", "max", "sum")
    )
    return least, greatest, total


def _index_or_overflow(low: Ints) -> Ints:
    """Returns the indices of the buckets of values, BUCKETS of those beyond the layout."""
    index: Ints = np.where(low >> RANGE_BITS, BUCKETS, index_of(low & ((1 << RANGE_BITS) - 1)))
    return index


def _refuse(points: Ints, reason: str) -> None:
    if len(points):
        raise ValueError(f"measurements[{points[0]}].histogram: {reason}")
