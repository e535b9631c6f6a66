"""The files of deploy/, each called by the real program that it is for."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hosts import DEPLOY, Host, found, needs, sshd
from lava import JOB, device, job, results, written
from slurm import cluster

import latscope

pytestmark = pytest.mark.deploy

#: Fewer probes than the files have: the tests are about the way, not about the survey.
FEW = "survey --quick --only cpu"


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Host]:
    """Host that ssh reaches as `board`."""
    needs("sshd", "ssh", "scp", "ssh-keygen")
    if os.geteuid() != 0 and not Path("/run/sshd").is_dir():
        pytest.skip("sshd needs /run/sshd, which root makes")
    directory = tmp_path / "sshd"
    directory.mkdir()
    with sshd(directory) as host:
        yield host


def called(words: list[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, timeout=600, **options
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done


def points_of(path: Path) -> int:
    """Returns how many points a result has."""
    return len(latscope.read(path).points())


def block(text: str, first: str) -> str:
    """Returns the block of a page that begins with some words."""
    (found,) = (part.strip() for part in text.split("```") if part.strip().startswith(first))
    return found


def lines_of(first: str, directory: Path) -> str:
    """Returns the lines of deploy/README.md for a test: with its host, its directory and fewer probes."""
    lines = block((DEPLOY / "README.md").read_text(), first)
    lines = re.sub(r"\bHOSTS?\b", "board", lines).replace("survey --quick", FEW)
    return lines.replace("/var/tmp", str(directory / "there"))


def prepared(directory: Path, command: str) -> Path:
    """Makes the directories of a test, with the binary under its name."""
    (directory / "there").mkdir()
    (directory / "results").mkdir()
    shutil.copy(command, directory / "latscope")
    return directory


def test_ssh_brings_a_result(board: Host, tmp_path: Path, command: str) -> None:
    lines = lines_of("ssh HOST", prepared(tmp_path, command))
    called(["sh", "-ec", lines], cwd=tmp_path, env=board.programs())
    assert points_of(tmp_path / "results" / "board.json") > 10
    assert list((tmp_path / "there").iterdir()) == []


def test_clush_brings_a_result(board: Host, tmp_path: Path, command: str) -> None:
    needs("clush")
    lines = lines_of("clush -q", prepared(tmp_path, command))
    called(["sh", "-ec", lines], cwd=tmp_path, env=board.programs())
    shutil.copy(tmp_path / "results" / "board", tmp_path / "board.json")
    assert points_of(tmp_path / "board.json") > 10
    assert list((tmp_path / "there").iterdir()) == []


def test_the_role_of_ansible_brings_a_result(board: Host, tmp_path: Path, command: str) -> None:
    needs("ansible-playbook")
    prepared(tmp_path, command)
    words = [found("ansible-playbook"), "--inventory", "board,", DEPLOY / "ansible" / "survey.yml"]
    variables = {
        "latscope_binary": tmp_path / "latscope",
        "latscope_temporary": tmp_path / "there",
        "latscope_results": tmp_path / "results",
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    words += [part for name, value in variables.items() for part in ("-e", f"{name}={value}")]
    words += ["-e", '{"latscope_arguments": ["survey", "--quick", "--only", "cpu"]}']
    home = {"ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_SSH_ARGS": " ".join(board.options)}
    done = called(words, env=os.environ | home | {"ANSIBLE_LOCALHOST_WARNING": "false"})
    assert "failed=0" in done.stdout
    assert points_of(tmp_path / "results" / "board.json.gz") > 10
    assert list((tmp_path / "there").iterdir()) == []


def test_no_binary_has_a_name_that_others_know() -> None:
    """Where others can make files, the one who made a name owns the binary of root."""
    for path in (one for one in DEPLOY.rglob("*") if one.is_file()):
        for name in re.finditer(r"/(?:var/)?tmp/\S*", path.read_text()):
            assert "XXXXXX" in name[0], f"{path}: {name[0]}"
    tasks = (DEPLOY / "ansible" / "roles" / "latscope" / "tasks" / "main.yml").read_text()
    assert "ansible.builtin.tempfile" in tasks


@pytest.mark.parametrize(
    ("unit", "most"), [("latscope", 5.5), ("latscope-send", 2.0), ("latscope-fleet", 2.0)]
)
def test_a_service_has_few_rights(unit: str, most: float) -> None:
    needs("systemd-analyze")
    text = (DEPLOY / "systemd" / f"{unit}.service").read_text()
    assert "\nUser=latscope\n" in text
    assert "\nCapabilityBoundingSet=\n" in text
    done = called(
        [found("systemd-analyze"), "security", "--offline=yes", DEPLOY / "systemd" / f"{unit}.service"]
    )
    level = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    assert level is not None
    assert float(level[1]) <= most, done.stdout
    # A filter of system calls would be in each call that is timed.
    filters = r"^(?:SystemCall|Restrict|PrivateDevices|Lock|MemoryDeny|Protect(?:Clock|Kernel|Hostname))"
    assert bool(re.search(filters, text, re.MULTILINE)) == (unit != "latscope")


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    needs("systemd-analyze")
    units = sorted(path for path in (DEPLOY / "systemd").iterdir() if path.suffix in (".service", ".timer"))
    for unit in units:
        # Programs that no package of latscope installs here.
        text = unit.read_text().replace("/usr/local/bin/latscope-spool", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    done = called([found("systemd-analyze"), "verify", "--man=no", *(tmp_path / unit.name for unit in units)])
    assert [line for line in done.stderr.splitlines() if "latscope" in line] == []


def test_the_spool_keeps_results_until_they_are_sent(tmp_path: Path, command: str) -> None:
    needs("rsync")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "latscope").symlink_to(Path(command).resolve())
    spool, to = tmp_path / "state" / "spool", tmp_path / "incoming"
    environment = os.environ | {
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "STATE_DIRECTORY": str(tmp_path / "state"),
        "LATSCOPE_OPTIONS": "--only cpu",
        "LATSCOPE_KEEP": "2",
    }
    script = DEPLOY / "systemd" / "latscope-spool"
    spool.mkdir(parents=True)
    for old in ("20250101T000000Z-a.json.gz", "20250102T000000Z-a.json.gz"):
        (spool / old).write_text(old)
    called([script, "measure"], env=environment)
    called([script, "send"], env=environment)
    assert len(list(spool.iterdir())) == 2
    # A destination that cannot be reached takes nothing away.
    lost = subprocess.run(
        [script, "send"], env=environment | {"LATSCOPE_TO": "/dev/null/no"}, capture_output=True, check=False
    )
    assert lost.returncode != 0
    assert len(list(spool.iterdir())) == 2
    called([script, "send"], env=environment | {"LATSCOPE_TO": str(to)})
    assert list(spool.iterdir()) == []
    (kept, new) = sorted(to.iterdir())
    assert kept.name == "20250102T000000Z-a.json.gz"
    assert points_of(new) > 10
    assert subprocess.run([script], env=environment, capture_output=True, check=False).returncode == 64


def test_slurm_measures_a_node_alone_and_drains_one_over_its_budget(tmp_path: Path, command: str) -> None:
    needs("slurmctld", "slurmd", "munged", "srun", "sinfo")
    if os.geteuid() != 0:
        pytest.skip("slurmd needs root's rights")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "latscope").symlink_to(Path(command).resolve())
    budget = tmp_path / "budget.toml"
    variables = {
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "LATSCOPE_OPTIONS": "--only cpu",
        "LATSCOPE_SPOOL": str(tmp_path / "spool"),
        "LATSCOPE_BUDGET": str(budget),
    }
    check = DEPLOY / "slurm" / "healthcheck.sh"
    with cluster(tmp_path / "slurm", check, variables) as environment:
        survey = [DEPLOY / "slurm" / "survey.sh", tmp_path / "results", "--nodes=1"]
        called(survey, env=environment)
        (result,) = (tmp_path / "results").iterdir()
        assert points_of(result) > 10
        assert latscope.read(result).runs[0].labels["slurm_job"] == result.name.split("-")[-1].split(".")[0]
        called([check], env=environment)
        assert state(environment) == "idle"
        budget.write_text('[[limit]]\nprobe = "cpu"\np50 = "0.001ns"\n')
        called([check], env=environment)
        assert state(environment).startswith("drained latscope: budget exceeded")
    assert all(points_of(path) > 10 for path in (tmp_path / "spool").iterdir())


def state(environment: dict[str, str]) -> str:
    """Returns the state of the only node, with the reason."""
    return called(["sinfo", "-h", "-o", "%T %E"], env=environment).stdout.strip().removesuffix(" none")


def test_lava_takes_every_figure(board: Host, tmp_path: Path, command: str) -> None:
    needs("lava-run")
    yaml = pytest.importorskip("yaml")
    if os.geteuid() != 0:
        pytest.skip("LAVA makes directories in the root of the board")
    definition = yaml.safe_load((DEPLOY / "lava" / "survey.yaml").read_text())
    parameters = {"LATSCOPE": command, "OPTIONS": "--only cpu"}
    words = ["lava-run", "--job-id", JOB, "--output-dir", tmp_path / "out"]
    words += ["--device", written(tmp_path / "device.yaml", device(board.port, board.directory / "user"))]
    words += [written(tmp_path / "job.yaml", job(definition, parameters))]
    (tmp_path / "out").mkdir()
    try:
        done = called(words, env={name: value for name, value in os.environ.items() if "PYTHON" not in name})
    finally:
        for left in Path("/").glob(f"lava-{JOB}*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    figures = [one for one in results(done.stdout + done.stderr) if str(one["case"]).startswith("cpu.")]
    assert len(figures) > 10, done.stdout + done.stderr
    medians = [one for one in figures if one["case"].endswith(".p50") and one["result"] != "skip"]
    assert all(one["units"] == "ns" and one["measurement"] > 0 for one in medians)
    assert {one["result"] for one in figures} <= {"pass", "unknown", "skip"}


def test_tmt_takes_every_figure(tmp_path: Path, command: str) -> None:
    needs("tmt")
    shutil.copytree(DEPLOY / "tmt", tmp_path / "plan")
    words = [
        found("tmt"),
        "--feeling-safe",
        "--root",
        tmp_path / "plan",
        "run",
        "--id",
        tmp_path / "run",
        "--all",
    ]
    words += ["--environment", f"LATSCOPE={command}", "--environment", "LATSCOPE_OPTIONS='--only cpu'"]
    called([*words, "provision", "--how", "local"])
    (path,) = tmp_path.glob("run/**/execute/results.yaml")
    text = path.read_text()
    assert text.count("name: /survey/cpu.") > 10
    assert "result: error" not in text


@pytest.mark.parametrize("name", ["daemonset", "job"])
def test_kubernetes_takes_the_form_of_the_files(name: str) -> None:
    needs("kubernetes-validate")
    called([found("kubernetes-validate"), "--strict", DEPLOY / "kubernetes" / f"{name}.yaml"])
