"""A cluster of Slurm with one node on loopback: munged, slurmctld and slurmd, with all files in one
directory."""

import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hosts import found
from s3_help import free_port, wait_for

CONFIGURATION = """\
ClusterName=latscope
SlurmctldHost={name}(127.0.0.1)
NodeName={name} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
HealthCheckProgram={program}
HealthCheckInterval=3600
HealthCheckNodeState=IDLE
"""


@contextmanager
def process(words: list[str], log: Path, **options: object) -> Iterator["subprocess.Popen[bytes]"]:
    """Gives a process in the foreground that ends with the block."""
    with log.open("wb") as out:
        started = subprocess.Popen(words, stdout=out, stderr=out, **options)  # type: ignore[call-overload]
        try:
            yield started
        finally:
            started.terminate()
            started.wait()


@contextmanager
def cluster(directory: Path, program: Path, variables: dict[str, str]) -> Iterator[dict[str, str]]:
    """Gives the environment of a cluster whose node is idle; `program` is its HealthCheckProgram."""
    directory.mkdir(mode=0o700)
    key = directory / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    ports = free_port(), free_port()
    (directory / "slurm.conf").write_text(
        CONFIGURATION.format(
            name=socket.gethostname().split(".")[0],
            cpus=os.cpu_count(),
            user="root",
            directory=directory,
            controller=ports[0],
            node=ports[1],
            program=program,
        )
    )
    environment = os.environ | variables | {"SLURM_CONF": str(directory / "slurm.conf")}
    munge = [
        f"--{name}={directory}/munge.{name.split('-')[0]}" for name in ("pid-file", "log-file", "seed-file")
    ]
    munge += [f"--key-file={key}", f"--socket={directory}/munge.socket", "--foreground", "--force"]
    with ExitStack() as stack:

        def start(name: str, *words: str) -> "subprocess.Popen[bytes]":
            path = found(name)
            assert path is not None
            return stack.enter_context(process([path, *words], directory / f"{name}.log", env=environment))

        start("munged", *munge)
        while not (directory / "munge.socket").exists():
            time.sleep(0.05)
        wait_for(ports[0], start("slurmctld", "-D"))
        wait_for(ports[1], start("slurmd", "-D"))
        for _ in range(600):
            told = subprocess.run(
                ["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, env=environment, check=False
            )
            if told.stdout.strip() == "idle":
                break
            time.sleep(0.1)
        yield environment
