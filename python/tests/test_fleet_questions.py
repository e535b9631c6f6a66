"""Questions to fleets of known truth, and the same answers from both engines."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import latscope

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from latscope.fleet import Lake, _bench, _judge, _main, _questions, _settings
from latscope.fleet._compact import compact
from latscope.fleet._drift import drift
from latscope.fleet._engine import DuckDb, Engine, dicts, question
from latscope.fleet._generate import Fault, bucket_of_log, generate
from latscope.fleet._judge import Distances
from latscope.fleet._rows import rows_of
from latscope.fleet._schema import TABLES

DAY = date(2026, 11, 24)
DEMO = Path(_main.__file__).parent / "demo"
FAULTS = {
    3: Fault("syscall", shift=1.6),
    50: Fault("memory", shift=1.8),
    77: Fault("cpu", shift=1.6),
    90: Fault("sync", shift=2.0),
}
SICK = {f"m{number:06}" for number in FAULTS}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Lake of 150 machines on eight days, four of them sick on the last two."""
    lake = Lake(tmp_path_factory.mktemp("fleet") / "lake", create=True)
    runs = latscope.read(DEMO).runs
    for before in range(8):
        day = DAY - timedelta(days=before)
        generate(
            lake,
            runs,
            150,
            day,
            FAULTS if before < 2 else {},
            seed=before,
            only=("cpu", "memory", "syscall", "sync"),
        )
    list(compact(lake))
    return lake


@pytest.fixture(scope="module")
def surveys(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Lake of a machine that became slower on the sixth of ten days, and of one that stopped reporting."""
    directory = tmp_path_factory.mktemp("surveys")
    text = latscope.read(Path(__file__).parent / "data" / "survey-a.json.gz").runs[0].text
    document = json.loads(text)
    document["measurements"] = [one for one in document["measurements"] if one["probe"] == "cpu.cycle"]
    for number in range(20):
        day, machine = divmod(number, 2)
        if machine and day > 5:
            continue
        point = document["measurements"][0]
        point.pop("rounds", None)
        low = 400 if day >= 6 else 300
        # A bucket above 256 ticks is two wide.
        buckets = {"buckets": [[low, low + 1, 20]], "min": low, "max": low, "sum": low * 20}
        fields = {
            "started": f"2026-11-{day + 1:02}T00:00:00.000Z",
            "run_id": f"r{number}",
            "labels": {"rack": str(machine)},
        }
        kernel = {"kernel": "6.12" if day >= 6 else "6.1"}
        about = document["machine"] | {"id": f"machine-{machine}"} | kernel
        whole = (
            document
            | fields
            | {"machine": about, "measurements": [point | {"histogram": point["histogram"] | buckets}]}
        )
        (directory / f"{number}.json").write_text(json.dumps(whole))
    assert (
        _main.main(
            ["ingest", "--quiet", "--processes", "1", "--lake", str(directory / "lake"), str(directory)]
        )
        == 0
    )
    return Lake(directory / "lake")


@pytest.fixture
def engine(fleet: Lake) -> Iterator[Engine]:
    opened = DuckDb(fleet.snapshot())
    yield opened
    opened.close()


def test_the_sick_machines_are_named_and_no_others(engine: Engine) -> None:
    rows, notes = _questions.sick(engine, since=DAY)
    assert {row["machine_id"] for row in rows if row["significant"]} == SICK
    assert (len(rows) >= 10, notes) == (True, [])
    by_machine = {row["machine_id"]: row for row in rows}
    for number, fault in FAULTS.items():
        row = by_machine[f"m{number:06}"]
        assert row["family"].replace("dram", "memory").replace("core-to-core", "sync") == fault.family
        assert row["ratio"] == pytest.approx(fault.shift, rel=0.15)
        assert row["confirm"].startswith(f"latscope survey --quick --only {fault.family}.")


def test_a_fleet_without_sick_machines_names_none(engine: Engine) -> None:
    fleet = _questions.groups_of(engine, _questions.series_of(engine), DAY)
    found, days = fleet.groups[0].found, fleet.past
    assert days is not None
    healthy = [place for place, name in enumerate(found.machines) if name not in SICK]
    named = 0
    for draw in range(4):
        places = [place for place in healthy if place % 4 != draw]
        names = [found.machines[at] for at in places]
        part = Distances(names, found.series, found.body[places], found.mean[places], found.waited[places])
        rows = np.isin(days.machine, [days.machines.index(one) for one in names])
        past = replace(
            days,
            machine=days.machine[rows],
            day=days.day[rows],
            peers=days.peers[rows],
            figures=days.figures[:, rows],
        )
        group = replace(fleet.groups[0], found=part)
        verdicts = _questions.verdicts_of(replace(fleet, groups=[group], past=past), 0.05)
        assert len(verdicts) == len(names)
        named += sum(one.state == _questions.SICK for one in verdicts)
    assert named == 0


def test_busy_machines_are_measured_from_idle_ones_and_judged_together() -> None:
    numbers = (
        ("A", 0, 120, 1000),
        ("A", 1, 60, 2000),
        ("B", 0, 120, 4000),
        ("B", 1, 60, 8000),
        ("C", 0, 4, 9),
    )
    peers = [
        {"peers": at, "cpu_model": model, "kernel": "6", "busy": busy, "machines": many}
        for at, (model, busy, many, _) in enumerate(numbers)
    ]
    ticks = np.concatenate([np.full(many, float(mean)) for _, _, many, mean in numbers])
    # A busy machine of B.
    ticks[359] *= 3
    columns = dict.fromkeys(("q30", "q50", "q70"), bucket_of_log(np.log(ticks))) | {
        "peers": np.repeat(np.arange(5), [many for _, _, many, _ in numbers]),
        "machine": np.arange(1, len(ticks) + 1),
        "series_id": np.full(len(ticks), 7),
        "mean": ticks,
    }
    names = [f"m{number:03}" for number in range(len(ticks))]
    waited = np.full((len(names), 2), 0.001)
    # An idle machine of A.
    waited[5, 1] = 0.2
    columns["day"] = np.zeros(len(ticks), int)
    fleet = _questions.grouped(peers, columns, waited, names, {7: "cpu"})
    groups = fleet.groups
    assert (fleet.notes, fleet.past) == (["not judged: 4 of C, 6, idle; 5 peers are needed"], None)
    assert [(group.title, len(group.found.machines)) for group in groups] == [
        ("A, 6, idle", 120),
        ("B, 6, idle", 120),
        (_questions.BUSY, 120),
    ]
    found = groups[-1].found
    odd = found.machines.index("m359")
    for distance in (found.body, found.mean):
        assert distance[odd, 0] == pytest.approx(np.log(3), abs=0.01)
        assert np.abs(np.delete(distance, odd)).max() < 0.01
    named = {one.machine: (one.kind, one.family, one.series) for one, _ in _questions.named(groups, 0.05)}
    assert named.pop("m005") == ("waited", "", None)
    assert named.pop("m359") in {("body", "cpu", 7), ("mean", "cpu", 7)}
    assert not named


def test_a_machine_that_measured_less_is_judged_by_what_it_has(engine: Engine) -> None:
    fleet = _questions.groups_of(engine, _questions.series_of(engine), DAY)
    days = fleet.past
    assert days is not None
    lacks = np.array([fleet.family[one] != "cpu" for one in days.series])
    rows = np.isin(days.machine, [days.machines.index(one) for one in ("m000077", "m000005")])
    days.figures[:, rows[:, np.newaxis] & lacks] = np.nan
    found = {one.finding.machine: one for one in _questions.verdicts_of(fleet, 0.05)}
    assert {name for name, one in found.items() if one.state == _questions.SICK} == SICK
    assert found["m000077"].finding.family == "cpu"


@pytest.mark.parametrize(("stopped", "named"), [(1, 1), (2, 0)])
def test_a_machine_that_its_quota_stops_is_named_unless_others_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stopped: int, named: int
) -> None:
    lake, first = Lake(tmp_path / "lake", create=True), latscope.read(DEMO).runs[0]
    run = rows_of(first.document, first.text, first.source, DAY).run
    rows = [
        run | {"machine_id": f"m{number}", "run_id": f"r{number}", "throttled": 0.884 * (number < stopped)}
        for number in range(120)
    ]
    lake.append("runs", pa.Table.from_pylist(rows, schema=TABLES["runs"]))
    assert _main.main(["sick", "--lake", lake.root, "--format", "json"]) == 0
    found = [row for row in json.loads(capsys.readouterr().out) if row["significant"]]
    assert [(row["machine_id"], row["confirm"]) for row in found] == [("m0", "latscope doctor")] * named
    why = "throttled by its control group in 88 % of the periods; 1 of 120 machines were ("
    assert all(row["why"].startswith(why) for row in found)


@pytest.mark.parametrize(
    ("others", "unseen", "known"), [(0.0, 0.7, None), (0.02, 0.01, 0.02), (0.6, 0.4, 0.6), (0.0, None, 0.0)]
)
def test_what_others_used_of_a_run_too_short_for_the_ticks_is_not_known(
    others: float, unseen: float | None, known: float | None
) -> None:
    first = latscope.read(DEMO).runs[0]
    account = {"wall_ns": 14_000_000, "cpus": 2, "ran_ns": 0, "others": others}
    account |= {} if unseen is None else {"unseen": unseen}
    run = rows_of(first.document | {"activity": account}, first.text, first.source, DAY).run
    assert run["others"] == known


def test_a_machine_whose_threads_wait_for_a_cpu_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, first = Lake(tmp_path / "lake", create=True), latscope.read(DEMO).runs[0]
    rows = rows_of(first.document, first.text, first.source, DAY)
    runs, points, h = [], [], []
    for number in range(120):
        keys = {"day": DAY, "batch": 0, "run_id": f"r{number}", "machine_id": f"m{number}"}
        runs.append(rows.run | keys)
        waited = 0.123 if number == 7 else 0.001
        # A quarter of the points waits longer on all machines.
        shares = [waited, waited, waited, 0.5]
        points += [keys | {"series_id": one, "waited": share} for one, share in enumerate(shares)]
        h.append(keys | {"series_id": 0, "bucket": 300, "n": 10})
    for name, table in (("runs", runs), ("points", points), ("h", h)):
        lake.append(name, pa.Table.from_pylist(table, schema=TABLES[name]))
    series = rows.series[0] | {"series_id": 0}
    lake.append("series", pa.Table.from_pylist([series], schema=TABLES["series"]))
    assert _main.main(["sick", "--lake", lake.root, "--format", "json"]) == 0
    row, *others = json.loads(capsys.readouterr().out)
    assert (row["significant"], len(others)) == (True, 9)
    assert not any(one["significant"] for one in others)
    assert (row["machine_id"], row["family"], row["kind"]) == ("m7", "waiting", "waited")
    assert row["confirm"] == "latscope survey --quick --only noise --json again.json"
    told = (
        "threads waited for a CPU in 12.3 % of the time at half of the points or more, in 12.3 % at a quarter"
    )
    assert row["why"].startswith(f"{told}; on its peers 0.1 and 0.1 % (")


def test_a_setting_is_rare_that_one_machine_in_a_hundred_has(tmp_path: Path) -> None:
    lake, first = Lake(tmp_path / "lake", create=True), latscope.read(DEMO).runs[0]
    run = rows_of(first.document, first.text, first.source, DAY).run
    rows = [
        run
        | {
            "machine_id": f"m{number}",
            "run_id": f"r{number}",
            "checks": {"swap": "bad" if number < 2 else "good", "smt": "note" if number < 1 else "good"},
            "affects": {"smt": "cpu.*,memory.tlb"} if number < 1 else {"swap": "memory.*"},
        }
        for number in range(120)
    ]
    lake.append("runs", pa.Table.from_pylist(rows, schema=TABLES["runs"]))
    with contextlib.closing(DuckDb(lake.snapshot())) as engine:
        (one,) = _settings.rare(dicts(engine.query(question("settings"), since="2026-01-01")))
    assert (one.machine, str(one)) == ("m0", "doctor calls smt note, on 1 of 120 such machines")
    assert one.concerns("cpu.cycle")
    assert one.concerns("memory.tlb")
    assert not one.concerns("memory.latency")


def test_a_rare_setting_is_named_only_where_what_it_affects_is_slower() -> None:
    random = np.random.default_rng(1)
    body = random.normal(0, 0.02, (400, 10))
    body[10, 0] += 0.2
    # In the other series healthy machines are odder.
    for one in range(1, 10):
        body[100 + 3 * one : 103 + 3 * one, one] += 0.5
    found = Distances([f"m{row}" for row in range(400)], [*range(10)], body, body, np.full((400, 2), np.nan))
    group = _questions.Group("A", found, [str(one) for one in range(10)], _judge.IDLE)
    series = {one: {"probe": "cpu.cycle" if one else "cpu.clock-vdso"} for one in range(10)}
    assert not _questions.named([group], 0.05)
    settings = [
        _settings.Setting(machine, "clock-source", "note", 2, 400, ("cpu.clock-vdso",))
        for machine in ("m10", "m11", "gone")
    ]
    ((finding, _),) = _questions.named_by_settings([group], series, settings, 0.05)
    assert (finding.machine, finding.series) == ("m10", 0)


def test_peers_that_are_too_few_are_not_judged(surveys: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert _main.main(["sick", "--lake", surveys.root]) == 0
    said = capsys.readouterr()
    assert said.out == "nothing\n"
    assert "5 peers are needed" in said.err


def test_a_step_is_found_on_its_day(surveys: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert _main.main(["drift", "--lake", surveys.root, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["machine_id"], row["day"], row["after"]) == ("machine-0", "2026-11-07", "2026-11-06")
    assert (row["moved"], row["series"], row["families"]) == (1, 1, "cpu 1 of 1")
    assert row["ratio"] == pytest.approx(4 / 3, rel=0.01)


def test_what_changed_with_a_step_is_named(
    surveys: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change = {"id": "c9a9", "run": 6, "moved": [{}, {}], "with": []}
    runs = [{"started": f"2026-11-{day + 1:02}T00:00:00.000Z"} for day in range(10)]
    answer = json.dumps({"machines": [{"runs": runs, "changes": [change]}]})
    program = tmp_path / "latscope"
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("LATSCOPE_BINARY", str(program))

    def ask(*words: str) -> list[dict[str, object]]:
        assert _main.main(["drift", "--lake", surveys.root, "--format", "json", *words]) == 0
        rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)
        return rows

    (row,) = ask()
    assert (row["with"], row["history"]) == ("kernel: 6.1 → 6.12", "change c9a9: 2 figures")
    (row,) = ask("--by", "model")
    assert (row["day"], row["with"]) == ("2026-11-07", "kernel: 6.1 → 6.12")
    (row,) = ask("--by", "label=rack")
    assert row["group"] == "0"
    assert ask("--by", "kernel") == []
    program.write_text("#!/bin/sh\necho no JSON\n")
    assert ask()[0]["history"] is None


@pytest.mark.usefixtures("command")
def test_the_history_of_a_machine_agrees(
    surveys: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = Path(surveys.root).parent
    last = json.loads((directory / "18.json").read_text())
    paths = [directory / f"{number}.json" for number in range(0, 20, 2)]
    for day in range(11, 21):
        paths.append(tmp_path / f"{day}.json")
        own = {"run_id": f"late{day}", "started": f"2026-11-{day}T00:00:00.000Z"}
        paths[-1].write_text(json.dumps(last | own))
    lake = str(tmp_path / "lake")
    assert _main.main(["ingest", "--processes", "1", "--lake", lake, *map(str, paths)]) == 0
    capsys.readouterr()
    assert _main.main(["drift", "--lake", lake, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["history"].startswith("change ")


def test_a_machine_is_asked_for(surveys: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["machine", "machine-0", "--lake", surveys.root, "--format", "json"]
    assert _main.main(words) == 0
    runs = json.loads(capsys.readouterr().out)
    assert [row["kernel"] for row in runs] == ["6.1"] * 6 + ["6.12"] * 4
    assert _main.main([*words, "--probe", "cpu.%", "--since", "2026-11-05"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert [row["p50"] for row in figures] == [0.3] * 2 + [0.4] * 4
    assert _main.main([*words, "--probe", "wake.%"]) == 1
    assert (
        "no series of the machine machine-0 matches --probe wake.% on these days" in capsys.readouterr().err
    )


def test_other_questions(surveys: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def ask(*words: str) -> list[dict[str, object]]:
        assert _main.main([*words, "--lake", surveys.root, "--format", "json"]) == 0
        rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)
        return rows

    assert [row["machine_id"] for row in ask("missing", "--until", "2026-11-10")] == ["machine-1"]
    sides = [
        tuple(row[name] for name in ("side", "machines", "runs", "samples"))
        for row in ask("compare", "--by", "label=rack")
    ]
    assert sides == [("0", 1, 10, 200), ("1", 1, 6, 120)]
    (band,) = ask("normal")
    assert (band["machines"], band["runs"], band["low"], band["high"]) == (2, 16, 0.3, 0.4)
    assert ask("worst") == []
    assert {"h", "quantiles"} <= {str(row["table"]) for row in ask("tables")}
    assert _main.main(["normal", "--toml", "--lake", surveys.root]) == 0
    assert 'probe = "cpu.cycle"' in capsys.readouterr().out
    assert _main.main(["compare", "--by", "x", "--lake", surveys.root]) == 1
    words = ["normal", "--lake", surveys.root, "--format", "parquet", "--output", str(tmp_path / "n.parquet")]
    assert _main.main(words) == 0


def test_the_demonstration_names_its_sick_machines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main.main(["demo", "--directory", str(tmp_path)]) == 0
    *rows, after = capsys.readouterr().out.splitlines()
    words = [row.split()[:2] for row in rows]
    assert [one for one, state in words if state == "sick"] == ["m000007"]
    assert ["m000023", "suspicion"] in words
    # The last rows are those of `drift`.
    assert words[-1] == ["m000040", "2026-11-20"]
    assert "microcode: " in rows[-1]
    assert after == f"latscope-fleet serve --lake {tmp_path}/lake"
    assert sum(path.stat().st_size for path in DEMO.iterdir()) < 500_000
    pages = _served(tmp_path)
    assert "Fleet on 2026-11-24" in pages
    assert 'href="#missing">1<' in pages


def _served(directory: Path) -> str:
    """Returns the first page that the demonstration shows in a terminal, and ends it by Ctrl-C."""
    pytest.importorskip("starlette")
    mine, terminal = pty.openpty()
    called = [sys.executable, "-m", "latscope.fleet", "demo", "--directory", str(directory)]
    path = str(Path(latscope.__file__).parents[1])
    with subprocess.Popen(called, stdout=terminal, env=os.environ | {"PYTHONPATH": path}) as process:
        os.close(terminal)
        with open(mine, encoding="utf-8") as lines:
            address = next(line.strip() for line in lines if line.startswith("http"))
            with urllib.request.urlopen(address) as answer:
                text: str = answer.read().decode()
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
    return text


def test_the_bench_measures_days_and_a_year(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"COPIES": 2, "YEAR": (3, 2), "SAMPLED": 9, "REPEATS": 2}.items():
        monkeypatch.setattr(_bench, name, value)
    plot = tmp_path / "plot.svg"
    words = ["bench", "--lake", str(tmp_path / "lake"), "--machines", "8", "10", "--plot", str(plot)]
    assert _main.main(words) == 0
    assert plot.read_text().count("machines") >= 1
    lines = capsys.readouterr().out.splitlines()
    starts = (
        "what",
        "ingestion of 2 results",
        "a machine's year",
        "8 machines ",
        "10 machines, 1 of 10",
    )
    assert [line.startswith(start) for line, start in zip(lines, starts, strict=True)] == [True] * 5


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_spark_answers_the_same_though_an_executor_is_killed(fleet: Lake, surveys: Lake) -> None:
    from latscope.fleet._spark import Spark  # noqa: PLC0415

    since = DAY - timedelta(days=30)
    killed: list[bool] = []
    for lake in (surveys, fleet):
        local = DuckDb(lake.snapshot(since))
        spark = Spark(lake.snapshot(since), "local-cluster[2,1,1024]")
        try:
            if lake is fleet:
                killer = threading.Thread(target=lambda: killed.append(_kill_an_executor()))
                killer.start()
            for ask in (
                lambda opened: _questions.sick(opened, since=DAY),
                _questions.normal,
                drift,
                lambda opened: drift(opened, by="model"),
                lambda opened: _questions.machine(opened, "machine-0", "%"),
                lambda opened: _questions.machine(opened, "machine-0", None),
                lambda opened: _questions.compare(opened, "kernel"),
                lambda opened: _questions.compare(opened, "label=rack"),
                lambda opened: _questions.worst(opened, "%", 9),
                lambda opened: _questions.missing(opened, 2, DAY),
                lambda opened: opened.query("SELECT * FROM quantiles ORDER BY day, series_id").to_pylist(),
            ):
                assert repr(ask(spark)) == repr(ask(local))
            for query in (
                "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1",
                "SELECT reflect('a', 'b')",
                "SET a = 1",
            ):
                with pytest.raises(latscope.Error):
                    spark.check(query)
            with pytest.raises(latscope.Error):
                spark.query("SELECT * FROM csv.`/etc/passwd`")
        finally:
            spark.close()
            local.close()
    killer.join()
    assert killed == [True]


def _kill_an_executor() -> bool:
    """Kills one executor of Spark that this process started, as soon as there is one. Returns true if there
    was."""
    for _ in range(1200):
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes()
                if b"CoarseGrainedExecutorBackend" in words and _is_below(int(process.name)):
                    os.kill(int(process.name), signal.SIGKILL)
                    return True
        time.sleep(0.05)
    return False


def _is_below(pid: int) -> bool:
    while pid > 1 and pid != os.getpid():
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    return pid == os.getpid()


def test_the_program_runs_as_a_module() -> None:
    called = [sys.executable, "-m", "latscope.fleet", "--help"]
    path = str(Path(latscope.__file__).parents[1])
    assert (
        "sick"
        in subprocess.run(
            called, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path}
        ).stdout
    )
