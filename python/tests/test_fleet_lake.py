"""The lake: what is in it after ingestions that are repeated, interrupted, at once; what it refuses."""

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
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, NAMES

import latscope

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from fleet_help import add, ask, command

from latscope.fleet import Lake
from latscope.fleet._compact import compact, vacuum, verify
from latscope.fleet._series import BUCKETS, bucket_bounds, bucket_index, hash_of, series_of

SERIES = Path(__file__).parent / "series.txt"
FILES = [str(DATA / f"{name}.json.gz") for name in NAMES]


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
