"""The lake: what is in it after ingestions that are repeated, interrupted, at once; what it refuses."""

import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, NAMES

import latscope

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from latscope.fleet import FleetError, Lake
from latscope.fleet._compact import compact, vacuum, verify
from latscope.fleet._engine import DuckDb
from latscope.fleet._ingest import Account, ingest
from latscope.fleet._series import BUCKETS, bucket_bounds, bucket_index, hash_of, series_of
from latscope.fleet._sources import items

SERIES = Path(__file__).parent / "series.txt"
FILES = [str(DATA / f"{name}.json.gz") for name in NAMES]


def add(lake: Lake, *paths: str | Path, **options: Any) -> Account:
    *_, account = ingest(lake, items([str(path) for path in paths]), processes=1, **options)
    return account


def ask(lake: Lake, sql: str) -> list[dict[str, Any]]:
    engine = DuckDb(lake.snapshot())
    try:
        rows: list[dict[str, Any]] = engine.query(sql).to_pylist()
        return rows
    finally:
        engine.close()


def command(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(latscope.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    called = [sys.executable, "-m", "latscope.fleet", *map(str, words)]
    return subprocess.run(called, capture_output=True, text=True, env=environment, check=False, **options)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake", create=True)


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Path]:
    """Function that writes a result with other fields, and returns its path."""
    document = json.loads(gzip.decompress((DATA / "wake.json.gz").read_bytes()))

    def write(name: str, **fields: Any) -> Path:
        machine = document["machine"] | fields.pop("machine", {})
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document | {"machine": machine, "run_id": name} | fields))
        return path

    return write


def test_the_ids_of_series_never_change() -> None:
    points = [point for run in latscope.read(FILES).runs for point in run.points]
    series = {(one.id, one.identity) for one in (series_of(point, "latscope") for point in points)}
    text = "".join(f"{number} {identity}\n" for number, identity in sorted(series))
    if os.environ.get("LATSCOPE_RECORD"):
        SERIES.write_text(text)
    assert SERIES.read_text() == text
    assert len({number for number, _ in series}) == len(series)
    assert hash_of("a") == hash_of("a") < 2**53


def test_buckets_have_an_index() -> None:
    assert [bucket_index(bucket_bounds(index)[0]) for index in range(BUCKETS)] == list(range(BUCKETS))
    assert bucket_bounds(BUCKETS - 1)[1] == 2**48 - 1


def test_all_of_a_result_is_in_the_lake_once(lake: Lake) -> None:
    assert add(lake, *FILES).added == len(FILES)
    again = add(lake, DATA, FILES[0])
    assert (again.added, again.known, again.aside) == (0, len(FILES) + 1, [])
    runs = latscope.read(FILES).runs
    expected = sum(point.histogram.count for run in runs for point in run.points)
    found = ask(
        lake,
        "SELECT CAST(SUM(n) AS BIGINT) AS n, (SELECT CAST(SUM(count) AS BIGINT) FROM points) AS c FROM h",
    )
    assert found == [{"n": expected, "c": expected}]
    assert verify(lake) == []


def test_the_quantiles_are_those_of_the_reader(lake: Lake) -> None:
    add(lake, DATA / "survey-a.json.gz")
    points = {
        series_of(point, "latscope").id: point
        for point in latscope.read(DATA / "survey-a.json.gz").runs[0].points
    }
    for row in ask(lake, "SELECT * FROM quantiles"):
        histogram = points[row["series_id"]].histogram
        for name, q in (("p10", 0.1), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)):
            exact = histogram.quantile(q)
            # The view has the middle of a bucket, also where the reader has the exact first or last value.
            assert (row[name] is None) == (exact is None)
            assert exact is None or row[name] == pytest.approx(exact, rel=0.005)


def test_archives_and_standard_input_are_read(lake: Lake, tmp_path: Path) -> None:
    archive = tmp_path / "results.tar"
    with tarfile.open(archive, "w") as file:
        for name in FILES[:2]:
            file.add(name, Path(name).name)
    assert add(lake, archive).added == 2
    with archive.open("rb") as stream:
        done = command("ingest", "--lake", lake.root, "--processes", "1", "-", stdin=stream)
    assert done.stdout == "0 runs added, 2 were there, 0 files set aside\n"
    with Path(FILES[2]).open("rb") as stream:
        done = command("ingest", "--lake", lake.root, "--processes", "2", "-", stdin=stream)
    assert done.stdout == "1 runs added, 0 were there, 0 files set aside\n"


def test_what_is_no_result_is_set_aside(lake: Lake, tmp_path: Path, edited: Callable[..., Path]) -> None:
    bad = {
        "text": (tmp_path / "text.json", "not a latscope result"),
        "1996": (edited("a", started="1996-11-24T10:00:00.000Z"), "its clock was wrong"),
        "2056": (edited("b", started="2056-11-24T10:00:00.000Z"), "its clock was wrong"),
        "id": (edited("c", run_id="../../x; rm"), "its run_id is"),
        "time": (edited("d", started="yesterday"), "no RFC 3339 time"),
        "none": (tmp_path / "none.json", "there is no such file"),
        "buckets": (
            edited("e", measurements=[{"histogram": {"buckets": [[0, 10**9, 1]]}}]),
            "damaged result",
        ),
    }
    bad["text"][0].write_text("{")
    account = add(lake, *(path for path, _ in bad.values()), FILES[0])
    assert account.added == 1
    for (_, reason), (path, expected) in zip(account.aside, bad.values(), strict=True):
        assert expected in reason, path
    kept = [gzip.decompress(path.read_bytes()) for path in (tmp_path / "lake" / "set-aside").glob("*.gz")]
    assert sorted(kept) == sorted(path.read_bytes() for path, _ in bad.values() if path.exists())
    assert add(lake, bad["1996"][0], day=date(2026, 11, 24)).added == 1
    done = command("ingest", "--lake", lake.root, "--processes", "1", bad["text"][0])
    assert (done.returncode, done.stdout) == (2, "0 runs added, 0 were there, 1 files set aside\n")


def test_a_finished_run_takes_the_place_of_its_unfinished_copy(
    lake: Lake, edited: Callable[..., Path]
) -> None:
    assert add(lake, edited("a", finished=None)).added == 1
    assert add(lake, edited("a")).added == 1
    assert add(lake, edited("a", finished=None)).known == 1
    assert [row["f"] for row in ask(lake, "SELECT finished IS NOT NULL AS f FROM runs")] == [True]
    before = ask(lake, "SELECT * FROM quantiles ORDER BY series_id")
    list(compact(lake))
    assert ask(lake, "SELECT * FROM quantiles ORDER BY series_id") == before
    assert lake.snapshot().lost == ()


def test_hostile_names_are_texts(lake: Lake, edited: Callable[..., Path]) -> None:
    name = "'; DROP TABLE h; --\x1b[2J\n<script>\\' \ud800"
    add(lake, edited("a", labels={name: name}, machine={"name": name, "id": name}))
    (row,) = ask(lake, "SELECT name, machine_id, labels FROM runs")
    assert row["name"] == row["machine_id"] == "'; DROP TABLE h; --\ufffd[2J\ufffd<script>\\' ?"
    for words in (["missing"], ["sick"], ["compare", "--by", f"label={row['name']}"], ["worst"]):
        done = command(*words, "--lake", lake.root, "--format", "json")
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)


def test_machines_with_one_id_are_found(lake: Lake, edited: Callable[..., Path]) -> None:
    add(lake, edited("a", machine={"name": "one"}), edited("b", machine={"name": "two"}))
    assert [fault for fault in verify(lake) if "several machines have the id" in fault]
    assert "several machines have the id" in command("sick", "--lake", lake.root).stderr


def test_two_ingestions_of_the_same_files_count_once(lake: Lake) -> None:
    path = os.pathsep.join([str(Path(latscope.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    called = [
        sys.executable,
        "-m",
        "latscope.fleet",
        "ingest",
        "--lake",
        lake.root,
        "--processes",
        "1",
        str(DATA),
    ]
    both = [
        subprocess.Popen(called, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": path})
        for _ in range(3)
    ]
    assert [one.wait() for one in both] == [0, 0, 0]
    expected = sum(point.histogram.count for run in latscope.read(FILES).runs for point in run.points)
    for _ in range(2):
        assert ask(lake, "SELECT CAST(SUM(n) AS BIGINT) AS n FROM h") == [{"n": expected}]
        assert ask(lake, "SELECT COUNT(*) AS n FROM runs") == [{"n": len(FILES)}]
        list(compact(lake))
    assert verify(lake) == []


def test_rows_of_a_killed_ingestion_do_not_count_and_go(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    add(lake, FILES[0])
    append = lake.append

    def killed(name: str, rows: Any) -> None:
        if name == "runs":
            raise KeyboardInterrupt
        append(name, rows)

    monkeypatch.setattr(lake, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        add(lake, *FILES)
    monkeypatch.undo()
    before = ask(lake, "SELECT * FROM quantiles ORDER BY series_id, day")
    assert {one.what for one in compact(lake)} <= {"busy", "compacted"}
    assert ask(lake, "SELECT * FROM quantiles ORDER BY series_id, day") == before
    list(compact(lake, orphaned_after=-1))
    assert ask(lake, "SELECT * FROM quantiles ORDER BY series_id, day") == before
    assert add(lake, *FILES).added == len(FILES) - 1


def test_compacting_keeps_all_and_late_data_reopen_their_day(lake: Lake, edited: Callable[..., Path]) -> None:
    for name in FILES:
        add(lake, name)
    before = ask(lake, "SELECT * FROM quantiles ORDER BY day, series_id")
    days = lake.snapshot().days()
    assert [(one.day, one.what) for one in compact(lake)] == [(day, "compacted") for day in days]
    assert ask(lake, "SELECT * FROM quantiles ORDER BY day, series_id") == before
    assert ask(lake, "SELECT * FROM daily_quantiles ORDER BY day, series_id") == before
    assert {one.what for one in compact(lake)} == {"left"}
    add(lake, edited("late"))
    assert [one.what for one in compact(lake)].count("compacted") == 1
    assert vacuum(lake, 0, dry=True) == vacuum(lake, 0, dry=False) != []
    assert verify(lake) == []


def test_a_killed_compaction_loses_nothing(lake: Lake, pytestconfig: pytest.Config) -> None:
    for name in FILES:
        add(lake, name)
    before = ask(lake, "SELECT * FROM quantiles ORDER BY day, series_id")
    path = os.pathsep.join([str(Path(latscope.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    chance = random.Random(1)
    for number in range(int(pytestconfig.getoption("kills"))):
        running = subprocess.Popen(
            [sys.executable, "-m", "latscope.fleet", "compact", "--lake", lake.root],
            env=os.environ | {"PYTHONPATH": path, "LATSCOPE_FLEET_READY": "1"},
            stdout=subprocess.PIPE,
        )
        assert running.stdout is not None
        # The line says that the program is loaded, so that the kill is in the midst of the work.
        assert running.stdout.readline() == b"ready\n"
        time.sleep(chance.uniform(0, 0.4))
        running.send_signal(signal.SIGKILL)
        running.communicate()
        assert ask(lake, "SELECT * FROM quantiles ORDER BY day, series_id") == before
        if number % 3 == 0:
            shutil.rmtree(f"{lake.root}/set-aside", ignore_errors=True)
            add(lake, FILES[number % len(FILES)])
            lake.append("runs", lake.table("runs").to_pyarrow_table().slice(0, 1))
    list(compact(lake))
    assert ask(lake, "SELECT * FROM quantiles ORDER BY day, series_id") == before
    assert verify(lake) == []


def test_a_full_disk_while_compacting_changes_nothing(lake: Lake) -> None:
    for name in FILES:
        add(lake, name)
    before = ask(lake, "SELECT * FROM quantiles ORDER BY day, series_id")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))  # noqa: E731
    done = command("compact", "--lake", lake.root, preexec_fn=limit)
    assert done.returncode == 1
    assert "cannot be compacted, and is as before" in done.stderr
    assert ask(lake, "SELECT * FROM quantiles ORDER BY day, series_id") == before
    assert {one.what for one in compact(lake)} == {"compacted"}


def test_damage_is_found_and_named(lake: Lake) -> None:
    add(lake, *FILES)
    file = Path(lake.snapshot().files["h"][0].uri)
    whole = file.read_bytes()
    file.write_bytes(whole[:10] + bytes(200) + whole[210:])
    assert any(file.name in fault for fault in verify(lake))
    file.unlink()
    assert any(file.name in fault for fault in verify(lake))
    assert command("verify", "--lake", lake.root).returncode == 2


def test_other_schemas_are_told_apart(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="is no lake"):
        Lake(tmp_path / "none")
    table = lake.table("runs")
    table.alter.set_table_properties({"latscope.lake": "9"}, raise_if_not_exists=False)
    with pytest.raises(FleetError, match="schema 9, and this program knows 1: use a newer latscope"):
        Lake(lake.root)


def test_a_lake_without_later_columns_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from latscope.fleet import _schema  # noqa: PLC0415

    runs = _schema.TABLES["runs"]
    with monkeypatch.context() as older:
        older.setitem(_schema.TABLES, "runs", runs.remove(runs.get_field_index("scheduler")))
        lake = Lake(tmp_path / "lake", create=True)
    add(lake, *FILES)
    assert len(ask(lake, "SELECT scheduler FROM runs")) == len(FILES)
    list(compact(lake))
    assert verify(lake) == []


@pytest.mark.parametrize(
    "query",
    [
        "COPY h TO '/tmp/x'",
        "ATTACH '/tmp/x' AS x",
        "SELECT 1; SELECT 2",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('set-aside/x')",
        "SET threads = 1",
        "INSTALL httpfs",
        "no SQL",
    ],
)
def test_queries_only_read_the_lake(lake: Lake, query: str) -> None:
    add(lake, FILES[0])
    done = command("sql", "--lake", lake.root, query)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_query_of_too_many_rows_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from latscope.fleet import _main  # noqa: PLC0415

    add(lake, FILES[0])
    monkeypatch.setattr(_main, "MOST_ROWS", 1)
    query = ["sql", "--lake", lake.root, "SELECT COUNT(*) AS n FROM h WHERE n < 0", "--format", "csv"]
    assert _main.main(query) == 1
    assert "--no-limit" in capsys.readouterr().err
    assert _main.main([*query, "--no-limit"]) == 0
    assert capsys.readouterr().out == "n\n0\n"
