"""Makes the runs of the set of faults: quick surveys of a machine that is made sick, beside healthy ones.

    python3 -m faults.make measure --latscope latscope --runs RUNS [--seconds 230]
    python3 -m faults.make pack --runs RUNS --set DIRECTORY

`measure` goes through the plan in a random order, so that what changes on the host over time does not become
the mark of a fault. It stops after some seconds, and goes on where it stopped when it is called again. Every
fault is undone after its survey, also if the program is interrupted or terminated.
"""

import argparse
import csv
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from faults.kinds import HEALTHY, KINDS, LOADS, Survey, missing

#: Fields of a measurement that `latscope-fleet` does not read.
DROPPED = ("blocks", "rounds", "outliers")

#: Share of the CPUs that other programs may use during a survey. With more it is measured again later.
QUIET = 0.15

#: Longest survey, s. A fault can make one longer, but it shall not last for ever.
LONGEST = 60


def used(seconds: float = 0.5) -> float:
    """Returns the share of the CPUs that programs use now."""

    def idle_and_all() -> tuple[int, int]:
        ticks = [int(one) for one in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)

    idle, whole = idle_and_all()
    time.sleep(seconds)
    idle_then, whole_then = idle_and_all()
    return 1 - (idle_then - idle) / max(whole_then - whole, 1)


def plan(runs: int, healthy: int, busy: int, seed: int, kinds: list[str]) -> list[tuple[str, int]]:
    """Returns kinds and numbers of all runs. Each kind is spread over the whole plan, in random order: what
    is measured when it stops early is a smaller set of the same shares."""
    many = {"healthy": healthy, "busy": busy}
    chance = random.Random(seed)
    places = {
        (kind, number): (number + chance.random()) / many.get(kind, runs)
        for kind in kinds
        for number in range(many.get(kind, runs))
    }
    return sorted(places, key=lambda one: places[one])


def measure(latscope: str, kind: str, path: Path) -> float:
    """Measures one survey under a fault. Returns how long it took, s."""
    survey = Survey()
    partial = path.with_suffix(".partial")
    with ExitStack() as undo:
        KINDS[kind](survey, undo)
        begin = time.monotonic()
        subprocess.run(
            [latscope, "survey", "--quick", "--quiet", "--json", str(partial)],
            check=True,
            timeout=LONGEST,
            preexec_fn=lambda: _all(survey.inside),
        )
        seconds = time.monotonic() - begin
    others = json.loads(partial.read_text())["activity"].get("others", 0.0)
    if others > LOADS.get(kind, 0) + QUIET:
        print(f"{path.stem} counts not: other programs used {others:.0%} of the CPUs", flush=True)
        partial.unlink()
        return seconds
    # Only a run whose fault could be undone counts.
    partial.rename(path)
    return seconds


def _all(functions: list[Callable[[], None]]) -> None:
    for function in functions:
        function()


def _quiet() -> bool:
    """Waits up to 15 s for a quiet machine. Returns false if it is not."""
    return any(used() <= QUIET for _ in range(30))


def measure_all(arguments: argparse.Namespace) -> int:
    """Measures the runs that are missing."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if missing():
        print(f"not installed: {', '.join(missing())}", file=sys.stderr)
        return 1
    begin = time.monotonic()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    latscope = str(Path(arguments.latscope).absolute())
    directory = arguments.runs.absolute()
    os.chdir(directory)
    kinds = arguments.kinds.split(",") if arguments.kinds else list(KINDS)
    left = [
        (kind, directory / f"{kind}-{number:02}.json")
        for kind, number in plan(arguments.each, arguments.healthy, arguments.busy, arguments.seed, kinds)
    ]
    left = [(kind, path) for kind, path in left if not path.exists()]
    for place, (kind, path) in enumerate(left):
        if time.monotonic() - begin > arguments.seconds or not _quiet():
            print(f"{len(left) - place} left")
            return 3
        print(f"{path.stem} {measure(latscope, kind, path):.1f} s", flush=True)
    return 0


def trimmed(document: dict[str, Any]) -> dict[str, Any]:
    """Returns a result without what `latscope-fleet` does not read, and without names of processes."""
    kept = [
        {name: value for name, value in one.items() if name not in DROPPED}
        for one in document["measurements"]
    ]
    activity = {name: value for name, value in document["activity"].items() if name != "top"}
    # What comes from there on are arguments of the first process, not of the kernel.
    command = document["machine"].get("command_line", "").partition(" rdinit=")[0]
    return document | {
        "measurements": kept,
        "activity": activity,
        "plan": document["plan"] | {"steps": []},
        "machine": document["machine"] | {"command_line": command},
        "findings": [],
    }


def pack(arguments: argparse.Namespace) -> int:
    """Writes the set: a compressed result of each run, and the truth. Even numbers of each kind are for
    finding a rule (`tune`), odd ones for trying it (`validate`)."""
    arguments.set.mkdir(parents=True, exist_ok=True)
    with (arguments.set / "truth.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["file", "kind", "sick", "half", "started", "seconds", "others", "throttled"])
        table.writerows(sorted(_packed(arguments.runs, arguments.set)))
    return 0


def _packed(runs: Path, directory: Path) -> Iterator[list[Any]]:
    for path in runs.glob("*.json"):
        kind, _, number = path.stem.rpartition("-")
        document = trimmed(json.loads(path.read_text()))
        name = f"{path.stem}.json.gz"
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
        # The time of compression stays out: the same run gives the same file.
        (directory / name).write_bytes(gzip.compress(text, 9, mtime=0))
        activity = document["activity"]
        account = activity.get("quota") or {}
        half = "validate" if int(number) % 2 else "tune"
        seconds = round(activity["wall_ns"] / 1e9, 2)
        account_of = [document["started"], seconds, activity.get("others"), account.get("throttled", 0)]
        yield [name, kind, int(kind not in HEALTHY), half, *account_of]


def main() -> int:
    """Runs the command. Returns its exit code: 0; 3 if runs are left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("measure")
    one.set_defaults(run=measure_all)
    one.add_argument("--latscope", default="latscope")
    one.add_argument("--runs", type=Path, required=True)
    one.add_argument("--kinds", help=f"some of {','.join(KINDS)}")
    one.add_argument("--each", type=int, default=8, help="runs of each fault")
    one.add_argument("--healthy", type=int, default=80)
    one.add_argument("--busy", type=int, default=10)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--seconds", type=float, default=1e9, help="no new survey after so long")
    one = commands.add_parser("pack")
    one.set_defaults(run=pack)
    one.add_argument("--runs", type=Path, required=True)
    one.add_argument("--set", type=Path, required=True)
    arguments = parser.parse_args()
    code: int = arguments.run(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
