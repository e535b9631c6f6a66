"""A real sshd on loopback, with keys and a port of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from s3_help import free_port, wait_for

DEPLOY = Path(__file__).parents[3] / "deploy"


def needs(*programs: str) -> None:
    """Skips the test unless the programs are there."""
    missing = [program for program in programs if found(program) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is missing: `cargo xtask setup` installs it")


def found(program: str) -> str | None:
    """Returns the path of a program: of this environment of Python, of the search path, or of a directory for
    root."""
    places = [
        str(Path(sys.executable).parent),
        os.environ.get("PATH", ""),
        "/usr/sbin",
        str(Path.home() / "go/bin"),
    ]
    return shutil.which(program, path=os.pathsep.join(places))


@dataclass(frozen=True)
class Host:
    """Host of an sshd: its name in the configuration, its port on loopback, the options that ssh and scp
    need, and the directory of both."""

    name: str
    port: int
    options: tuple[str, ...]
    directory: Path

    def programs(self, port: int | None = None) -> dict[str, str]:
        """Returns an environment whose ssh and scp know the host by its name; by another port, if there is
        one."""
        options = ("-o", f"Port={port or self.port}", *self.options)
        there = self.directory / "bin"
        there.mkdir(exist_ok=True)
        for program in ("ssh", "scp"):
            script = there / program
            script.write_text(f'#!/bin/sh\nexec {found(program)} {" ".join(options)} "$@"\n')
            script.chmod(0o755)
        return os.environ | {"PATH": os.pathsep.join([str(there), os.environ["PATH"]])}


@contextmanager
def sshd(directory: Path) -> Iterator[Host]:
    """Gives a host whose sshd runs until the end."""
    directory.chmod(0o700)
    for key in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / key], check=True, cwd=directory
        )
    port = free_port()
    shutil.copy(directory / "user.pub", directory / "authorized")
    (directory / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {directory}/host\nPidFile {directory}/pid\n"
        f"AuthorizedKeysFile {directory}/authorized\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
        "Subsystem sftp internal-sftp\n"
    )
    (directory / "ssh_config").write_text(
        f"Host board\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {directory}/user\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {directory}/known\n  StrictHostKeyChecking accept-new\n"
        "  LogLevel ERROR\n"
    )
    # sshd separates privileges in this directory, which Debian's unit makes.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    program = found("sshd")
    assert program is not None
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-D", "-e", "-f", directory / "sshd_config"], stdout=log, stderr=log
        )
        try:
            wait_for(port, process)
            yield Host("board", port, ("-F", str(directory / "ssh_config")), directory)
        finally:
            process.terminate()
            process.wait()
