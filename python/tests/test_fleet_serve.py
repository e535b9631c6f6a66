"""The pages of the fleet, as a client and as a browser see them, and its metrics."""

import contextlib
import gzip
import json
import logging
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from html import unescape
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import DATA

import latscope

pytest.importorskip("deltalake")
pytest.importorskip("matplotlib")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import pyarrow
from fleet_help import add
from fleet_help import command as fleet_command
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from latscope.fleet import FleetError, Lake, _limits, _main
from latscope.fleet._demo import DAY
from latscope.fleet._demo import __file__ as demo_file
from latscope.fleet._generate import Fault, generate
from latscope.fleet._lake import today
from latscope.fleet._metrics import metrics
from latscope.fleet._report import raw_result
from latscope.fleet._serve import TOKEN, Site
from latscope.fleet._table import table, time_text
from latscope.fleet._web import Answers, Fleet

CHROMIUM = "/usr/bin/chromium"
DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "fleet.json"
HOSTILE = "<script>alert(1)</script><img src=x onerror='alert(2)'>\"}} {{7*7}} :series"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with two results of a machine with hostile names, on the last day of the lake."""
    directory = tmp_path_factory.mktemp("results")
    for number, name in enumerate(("survey-a", "survey-b")):
        document = json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))
        document["started"] = f"{DAY}T0{number}:00:00.000Z"
        document["finished"] = f"{DAY}T0{number}:01:00.000Z"
        document["run_id"] = name
        document["labels"] = {HOSTILE: HOSTILE}
        document["machine"] |= {"name": HOSTILE, "id": HOSTILE, "kernel": HOSTILE}
        point = document["measurements"][0]
        point |= {"title": HOSTILE, "params": point["params"] | {"of": HOSTILE}}
        (directory / f"{name}.json").write_text(json.dumps(document))
    return directory


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, results: Path) -> Lake:
    """Lake of 120 machines on two days, one of them sick, and of one with hostile names."""
    lake = Lake(tmp_path_factory.mktemp("fleet") / "lake", create=True)
    runs = latscope.read(Path(demo_file).parent / "demo").runs
    for number, faults in enumerate([{3: Fault("syscall", shift=1.8)}] * 2):
        day = DAY - timedelta(days=1 - number)
        generate(lake, runs, 120, day, faults, seed=number, only=("syscall", "sync"), points=True)
    assert add(lake, results).added == 2
    return lake


@contextlib.contextmanager
def serving(site: Site) -> Iterator[Site]:
    thread = threading.Thread(target=site.run)
    thread.start()
    try:
        yield site
    finally:
        site.server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def site(fleet: Lake, results: Path) -> Iterator[Site]:
    """Pages of the fleet."""
    with serving(Site(fleet, "127.0.0.1:0", None, results)) as served:
        yield served


def get(site: Site, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, str]:
    """Answer to a request, and its text."""
    connection = HTTPConnection(urlsplit(site.address).netloc, timeout=60)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def families_in(text: str) -> dict[str, Any]:
    """Families of metrics in OpenMetrics text, by name."""
    parse: Any = text_string_to_metric_families
    return {family.name: family for family in parse(text)}


def links(text: str) -> list[str]:
    """Addresses of a page: of links, pictures and styles."""
    found = [unescape(one) for one in re.findall(r'(?:href|src|srcset|action)="([^"]*)"', text)]
    return [one for one in found if not one.startswith("#")]


def test_every_address_of_the_pages_answers(site: Site) -> None:
    todo, seen = ["/"], dict[str, int]()
    while todo:
        path = todo.pop(0)
        kind = re.sub(r"=[^&]*", "", path)
        # Of each kind of address a few.
        if path in seen or sum(re.sub(r"=[^&]*", "", one) == kind for one in seen) >= 3:
            continue
        answer, text = get(site, path)
        seen[path] = answer.status
        if "html" in (answer.getheader("content-type") or "") and not path.startswith("/report"):
            assert "default-src 'none'" in (answer.getheader("content-security-policy") or "")
            assert "<script" not in text
            assert " style=" not in text
            assert all(one.startswith("/") for one in links(text))
            todo += links(text)
    without_command = {503} if shutil.which("latscope") is None else set()
    failed = {path: status for path, status in seen.items() if status not in {200} | without_command}
    assert failed == {}
    assert {urlsplit(path).path for path in seen} >= {
        "/", "/machine", "/series", "/run", "/report", "/metrics", "/plot/families.svg", "/plot/machines.svg",
        "/plot/samples.svg", "/plot/trend.svg", "/static/style.css",
    }  # fmt: skip


def test_the_sick_machine_is_on_top_and_marked(site: Site) -> None:
    _, text = get(site, "/")
    rows = re.findall(r'<th scope="row"><a href="([^"]*)">([^<]*)</a>', text)
    assert rows[0][1] == "m000003"
    assert re.search(r'class="n named" data-name="syscall"[^>]*>1\.[78]\d×', text)
    _, text = get(site, unescape(rows[0][0]))
    assert "Sick on 2026-11-24" in text
    assert "latscope survey --quick --only syscall" in text
    _, text = get(site, "/?q=m00000+ok")
    assert "9 machines" in text


def test_hostile_names_are_texts(site: Site) -> None:
    for path in ("/", "/series?q=script", "/?q=" + "%3Cscript%3E"):
        _, text = get(site, path)
        assert "<script>" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        assert "{{7*7}}" in text
    address = next(one for one in links(get(site, "/")[1]) if "script" in one and one.startswith("/machine"))
    answer, text = get(site, address)
    assert answer.status == 200
    assert "<script>" not in text
    assert text.count("&lt;script&gt;alert(1)") >= 4
    for path in (
        "/run?id=<script>&machine=x",
        "/machine?id=<script>",
        "/series?id=<script>",
        "/?day=<script>",
    ):
        answer, text = get(site, path.replace("<", "%3C"))
        assert answer.status in (400, 404)
        assert "<script>" not in text
        assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    "words", ["sort=none", "sort=families&order=up", "page=99", "page=x", "q=zzzz", "path=x"]
)
def test_odd_words_of_an_address_do_no_harm(site: Site, words: str) -> None:
    assert get(site, f"/?{words}")[0].status == 200


def test_pages_are_only_read_and_only_by_names_of_loopback(site: Site) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert get(site, "/", method)[0].status == 405
    assert get(site, "/", Host="evil.example")[0].status == 421
    assert get(site, "/", Host="localhost:1")[0].status == 200
    for path in ("/static/../_serve.py", "/static/%2e%2e/_serve.py", "/static/%2e%2e%2f_serve.py", "/x"):
        assert get(site, path)[0].status == 404


def test_a_token_is_asked_for(fleet: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Site(fleet, "127.0.0.1:0", "secret")) as site:
        assert site.address.endswith("/?token=secret")
        assert [
            get(site, path)[0].status for path in ("/", "/metrics", "/?token=x", "/static/style.css")
        ] == [401] * 4
        answer, _ = get(site, "/series?q=a&token=secret")
        assert (answer.status, answer.getheader("location")) == (307, "/series?q=a")
        cookie = answer.getheader("set-cookie") or ""
        assert "HttpOnly" in cookie
        assert get(site, "/series?q=a", Cookie=cookie.split(";")[0])[0].status == 200
        assert get(site, "/metrics", Authorization="Bearer secret")[0].status == 200
        assert get(site, "/metrics", Authorization="Bearer \u00e9")[0].status == 401
    for listen, token, expected in (
        ("0.0.0.0:0", "", "its token"),
        ("0.0.0.0:0", None, "all who reach"),
        ("[::1]:0", "", "no token: all users"),
    ):
        made = Site(fleet, listen, token)
        made.socket.close()
        assert expected in made.access
        assert ("token=" in made.address) == ("its token" in expected)
    monkeypatch.setenv(TOKEN, "of-environment")
    made = Site(fleet, "127.0.0.1:0")
    made.socket.close()
    assert made.address.endswith("?token=of-environment")
    for listen in ("127.0.0.1", "127.0.0.1:99999", "nowhere.invalid:1", ":1"):
        with pytest.raises(FleetError, match="--listen"):
            Site(fleet, listen)


@pytest.mark.parametrize("host", ["[", "[::", "a:b:c", "]", "", "[v1.x]", "\u00e9", "localhost@evil.example"])
def test_a_host_that_is_none_is_refused(site: Site, host: str) -> None:
    answer, _ = get(site, "/", Host=host)
    assert answer.status in (400, 421)
    assert answer.status == 400 or "default-src 'none'" in (answer.getheader("content-security-policy") or "")


def test_a_token_leads_to_no_other_host(fleet: Lake) -> None:
    with serving(Site(fleet, "127.0.0.1:0", "secret")) as site:
        for path in (
            "//evil.example/x",
            "///evil.example",
            "/%5Cevil.example",
            "/\\evil.example",
            "/%2F%2Fevil.example",
        ):
            answer, _ = get(site, f"{path}?token=secret&q=a%26b")
            to = answer.getheader("location") or ""
            assert answer.status == 307
            assert re.match(r"/(?![/\\])", to), to
            assert to.endswith("?q=a%26b")


@contextlib.contextmanager
def process(lake: Lake, log: Path) -> Iterator[tuple[int, str]]:
    """Process that serves a lake with at most 512 descriptors: its id, and `HOST:PORT`."""
    path = os.pathsep.join([str(Path(latscope.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-m", "latscope.fleet", "serve", "--lake", lake.root, "--listen", "127.0.0.1:0"]
    with log.open("w") as messages:
        server = subprocess.Popen(
            ["sh", "-c", 'ulimit -n 512; exec "$@"', "sh", *words],
            env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=messages, text=True,
        )  # fmt: skip
        try:
            assert server.stdout is not None
            yield server.pid, urlsplit(server.stdout.readline().strip()).netloc
        finally:
            server.terminate()
            server.communicate()


def ask(netloc: str, path: str = "/") -> tuple[int, bytes]:
    """Status of an answer, and its text."""
    with contextlib.closing(HTTPConnection(netloc, timeout=60)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_idle_connections_leave_room_for_a_reader(lake: Lake, tmp_path: Path) -> None:
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    many = min(3000, hard - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, many + 200), hard))
    with process(lake, tmp_path / "log") as (pid, netloc), contextlib.ExitStack() as held:
        held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (most, hard))
        host, port = netloc.split(":")
        for number in range(many):
            idle = held.enter_context(socket.create_connection((host, int(port)), 60))
            idle.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n"[: number % 40])
        status, text = ask(netloc)
        assert (status, b"No runs yet" in text) == (200, True)
        # Whoever sent a request is answered, and the oldest of those who sent none are gone.
        assert len(os.listdir(f"/proc/{pid}/fd")) < 300
    assert (tmp_path / "log").read_text().count("\n") < 40


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_signal_ends_the_pages(lake: Lake, number: signal.Signals, code: int) -> None:
    path = os.pathsep.join([str(Path(latscope.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-m", "latscope.fleet", "serve", "--lake", lake.root, "--listen", "127.0.0.1:0"]
    environment = os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        netloc = urlsplit(server.stdout.readline().strip()).netloc
        assert ask(netloc)[0] == 200
        server.send_signal(number)
    assert server.returncode == code


def held_by(pid: int) -> tuple[int, int, int]:
    """Memory of a process in KiB, its descriptors and its threads."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory = re.search(r"VmRSS:\s+(\d+)", status)
    assert memory is not None
    return int(memory[1]), len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))


def test_a_day_of_ingesting_and_reading_does_not_grow(lake: Lake, tmp_path: Path) -> None:
    """In fast motion: a result each hour, and a reader of every page after it."""
    document = json.loads(gzip.decompress((DATA / "survey-a.json.gz").read_bytes()))
    held = []
    with process(lake, tmp_path / "log") as (pid, netloc):
        for hour in range(24):
            document |= {"started": f"{DAY}T{hour:02}:00:00.000Z", "finished": f"{DAY}T{hour:02}:01:00.000Z"}
            one = tmp_path / f"{hour}.json"
            one.write_text(json.dumps(document | {"run_id": f"hour-{hour}"}))
            assert add(lake, one).added == 1
            status, text = ask(netloc)
            assert status == 200
            pages = [path for path in links(text.decode()) if not path.startswith(("/report", "/static"))]
            assert {ask(netloc, path)[0] for path in [*pages[:12], "/metrics"]} == {200}
            held.append(held_by(pid))
        # What is kept of a version of the lake is there after a few. Arrow's pools have a fixed size, and
        # start a thread when all that they have are busy: fewer than one for each hour that follows.
        memory, files, threads = held[7]
        threads += pyarrow.io_thread_count() + pyarrow.cpu_count()
        # The threads that read files end when they have had nothing to do for 10 s.
        for _ in range(120):
            if held_by(pid)[2] <= threads:
                break
            time.sleep(0.5)
        later = held_by(pid)
        assert later[0] < 1.25 * memory, held
        assert later[1] <= files + 4, held
        assert later[2] <= threads, (held, later)
    assert (tmp_path / "log").read_text() == ""


def test_a_connection_that_does_nothing_ends(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latscope.fleet._serve.connections", lambda: _limits.connections(0.1))
    with serving(Site(lake, "127.0.0.1:0")) as site:
        for begin in (
            b"",
            b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
            b"POST / HTTP/1.1\r\nContent-Length: 9\r\n",
        ):
            with socket.create_connection((site.socket.getsockname()), 60) as idle:
                idle.send(begin)
                with contextlib.suppress(ConnectionResetError):
                    assert idle.recv(1) == b""


def test_a_log_has_few_messages_and_they_are_clean() -> None:
    now = [0.0]
    rarely = _limits.Rarely(lambda: now[0])

    def said(text: str, *words: object) -> str | None:
        record = logging.LogRecord("a", logging.WARNING, "", 0, text, words, None)
        return record.getMessage() if rarely.filter(record) else None

    assert said("a %s", "\x1b[2J") == "a \ufffd[2J"
    assert [said("b") for _ in range(100)].count("b") == _limits.MESSAGES - 1
    now[0] = _limits.SPAN
    assert said("c") == f"c ({101 - _limits.MESSAGES} messages before it were left out)"
    assert said("d") == "d"


def test_an_answer_is_found_once_until_the_lake_changes(
    lake: Lake, edited: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latscope.fleet._web.STEADY", 0.0)
    answers, asked = Answers(lake, 2), list[str]()

    def find() -> int:
        asked.append("")
        return len(asked)

    threads = [threading.Thread(target=lambda: answers.get("a", find)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.get("a", find) == 1
    add(lake, edited("x"))
    assert answers.get("a", find) == 2
    with pytest.raises(ZeroDivisionError):
        answers.get("b", lambda: 1 // 0)
    assert answers.get("b", lambda: 7) == 7
    assert (answers.get("c", lambda: 8), answers.get("a", find)) == (8, 3)


def test_an_empty_lake_has_pages_and_metrics(lake: Lake) -> None:
    with serving(Site(lake, "127.0.0.1:0")) as site:
        assert "No runs yet" in get(site, "/")[1]
        assert [get(site, path)[0].status for path in ("/series", "/machine?id=a", "/metrics")] == [
            404,
            404,
            200,
        ]


def test_a_report_is_of_the_file_where_it_is(site: Site, fleet: Lake, command: str) -> None:
    def report(of: Site) -> tuple[HTTPResponse, str]:
        address = next(
            one for one in links(get(of, "/")[1]) if "script" in one and one.startswith("/machine")
        )
        run = next(one for one in links(get(of, address)[1]) if one.startswith("/run") and "survey-a" in one)
        return get(of, run.replace("/run?", "/report?"))

    answer, whole = report(site)
    assert "sandbox allow-scripts" in (answer.getheader("content-security-policy") or "")
    assert ", imported" not in whole
    with serving(Site(fleet, "127.0.0.1:0")) as other:
        _, kept = report(other)
    assert f"latscope {latscope.read(DATA / 'survey-a.json.gz').runs[0].tool['version']}, imported" in kept
    assert "not known: rounds" in kept
    for text in (whole, kept):
        assert "<script>alert" not in text


def test_a_report_reads_no_file_of_elsewhere(results: Path, tmp_path: Path) -> None:
    row = {"source": "survey-a.json", "run_id": "survey-a"}
    assert raw_result(results, row) is not None
    assert raw_result(results, row | {"run_id": "other"}) is None
    (tmp_path / "link.json").symlink_to(results / "survey-a.json")
    for source in (
        "link.json",
        str(results / "survey-a.json"),
        "../" * 9 + "etc/passwd",
        "/etc/passwd",
        "",
        "\0",
    ):
        assert raw_result(tmp_path, row | {"source": source}) is None


def test_metrics_are_openmetrics(fleet: Lake, site: Site) -> None:
    text = metrics(Fleet(fleet))
    answer, served = get(site, "/metrics")
    assert served == text
    assert "openmetrics-text" in (answer.getheader("content-type") or "")
    families = families_in(text)
    plain = {name: one.samples[0].value for name, one in families.items() if len(one.samples) == 1}
    expected = {"machines": 121, "runs": 122, "judged": 120, "missing": 0}
    assert {name: plain[f"latscope_fleet_{name}"] for name in expected} == expected
    sick = {
        (one.labels["machine_id"], one.labels["family"])
        for one in families["latscope_fleet_sick_ratio"].samples
    }
    assert ("m000003", "syscall") in sick
    assert plain["latscope_fleet_sick"] == len(sick)
    medians = [
        one
        for one in families["latscope_fleet_p50_seconds"].samples
        if one.labels["probe"] == "syscall.getppid"
    ]
    assert {1e-8 < one.value < 1e-5 for one in medians} == {True}
    done = fleet_command("metrics", "--lake", fleet.root, "--until", str(DAY - timedelta(days=1)))
    assert "\nlatscope_fleet_judged 120.0\n" in done.stdout


def test_a_muted_machine_is_named_and_alarms_no_more(fleet: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        return _main.main([*words, "--lake", fleet.root]), *capsys.readouterr()

    def counts() -> list[float]:
        families = families_in(metrics(Fleet(fleet)))
        return [families[f"latscope_fleet_{name}"].samples[0].value for name in ("sick", "muted")]

    def muted() -> dict[str, str]:
        rows = json.loads(call("sick", "--format", "json")[1])
        return {row["machine_id"]: row["muted"] for row in rows if row["state"] == "sick"}

    before, day = counts(), (today() + timedelta(days=3)).isoformat()
    assert muted()["m000003"] == ""
    assert call("mute", "m000003", "--family", "disk", "--who", "anna", "--why", "x")[0] == 0
    assert muted()["m000003"] == "", "another family is muted"
    assert call("mute", "m000003", "--until", day, "--who", "anna", "--why", HOSTILE)[0] == 0
    assert muted()["m000003"] == f"until {day} by anna: {HOSTILE}"
    assert counts() == [before[0] - 1, 1]
    with serving(Site(fleet, "127.0.0.1:0")) as site:
        for path in ("/", "/machine?id=m000003"):
            text = get(site, path)[1]
            assert f"until {day} by anna: &lt;script&gt;" in text
            assert "<script" not in text
    listed = json.loads(call("mutes", "--format", "json")[1])
    assert [(row["machine_id"], row["family"], row["who"]) for row in listed] == [
        ("m000003", "disk", "anna"),
        ("m000003", "", "anna"),
    ]
    for family in ("disk", ""):
        assert call("unmute", "m000003", "--family", family)[0] == 0
    assert (counts(), muted()["m000003"]) == (before, "")
    assert json.loads(call("mutes", "--format", "json")[1]) == []
    yesterday = (today() - timedelta(days=1)).isoformat()
    for words, reason in (
        (("mute", "m000999", "--why", "x"), "has no machine m000999"),
        (("mute", "m000003", "--why", " "), "why is a text of 1 to 300 characters"),
        (("mute", "m000003", "--why", "x", "--until", yesterday), "until a day from today"),
        (("unmute", "m000003"), "is not muted"),
    ):
        code, _, text = call(*words)
        assert code == 1
        assert reason in text


def test_promtool_takes_the_metrics(fleet: Lake) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is missing: Debian's package prometheus")
    text = metrics(Fleet(fleet))
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_dashboard_names_metrics_that_exist(fleet: Lake) -> None:
    text = DASHBOARD.read_text()
    dashboard = json.loads(text)
    families = set(families_in(metrics(Fleet(fleet))))
    assert set(re.findall(r"latscope_fleet_\w+", text)) == families
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    assert all(re.search(r"latscope_fleet_\w+", target["expr"]) for target in targets)


def test_times_have_three_digits() -> None:
    cases = {
        None: "–",
        0.271: "0.27 ns",
        9.996: "10.0 ns",
        999.6: "1.00 µs",
        12345: "12.3 µs",
        2.5e9: "2.50 s",
    }
    assert {value: time_text(value) for value in cases} == cases


def test_tables_are_searched_sorted_and_parted() -> None:
    rows = [{"name": f"n{number}", "size": number % 7 or None} for number in range(250)]
    shown = table({"q": "N1 1", "sort": "size", "order": "up"}, rows, ("name",), "name")
    assert [row["size"] for row in shown["found"]][:3] == [1, 1, 1]
    assert shown["found"][-1]["size"] is None
    assert all("1" in row["name"] for row in shown["found"])
    assert [len(table({"page": page}, rows, ("name",), "name")["rows"]) for page in "134"] == [100, 50, 0]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium. The test is skipped without it."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"{CHROMIUM} is missing: Debian's package chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_browser_shows_all_pages_without_a_mouse(site: Site, browser: Any, width: int, scheme: str) -> None:
    page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda answer: said.append(f"{answer.status}") if answer.status >= 400 else None)

    def follow(wanted: str) -> None:
        """Goes to a link by the key Tab, and opens it."""
        for _ in range(200):
            page.keyboard.press("Tab")
            if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
                assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
                with page.expect_navigation():
                    page.keyboard.press("Enter")
                page.wait_for_load_state("networkidle")
                fits()
                return
        raise AssertionError(f"{wanted} cannot be reached")

    def fits() -> None:
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
        broken = "[...document.images].filter(one => !one.complete || !one.naturalWidth).length"
        assert page.evaluate(broken) == 0, page.url

    page.goto(site.address)
    page.wait_for_load_state("networkidle")
    fits()
    follow(".cards a")
    assert page.title().startswith("m000003")
    follow("th[scope=row] a[href^='/series']")
    assert page.locator("tr.marked").count() == 1
    follow(".crumbs a[href^='/machine']")
    follow("th[scope=row] a[href^='/run']")
    follow(".crumbs a[href^='/?'], .crumbs a[href='/']")
    page.focus("#q")
    page.keyboard.type("script")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    fits()
    follow("th[scope=row] a")
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("main img, script").count() == 0
    assert said == []
    assert {urlsplit(address).netloc for address in asked} == {urlsplit(site.address).netloc}
    page.context.close()


def test_a_browser_shows_the_report(site: Site, browser: Any, command: str) -> None:
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(f"{site.address}machine?id=m000003")
    page.click("th[scope=row] a[href^='/run']")
    page.click("a.button")
    assert "m000003" in page.locator("body").inner_text()
    assert said == []
    page.close()
