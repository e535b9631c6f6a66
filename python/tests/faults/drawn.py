"""Fleets of known truth, drawn from the set of faults: what each machine has was measured, on a machine that
was healthy or really sick."""

import csv
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from latscope.fleet import Lake
from latscope.fleet._engine import DuckDb, Engine, question
from latscope.fleet._generate import bucket_of_log
from latscope.fleet._ingest import ingest
from latscope.fleet._judge import log_of_bucket
from latscope.fleet._questions import Group, family_of, grouped
from latscope.fleet._settings import Setting, rare
from latscope.fleet._sources import items

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Row: TypeAlias = dict[str, Any]

SET = Path(__file__).parent / "set"

#: Deciles that sick.sql returns.
DECILES = (3, 5, 7)

#: Spread between machines, as standard deviations of logarithms: that of a machine's factor for all series of
#: a family, and that of its factor for a single one. They are those of 51 quick surveys of one idle guest;
#: of families that were not measured there, a guess.
SPREAD = {
    "cpu": (0.009, 0.007),
    "memory": (0.045, 0.030),
    "dram": (0.045, 0.030),
    "sync": (0.085, 0.123),
    "thread": (0.253, 0.111),
    "syscall": (0.070, 0.042),
    "process": (0.113, 0.038),
    "file": (0.085, 0.041),
    "disk": (0.085, 0.041),
    "core-to-core": (0.085, 0.123),
}
GUESS = (0.1, 0.1)

#: Models of processors and kernels, with the number of machines that have them, of six.
GROUPS = (
    ("model A", "6.12", 2),
    ("model A", "6.18", 1),
    ("model B", "6.12", 1),
    ("model B", "6.18", 1),
    ("model C", "6.18", 1),
)

#: Share of machines in busy racks, of each model.
BUSY = 0.05


@dataclass(frozen=True)
class Machine:
    """Machine of a fleet: the kind of its runs in the set, its processor and its kernel."""

    name: str
    kind: str
    model: str
    kernel: str


@dataclass
class Runs:
    """Runs of a kind: of each whether its machine was busy, in which share of the periods a quota stopped it,
    the states of its checks, what these affect, in which share of the time the threads of each point waited
    for a CPU, and the logarithms of ticks and the counts of each series, by id."""

    busy: list[bool] = field(default_factory=list)
    throttled: list[float] = field(default_factory=list)
    checks: list[dict[str, str]] = field(default_factory=list)
    affects: list[dict[str, str]] = field(default_factory=list)
    waited: list[Floats] = field(default_factory=list)
    histograms: list[dict[int, tuple[Floats, Ints]]] = field(default_factory=list)


@dataclass(frozen=True)
class Pool:
    """Runs by kind, and the rows of all series, by id."""

    kinds: dict[str, Runs]
    series: dict[int, Row]


def truth(directory: Path = SET) -> list[dict[str, str]]:
    """Returns the rows of the truth."""
    with (directory / "truth.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def pool(half: str, directory: Path = SET) -> Pool:
    """Returns the runs of one half of the set: `tune` or `validate`."""
    kind_of = {row["file"]: row["kind"] for row in truth(directory) if row["half"] == half}
    found = Pool({}, {})
    with tempfile.TemporaryDirectory(prefix="latscope-faults-") as place:
        lake = Lake(Path(place) / "lake", create=True)
        *_, account = ingest(lake, items([str(directory / name) for name in kind_of]), processes=1)
        assert not account.aside, account.aside
        with closing(DuckDb(lake.snapshot())) as engine:
            found.series.update({row["series_id"]: row for row in _rows(engine, "SELECT * FROM series")})
            text = "SELECT r.*, p.busy FROM runs r JOIN peers p ON p.run_id = r.run_id ORDER BY source"
            for row in _rows(engine, text):
                runs = found.kinds.setdefault(kind_of[Path(row["source"]).name], Runs())
                runs.busy.append(bool(row["busy"]))
                runs.throttled.append(row["throttled"] or 0.0)
                runs.checks.append(dict(row["checks"]))
                runs.affects.append(dict(row["affects"]))
                runs.waited.append(_waits(engine, row["run_id"]))
                runs.histograms.append(_histograms(engine, row["run_id"]))
    return found


def _rows(engine: Engine, sql: str) -> list[Row]:
    rows: list[Row] = engine.query(sql).to_pylist()
    return rows


def _waits(engine: Engine, run_id: str) -> Floats:
    sql = f"SELECT waited FROM points WHERE run_id = '{run_id}' AND waited IS NOT NULL ORDER BY series_id"
    waits: Floats = engine.query(sql)["waited"].to_numpy()
    return waits


def _histograms(engine: Engine, run_id: str) -> dict[int, tuple[Floats, Ints]]:
    sql = f"SELECT series_id, bucket, n FROM h WHERE run_id = '{run_id}' ORDER BY series_id, bucket"
    series, bucket, n = (column.to_numpy() for column in engine.query(sql).columns)
    starts = np.flatnonzero(np.diff(series, prepend=-1))
    parts = zip(starts, [*starts[1:], len(n)], strict=True)
    return {
        int(series[start]): (log_of_bucket(bucket[start:end].astype(np.int64)), n[start:end])
        for start, end in parts
    }


def machines(
    number: int, sick: Sequence[str], seed: int, groups: Sequence[tuple[str, str, int]] = GROUPS
) -> list[Machine]:
    """Returns the machines of a fleet. The first ones have the faults of `sick`, one each. The rest is
    healthy, and some of it are busy."""
    random = np.random.default_rng(seed)
    shares = np.array([many for _, _, many in groups]) / sum(many for _, _, many in groups)
    found = []
    for place in range(number):
        model, kernel, _ = groups[random.choice(len(groups), p=shares)]
        busy = place >= number * (1 - BUSY)
        kind = sick[place] if place < len(sick) else "busy" if busy else "healthy"
        found.append(Machine(f"m{place:06}", kind, model, kernel))
    return found


def groups(pool: Pool, fleet: Sequence[Machine], seed: int) -> list[Group]:
    """Returns the groups of peers of a fleet on one day, as `groups_of` does of a lake.

    A machine takes each family of probes from a random run of its kind, with the samples drawn anew, and
    multiplies it by its own factors and by those of its processor and kernel.
    """
    random = np.random.default_rng((seed, 1))
    factors = _Factors(random, fleet, pool.series)
    states = [pool.kinds[one.kind].busy for one in fleet]
    busy = [int(state[random.integers(len(state))]) for state in states]
    keys = [(one.model, one.kernel, state) for one, state in zip(fleet, busy, strict=True)]
    listed = sorted(set(keys))
    number = np.array([listed.index(key) for key in keys])
    rows = [
        dict(zip(("cpu_model", "kernel", "busy"), key, strict=True))
        | {"peers": at, "machines": keys.count(key)}
        for at, key in enumerate(listed)
    ]
    families = {one: family_of(row) for one, row in pool.series.items()}
    choice = {family: _runs_of(random, pool, fleet, busy) for family in sorted(set(families.values()))}
    sampled = sorted({one for runs in pool.kinds.values() for run in runs.histograms for one in run})
    parts = [_figures(random, pool, one, choice[families[one]], factors) for one in sampled]
    columns = {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}
    columns["peers"] = number[columns["machine"] - 1]
    columns["day"] = np.zeros(len(columns["peers"]), np.int64)
    waited = _waited(random, pool, _runs_of(random, pool, fleet, busy))
    return grouped(rows, columns, waited, [one.name for one in fleet], families).groups


def _waited(random: np.random.Generator, pool: Pool, choice: Ints) -> Floats:
    """Returns the quartiles of waits.sql of all machines, whose points are drawn from those of a run."""
    waits = [run for runs in pool.kinds.values() for run in runs.waited]
    drawn = [random.choice(waits[one], len(waits[one])) for one in choice.tolist()]
    return np.array([np.quantile(one, (0.5, 0.75), method="inverted_cdf") for one in drawn])


#: Share of the machines that have a harmless setting of their own.
HARMLESS = 0.01


def settings(pool: Pool, fleet: Sequence[Machine], seed: int) -> list[Setting]:
    """Returns the rare settings of a fleet: those of its faults, and harmless ones that were made up."""
    random = np.random.default_rng((seed, 2))
    listed = [one for runs in pool.kinds.values() for one in runs.affects]
    everywhere = {check: affects for one in listed for check, affects in one.items()}
    rows = []
    for machine in fleet:
        runs = pool.kinds[machine.kind]
        one = random.integers(len(runs.checks))
        checks, affects = dict(runs.checks[one]), dict(runs.affects[one])
        if random.random() < HARMLESS:
            check = random.choice(sorted(everywhere))
            checks[check], affects[check] = "odd", everywhere[check]
        rows.append(
            {
                "machine_id": machine.name,
                "cpu_model": machine.model,
                "kernel": machine.kernel,
                "checks": checks,
                "affects": affects,
            }
        )
    return rare(rows)


def stopped(pool: Pool, fleet: Sequence[Machine]) -> set[str]:
    """Returns the machines of a fleet that `sick` names because a quota stops them."""
    day = date(2026, 11, 24)
    names = ("machine_id", "cpu_model", "kernel", "throttled", "day")
    rows = [
        (one.name, one.model, one.kernel, float(np.median(pool.kinds[one.kind].throttled)), day)
        for one in fleet
    ]
    with duckdb.connect() as connection:
        connection.register(
            "runs", pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
        )
        text = question("throttled").replace(":since", "$since")
        found = connection.sql(text, params={"since": "0001-01-01"}).fetchall()
    return {row[0] for row in found}


def _runs_of(random: np.random.Generator, pool: Pool, fleet: Sequence[Machine], busy: Sequence[int]) -> Ints:
    """Returns the number of a random run of its kind and state for each machine, among all runs of the
    pool."""
    states = [(kind, int(state)) for kind, runs in pool.kinds.items() for state in runs.busy]
    places = {one: np.flatnonzero([each == one for each in states]) for one in set(states)}
    return np.array([random.choice(places[one.kind, state]) for one, state in zip(fleet, busy, strict=True)])


def _figures(
    random: np.random.Generator, pool: Pool, one: int, choice: Ints, factors: "_Factors"
) -> dict[str, NDArray[Any]]:
    """Returns the columns of sick.sql of a series. Of samples that are drawn anew only their deciles are
    drawn, and apart from those their mean."""
    factor, parts = factors.of(one), []
    for number, histogram in enumerate(
        run.get(one) for runs in pool.kinds.values() for run in runs.histograms
    ):
        places = np.flatnonzero(choice == number)
        if histogram is None or not len(places):
            continue
        logs, n = histogram
        total, share = int(n.sum()), np.cumsum(n) / n.sum()
        ranks = np.array([-(-total * tenth // 10) for tenth in DECILES])
        gaps = np.diff(ranks, prepend=0, append=total + 1)
        uniform = np.cumsum(random.standard_gamma(gaps, (len(places), len(gaps))), axis=1)
        uniform = uniform[:, :-1] / uniform[:, -1:]
        at = np.minimum(np.searchsorted(share, uniform), len(logs) - 1)
        bucket = bucket_of_log(logs[at] + factor[places, np.newaxis])
        part: dict[str, NDArray[Any]] = {
            f"q{10 * tenth}": bucket[:, column] for column, tenth in enumerate(DECILES)
        }
        part["mean"] = np.exp(_means(random, logs, n, len(places)) + factor[places]) - 0.5
        part["machine"] = places + 1
        parts.append(part)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return columns | {"series_id": np.full(len(columns["machine"]), one)}


#: Buckets of the longest samples, whose number is drawn anew for a mean: the others hardly change it.
LONGEST = 12


def _means(random: np.random.Generator, logs: Floats, n: Ints, machines: int) -> Floats:
    """Returns logarithms of the means of samples that are drawn anew, for some machines."""
    ticks, rest = np.exp(logs[-LONGEST:]), n[:-LONGEST]
    base, total = float(np.sum(np.exp(logs[:-LONGEST]) * rest)), int(rest.sum())
    drawn = random.poisson(n[-LONGEST:], (machines, len(ticks)))
    if not total:
        drawn[:, 0] = np.maximum(drawn[:, 0], 1)
    means: Floats = np.log((base + drawn @ ticks) / (total + drawn.sum(axis=1)))
    return means


class _Factors:
    """Logarithms of the factors of machines, processors and kernels."""

    def __init__(self, random: np.random.Generator, fleet: Sequence[Machine], series: dict[int, Row]) -> None:
        self.random = random
        self.series = series
        families = sorted({family_of(one) for one in series.values()})
        # Processors differ by tens of per cent, kernels by few: the same in each fleet.
        fixed = np.random.default_rng(20)
        self.group = {
            name: {family: fixed.normal(0, size) for family in families}
            for size, names in ((0.2, ("model A", "model B", "model C")), (0.05, ("6.12", "6.18")))
            for name in names
        }
        self.own = {family: random.normal(0, SPREAD.get(family, GUESS)[0], len(fleet)) for family in families}
        for one in families:
            names = [(self.group[machine.model][one], self.group[machine.kernel][one]) for machine in fleet]
            self.own[one] += np.sum(names, axis=1)

    def of(self, series: int) -> Floats:
        """Returns the factors of all machines for a series."""
        family = family_of(self.series[series])
        own = self.own[family]
        return own + self.random.normal(0, SPREAD.get(family, GUESS)[1], len(own))
