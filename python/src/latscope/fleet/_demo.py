"""Demonstration: a small lake of shipped results, and the sick machines in it."""

from datetime import date, timedelta
from pathlib import Path

import latscope

from ._compact import compact
from ._generate import Fault, generate
from ._lake import Lake

DAY = date(2026, 11, 24)

#: Machines and days of the demonstration. One more machine stops reporting GONE days before the last one.
MACHINES, DAYS, GONE = 60, 10, 4

#: Faults by machine, and the first of the last days that has them: two days are evidence, one is a suspicion.
FAULTS = {7: (Fault("syscall", shift=2.0), 2), 23: (Fault("memory", shift=1.6), 1)}

#: Machine that gets another microcode, what that changes, and how many of the last days have it.
CHANGED, CHANGE, CHANGED_DAYS = 40, Fault("cpu", shift=0.8), 5


def demo(directory: Path) -> Lake:
    """Returns the lake of a demonstration in a directory, which is made unless it is there.

    The fleet is made: every machine draws its samples from the shipped results. One is slow on the last two
    days, one on the last day, one becomes faster with another microcode, and one stops reporting.
    """
    lake = Lake(directory / "lake", create=True)
    runs = latscope.read(Path(__file__).parent / "demo").runs
    if not lake.snapshot().days():
        for before in reversed(range(DAYS)):
            faults = {number: fault for number, (fault, days) in FAULTS.items() if before < days}
            faults |= {CHANGED: CHANGE} if before < CHANGED_DAYS else {}
            facts = {CHANGED: {"microcode": "0x2b000643"}} if before < CHANGED_DAYS else {}
            many = MACHINES + (before >= GONE)
            day = DAY - timedelta(days=before)
            generate(lake, runs, many, day, faults, seed=before, points=True, facts=facts)
    for _ in compact(lake):
        pass
    return lake
