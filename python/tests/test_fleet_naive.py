"""Questions of a user who does not know the lake: what is said where there is no answer."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from fleet_help import add

from latscope.fleet import Lake, _main

Asked = tuple[int, str, str]
Ask = Callable[..., Asked]

QUESTIONS = (
    ["sick"],
    ["normal"],
    ["normal", "--toml"],
    ["compare"],
    ["drift"],
    ["machine", "a"],
    ["machine", "a", "--probe", "%"],
    ["worst"],
    ["missing"],
)


@pytest.fixture
def ask(lake: Lake, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Function that asks the lake, and returns the exit code and what is printed."""

    def asked(*words: str) -> Asked:
        code = _main.main([*words, "--lake", lake.root])
        return code, *capsys.readouterr()

    return asked


@pytest.fixture
def few(lake: Lake, edited: Callable[..., Path]) -> Lake:
    """Lake of two machines: one with three days, one with a day."""
    days = ("2026-11-01", "2026-11-02", "2026-11-05")
    for day in days:
        add(
            lake, edited(f"a-{day}", machine={"id": "machine-a", "name": "alpha"}, started=f"{day}T01:00:00Z")
        )
    add(lake, edited("b", machine={"id": "machine-b", "name": "beta"}, started="2026-11-01T02:00:00Z"))
    return lake


def is_sentence(text: str) -> bool:
    """Returns true for one line without the inside of the program."""
    return text.count("\n") == 1 and not any(word in text for word in ("Traceback", "DuckDB", "Error"))


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_an_empty_lake_says_how_results_come_in(ask: Ask, words: list[str]) -> None:
    code, out, notes = ask(*words)
    assert (code, out) == (1, "")
    assert is_sentence(notes)
    assert "has no runs yet: `latscope-fleet ingest PATH" in notes


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_days_without_runs_are_named_with_those_that_have_some(few: Lake, ask: Ask, words: list[str]) -> None:
    code, out, notes = ask(*words, "--since", "2026-11-03", "--until", "2026-11-04")
    assert (code, out) == (1, "")
    assert is_sentence(notes)
    assert "no runs from 2026-11-03 until 2026-11-04: its 3 days are from 2026-11-01 to 2026-11-05" in notes
    code, _, notes = ask(*words, "--since", "2026-11-04", "--until", "2026-11-03")
    assert (code, notes) == (1, "latscope-fleet: --since 2026-11-04 is after --until 2026-11-03\n")


def test_a_machine_that_is_not_there_is_told_from_one_without_such_figures(few: Lake, ask: Ask) -> None:
    cases = {
        ("alpha",): "alpha is a name: ask for its id, machine-a",
        ("machine",): "has no machine machine: similar ids are machine-a, machine-b",
        ("machine-x",): "has no machine machine-x: similar ids are machine-",
        ("0'; DROP",): "has no machine 0'; DROP: `missing --days 0` lists all",
        ("machine-b", "--since", "2026-11-02"): "on these days: it has 1 runs from 2026-11-01 to 2026-11-01",
        ("machine-a", "--probe", "wake"): "matches --probe wake on these days: give a pattern of SQL",
    }
    for words, text in cases.items():
        code, out, notes = ask("machine", *words)
        assert (code, out, is_sentence(notes)) == (1, "", True)
        assert text in notes
    assert ask("machine", "machine-b")[0] == 0


def test_what_an_answer_without_rows_means_is_said(few: Lake, ask: Ask) -> None:
    assert ask("drift") == (0, "nothing\n", "a step needs 3 days on each side: there are 3 days in all\n")
    code, out, notes = ask("worst", "--probe", "wake")
    assert (code, out) == (0, "nothing\n")
    assert notes == "no series matches --probe wake: give a pattern of SQL, such as wake.%\n"
    assert ask("worst", "--format", "csv", "--probe", "wake")[1] == ""
    assert ask("missing", "--until", "2026-11-02") == (0, "nothing\n", "")
    listed = ask("missing", "--days", "0", "--until", "2026-11-06", "--format", "json")[1]
    assert ["machine-a" in listed, "machine-b" in listed] == [True, True]
    assert ask("normal")[0] == 0


def test_the_longest_values_are_not_of_batches(lake: Lake, ask: Ask) -> None:
    add(lake, Path(__file__).parent / "data" / "survey-a.json.gz")
    code, out, notes = ask("worst", "--probe", "cpu.%")
    assert (code, out) == (0, "nothing\n")
    assert notes.startswith("--probe cpu.% has only means of batches")


@pytest.mark.parametrize(
    "words",
    [
        ["worst", "--top", "0"],
        ["worst", "--top", "-1"],
        ["missing", "--days", "-1"],
        ["missing", "--days", "99999999999"],
        ["drift", "--least", "nan"],
        ["drift", "--least", "-0.1"],
        ["drift", "--since", "2026-13-01"],
    ],
    ids=" ".join,
)
def test_numbers_that_mean_nothing_are_refused(
    ask: Ask, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        ask(*words)
    assert ended.value.code == 2
    assert words[1] in capsys.readouterr().err
