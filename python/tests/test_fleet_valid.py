"""Ingestion checks results by the schema, and has the same figures as the reader."""

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, NAMES
from hypothesis import given
from hypothesis import strategies as st

import latscope
from latscope._histogram import Histogram, bucket_of

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

import numpy as np
from fleet_help import add, ask

from latscope.fleet import Lake, _document
from latscope.fleet._document import document_of
from latscope.fleet._histograms import histograms_of
from latscope.fleet._schema import QUANTILES
from latscope.fleet._series import BUCKETS, bucket_index, series_of

FILES = [DATA / f"{name}.json.gz" for name in NAMES]
DOCUMENT = json.loads(gzip.decompress((DATA / "survey-a.json.gz").read_bytes()))
SCHEMA = Path(_document.__file__).parent / "result.schema.json"


def test_the_schema_is_that_of_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs/schema/result.schema.json").read_text()
    assert SCHEMA.read_text() == text, "copy docs/schema/result.schema.json to src/latscope/fleet"


def test_blocks_are_what_the_decoder_takes_them_for() -> None:
    block = json.loads(SCHEMA.read_text())["$defs"]["SampleBlock"]
    assert sorted(block["properties"]) == sorted(block["required"])
    assert {(one["type"], one["minimum"]) for one in block["properties"].values()} == {("integer", 0)}


def _with_blocks() -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(DOCUMENT)
    block = {"from": 1, "count": 2, "sum": 3, "max": 2**64 - 1, "median": 1}
    document["measurements"][2]["blocks"] = [dict(block) for _ in range(3)]
    return document


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (
            ("measurements", 3, "histogram", "tick_ps"),
            "x",
            'measurements[3].histogram.tick_ps: "x" is not of',
        ),
        (("measurements", 0, "sampling"), "often", "measurements[0].sampling: "),
        (("measurements", 1, "quality", "level"), "fine", "measurements[1].quality.level: "),
        (("measurements", 2, "blocks", 1, "sum"), -1, "measurements[2].blocks[1].sum: "),
        (("measurements", 2, "blocks", 1), {}, "measurements[2].blocks[1]: "),
        (("machine",), None, "machine: "),
        (("measurements",), {}, "measurements: "),
        (("run_id",), 7, "run_id: 7 is not of"),
        (("schema",), "latscope/2", "its schema is 'latscope/2', and this reads 'latscope/1'"),
    ],
)
def test_the_path_of_what_is_wrong_is_said(place: tuple[Any, ...], value: object, reason: str) -> None:
    document: Any = _with_blocks()
    assert "probe" in document_of(json.dumps(document).encode(), "a")["measurements"][0]
    part = document
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    with pytest.raises(latscope.ResultError) as found:
        document_of(json.dumps(document).encode(), "a")
    assert reason in found.value.reason


def test_fields_that_later_versions_add_are_no_fault(lake: Lake, edited: Callable[..., Path]) -> None:
    assert add(lake, edited("a", machine={"later": 1}, later={"x": []})).added == 1


def test_what_is_too_large_is_refused(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_document, "MOST_BYTES", 200_000)
    monkeypatch.setattr(_document, "MOST_PARTS", 20_000)
    texts = {
        "long": (b" " * 200_001, "more than 0 MiB"),
        "bomb": (gzip.compress(b" " * 10_000_000), "more than 0 MiB"),
        "parts": (
            b'{"schema": "latscope/1", "x": [' + b"[],[],[],[]," * 5001 + b"1]}",
            "more than 20000 lists",
        ),
        "deep": (b"[" * 19_000, "it is not a latscope result"),
        "half": (b'{"schema": "latscope/1", "x": "\\ud800"}', "it is not a latscope result"),
        "bytes": (b'{"schema": "\xff"}', "it is not a latscope result"),
        "number": (b'{"schema": "latscope/1", "x": NaN}', "it is not a latscope result"),
        "cut": (FILES[0].read_bytes()[:-20], "its compression is damaged"),
    }
    for name, (text, _) in texts.items():
        (tmp_path / name).write_bytes(text)
    account = add(lake, *(tmp_path / name for name in texts))
    for (_, reason), (name, (_, expected)) in zip(account.aside, texts.items(), strict=True):
        assert expected in reason, name


def test_a_lake_has_the_figures_of_the_reader(lake: Lake) -> None:
    add(lake, *FILES)
    runs = latscope.read(FILES).runs
    expected = {}
    for run in runs:
        program = run.document.get("imported", {}).get("program", "latscope")
        for point in run.points:
            histogram, figures = point.histogram, point.figures()
            some = bool(histogram.count)
            row = {"count": histogram.count, "overflow": histogram.overflow, "level": point.level}
            row |= {"min": histogram.least if some else None, "max": histogram.greatest if some else None}
            row |= {"sum": histogram.total if some else None, "verdict": point.verdict}
            row |= {"reasons": ",".join(sorted(reason.id for reason in point.reasons))}
            row |= {"quantities": [(name, value.value) for name, value in sorted(point.values.items())]}
            key = (run.run_id, series_of(point, program).id)
            expected[key] = row | {name: figures[name] for name in QUANTILES}
    names = next(iter(expected.values()))
    found = {
        (row["run_id"], row["series_id"]): {name: row[name] for name in names}
        for row in ask(lake, "SELECT * FROM points")
    }
    assert {key: row for key, row in found.items() if not key[0].startswith("text:")} == {
        key: row for key, row in expected.items() if key[0]
    }
    assert len(found) == len(expected)


def _fields(values: list[int], overflow: int) -> dict[str, Any]:
    histogram = Histogram.of([*values, *[2**48] * overflow])
    extremes = {"min": histogram.least, "max": histogram.greatest, "sum": histogram.total}
    return {
        "tick_ps": 1000,
        "buckets": [list(one) for one in histogram.buckets],
        "overflow": overflow,
    } | extremes


@given(st.lists(st.tuples(st.lists(st.integers(0, 2**48 - 1), max_size=40), st.integers(0, 12)), max_size=5))
def test_figures_of_all_points_at_once_are_those_of_each(drawn: list[tuple[list[int], int]]) -> None:
    fields = [_fields(values, overflow) for values, overflow in drawn]
    found = histograms_of(fields)
    each = [Histogram.from_json(one) for one in fields]
    assert found.count.tolist() == [one.count for one in each]
    for q in (0.0, 0.1, 0.5, 0.9, 0.99):
        assert [None if np.isnan(one) else one for one in found.quantile(q)] == [
            one.quantile(q) for one in each
        ]
    buckets = [
        [*(bucket_index(low) for low, _, _ in one.buckets), *([BUCKETS] if one.overflow else [])]
        for one in each
    ]
    assert found.bucket.tolist() == [index for one in buckets for index in one]
    assert found.length.tolist() == [len(one) for one in buckets]


@pytest.mark.parametrize(
    "wrong",
    [
        {"buckets": [[0, 10**9, 1]]},
        {"buckets": [[2**48, 2**48 + 2**41 - 1, 1]]},
        {"buckets": [[5, 5, 1], [5, 5, 1]]},
        {"buckets": [[6, 6, 1], [5, 5, 1]]},
        {"buckets": [[5, 5, 2**53], [6, 6, 1]]},
        {"buckets": [[5, 5, 2**62], [6, 6, 2**62]]},
        {"buckets": [[7, 7, 1]]},
        {"buckets": [[5, 5, 1]], "min": 6},
        {"buckets": [[5, 5, 1]], "max": 4},
        {"tick_ps": 0},
        {"overflow": 2**53 + 1},
    ],
)
def test_a_histogram_that_the_reader_refuses_is_refused(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"tick_ps": 1, "buckets": [[5, 5, 1]], "min": 5, "max": 5, "sum": 5, "overflow": 0}
    assert histograms_of([good, good]).count.tolist() == [1, 1]
    with pytest.raises(ValueError, match="histogram"):
        Histogram.from_json(good | wrong)
    with pytest.raises(ValueError, match=r"measurements\[1\]|62 bits"):
        histograms_of([good, good | wrong, good])


def test_the_buckets_have_bounds() -> None:
    found = histograms_of([_fields([0, 127, 128, 255, 256, 2**48 - 1], 0)])
    assert found.bucket.tolist() == [0, 127, 128, 255, 256, BUCKETS - 1]
    assert bucket_of(2**48 - 1) is not None
