"""Identity of a series: what must be equal so that histograms of two runs add up. See docs/lake.md
("series")."""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache

from .._histogram import RANGE_BITS, SUB_BITS
from .._point import ParamValue, Point

#: Number of buckets of the layout. Indices of buckets are below it.
BUCKETS = (RANGE_BITS - SUB_BITS + 1) << SUB_BITS


@dataclass(frozen=True)
class Series:
    """Series: its id, and the text that the id is a hash of."""

    id: int
    identity: str


def series_of(point: Point, program: str) -> Series:
    """Returns the series of a point that a program measured (`latscope`, or the one of an imported
    result)."""
    histogram = point.histogram
    if not histogram.count:
        return series(point.probe, point.revision, tuple(point.params.items()), point.times, program)
    bins = histogram.bins and (histogram.bins.width, histogram.bins.per_octave)
    sampled = (point.sampling, point.batch_ns, histogram.tick_ps, bins)
    return series(point.probe, point.revision, tuple(point.params.items()), point.times, program, sampled)


@lru_cache(maxsize=100_000)
def series(
    probe: str,
    revision: int,
    params: tuple[tuple[str, ParamValue], ...],
    times: str,
    program: str,
    sampled: tuple[str, int | None, int, tuple[int, int | None] | None] | None = None,
) -> Series:
    """Returns the series of points. `sampled` has the sampling, the length of a batch in ns (None for
    events), the tick in ps and the bins of those that have samples.

    A point without samples is of a series of its own, whose sampling is `none`: a result does not say whether
    samples would have been events or batches.
    """
    fields: dict[str, object] = {
        "probe": probe,
        "revision": revision,
        "params": {name: _canonical(value) for name, value in params},
        "times": times,
        "program": program,
        "sampling": "none",
    }
    if sampled is not None:
        fields |= dict(zip(("sampling", "batch_ns", "tick_ps", "bins"), sampled, strict=True))
    identity = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return Series(hash_of(identity), identity)


def hash_of(identity: str) -> int:
    """Returns the first 53 bits of the text's BLAKE2b: every reader of JSON has them exactly."""
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "big") >> 11


def bucket_index(low: int) -> int:
    """Returns the index of the bucket that begins at `low` ticks: 0 to BUCKETS - 1."""
    shift = max(low.bit_length() - SUB_BITS - 1, 0)
    return (shift << SUB_BITS) + (low >> shift)


def bucket_bounds(index: int) -> tuple[int, int]:
    """Returns the bounds of a bucket, both inclusive, in ticks."""
    shift = max((index >> SUB_BITS) - 1, 0)
    low = (index - (shift << SUB_BITS)) << shift
    return low, low + (1 << shift) - 1


def _canonical(value: ParamValue) -> ParamValue:
    return int(value) if isinstance(value, float) and value.is_integer() else value
