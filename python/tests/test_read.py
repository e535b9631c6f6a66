"""Reading of results, and refusal of all else."""

import copy
import gzip
import io
import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA
from hypothesis import given, settings
from hypothesis import strategies as st

import latscope
from latscope import _read

WAKE = DATA / "wake.json.gz"
TEXT = gzip.decompress(WAKE.read_bytes())
SMALL: dict[str, Any] = json.loads(gzip.decompress((DATA / "cyclictest.json.gz").read_bytes()))


def test_a_run_is_read_from_whatever_has_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "wake.json"
    plain.write_bytes(TEXT)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    sources: list[Any] = [WAKE, str(plain), [plain], io.BytesIO(TEXT), io.StringIO(TEXT.decode()), "-"]
    expected = latscope.read(WAKE).runs[0]
    for source in sources:
        (run,) = latscope.read(source).runs
        assert (run.points, run.run_id, run.text) == (expected.points, expected.run_id, TEXT)
    assert expected.document == json.loads(TEXT)
    assert expected.source == str(WAKE)


def test_of_a_directory_what_is_no_result_is_skipped(directory: Path) -> None:
    assert [Path(run.source).name for run in latscope.read(directory).runs] == ["ipc.json.gz", "wake.json.gz"]
    (directory / "other.json").write_text('{"jobs": []}')
    with pytest.warns(UserWarning, match=r"skipped: cannot use .*other.json: .* no \"schema\""):
        assert len(latscope.read(directory).runs) == 2
    (directory / "damaged.json").write_text("")
    with pytest.raises(latscope.ResultError, match=r"damaged\.json"):
        latscope.read(directory)


def test_a_run_counts_once() -> None:
    with pytest.warns(UserWarning, match="is the same run as"):
        assert len(latscope.read([WAKE, WAKE]).runs) == 1
    old = json.dumps({**json.loads(TEXT), "run_id": ""})
    with pytest.warns(UserWarning, match="is the same run as"):
        assert len(latscope.read([io.StringIO(old), io.StringIO(old)]).runs) == 1


def test_there_is_a_result_at_least(tmp_path: Path) -> None:
    with pytest.raises(latscope.ResultError, match="there is no result"):
        latscope.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        latscope.read(tmp_path / "none.json")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(latscope.ResultError, match="no plain file"):
        latscope.read(tmp_path / "pipe.json")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "damaged"),
        (b"\xff\xfe", "damaged"),
        (TEXT[: len(TEXT) // 2], "damaged"),
        (TEXT + b"}", "damaged"),
        (b'{"schema": NaN}', "damaged"),
        (b"[" * 100_000, "damaged"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "damaged"),
        (b"\x1f\x8b damaged", "compression"),
        (gzip.compress(TEXT)[:-20], "compression"),
        (b'{"schema": "latscope/1"}', "plan is None"),
    ],
)
def test_what_is_damaged_is_refused_with_the_reason(tmp_path: Path, text: bytes, reason: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text)
    with pytest.raises(latscope.ResultError, match=reason) as caught:
        latscope.read(path)
    assert caught.value.source == str(path)
    assert not isinstance(caught.value, latscope.ForeignError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("text", ["[]", "12", "null", '{"results": []}', '{"schema": "latscope/2"}'])
def test_other_json_is_foreign(text: str) -> None:
    with pytest.raises(latscope.ForeignError, match=r"cannot use the file object: .*schema"):
        latscope.read(io.StringIO(text))


@pytest.mark.parametrize("text", [TEXT, gzip.compress(TEXT)])
def test_more_than_the_limit_is_not_read(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(_read, "LIMIT", len(TEXT) - 1)
    with pytest.raises(latscope.ResultError, match="more than 1 GiB"):
        latscope.read(io.BytesIO(text))
    monkeypatch.setattr(_read, "LIMIT", len(TEXT))
    assert latscope.read(io.BytesIO(TEXT)).runs


def places(value: Any) -> list[tuple[Any, Any]]:
    """Returns each place of a JSON value: its container and its key there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in [(value, key), *places(item)]]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=200)
@given(st.data(), JSON)
def test_a_damaged_field_is_read_or_refused(data: st.DataObject, value: object) -> None:
    document = copy.deepcopy(SMALL)
    container, key = data.draw(st.sampled_from(places(document)))
    container[key] = value
    try:
        results = latscope.read(io.StringIO(json.dumps(document)))
    except latscope.ResultError as error:
        assert error.reason  # noqa: PT017
    else:
        assert len(results.points()) == len(results.runs[0].points)
        assert results.to_arrow().num_rows == len(results.to_arrow("points"))
