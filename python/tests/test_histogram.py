"""Geometry, quantiles and sums of histograms."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latscope import Bins, Histogram, MergeError
from latscope._histogram import RANGE_BITS, bucket_of, rank_of

#: Durations in ticks, also beyond the last bucket.
TICKS = st.one_of(st.integers(0, 300), st.integers(0, 2**50))
LISTS = st.lists(TICKS, max_size=60)


def test_buckets_tile_the_range_without_gap_or_overlap() -> None:
    after = 0
    buckets = 0
    while (bounds := bucket_of(after)) is not None:
        low, high = bounds
        assert low == after
        assert bucket_of(high) == bounds
        assert (high - low) * 128 <= low
        after = high + 1
        buckets += 1
    assert (after, buckets) == (2**RANGE_BITS, 42 * 128)
    assert bucket_of(-1) is None


def test_a_tail_quantile_needs_ten_values_above_it() -> None:
    histogram = Histogram.of(range(1, 101))
    assert (histogram.quantile(0.90), histogram.quantile(0.95)) == (90.0, None)
    assert (histogram.quantile(1.0), histogram.max) == (None, 100.0)
    few = Histogram.of([1, 2, 3])
    assert (few.quantile(0.1), few.quantile(0.5), few.quantile(0.6)) == (1.0, 2.0, None)


def test_an_empty_histogram_has_no_numbers() -> None:
    empty = Histogram(1)
    assert (empty.count, empty.min, empty.max, empty.mean, empty.quantile(0.5)) == (0, None, None, None, None)
    assert (empty.edges(), empty.counts()) == ([], [])


def test_of_values_beyond_the_last_bucket_only_the_largest_is_known() -> None:
    histogram = Histogram.of([5, 6, 7] + [2**50] * 17)
    assert (histogram.overflow, histogram.count, histogram.max) == (17, 20, float(2**50))
    assert (histogram.quantile(0.1), histogram.quantile(0.5)) == (6.0, None)
    assert (histogram.edges(), histogram.counts()) == ([5.0, 6.0, 7.0, 8.0], [1, 1, 1])


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_a_quantile_is_within_0_to_1(q: float) -> None:
    with pytest.raises(ValueError, match="not within 0 to 1"):
        Histogram.of([1]).quantile(q)


def test_values_are_not_negative() -> None:
    with pytest.raises(ValueError, match="no duration"):
        Histogram.of([3, -1])


def test_histograms_of_different_ticks_do_not_add_up() -> None:
    with pytest.raises(MergeError):
        Histogram.of([1], 1).merge(Histogram.of([1], 1000))
    assert Histogram(1).merge(Histogram.of([1], 1000)) == Histogram.of([1], 1000)


def test_the_wider_bins_are_those_of_a_sum() -> None:
    a = Histogram(1000, ((5, 5, 1),), 0, 5, 5, 5, Bins(10, 64))
    b = Histogram(1000, ((5, 5, 1),), 0, 5, 5, 5, Bins(20, 32))
    assert a.merge(b).bins == Bins(20, 32)
    assert a.merge(Histogram.of([5])).bins == Bins(10, 64)


GOOD = {"tick_ps": 1, "min": 2, "max": 2, "sum": 2, "buckets": [[2, 2, 1]], "overflow": 0}


@pytest.mark.parametrize(
    "change",
    [
        {"tick_ps": 0},
        {"tick_ps": True},
        {"buckets": [[1, 2, 1]]},
        {"buckets": [[2, 2, 1], [1, 1, 1]]},
        {"buckets": [[2, 2, -1]]},
        {"buckets": [[2, 2]]},
        {"buckets": [2]},
        {"buckets": None},
        {"min": None},
        {"min": 9, "max": 9},
        {"max": 1},
        {"buckets": [[2, 2, 2**53 + 1]]},
        {"sum": -1},
        {"overflow": 2**64},
        {"bins": {"width": 0}},
    ],
)
def test_damaged_histograms_are_refused(change: dict[str, Any]) -> None:
    assert Histogram.from_json(GOOD) == Histogram(1, ((2, 2, 1),), 0, 2, 2, 2)
    with pytest.raises(ValueError, match=r"."):
        Histogram.from_json(GOOD | change)


@given(LISTS, LISTS)
def test_merging_equals_recording_together(a: list[int], b: list[int]) -> None:
    assert Histogram.of(a).merge(Histogram.of(b)) == Histogram.of(a + b)


@given(LISTS, LISTS, LISTS)
def test_the_order_of_merging_does_not_matter(a: list[int], b: list[int], c: list[int]) -> None:
    x, y, z = Histogram.of(a), Histogram.of(b), Histogram.of(c)
    assert x.merge(y) == y.merge(x)
    assert x.merge(y).merge(z) == x.merge(y.merge(z))


@given(LISTS)
def test_a_histogram_survives_its_file_form(values: list[int]) -> None:
    histogram = Histogram.of(values)
    fields: dict[str, Any] = {"tick_ps": 1000, "overflow": histogram.overflow, "sum": histogram.total}
    fields |= {
        "min": histogram.least,
        "max": histogram.greatest,
        "buckets": list(map(list, histogram.buckets)),
    }
    assert Histogram.from_json(fields) == histogram


@given(LISTS)
def test_edges_enclose_all_counted_values(values: list[int]) -> None:
    histogram = Histogram.of(values)
    edges, counts = histogram.edges(), histogram.counts()
    assert len(edges) == (len(counts) + 1 if counts else 0)
    assert edges == sorted(set(edges))
    for low, high, n in zip(edges, edges[1:], counts, strict=False):
        assert n == sum(low <= value < high for value in values)


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=200), st.floats(0, 1))
def test_quantiles_are_near_the_sorted_values(values: list[int], q: float) -> None:
    figure = Histogram.of(values).quantile(q)
    rank = rank_of(q, len(values))
    exact = sorted(values)[rank - 1]
    if q > 0.5 and len(values) - rank < 10:
        assert figure is None
    else:
        assert figure is not None
        assert abs(figure - exact) <= 0.004 * exact + 0.5
