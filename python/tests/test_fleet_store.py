"""A lake in a store: a real S3 server on loopback, and one that is out of service."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import DATA, NAMES

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from fleet_help import command
from s3_help import BUCKET, environment, gateway, program, proxy

LAKE = f"s3://{BUCKET}/some/lake"
FILES = [DATA / f"{name}.json.gz" for name in NAMES]
TOTALS = (
    "SELECT (SELECT COUNT(*) FROM runs) runs, (SELECT COUNT(*) FROM points) points, (SELECT SUM(n) FROM h) n"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[int]:
    if program() is None:
        pytest.skip("versitygw is missing: `cargo xtask setup` installs it")
    with gateway(tmp_path / "s3") as port:
        yield port


def fleet(port: int, *words: str | Path) -> tuple[int, str, str]:
    """Calls `latscope-fleet` with a store, and returns its exit code and what it prints."""
    done = command(*words, env=environment(port))
    return done.returncode, done.stdout, done.stderr


def asked(lake: str | Path, port: int) -> list[tuple[int, str, str]]:
    """Answers to questions that need every table."""
    queries = (
        TOTALS,
        "SELECT * FROM runs ORDER BY run_id",
        "SELECT * FROM points ORDER BY run_id, series_id",
        "SELECT * FROM series ORDER BY series_id",
        "SELECT run_id, COUNT(*) AS n FROM points WHERE p99_999 IS NULL GROUP BY run_id ORDER BY run_id",
        "SELECT * FROM quantiles ORDER BY day, series_id",
        "SELECT * FROM daily_quantiles ORDER BY day, series_id",
    )
    ask = [["sql", query] for query in queries] + [["sick"], ["normal"], ["missing", "--until", "2026-12-31"]]
    return [
        (code, table.replace(f"{lake}", "LAKE"), notes)
        for code, table, notes in (fleet(port, *words, "--lake", lake, "--format", "json") for words in ask)
    ]


def without_batches(answers: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """Answers without the ids of batches, which differ between two ingestions."""
    return [(code, re.sub(r'"batch": ?[0-9]+', '"batch": 0', table), notes) for code, table, notes in answers]


def test_a_lake_in_a_store_answers_as_one_in_a_directory(server: int, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    there = tmp_path / "lake"
    for lake in (LAKE, there):
        words = ("--lake", lake, "--set-aside", tmp_path / str(lake == LAKE), "--processes", "1")
        code, out, _ = fleet(server, "ingest", *words, *FILES[:3], bad)
        assert (code, out) == (2, "3 runs added, 0 were there, 1 files set aside\n")
        assert fleet(server, "ingest", *words, *FILES)[1] == "2 runs added, 3 were there, 0 files set aside\n"
    assert without_batches(asked(LAKE, server)) == without_batches(asked(there, server))
    for lake in (LAKE, there):
        code, out, notes = fleet(server, "compact", "--lake", lake)
        assert (code, notes) == (0, "")
        assert " 0 left" in out
        assert fleet(server, "verify", "--lake", lake)[:2] == (0, "no fault found\n")
        assert fleet(server, "vacuum", "--hours", "0", "--lake", lake)[0] == 0
    answers = asked(LAKE, server)
    assert [code for code, _, _ in answers] == [0] * len(answers)
    assert without_batches(answers) == without_batches(asked(there, server))


def test_a_damaged_object_is_named(server: int, tmp_path: Path) -> None:
    assert fleet(server, "ingest", "--lake", LAKE, "--set-aside", tmp_path / "aside", *FILES)[0] == 0
    (path, *_) = (tmp_path / "s3" / "data" / BUCKET / "some" / "lake" / "h").rglob("*.parquet")
    path.write_bytes(path.read_bytes()[:100])
    code, out, _ = fleet(server, "verify", "--lake", LAKE)
    assert code == 2
    assert path.name in out


@pytest.mark.parametrize("word", ["PUT", "/_delta_log/", "/runs/"])
def test_a_store_out_of_service_ends_with_a_sentence_and_loses_nothing(
    server: int, tmp_path: Path, word: str
) -> None:
    options = ("--set-aside", tmp_path / "aside", "--processes", "1", "--lake", LAKE)
    with proxy(server) as before:
        assert fleet(before.port, "ingest", *options, FILES[0])[0] == 0
        # A few refusals are waited for.
        before.word, before.refuse = word, 2
        assert fleet(before.port, "ingest", *options, FILES[1])[0] == 0
        assert before.refused == 2
        before.refuse = 10**9
        code, _, notes = fleet(before.port, "ingest", *options, *FILES)
        assert code == 1
        # Above it may be what a thread of delta-rs prints.
        last = notes.splitlines()[-1]
        assert last.startswith(f"latscope-fleet: {LAKE}"), notes
        assert "503 Service Unavailable" in last, notes
        before.refuse = 0
        assert '"runs": 2' in fleet(before.port, "sql", TOTALS, "--lake", LAKE, "--format", "json")[1]
        code, out, _ = fleet(before.port, "ingest", *options, *FILES)
        assert (code, out.split(",")[0]) == (0, "3 runs added")
    assert f'"runs": {len(FILES)}' in fleet(server, "sql", TOTALS, "--lake", LAKE, "--format", "json")[1]
    assert fleet(server, "verify", "--lake", LAKE)[:2] == (0, "no fault found\n")
