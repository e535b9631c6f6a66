"""Calls of the command, and its answers."""

import json
import subprocess
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from conftest import NAMES

import latscope
from latscope import _command

Read = Callable[..., latscope.Results]


@pytest.mark.parametrize("name", NAMES)
def test_the_command_computes_the_same_figures(read: Read, command: str, name: str) -> None:
    results = read(name)
    arguments = [command, "show", "-", "--quiet", "--json", "-"]
    shown = subprocess.run(arguments, input=results.runs[0].text, capture_output=True, check=True).stdout
    figures = [one["summary"] for one in json.loads(shown)["measurements"]]
    assert [point.figures() for point in results.runs[0].points] == figures


@pytest.mark.usefixtures("command")
def test_a_run_is_measured_and_read() -> None:
    results = latscope.run("cpu", "cycle", quick=True, label={"board": "a7"}, sort=None)
    (run,) = results.runs
    assert (run.source, run.labels) == ("latscope cpu cycle", {"board": "a7"})
    assert results.points()["label.board"].tolist() == ["a7"] * len(run.points)
    assert results.point("cpu.cycle").histogram.count > 0


@pytest.mark.usefixtures("command")
def test_an_exceeded_criterion_is_a_result() -> None:
    options = {"cpus": "0", "policy": "other", "interval": "1ms", "duration": "100ms", "max": "1ns"}
    results = latscope.run("wake", **options)
    assert "exceeded" in results.points()["verdict"].tolist()


@pytest.mark.usefixtures("command")
def test_a_refused_option_is_an_error_with_its_text() -> None:
    with pytest.raises(latscope.CommandError, match="no-such-option") as caught:
        latscope.run("cpu", no_such_option=True)
    assert caught.value.code == 1
    with pytest.raises(TypeError, match="json"):
        latscope.run("cpu", json="x")


@pytest.mark.usefixtures("command")
def test_two_sides_are_compared(read: Read) -> None:
    compared = read("survey-a").compare(read("survey-b"), only=["cpu"], same="2%")
    assert (compared["schema"], compared["a"]["runs"], compared["margin"]) == ("latscope-compare/1", 1, 0.02)
    assert {point["probe"].split(".")[0] for point in compared["points"]} == {"cpu"}


@pytest.mark.usefixtures("command")
def test_a_notebook_shows_the_page(read: Read) -> None:
    results = read("wake")
    assert results.page().startswith("<!DOCTYPE html>")
    shown = results._repr_html_()
    assert 'srcdoc="&lt;!DOCTYPE html&gt;' in shown
    assert shown.count("<iframe") == 1
    merged = read("survey-a", "survey-b").merge()
    assert "has no result file" in merged._repr_html_()


def test_options_become_words() -> None:
    options = {"p99_9": "1ms", "batch_size": 4, "quick": True, "all": False, "cpus": [0, 2], "from_": 1}
    words = "--p99_9 1ms --batch-size 4 --quick --cpus 0,2 --from 1 --label a=b --label c=d"
    assert _command._options({**options, "label": {"a": "b", "c": "d"}}) == words.split()


def test_the_command_is_the_named_one_then_that_of_the_wheel_then_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "latscope"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(_command, "_of_wheel", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    monkeypatch.delenv("LATSCOPE_BINARY", raising=False)
    with pytest.raises(latscope.CommandError, match="nor in this package"):
        latscope.binary()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert latscope.binary() == str(program)
    monkeypatch.setattr(_command, "_of_wheel", lambda: "/wheel/bin/latscope")
    assert latscope.binary() == "/wheel/bin/latscope"
    # An explicit choice beats what is found.
    monkeypatch.setenv("LATSCOPE_BINARY", "/other/latscope")
    assert latscope.binary() == "/other/latscope"
    with pytest.raises(latscope.CommandError, match="did not start"):
        latscope.run("cpu")
    monkeypatch.setenv("LATSCOPE_BINARY", "")
    assert latscope.binary() == "/wheel/bin/latscope"


def test_the_command_of_a_wheel_is_found_by_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "lib" / "latscope-1.dist-info"
    program = tmp_path / "bin" / "latscope"
    for path, text in (
        (record / "METADATA", "Name: latscope\nVersion: 1\n"),
        (record / "RECORD", "../bin/latscope,,\nlatscope/__init__.py,,\n"),
        (program, ""),
    ):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    found = metadata.Distribution.at(record)
    monkeypatch.setattr(metadata, "files", lambda name: found.files if name == "latscope" else None)
    assert _command._of_wheel() == str(program)
