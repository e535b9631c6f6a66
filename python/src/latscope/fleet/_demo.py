"""Demonstration: a small lake of shipped results, and the sick machines in it."""

from datetime import date, timedelta
from pathlib import Path

import latscope

from ._compact import compact
from ._generate import Fault, generate
from ._lake import Lake

DAY = date(2026, 11, 24)

#: Machines of the demonstration, those that were made sick from the last day on and before, and the days
#: before the last one, with the number of machines on them.
MACHINES = 240
FAULTS = {7: Fault("syscall", shift=2.0), 23: Fault("memory", shift=1.6)}
DAYS = ((4, MACHINES + 1, {23}), (1, MACHINES, {23}), (0, MACHINES, {7, 23}))


def demo(directory: Path) -> Lake:
    """Returns the lake of a demonstration in a directory, which is made unless it is there.

    The fleet is made: every machine draws its samples from the shipped results. One is slow on all days,
    one becomes slow on the last day, and one stops reporting.
    """
    lake = Lake(directory / "lake", create=True)
    runs = latscope.read(Path(__file__).parent / "demo").runs
    if not lake.snapshot().days():
        for seed, (before, machines, sick) in enumerate(DAYS):
            faults = {number: fault for number, fault in FAULTS.items() if number in sick}
            generate(lake, runs, machines, DAY - timedelta(days=before), faults, seed=seed, points=True)
    for _ in compact(lake):
        pass
    return lake
