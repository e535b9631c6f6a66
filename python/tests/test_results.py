"""Tables, selection and sums of results. The figures are those that the command has written."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from conftest import NAMES

from latscope import Error, MergeError, Point, Results, SelectionError
from latscope._point import enough_medians

Read = Callable[..., Results]


def summaries(results: Results) -> list[dict[str, Any]]:
    """Returns the summaries that the command wrote, of all points."""
    return [one["summary"] for run in results.runs for one in run.document["measurements"]]


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_exactly_those_of_the_command(read: Read, name: str) -> None:
    results = read(name)
    points = results.runs[0].points
    assert points
    for point, summary in zip(points, summaries(results), strict=True):
        assert point.figures() == summary, point.name


def test_a_point_and_a_run_are_a_row(read: Read) -> None:
    results = read("survey-a", "survey-b", "wake")
    table = results.points()
    assert len(table) == sum(len(run.points) for run in results.runs)
    assert list(table["p50"]) == pytest.approx([one["p50"] for one in summaries(results)], nan_ok=True)
    assert set(table["run"]) == {0, 1, 2}
    assert str(table["count"].dtype) == str(table["param.size"].dtype) == "Int64"
    assert str(table["p99_9999"].dtype) == "float64"
    curve = table[(table["probe"] == "memory.latency") & (table["param.order"] == "random")]
    assert len(curve) > 10
    assert curve["param.size"].min() >= 1024
    units = table.attrs["units"]
    assert (units["p50"], units["cycles"], units["value.frequency"]) == ("ns", "core cycles", "GHz")
    assert units["param.size"] == "ns of times, bytes of sizes"
    assert set(units) <= set(table.columns)


def test_a_round_is_a_row(read: Read) -> None:
    results = read("survey-a", "wake")
    table = results.rounds()
    rounds = [len(one["rounds"]) if "rounds" in one else 1 for run in results.runs for one in points_of(run)]
    assert len(table) == sum(rounds)
    assert table["round"].max() == max(rounds) - 1 > 0
    cycle = table[table["probe"] == "cpu.cycle"]
    figures = [one["p50"] for one in points_of(results.runs[0])[0]["rounds"]]
    assert list(cycle["p50"]) == figures
    assert table.attrs["units"]["p50"] == "ns"


def points_of(run: Any) -> list[dict[str, Any]]:
    """Returns the measurements of a run's file."""
    measurements: list[dict[str, Any]] = run.document["measurements"]
    return measurements


def test_arrow_has_the_same_rows_with_units(read: Read) -> None:
    results = read("survey-a", "wake", "cyclictest")
    table, frame = results.to_arrow(), results.points()
    assert table.column_names == list(frame.columns)
    assert table.schema.field("p99").metadata == {b"unit": b"ns"}
    assert table.column("p50").to_pylist() == [None if math.isnan(one) else one for one in frame["p50"]]
    sizes = frame["param.size"].astype(object)
    assert table.column("param.size").to_pylist() == sizes.where(sizes.notna(), None).tolist()
    # "all" beside numbers of CPUs.
    assert "all" in table.column("param.cpu").to_pylist()
    assert results.to_arrow("rounds").num_rows == len(results.rounds())


def test_one_point_is_selected_by_its_parameters(read: Read) -> None:
    results = read("survey-a", "survey-b")
    first = Results(results.runs[:1])
    chosen = first.point("memory.latency", order="random", pages="2MiB", size=4096)
    assert chosen.quantile(0.5) == chosen.figures()["p50"]
    assert first.quantile(0.5, probe="cpu.cycle") == first.point("cpu.cycle").quantile(0.5)
    assert first.histogram(probe="cpu.cycle").count == first.point("cpu.cycle").histogram.count
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("cpu.cyle", {}, "no point is of the probe 'cpu.cyle'; there are cpu.cycle"),
        ("memory.latency", {"size": 1}, r"has these parameters; there are memory.latency\[order"),
        (
            "memory.latency",
            {"order": "random"},
            r"points of memory.latency have these parameters: memory.latency\[",
        ),
    ]
    for probe, params, reason in cases:
        with pytest.raises(SelectionError, match=reason):
            first.point(probe, **params)
    with pytest.raises(SelectionError, match=r"2 runs have cpu.cycle: merge\(\) them"):
        results.point("cpu.cycle")
    with pytest.raises(SelectionError, match="a page is of one run"):
        results.page()


def test_merging_adds_the_histograms_of_equal_series(read: Read) -> None:
    results = read("survey-a", "survey-b")
    merged = results.merge()
    names = {point.name for run in results.runs for point in run.points}
    assert {point.name for point in merged.runs[0].points} == names
    for name in ("cpu.cycle", "syscall.getppid"):
        parts = results.select(name)
        point = merged.point(name)
        assert point.histogram == parts[0].histogram.merge(parts[1].histogram)
        assert point.quantile(0.5) == point.histogram.quantile(0.5)
        assert (point.rounds, point.cycles, point.values) == ((), None, {})
        assert point.rejected == sum(part.rejected or 0 for part in parts)
    assert len(merged.points()) == len(merged.runs[0].points)
    with pytest.raises(Error, match="has no result file"):
        merged.compare(results)


def test_machines_are_merged_on_request_only(read: Read) -> None:
    a, b = read("survey-a", "survey-b").runs
    other = Results((a, replace(b, machine={**b.machine, "name": "other"})))
    with pytest.raises(MergeError, match="2 machines"):
        other.merge()
    assert other.merge(across_machines=True).runs[0].machine == {}


def test_one_run_is_merged_already(read: Read) -> None:
    one = read("survey-a")
    assert one.merge() is one
    with pytest.raises(MergeError, match="no runs"):
        Results(()).merge()


def test_redacted_machines_may_be_several(read: Read) -> None:
    a, b = (
        replace(run, machine={"id": None, "name": "machine-1"}) for run in read("survey-a", "survey-b").runs
    )
    with pytest.raises(MergeError, match="not known"):
        Results((a, b)).merge()
    assert Results((a, b)).merge(across_machines=True).runs[0].machine == {}


def test_points_of_another_meaning_stay_apart(read: Read) -> None:
    point = read("survey-a").point("cpu.cycle")
    empty = replace(point, histogram=replace(point.histogram, buckets=(), overflow=0), level="unsupported")
    changes: list[dict[str, Any]] = [
        {"revision": 9},
        {"batch_ns": 1},
        {"times": "one-way"},
        {"params": {"a": 1}},
    ]
    assert not any(point.is_addable(replace(point, **change)) for change in changes)
    assert point.is_addable(replace(empty, batch_ns=None, sampling="event"))
    for total in (point.add(empty), empty.add(point)):
        assert (total.level, total.sampling, total.histogram) == ("degraded", "batch", point.histogram)
    assert empty.add(empty).level == "unsupported"


def test_rounds_with_few_samples_do_not_count(read: Read) -> None:
    point: Point = read("survey-a").point("cpu.cycle")
    one = point.rounds[0]
    rounds = tuple(replace(one, count=n, p50=p50) for n, p50 in ((100, 1.0), (100, 2.0), (9, 50.0)))
    assert replace(point, rounds=rounds).quantile(0.5) == 1.5
    starved = tuple(replace(one, count=n, p50=p50) for n, p50 in ((2668, 9e3), (26, 14.9e3), (43, 15.2e3)))
    assert replace(point, rounds=starved).quantile(0.5) == 9e3
    halves = tuple(replace(one, count=9, p50=p50) for p50 in (203.0, 55.0, 57.0, 201.0))
    assert replace(point, rounds=halves).quantile(0.5) == 56.0
    assert replace(point, rounds=rounds[:1]).quantile(0.5) == point.histogram.quantile(0.5)
    assert replace(point, rounds=(replace(one, p50=None),) * 2).quantile(0.5) == point.histogram.quantile(0.5)


def test_a_starved_round_is_left_out_and_a_short_merged_run_counts() -> None:
    assert enough_medians([(36_000, 40.0, None), (3_600, 60.0, None)]) == [40.0]
    assert enough_medians([(36_000, 40.0, 0), (3_600, 60.0, 1)]) == [40.0, 60.0]
