"""A standalone cluster of Spark, started as docs/fleet.md has it."""

import os
import re
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

import latscope

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from fleet_help import command
from s3_help import free_port

from latscope.fleet import Lake
from latscope.fleet._compact import compact
from latscope.fleet._generate import Fault, generate

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
DEMO = Path(latscope.__file__).parent / "fleet" / "demo"


def script(lake: Lake, directory: Path) -> str:
    """Returns the page's lines for a cluster, with free ports, directories of the test, and another form of
    output."""
    (block,) = (part for part in PAGE.read_text().split("```") if "deploy.master.Master" in part)
    block = block.replace("7077", str(free_port())).replace("/var/tmp", str(directory))
    block = re.sub(r"--webui-port \S+", "--webui-port 0", block)
    block = block.replace("latscope-fleet sick --lake lake", "latscope-fleet sick --lake " + lake.root)
    asked = block.replace("latscope-fleet", "python3 -m latscope.fleet").rstrip()
    return f"{asked} --format json > {directory}/answer.json\n"


@pytest.mark.spark
def test_a_standalone_cluster_answers_as_duckdb(lake: Lake, tmp_path: Path) -> None:
    generate(lake, latscope.read(DEMO).runs, 120, date(2026, 11, 24), {3: Fault("sync", shift=2.0)})
    list(compact(lake))
    expected = command("sick", "--lake", lake.root, "--format", "json")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    package = os.pathsep.join([str(Path(latscope.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    with (tmp_path / "log").open("wb") as log:
        shell = subprocess.Popen(
            ["bash", "-c", script(lake, tmp_path)],
            env=os.environ | {"PATH": path, "PYTHONPATH": package},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            assert shell.wait(600) == 0, (tmp_path / "log").read_text()
        finally:
            # The master and the workers are in the session of the shell.
            os.killpg(shell.pid, signal.SIGTERM)
    assert (tmp_path / "answer.json").read_text() == expected.stdout
    assert '"m000003"' in expected.stdout
    # Both workers had an executor.
    assert [len(list((tmp_path / f"spark-{n}").glob("app-*/*"))) for n in (1, 2)] == [1, 1]
