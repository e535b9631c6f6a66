"""Histograms of durations: the geometry of latscope's buckets, exact extremes, quantiles by its rule,
addition.

The semantics are those of docs/method.md ("From samples to figures") and docs/result-schema.md ("histogram,
blocks").
"""

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

from . import _json
from ._errors import MergeError

SUB_BITS = 7
RANGE_BITS = 48
LARGEST_SUM = 2**64 - 1


def bucket_of(ticks: int) -> tuple[int, int] | None:
    """Returns the bounds of the bucket of a value, both inclusive, in ticks; None from 2^48 ticks on.

    A value below 128 has a bucket of its own. Above, each power of two has 128 buckets.
    """
    if ticks < 0 or ticks >> RANGE_BITS:
        return None
    shift = max((ticks | (2**SUB_BITS - 1)).bit_length() - SUB_BITS - 1, 0)
    low = ticks >> shift << shift
    return low, low + (1 << shift) - 1


def rank_of(q: float, count: int) -> int:
    """Returns the nearest rank, from 1, of a quantile among a number of values."""
    # 0.9 * 100 is 90.00000000000001: without the slack p90 would be rank 91.
    return min(max(math.ceil(q * count - 1e-6), 1), max(count, 1))


@dataclass(frozen=True)
class Bins:
    """Bins of another program, wider than the buckets: `width` in ticks, `per_octave` bins in each power of
    two."""

    width: int
    per_octave: int | None = None

    def names(self, low: int, high: int) -> tuple[int, int]:
        """Returns the first and the last value from `low` to `high` that names a bin; both ends, where none
        is between them."""
        octave = 1 << (max(low, 1).bit_length() - 1)
        width = max(self.width, octave // self.per_octave if self.per_octave else 0)
        below = width // 2 if self.per_octave else 0
        first = -(-max(low - below, 0) // width) * width + below
        last = high - max(high - below, 0) % width
        return (first, last) if first <= last and last >= low else (low, high)


@dataclass(frozen=True)
class Histogram:
    """Counts of durations, in ticks of `tick_ps` picoseconds (1 for batches, 1000 for single events).

    `buckets` are (low, high, count) in ticks, ascending, bounds inclusive, without empty ones. `overflow`
    counts the values of 2^48 ticks and more. `least`, `greatest` and `total` are the exact extremes and the
    sum, in ticks; 0 without values. All other members are in ns.
    """

    tick_ps: int
    buckets: tuple[tuple[int, int, int], ...] = ()
    overflow: int = 0
    least: int = 0
    greatest: int = 0
    total: int = 0
    bins: Bins | None = None

    @classmethod
    def from_json(cls, fields: _json.Object) -> "Histogram":
        """Returns the histogram of a result file. Raises ValueError if bounds are not those of the layout or
        not ascending, if counts exceed 2^53, or if the extremes lie outside of the buckets."""
        tick_ps = _json.natural(fields, "tick_ps")
        if tick_ps == 0:
            raise ValueError("histogram: tick_ps is 0")
        buckets = tuple(_bucket(item) for item in _json.get(fields, "buckets", list))
        if any(a[0] >= b[0] for a, b in pairwise(buckets)):
            raise ValueError("histogram: a bucket is out of order")
        overflow = _json.natural(fields, "overflow")
        count = sum(bucket[2] for bucket in buckets) + overflow
        if count > _json.LARGEST:
            raise ValueError(f"histogram: {count} counts, more than 2^53")
        bins = _bins(fields)
        if count == 0:
            return cls(tick_ps)
        least, greatest = _json.natural(fields, "min"), _json.natural(fields, "max")
        buckets = tuple(bucket for bucket in buckets if bucket[2] > 0)
        # The smallest value of a wide bin may be in another bucket.
        misplaced = buckets and bins is None and bucket_of(least) != buckets[0][:2]
        if least > greatest or misplaced:
            raise ValueError(f"histogram: min {least} and max {greatest} do not fit the buckets")
        return cls(tick_ps, buckets, overflow, least, greatest, _json.natural(fields, "sum"), bins)

    @classmethod
    def of(cls, ticks: Iterable[int], tick_ps: int = 1000) -> "Histogram":
        """Returns the histogram of values in ticks of `tick_ps` ps. Raises ValueError for a negative
        value."""
        values = sorted(ticks)
        if not values:
            return cls(tick_ps)
        if values[0] < 0:
            raise ValueError(f"{values[0]} is no duration")
        counts: dict[tuple[int, int], int] = {}
        bounds = [bucket_of(value) for value in values]
        for bucket in bounds:
            if bucket is not None:
                counts[bucket] = counts.get(bucket, 0) + 1
        buckets = tuple((low, high, n) for (low, high), n in counts.items())
        total = min(sum(values), LARGEST_SUM)
        return cls(tick_ps, buckets, bounds.count(None), values[0], values[-1], total)

    @cached_property
    def _seen(self) -> list[int]:
        return list(accumulate(bucket[2] for bucket in self.buckets))

    @property
    def count(self) -> int:
        """Number of values, those in `overflow` included."""
        return (self._seen[-1] if self.buckets else 0) + self.overflow

    @property
    def min(self) -> float | None:
        """Smallest value, ns, exact; None without values."""
        return self._ns(self.least) if self.count else None

    @property
    def max(self) -> float | None:
        """Largest value, ns, exact; None without values."""
        return self._ns(self.greatest) if self.count else None

    @property
    def mean(self) -> float | None:
        """Mean of all values, ns, exact; None without values."""
        return self._ns(float(self.total) / float(self.count)) if self.count else None

    def edges(self) -> list[float]:
        """Returns the edges of all buckets from the first to the last with values, ns: one more than
        `counts()` has.

        A bucket holds low <= value < high. Empty buckets between are included, values in `overflow` are not.
        The list is empty if no bucket has values. `matplotlib.pyplot.stairs(h.counts(), h.edges())` draws it.
        """
        layout = self._layout()
        return [self._ns(low) for low, _ in layout] + [self._ns(high + 1) for _, high in layout[-1:]]

    def counts(self) -> list[int]:
        """Returns the number of values in each bucket between neighbours of `edges()`."""
        filled = {low: n for low, _, n in self.buckets}
        return [filled.get(low, 0) for low, _ in self._layout()]

    def quantile(self, q: float) -> float | None:
        """Returns the value at a quantile (0 to 1) by nearest rank, ns, within 0.4 % (the middle of its
        bucket; the first and the last rank are exact).

        None without values, where the value is in `overflow`, and above the median where fewer than ten
        values lie above it: it says little about the tail. So `quantile(1.0)` is None: see `max`. Raises
        ValueError if q is not within 0 to 1. The rule is that of docs/method.md ("From samples to figures").
        """
        if not 0.0 <= q <= 1.0:
            raise ValueError(f"the quantile {q} is not within 0 to 1")
        rank = rank_of(q, self.count)
        if self.count == 0 or (q > 0.5 and self.count - rank < 10):
            return None
        if rank == 1:
            return self.min
        if rank == self.count:
            return self.max
        place = bisect_left(self._seen, rank)
        if place == len(self.buckets):
            return None
        low, high, _ = self.buckets[place]
        if self.bins is not None:
            low, high = self.bins.names(low, high)
        middle = (low + high) / 2.0
        return self._ns(min(max(middle, float(self.least)), float(self.greatest)))

    def merge(self, other: "Histogram") -> "Histogram":
        """Returns the sum of two histograms. Raises MergeError if both have values and their ticks differ."""
        if other.count == 0 or self.count == 0:
            filled, empty = (self, other) if other.count == 0 else (other, self)
            return replace(filled, bins=filled.bins or empty.bins)
        if self.tick_ps != other.tick_ps:
            raise MergeError(
                f"histograms with ticks of {self.tick_ps} ps and {other.tick_ps} ps do not add up"
            )
        counts = {bucket[:2]: bucket[2] for bucket in self.buckets}
        for low, high, n in other.buckets:
            counts[low, high] = counts.get((low, high), 0) + n
        return Histogram(
            self.tick_ps,
            tuple((low, high, n) for (low, high), n in sorted(counts.items())),
            self.overflow + other.overflow,
            min(self.least, other.least),
            max(self.greatest, other.greatest),
            min(self.total + other.total, LARGEST_SUM),
            _coarser(self.bins, other.bins),
        )

    def _ns(self, ticks: float) -> float:
        return float(ticks) * float(self.tick_ps) / 1e3

    def _layout(self) -> list[tuple[int, int]]:
        """Returns the bounds of all buckets from the first to the last with values, in ticks."""
        layout: list[tuple[int, int]] = []
        bounds = bucket_of(self.buckets[0][0]) if self.buckets else None
        while bounds is not None and bounds[0] <= self.buckets[-1][0]:
            layout.append(bounds)
            bounds = bucket_of(bounds[1] + 1)
        return layout


def _bucket(item: object) -> tuple[int, int, int]:
    if not isinstance(item, list) or len(item) != 3:
        raise ValueError(f"histogram: {item!r:.60} is no bucket")
    low, high, n = (_json.checked(part, "histogram: a bucket's part", int) for part in item)
    if bucket_of(low) != (low, high) or n < 0:
        raise ValueError(f"histogram: no bucket has the bounds {low}..{high}")
    return low, high, n


def _bins(fields: _json.Object) -> Bins | None:
    if fields.get("bins") is None:
        return None
    bins = _json.get(fields, "bins", dict)
    width = _json.natural(bins, "width")
    per_octave = None if bins.get("per_octave") is None else _json.natural(bins, "per_octave")
    if width == 0 or per_octave == 0:
        raise ValueError("histogram: bins without width")
    return Bins(width, per_octave)


def _coarser(a: Bins | None, b: Bins | None) -> Bins | None:
    if a is None or b is None:
        return a or b
    per_octave = [bins.per_octave for bins in (a, b) if bins.per_octave is not None]
    return Bins(max(a.width, b.width), min(per_octave, default=None))
