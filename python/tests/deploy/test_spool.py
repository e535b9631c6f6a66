"""Results of the spool on their way to the collector, by a network that fails in the middle."""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import DEPLOY, needs, sshd
from s3_help import BUCKET, cable, environment, gateway, program

pytestmark = pytest.mark.deploy

#: Bytes of a result, and of all that comes through before the network fails: two results and a part.
SIZE = 300_000
LEFT = 750_000


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """Spool with five results, and a file that is none."""
    there = tmp_path / "state" / "spool"
    there.mkdir(parents=True)
    draw = random.Random(1)
    for number in range(5):
        (there / f"2026010{number}T000000Z-a.json.gz").write_bytes(draw.randbytes(SIZE))
    (there / "notes.txt").write_text("stays")
    return there


@pytest.fixture
def store(tmp_path: Path) -> Iterator[int]:
    """Port of a server of S3."""
    needs("curl")
    if program() is None:
        pytest.skip("versitygw is missing: `cargo xtask setup` installs it")
    with gateway(tmp_path / "s3") as port:
        yield port


def send(spool: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Sends the spool, and returns the exit code and the messages."""
    script = DEPLOY / "systemd" / "latscope-spool"
    done = subprocess.run(
        [script, "send"],
        env=os.environ | {"STATE_DIRECTORY": str(spool.parent)} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return done.returncode, done.stderr


def results(directory: Path) -> dict[str, bytes]:
    """Returns the results of a directory by their names: what an ingestion would take."""
    return {path.name: path.read_bytes() for path in directory.rglob("*.json.gz") if path.name[0] != "."}


def check_a_cut(spool: Path, there: Path, whole: dict[str, bytes]) -> None:
    """Checks what a cut leaves: every result on a side, none in part, and not all came."""
    came, left = results(there), results(spool)
    assert came.items() <= whole.items()
    assert left.items() <= whole.items()
    assert came.keys() | left.keys() == whole.keys()
    assert len(came) < len(whole)


def check_all_came(spool: Path, there: Path, whole: dict[str, bytes]) -> None:
    """Checks that every result came once, and that the spool has nothing more to send."""
    assert results(there) == whole
    # rsync's part of a file (`.NAME.XXXXXX`) is there until the server of the cut connection ends.
    assert len([path for path in there.rglob("[!.]*") if path.is_file()]) == len(whole)
    assert [path.name for path in spool.iterdir()] == ["notes.txt"]


def test_a_cut_of_ssh_keeps_the_results_and_the_next_time_sends_the_rest(spool: Path, tmp_path: Path) -> None:
    needs("rsync", "sshd", "ssh", "ssh-keygen")
    if os.geteuid() != 0 and not Path("/run/sshd").is_dir():
        pytest.skip("sshd needs /run/sshd, which root makes")
    whole, there = results(spool), tmp_path / "incoming"
    (tmp_path / "sshd").mkdir()
    with sshd(tmp_path / "sshd") as host, cable(host.port) as wire:
        variables = host.programs(wire.port) | {"LATSCOPE_TO": f"board:{there}"}
        wire.left = LEFT
        assert send(spool, variables)[0] != 0
        assert wire.cuts >= 1
        check_a_cut(spool, there, whole)
        wire.left = None
        assert send(spool, variables) == (0, "")
        check_all_came(spool, there, whole)
        assert send(spool, variables) == (0, "")


def test_a_cut_of_a_store_keeps_the_results_and_the_next_time_sends_the_rest(
    spool: Path, tmp_path: Path, store: int
) -> None:
    whole, there = results(spool), tmp_path / "s3" / "data" / BUCKET
    with cable(store) as wire:
        variables = environment(wire.port) | {"LATSCOPE_TO": f"s3://{BUCKET}/incoming"}
        wire.left = LEFT
        code, messages = send(spool, variables)
        assert code != 0
        assert ("curl: " in messages, wire.cuts) == (True, 1), messages
        check_a_cut(spool, there, whole)
        wire.left = None
        # A store that does not know the key takes nothing, and nothing goes.
        before = results(spool)
        code, messages = send(spool, variables | {"AWS_SECRET_ACCESS_KEY": "another"})
        assert (code, "403" in messages) == (22, True)
        assert results(spool) == before
        assert send(spool, variables) == (0, "")
        check_all_came(spool, there, whole)
        assert {path.parent.name for path in there.rglob("*.json.gz")} == {"incoming"}
        assert send(spool, variables) == (0, "")
