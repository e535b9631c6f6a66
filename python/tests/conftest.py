"""Results that the tests read, and the sum that `cargo xtask test` counts."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import latscope

DATA = Path(__file__).parent / "data"

# The same examples in every run, on a machine of any speed.
hypothesis.settings.register_profile("latscope", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("latscope")

#: Names of all results, without their endings.
NAMES = sorted(path.name.removesuffix(".json.gz") for path in DATA.iterdir())


@pytest.fixture(scope="session")
def read() -> Callable[..., latscope.Results]:
    """Function that reads results of `data` by their names."""
    return lambda *names: latscope.read([DATA / f"{name}.json.gz" for name in names])


@pytest.fixture
def command() -> str:
    """Path of the command. The test is skipped where there is none."""
    try:
        return latscope.binary()
    except latscope.CommandError as error:
        pytest.skip(str(error))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Directory of results, as a trial leaves it."""
    for name in ("wake", "ipc"):
        shutil.copy(DATA / f"{name}.json.gz", tmp_path)
    (tmp_path / "trial.json").write_text('{"schema": "latscope-trial/1"}')
    (tmp_path / "a1.log").write_text("no result")
    return tmp_path


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    """New lake. The test is skipped without the packages of the fleet."""
    pytest.importorskip("deltalake")
    from latscope.fleet import Lake  # noqa: PLC0415

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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the number of kills of a compaction, and whether tests with Spark run."""
    parser.addoption("--kills", default=20, type=int, help="how often a compaction is killed")
    parser.addoption("--spark", action="store_true", help="run the tests that need Spark")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips the tests that need Spark unless they are asked for and there is Java."""
    reason = "Java is missing" if shutil.which("java") is None else "--spark runs it"
    if not config.getoption("spark") or shutil.which("java") is None:
        for item in items:
            if item.get_closest_marker("spark"):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the outcomes as a test binary of Rust does: a skipped test has a line of its own, and is in the
    sum."""
    found = terminalreporter.stats
    failed = [report.nodeid for kind in ("failed", "error") for report in found.get(kind, [])]
    skipped = [f"{report.nodeid}: {report.longrepr[2]}" for report in found.get("skipped", [])]
    passed = len(found.get("passed", [])) + len(skipped)
    for line in [f"test {name} ... FAILED" for name in failed] + [f"SKIPPED {name}" for name in skipped]:
        terminalreporter.write_line(line)
    outcome = "FAILED" if failed else "ok"
    terminalreporter.write_line(f"test result: {outcome}. {passed} passed; {len(failed)} failed;")
