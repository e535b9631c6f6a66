"""Faults that a machine is made sick with, each a context that undoes it. As root, on Linux with control
groups v1 (the quota, the disk and the memory) at /sys/fs/cgroup."""

import ctypes
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

GROUPS = Path("/sys/fs/cgroup")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
CLOCK = Path("/sys/devices/system/clocksource/clocksource0")
ZRAM = Path("/sys/block/zram0")


@dataclass
class Survey:
    """What a fault changes about the process of the survey itself: these functions are called in it before
    its program begins."""

    inside: list[Callable[[], None]] = field(default_factory=list)


Fault: TypeAlias = Callable[[Survey, ExitStack], None]


def setting(undo: ExitStack, path: Path, value: str) -> None:
    """Writes a setting of the kernel, and its old value at the end. A choice is read as `a [b] c`."""
    old = path.read_text().strip()
    if "[" in old:
        old = old.partition("[")[2].partition("]")[0]
    undo.callback(path.write_text, old)
    path.write_text(value)


@contextmanager
def process(words: Sequence[str], pin: int | None = None, group: Path | None = None) -> Iterator[int]:
    """Runs a program with its children beside the survey, on one CPU and in a control group if asked for.
    Gives its id."""

    def inside() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text("0")
        if pin is not None:
            os.sched_setaffinity(0, {pin})

    child = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=inside,  # noqa: PLW1509
    )
    try:
        time.sleep(0.3)
        if child.poll() is not None:
            raise RuntimeError(f"{words[0]} ended with {child.returncode}")
        yield child.pid
    finally:
        # stress-ng removes its directory only if it may; what does not end is killed.
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=3)


def group(undo: ExitStack, controller: str, **values: str | int) -> Path:
    """Makes a control group with these values, which is removed at the end."""
    path = GROUPS / controller / f"latscope-fault-{os.getpid()}"
    path.mkdir()
    undo.callback(_remove, path)
    for name, value in values.items():
        (path / name.replace("__", ".")).write_text(str(value))
    return path


def _remove(path: Path) -> None:
    """Removes a control group as soon as the processes in it are gone."""
    for _ in range(100):
        with suppress(OSError):
            path.rmdir()
            return
        time.sleep(0.05)
    path.rmdir()


def joins(path: Path) -> Callable[[], None]:
    """Returns a function that moves the calling process into a control group."""

    def inside() -> None:
        (path / "cgroup.procs").write_text("0")

    return inside


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def python(text: str) -> list[str]:
    """Returns the words of a small program."""
    return [sys.executable, "-c", text]


def healthy(survey: Survey, undo: ExitStack) -> None:
    """Changes nothing."""


def busy(survey: Survey, undo: ExitStack) -> None:
    """A niced compile job: no fault, but the state of a machine that has other work. It uses one CPU."""
    text = (
        "int f(int a, int b) { int s = 0;"
        + "".join(f" for (int i = {n}; i < a; i++) s += (i ^ b) % {n + 3};" for n in range(400))
        + " return s; }"
    )
    source = Path(undo.enter_context(tempfile.TemporaryDirectory())) / "f.c"
    source.write_text(text)
    loop = f"while :; do gcc -O2 -c -o /dev/null {source}; done"
    undo.enter_context(process(["nice", "-n", "19", "sh", "-c", loop]))


def quota(survey: Survey, undo: ExitStack) -> None:
    """A control group that has 80 ms of CPU time in each 100 ms."""
    values = {"cpu__cfs_period_us": 100_000, "cpu__cfs_quota_us": 80_000, "cpu__rt_runtime_us": 400_000}
    survey.inside.append(joins(group(undo, "cpu", **values)))


def fifo(survey: Survey, undo: ExitStack) -> None:
    """A stray thread of SCHED_FIFO, priority 99, that spins for 1 ms in every 10 ms on CPU 1."""
    text = (
        "import os, time\n"
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))\n"
        "while True:\n"
        "    end = time.perf_counter() + 0.001\n"
        "    while time.perf_counter() < end: pass\n"
        "    time.sleep(0.009)\n"
    )
    undo.enter_context(process(python(text), pin=1))


def timers(survey: Survey, undo: ExitStack) -> None:
    """A storm of timers: a process that has 20,000 a second on CPU 1."""
    undo.enter_context(process(["stress-ng", "--timer", "1", "--timer-freq", "20000"], pin=1))


def huge_pages(survey: Survey, undo: ExitStack) -> None:
    """Transparent huge pages are never given."""
    setting(undo, HUGE_PAGES, "never")


def seccomp(survey: Survey, undo: ExitStack) -> None:
    """A filter of system calls with 256 rules for an argument, so that the kernel cannot skip it."""
    survey.inside.append(_filter_calls)


def _filter_calls() -> None:
    load, equal, allow, first_argument = 0x20, 0x15, 0x06, 16
    program = [(load, 0, 0, first_argument)]
    # No call has these arguments: each is compared with all of them.
    program += [(equal, 0, 0, 0x7E57_0000 + number) for number in range(256)]
    program += [(allow, 0, 0, 0x7FFF_0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    libc = ctypes.CDLL(None, use_errno=True)
    called = Program(len(program), ctypes.cast(code, ctypes.c_void_p))
    if libc.prctl(22, 2, ctypes.byref(called)):
        raise OSError(ctypes.get_errno(), "seccomp")


def disk(survey: Survey, undo: ExitStack) -> None:
    """A slow disk: 150 reads and 150 writes a second, by the throttle of block devices."""
    device = os.stat(".").st_dev
    limit = f"{os.major(device)}:{os.minor(device)} 150"
    path = group(undo, "blkio")
    for name in ("read", "write"):
        (path / f"blkio.throttle.{name}_iops_device").write_text(limit)
    survey.inside.append(joins(path))


def swap(survey: Survey, undo: ExitStack) -> None:
    """A control group with less memory than the survey takes, and swap in compressed memory."""
    (ZRAM / "disksize").write_text("1G")
    undo.callback((ZRAM / "reset").write_text, "1")
    _run("mkswap", "/dev/zram0")
    _run("swapon", "/dev/zram0")
    undo.callback(_run, "swapoff", "/dev/zram0")
    survey.inside.append(joins(group(undo, "memory", memory__limit_in_bytes="170M")))


def shootdowns(survey: Survey, undo: ExitStack) -> None:
    """A neighbour that has its translations shot down on both CPUs, with 15 % of the machine's time."""
    limited = group(undo, "cpu", cpu__cfs_period_us=20_000, cpu__cfs_quota_us=6_000)
    undo.enter_context(process(["stress-ng", "--tlb-shootdown", "2"], group=limited))


def neighbour(survey: Survey, undo: ExitStack) -> None:
    """A neighbour on CPU 0 that streams through memory."""
    undo.enter_context(process(["stress-ng", "--stream", "1", "--stream-l3-size", "64M"], pin=0))


def clock(survey: Survey, undo: ExitStack) -> None:
    """Another source of the clock than the one the kernel has chosen."""
    path = CLOCK / "current_clocksource"
    others = [
        one
        for one in (CLOCK / "available_clocksource").read_text().split()
        if one != path.read_text().strip()
    ]
    setting(undo, path, others[0])


def dirty(survey: Survey, undo: ExitStack) -> None:
    """A sysctl: processes wait for the disk as soon as 1 MiB is dirty."""
    for name, value in (("dirty_background_bytes", 512 << 10), ("dirty_bytes", 1 << 20)):
        path = Path("/proc/sys/vm") / name
        # Writing bytes sets the ratio to zero, and the other way round.
        ratio = path.with_name(name.replace("bytes", "ratio"))
        undo.callback(ratio.write_text, ratio.read_text())
        path.write_text(str(value))


def tracepoints(survey: Survey, undo: ExitStack) -> None:
    """The tracepoints of all system calls are left enabled."""
    instance = _tracing(undo) / "instances" / f"latscope-fault-{os.getpid()}"
    instance.mkdir()
    undo.callback(instance.rmdir)
    setting(undo, instance / "events/raw_syscalls/enable", "1")


def _tracing(undo: ExitStack) -> Path:
    path = Path("/sys/kernel/tracing")
    if not (path / "instances").exists():
        _run("mount", "-t", "tracefs", "nodev", str(path))
        undo.callback(_run, "umount", str(path))
    return path


#: Kinds of runs by name. The first two are no faults.
KINDS: dict[str, Fault] = {
    "healthy": healthy,
    "busy": busy,
    "quota": quota,
    "fifo": fifo,
    "timers": timers,
    "huge-pages": huge_pages,
    "seccomp": seccomp,
    "disk": disk,
    "swap": swap,
    "shootdowns": shootdowns,
    "neighbour": neighbour,
    "clock": clock,
    "dirty": dirty,
    "tracepoints": tracepoints,
}

#: Shares of the CPUs that the programs of a fault use.
LOADS = {"busy": 0.45, "fifo": 0.06, "timers": 0.17, "shootdowns": 0.18, "neighbour": 0.45}

#: Kinds that are no fault.
HEALTHY = ("healthy", "busy")


def missing() -> list[str]:
    """Returns the programs that the faults need and that are not installed."""
    return [name for name in ("stress-ng", "mkswap", "swapon", "gcc") if shutil.which(name) is None]
