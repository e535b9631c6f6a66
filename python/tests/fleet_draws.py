"""Fleets drawn from the healthy runs of the set of faults, with faults of known kind and size, apart from
`faults.drawn`: whole runs are drawn, not their samples, so that a draw of 300 machines takes a second.

    python3 tests/fleet_draws.py --draws 100

prints how often `sick` names machines of healthy fleets, and how often it finds each fault, beside the rule
that names a machine with a series above median + 3 MAD on two days in a row."""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from faults.drawn import SET, truth

from latscope.fleet import Lake, _drift, _judge, _past, _questions
from latscope.fleet._engine import DuckDb, dicts, question
from latscope.fleet._ingest import ingest
from latscope.fleet._schema import TABLES
from latscope.fleet._sources import items

Floats: TypeAlias = NDArray[np.float64]

#: Standard deviations of the logarithms of a machine's factors, for a family and for a series, which stay,
#: and of those of each run.
OF_FAMILY, OF_SERIES, OF_RUN = 0.02, 0.012, 0.006

#: Days of history before the day that is judged.
DAYS = 14


@dataclass(frozen=True)
class Base:
    """Figures of R healthy runs in S series: logarithms of three deciles and of the mean (4 by R by S), the
    quartiles of the waiting, and the rows of the series."""

    figures: Floats
    waited: Floats
    series: list[int]
    about: dict[int, dict[str, Any]]

    @property
    def family(self) -> list[str]:
        """Families of the series."""
        return [_questions.family_of(self.about[one]) for one in self.series]

    def hit(self, kind: str) -> NDArray[np.bool_]:
        """Returns which series a kind of fault moves."""
        return np.array([_is_hit(kind, self.about[one]) for one in self.series])


def _is_hit(kind: str, series: Mapping[str, Any]) -> bool:
    probe, parameters = series["probe"], dict(series["params"])
    if kind == "memory":
        return probe == "memory.latency" and int(parameters["size"]) >= 64 << 20
    if kind == "disk":
        is_synced = probe in ("file.fsync", "file.fdatasync", "file.read-direct")
        return is_synced and parameters["filesystem"] != "tmpfs"
    return bool(probe == {"core to core": "sync.core-to-core", "wake-ups": "wake.timer"}[kind])


def base(half: str | None = None, directory: Path = SET) -> Base:
    """Returns the healthy runs of the set, or of one half of it: `tune` or `validate`."""
    wanted = [
        row["file"] for row in truth(directory) if row["kind"] == "healthy" and half in (None, row["half"])
    ]
    with tempfile.TemporaryDirectory(prefix="latscope-draws-") as place:
        lake = Lake(Path(place) / "lake", create=True)
        *_, account = ingest(lake, items([str(directory / name) for name in wanted]), processes=1)
        assert not account.aside, account.aside
        with closing(DuckDb(lake.snapshot())) as engine:
            # Each run is a machine of its own.
            engine.connection.sql(
                "SELECT *, CAST(1 AS INT) AS peers, '1' AS listed, 0 AS busy, "
                "CAST(DENSE_RANK() OVER (ORDER BY run_id) AS INT) AS machine FROM runs"
            ).create_view("peers", replace=True)
            about = {row["series_id"]: row for row in dicts(engine.query("SELECT * FROM series"))}
            words = {"since": _questions.ALWAYS.isoformat()}
            table = engine.query(question("sick"), first="", last="~", groups=["1"], **words)
            waits = engine.query(question("waits"), **words)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    found = _past.dense(columns, [""] * len(wanted), columns["day"] == 0)
    whole = np.asarray(~np.isnan(found.figures).any(axis=(0, 1)))
    series = [one for one, is_whole in zip(found.series, whole, strict=True) if is_whole]
    waited = np.column_stack([waits[name].to_numpy() for name in ("w50", "w75")])
    return Base(found.figures[:, :, whole], waited, series, about)


@dataclass(frozen=True)
class Fault:
    """Fault of a machine: the kind, by what it multiplies, and its first day: 0 is the one that is judged, -1
    the one before."""

    kind: str
    size: float
    first: int = 0


def drawn(
    base: Base,
    groups: Sequence[int],
    faults: Mapping[int, Fault],
    random: np.random.Generator,
    days: int = DAYS,
) -> tuple[_questions.Fleet, Floats]:
    """Returns a fleet as `groups_of` returns one of a lake, and its figures: 4 by days by machines by series.

    It has groups of some numbers of machines, and `days` days before the one that is judged. Each machine
    takes each family on each day from another random healthy run: the same one on two days would be as odd on
    both, which the days of a healthy machine are not."""
    many, size = sum(groups), len(base.series)
    names, family = [f"m{one:04}" for one in range(many)], base.family
    listed = sorted(set(family))
    of = np.array([listed.index(one) for one in family])
    order = random.random((base.figures.shape[1], many, len(listed)))
    runs = np.argsort(order, axis=0)[: days + 1]
    figures = base.figures[:, runs[:, :, of], np.arange(size)]
    stays = random.normal(0, OF_FAMILY, (many, len(listed)))[:, of] + random.normal(
        0, OF_SERIES, (many, size)
    )
    figures += stays + random.normal(0, OF_RUN, (days + 1, many, size))
    for machine, fault in faults.items():
        figures[:, days + fault.first :, machine, base.hit(fault.kind)] += np.log(fault.size)
    waited = base.waited[runs[days, :, 0]]
    group = np.repeat(np.arange(len(groups)), groups)
    found, families = [], dict(zip(base.series, family, strict=True))
    for one in range(len(groups)):
        own = np.flatnonzero(group == one)
        body, mean = _judge.from_peers(figures[:, days, own], len(own))
        distances = _judge.Distances([names[at] for at in own], base.series, body, mean, waited[own])
        found.append(_questions.Group(f"group {one}", distances, family, _judge.IDLE))
    rows = (days + 1) * many
    number = np.append(np.arange(1, days + 1), 0).repeat(many)
    of_machine = np.tile(np.arange(many), days + 1)
    flat = figures.reshape(4, rows, size)
    past = _past.Days(names, of_machine, number, group[of_machine], base.series, flat) if days else None
    return _questions.Fleet(found, past, [], families), figures


def plain(base: Base, groups: Sequence[int], figures: Floats) -> set[str]:
    """Returns what the plain rule names: the machines with a series above the median + 3 MAD of its group on
    the last two days."""
    named, first = set[str](), 0
    for many in groups:
        body = np.median(figures[:3, -2:, first : first + many], axis=0)
        away = body - np.median(body, axis=1, keepdims=True)
        far = away > 3 * np.median(np.abs(away), axis=1, keepdims=True)
        named |= {f"m{first + at:04}" for at in np.flatnonzero((far[0] & far[1]).any(axis=1))}
        first += many
    return named


def named(fleet: _questions.Fleet) -> dict[str, str]:
    """Returns the states of all machines that are not normal."""
    found = _questions.verdicts_of(fleet, 0.05)
    return {one.finding.machine: one.state for one in found if one.state != _questions.NORMAL}


#: Series that a new processor makes faster, by this, and by how much they scatter around it.
NEW_CPU, SCATTER = 0.72, 0.1

#: A fleet that changes: its machines and days. On the day CPU_DAY the machine OF_CPU has another processor;
#: on three days from KERNEL_DAY on, twelve machines get a kernel whose system calls take longer; the memory
#: of another one is slow from MEMORY_DAY on.
MACHINES, CHANGING_DAYS = 26, 10
OF_CPU, CPU_DAY = 5, 5
OF_KERNEL, KERNEL_DAY, SLOWER = range(12, 24), 4, 1.12
OF_MEMORY, MEMORY_DAY = 9, 6
FIRST_DAY = date(2026, 11, 10)


def changing(base: Base, random: np.random.Generator, lake: Lake, changes: bool = True) -> None:
    """Adds the runs of a fleet that changes to a lake; without `changes` it stays as it is."""
    _, figures = drawn(base, (MACHINES,), {}, random, CHANGING_DAYS - 1)
    medians = np.exp(figures[1])
    about: list[list[dict[str, Any]]] = [
        [{"cpu_model": "CPU 1", "microcode": "0x10", "kernel": "6.18.44"} for _ in range(MACHINES)]
        for _ in range(CHANGING_DAYS)
    ]
    if changes:
        medians[CPU_DAY:, OF_CPU] *= np.exp(random.normal(np.log(NEW_CPU), SCATTER, len(base.series)))
        medians[MEMORY_DAY:, OF_MEMORY, base.hit("memory")] *= 1.35
        calls = np.array([one == "syscall" for one in base.family])
        for day in range(CPU_DAY, CHANGING_DAYS):
            about[day][OF_CPU] |= {"cpu_model": "CPU 2", "microcode": "0x20"}
        for machine in OF_KERNEL:
            first = KERNEL_DAY + machine % 3
            medians[first:, machine, calls] *= SLOWER
            for day in range(first, CHANGING_DAYS):
                about[day][machine] |= {"kernel": "6.19.3"}
    lake.append(
        "series", pa.Table.from_pylist([base.about[one] for one in base.series], schema=TABLES["series"])
    )
    ticks = np.array([base.about[one]["tick_ps"] for one in base.series])
    for number, date_of in enumerate(FIRST_DAY + timedelta(days=one) for one in range(CHANGING_DAYS)):
        runs, points = [], []
        for machine in range(MACHINES):
            keys = {
                "day": date_of,
                "batch": number,
                "run_id": f"{machine}:{date_of}",
                "machine_id": f"id{machine:02}",
            }
            started = datetime(date_of.year, date_of.month, date_of.day, tzinfo=timezone.utc)
            known = {
                "name": f"node{machine:03}",
                "source": "drawn",
                "checks": {},
                "labels": {},
                "tool": "0.1.0",
            }
            runs.append(keys | known | about[number][machine] | {"started": started, "finished": started})
            medians_ns = medians[number, machine] * ticks / 1000
            points += [
                keys | {"series_id": one, "p50": value, "count": 1}
                for one, value in zip(base.series, medians_ns.tolist(), strict=True)
            ]
        lake.append("points", pa.Table.from_pylist(points, schema=TABLES["points"]))
        lake.append("runs", pa.Table.from_pylist(runs, schema=TABLES["runs"]))


def drifts(base: Base, random: np.random.Generator, changes: bool = True) -> list[dict[str, Any]]:
    """Returns the rows of `drift` for a fleet that changes, or stays as it is."""
    with tempfile.TemporaryDirectory(prefix="latscope-draws-") as place:
        lake = Lake(Path(place) / "lake", create=True)
        changing(base, random, lake, changes)
        with closing(DuckDb(lake.snapshot())) as engine:
            return _drift.drift(engine)


def changes_in(rows: Sequence[Mapping[str, Any]]) -> tuple[bool, bool, bool, int]:
    """Returns whether the rows name the new processor, the roll-out and the slow memory with the day and what
    changed, and how many other rows there are."""
    day = {
        name: str(FIRST_DAY + timedelta(days=at)) for name, at in (("cpu", CPU_DAY), ("memory", MEMORY_DAY))
    }

    def is_cpu(row: Mapping[str, Any]) -> bool:
        is_it = row["machine_id"] == f"id{OF_CPU:02}" and row["day"] == day["cpu"]
        return bool(is_it and "CPU model: CPU 1 → CPU 2" in row["with"])

    def is_kernel(row: Mapping[str, Any]) -> bool:
        return bool(row["machines"] == len(OF_KERNEL) and row["with"] == "kernel: 6.18.44 → 6.19.3")

    def is_memory(row: Mapping[str, Any]) -> bool:
        is_it = row["machine_id"] == f"id{OF_MEMORY:02}" and row["day"] == day["memory"]
        return bool(is_it and row["with"] == "" and row["families"].startswith("dram"))

    found = [any(map(is_one, rows)) for is_one in (is_cpu, is_kernel, is_memory)]
    return found[0], found[1], found[2], len(rows) - sum(found)


#: Faults that are tried at once, each on a machine of its own.
TOGETHER = (
    (("memory", 1.35), ("core to core", 1.6), ("wake-ups", 1.5), ("disk", 4.0)),
    (("memory", 1.5), ("core to core", 1.5), ("wake-ups", 1.8), ("disk", 10.0)),
    (("memory", 3.0), ("core to core", 3.0), ("wake-ups", 3.0), ("disk", 30.0)),
    (("memory", 2.0), ("core to core", 2.0), ("wake-ups", 10.0), ("disk", 3.0)),
)


@dataclass
class Tally:
    """What was named in a number of days: wrong machines by rule, the days that have one, and of
    each fault the machines that have it and that each rule named."""

    days: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    noisy: int = 0
    faults: Counter[tuple[str, float]] = field(default_factory=Counter)
    found: Counter[tuple[str, float, str]] = field(default_factory=Counter)

    def add(
        self, base: Base, groups: Sequence[int], faults: Mapping[int, Fault], random: Any, days: int
    ) -> None:
        """Draws a fleet and counts what was named."""
        fleet, figures = drawn(base, groups, faults, random, days)
        states = named(fleet)
        sick = {name for name, state in states.items() if state == _questions.SICK}
        rules = {"sick": sick, "suspicion": states.keys() - sick, "plain": plain(base, groups, figures)}
        ill = {f"m{machine:04}": fault for machine, fault in faults.items()}
        self.days += 1
        self.noisy += bool(sick - ill.keys())
        for rule, names in rules.items():
            self.wrong[rule] += len(names - ill.keys())
            for name in names & ill.keys():
                self.found[ill[name].kind, ill[name].size, rule] += 1
        for fault in ill.values():
            self.faults[fault.kind, fault.size] += 1


def tally(
    base: Base, groups: Sequence[int], draws: int, first: int | None, seed: int, days: int = DAYS
) -> Tally:
    """Returns what is named in some draws: of healthy fleets, or of fleets with faults since a day."""
    random, found = np.random.default_rng(seed), Tally()
    at_once = min(4, max(1, sum(groups) // 5))
    for _ in range(draws):
        if first is None:
            found.add(base, groups, {}, random, days)
            continue
        for kinds in TOGETHER:
            for start in range(0, 4, at_once):
                some = kinds[start : start + at_once]
                places = random.choice(sum(groups), len(some), replace=False).tolist()
                faults = {at: Fault(*one, first) for at, one in zip(places, some, strict=True)}
                found.add(base, groups, faults, random, days)
    return found


def table(base: Base, groups: Sequence[int], draws: int, seed: int, days: int = DAYS) -> str:
    """Returns what is named in fleets of one size, as a table of Markdown."""
    healthy = tally(base, groups, draws, None, seed, days)
    per_year = 365 / healthy.days
    head = " and ".join(map(str, groups))
    lines = [
        f"{head} machines, {days} days before: healthy fleets have a named machine on {healthy.noisy} of "
        f"{healthy.days} days: {healthy.wrong['sick'] * per_year:.1f} machines a year; "
        f"{healthy.wrong['suspicion'] / healthy.days:.2f} suspected a day; "
        f"plain rule {healthy.wrong['plain'] / healthy.days:.1f} machines a day",
        "",
        "| fault | first day | suspected | second day | plain rule |",
        "|---|---|---|---|---|",
    ]
    few = max(draws // 10, 3)
    once, twice = (tally(base, groups, few, first, seed + 1, days) for first in (0, -1))
    for kind, size in sorted(twice.faults):
        cells = [
            f"{100 * of.found[kind, size, rule] / of.faults[kind, size]:.0f} %"
            for of, rule in ((once, "sick"), (once, "suspicion"), (twice, "sick"), (twice, "plain"))
        ]
        lines.append(f"| {kind} × {size:g} | {' | '.join(cells)} |")
    lines.append(
        f"\n{twice.wrong['sick']} healthy machines were named on {twice.days} second days with "
        f"{sum(twice.faults.values())} faults"
    )
    return "\n".join(lines)


#: Sizes of fleets, with the number of draws for one that is asked for.
FLEETS = (((5,), 5), ((10,), 5), ((50,), 2), ((180, 120), 1))


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--half", choices=("tune", "validate"))
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drift", action="store_true", help="try `drift` instead of `sick`")
    parser.add_argument("--large", action="store_true", help="10,000 machines as well, without days before")
    arguments = parser.parse_args()
    found = base(arguments.half)
    if arguments.drift:
        random = np.random.default_rng(arguments.seed)
        some = [changes_in(drifts(found, random)) for _ in range(max(arguments.draws // 5, 1))]
        names = ("new processor", "roll-out", "slow memory")
        texts = [f"{name} {sum(one[at] for one in some)}" for at, name in enumerate(names)]
        rest = [one[3] for one in some]
        print(
            f"of {len(some)} fleets: {', '.join(texts)}; other rows {sum(rest)}, at most {max(rest)} in one"
        )
        none = sum(bool(drifts(found, random, False)) for _ in range(arguments.draws))
        print(f"{none} of {arguments.draws} fleets without a change have a row", flush=True)
        return
    for groups, times in FLEETS:
        print(table(found, groups, times * arguments.draws, arguments.seed), end="\n\n", flush=True)
    if arguments.large:
        print(table(found, (6000, 4000), max(arguments.draws // 20, 1), arguments.seed, 1), flush=True)


if __name__ == "__main__":
    main()
