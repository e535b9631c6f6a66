"""The action for GitHub: what stands in an input is no part of a command."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(step: str) -> str:
    """Returns the script of a step."""
    text = (ROOT / "action.yml").read_text()
    found = re.search(rf"- name: {step}\n.*?run: \|\n(.*?)(?=\n    - name)", text, re.DOTALL)
    assert found is not None
    return re.sub("^        ", "", found[1], flags=re.MULTILINE)


@pytest.mark.parametrize(
    "runs", ["a[$(touch made)]", "3; touch made", "", "0", "-1", "1000", "3\ntouch made", "$(touch made)"]
)
def test_runs_is_a_number(tmp_path: Path, runs: str) -> None:
    (tmp_path / "latscope").write_text("#!/bin/sh\necho called >> calls\n")
    (tmp_path / "latscope").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "COMMAND": "survey", "WAIT": "1s", "DIRECTORY": "d"}
    words = ["bash", "-eo", "pipefail", "-c", script("Measure")]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment | {"RUNS": runs}, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "calls").exists()
    subprocess.run(words, cwd=tmp_path, env=environment | {"RUNS": "3"}, check=True)
    assert (tmp_path / "calls").read_text() == "called\n" * 3


def test_no_input_stands_in_a_script_and_actions_are_pinned() -> None:
    for path in (ROOT / "action.yml", *(ROOT / ".github" / "workflows").glob("*.yml")):
        text = path.read_text()
        for found in re.findall(r"run: \|\n(?:(?: {6,}.*)?\n)*", text):
            assert "${{" not in found
        for used in re.findall(r"uses: (\S+)", text):
            assert used.startswith("./") or re.search("@[0-9a-f]{40}$", used), used
