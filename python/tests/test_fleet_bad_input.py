"""What a lake refuses, sets aside or names: results, names, files, schemas and queries."""

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from conftest import DATA, NAMES

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from fleet_help import add, ask, command

from latscope.fleet import FleetError, Lake
from latscope.fleet._compact import compact, verify

SERIES = Path(__file__).parent / "series.txt"
FILES = [str(DATA / f"{name}.json.gz") for name in NAMES]


def test_what_is_no_result_is_set_aside(lake: Lake, tmp_path: Path, edited: Callable[..., Path]) -> None:
    point = json.loads(gzip.decompress((DATA / "survey-a.json.gz").read_bytes()))["measurements"][0]
    point["histogram"]["sum"] *= 2
    bad = {
        "text": (tmp_path / "text.json", "not a latscope result"),
        "1996": (edited("a", started="1996-11-24T10:00:00.000Z"), "its clock was wrong"),
        "2056": (edited("b", started="2056-11-24T10:00:00.000Z"), "its clock was wrong"),
        "id": (edited("c", run_id="../../x; rm"), "its run_id is"),
        "time": (edited("d", started="yesterday"), "no RFC 3339 time"),
        "none": (tmp_path / "none.json", "there is no such file"),
        "sum": (edited("f", measurements=[point]), "its sum does not fit the buckets"),
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
    # It is reported once, though it stays in a directory that is ingested each day.
    said = "0 runs added, 0 were there, 0 files set aside, 1 set aside before\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_hostile_names_are_texts(lake: Lake, edited: Callable[..., Path]) -> None:
    name = "'; DROP TABLE h; --\x1b[2J\n<script>\\' ../"
    add(lake, edited("a", labels={name: name}, machine={"name": name, "id": name}))
    (row,) = ask(lake, "SELECT name, machine_id, labels FROM runs")
    assert row["name"] == row["machine_id"] == "'; DROP TABLE h; --\ufffd[2J\ufffd<script>\\' ../"
    for words in (["missing"], ["sick"], ["compare", "--by", f"label={row['name']}"], ["worst"]):
        done = command(*words, "--lake", lake.root, "--format", "json")
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)


def test_machines_with_one_id_are_found(lake: Lake, edited: Callable[..., Path]) -> None:
    add(lake, edited("a", machine={"name": "one"}), edited("b", machine={"name": "two"}))
    assert [fault for fault in verify(lake) if "several machines have the id" in fault]
    assert "several machines have the id" in command("sick", "--lake", lake.root).stderr


def test_damage_is_found_and_named(lake: Lake) -> None:
    add(lake, *FILES)
    file = Path(lake.snapshot().files["h"][0].uri)
    whole = file.read_bytes()
    file.write_bytes(whole[:10] + bytes(200) + whole[210:])
    assert any(file.name in fault for fault in verify(lake))
    file.unlink()
    assert any(file.name in fault for fault in verify(lake))
    assert command("verify", "--lake", lake.root).returncode == 2


@pytest.mark.parametrize("damage", ["cut", "overwritten", "missing"])
def test_a_damaged_day_is_named_and_the_others_answer(
    lake: Lake, edited: Callable[..., Path], damage: str
) -> None:
    days = ("2026-11-20", "2026-11-21", "2026-11-22")
    add(lake, *(edited(f"r{day}", started=f"{day}T01:00:00.000Z") for day in days))
    (file,) = (Path(one.uri) for one in lake.snapshot().files["h"] if str(one.day) == days[1])
    whole = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(whole[:-30] if damage == "cut" else bytes(len(whole)))
    query = ["sql", "--lake", lake.root, "SELECT CAST(SUM(n) AS BIGINT) AS n FROM h", "--format", "csv"]
    done = command(*query)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{file} of the lake is damaged or missing" in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1
    for only in (["--until", days[0]], ["--since", days[2]]):
        done = command(*query, *only)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout.split()[1]) > 0
    assert any(file.name in fault for fault in verify(lake))
    add(lake, edited("late", started=f"{days[1]}T02:00:00.000Z"))
    with pytest.raises(FleetError, match="2026-11-21 cannot be compacted, and is as before"):
        list(compact(lake))


def test_a_renamed_kernel_makes_a_group_of_its_own(lake: Lake, edited: Callable[..., Path]) -> None:
    named = {"a": "6.12.1", "b": "6.12.1-custom", "c": "6.12.1"}
    add(lake, *(edited(name, machine={"id": name, "kernel": kernel}) for name, kernel in named.items()))
    done = command("sick", "--lake", lake.root)
    assert (done.returncode, done.stdout) == (0, "nothing\n")
    notes = [line for line in done.stderr.splitlines() if line.startswith("not judged: ")]
    assert [note.split()[2] for note in notes] == ["2", "1"]
    assert "6.12.1-custom" in notes[1]


def test_a_full_file_system_while_compacting_changes_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    try:
        lake = Lake(disk / "lake", create=True)
        for name in FILES:
            add(lake, name)
        before = ask(lake, "SELECT * FROM quantiles ORDER BY day, series_id")
        filling = disk / "filling"
        with contextlib.suppress(OSError), filling.open("wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()
        done = command("compact", "--lake", lake.root)
        assert done.returncode == 1
        assert "cannot be compacted, and is as before" in done.stderr
        assert ask(lake, "SELECT * FROM quantiles ORDER BY day, series_id") == before
        filling.unlink()
        assert "compacted" in {one.what for one in compact(lake)}
        assert ask(lake, "SELECT * FROM quantiles ORDER BY day, series_id") == before
        assert verify(lake) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


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
    from latscope.fleet import _lake, _schema  # noqa: PLC0415

    runs = _schema.TABLES["runs"]
    with monkeypatch.context() as older:
        older.setattr(_lake, "VERSION", 0)
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
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_parquet('/tmp/x.parquet')",
        "SELECT * FROM glob('/etc/*')",
        "EXPORT DATABASE '/tmp/x'",
        "PRAGMA database_list",
        "CREATE TABLE x AS SELECT 1",
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_file(lake: Lake, tmp_path: Path, number: signal.Signals) -> None:
    add(lake, FILES[0])
    spill = tmp_path / "spill"
    spill.mkdir()
    query = "SELECT COUNT(*) AS n FROM h AS a, h AS b, h AS c, h AS d WHERE a.n + b.n + c.n + d.n < 0"
    called = [sys.executable, "-m", "latscope.fleet", "sql", "--lake", lake.root, query]
    source = str(Path(__file__).parent.parent / "src")
    with subprocess.Popen(called, env=os.environ | {"PYTHONPATH": source, "TMPDIR": str(spill)}) as process:
        while not any(spill.iterdir()):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
    assert process.returncode == 128 + number
    assert not any(spill.iterdir())
