"""`confirm`: what was measured again on a machine, beside its peers."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

import pyarrow as pa
from deltalake import write_deltalake
from fleet_help import add

from latscope.fleet import Lake, _main

SURVEY: dict[str, Any] = json.loads(gzip.decompress((DATA / "survey-a.json.gz").read_bytes()))


def result(directory: Path, machine: int, **slower: float) -> Path:
    """Returns a result of a machine whose medians of some families are longer by a factor."""
    document = json.loads(json.dumps(SURVEY))
    document["machine"] |= {"id": f"id{machine}", "name": f"node{machine}"}
    document["run_id"] = f"run-{machine}"
    for point in document["measurements"]:
        for one in point.get("rounds") or ():
            one["p50"] *= slower.get(point["probe"].split(".")[0], 1.0)
    path = directory / f"{machine}.json"
    path.write_text(json.dumps(document))
    return path


def test_what_was_measured_again_is_compared_with_the_other_machines(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def confirm(path: Path, *words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        return _main.main(["confirm", str(path), "--lake", lake.root, *words]), *capsys.readouterr()

    add(lake, *(result(tmp_path, machine, syscall=1 + machine / 100) for machine in range(5)))
    # The machine's own runs do not say what is usual, and four others do not either.
    slow = result(tmp_path, 4, syscall=1.5)
    code, _, said = confirm(slow)
    assert (code, "5 other machines" in said) == (1, True)
    add(lake, result(tmp_path, 5))
    code, said, _ = confirm(slow, "--format", "json")
    rows = {row["family"]: row for row in json.loads(said)}
    assert code == 0
    assert {row["machine_id"] for row in rows.values()} == {"id4"}
    named = rows.pop("syscall")
    assert (named["state"], named["above"]) == ("confirmed", named["series"])
    assert named["ratio"] == pytest.approx(1.5 / 1.01, abs=0.02)
    assert {row["state"] for row in rows.values()} == {"not confirmed"}
    document = json.loads(slow.read_text())
    for point in document["measurements"]:
        if point["probe"].startswith("syscall."):
            point["quality"]["level"] = "degraded"
    slow.write_text(json.dumps(document))
    said = confirm(slow, "--format", "json")[1]
    assert "syscall" not in {row["family"] for row in json.loads(said)}, "a degraded point proves nothing"
    (tmp_path / "none.json").write_text("{")
    assert confirm(tmp_path / "none.json")[0] == 1


def test_a_user_without_a_name_may_mute(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    add(lake, result(tmp_path, 0))
    monkeypatch.setattr("getpass.getuser", nameless)
    assert _main.main(["mute", "id0", "--why", "x", "--lake", lake.root]) == 0
    capsys.readouterr()
    assert _main.main(["mutes", "--format", "json", "--lake", lake.root]) == 0
    assert json.loads(capsys.readouterr().out)[0]["who"] == str(os.getuid())


def test_a_table_of_something_else_mutes_nothing(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.create("mutes")
    write_deltalake(lake.uri("mutes"), pa.table({"at": ["x"]}), mode="overwrite", schema_mode="overwrite")
    assert _main.main(["mutes", "--lake", lake.root]) == 1
    assert "is no table of `mute`" in capsys.readouterr().err
