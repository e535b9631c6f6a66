"""Fleets of known truth, drawn from the set of faults: what each machine has was measured, on a machine that
was healthy or really sick."""

import csv
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from latscope.fleet import Lake, _judge
from latscope.fleet._engine import DuckDb, Engine
from latscope.fleet._generate import bucket_of_log
from latscope.fleet._ingest import ingest
from latscope.fleet._judge import log_of_bucket
from latscope.fleet._questions import Group
from latscope.fleet._series import bucket_bounds
from latscope.fleet._sources import items

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Row: TypeAlias = dict[str, Any]

SET = Path(__file__).parent / "set"

#: Deciles that sick.sql returns.
DECILES = (3, 5, 7)

#: Machines of a group whose samples say where its tail begins.
MACHINES_OF_EDGE = 60

#: Spread between machines, as standard deviations of logarithms: that of a machine's factor for all series of
#: a family, and that of its factor for a single one. They are those of 51 quick surveys of one idle guest;
#: of families that were not measured there, a guess.
SPREAD = {
    "cpu": (0.009, 0.007),
    "memory": (0.045, 0.030),
    "sync": (0.085, 0.123),
    "thread": (0.253, 0.111),
    "syscall": (0.070, 0.042),
    "process": (0.113, 0.038),
    "file": (0.085, 0.041),
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
    """Runs of a kind: of each whether its machine was busy, and the logarithms of ticks and the counts of
    each series, by id."""

    busy: list[bool] = field(default_factory=list)
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
            text = "SELECT run_id, source, busy FROM runs JOIN peers USING (run_id) ORDER BY source"
            for row in _rows(engine, text):
                runs = found.kinds.setdefault(kind_of[Path(row["source"]).name], Runs())
                runs.busy.append(bool(row["busy"]))
                runs.histograms.append(_histograms(engine, row["run_id"]))
    return found


def _rows(engine: Engine, sql: str) -> list[Row]:
    rows: list[Row] = engine.query(sql).to_pylist()
    return rows


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
    busy = [state[random.integers(len(state))] for state in states]
    titles = [f"{one.model}, {one.kernel}, {state}" for one, state in zip(fleet, busy, strict=True)]
    named, peers = np.unique(titles, return_inverse=True)
    families = sorted({family_of(one) for one in pool.series.values()})
    choice = {family: _runs_of(random, pool, fleet) for family in families}
    sampled = sorted({one for runs in pool.kinds.values() for run in runs.histograms for one in run})
    rows = [
        _figures(random, pool, one, choice[family_of(pool.series[one])], factors, peers) for one in sampled
    ]
    columns = {name: np.concatenate([each[name] for each in rows]) for name in rows[0]}
    names = [one.name for one in fleet]
    found = []
    for number, title in enumerate(named):
        if np.sum(peers == number) < _judge.FEWEST:
            continue
        own = peers[columns["machine"] - 1] == number
        distances = _judge.distances({name: column[own] for name, column in columns.items()}, names)
        found.append(Group(str(title), distances, [family_of(pool.series[one]) for one in distances.series]))
    return found


def _runs_of(random: np.random.Generator, pool: Pool, fleet: Sequence[Machine]) -> Ints:
    """Returns the number of a random run of its kind for each machine, among all runs of the pool."""
    first, starts = 0, dict[str, int]()
    for kind, runs in pool.kinds.items():
        starts[kind], first = first, first + len(runs.histograms)
    return np.array(
        [starts[one.kind] + random.integers(len(pool.kinds[one.kind].histograms)) for one in fleet]
    )


def _figures(
    random: np.random.Generator, pool: Pool, one: int, choice: Ints, factors: "_Factors", peers: Ints
) -> dict[str, Ints]:
    """Returns the columns of sick.sql of a series. Of samples that are drawn anew only their deciles are
    drawn, and apart from those the number in the tail."""
    histograms = [run.get(one) for runs in pool.kinds.values() for run in runs.histograms]
    factor = factors.of(one, np.arange(len(choice)))
    edges = _edges(histograms, choice, factor, peers)
    parts = []
    for number, histogram in enumerate(histograms):
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
        below = np.searchsorted(logs, edges[peers[places]] - factor[places])
        tail = 1 - np.concatenate([[0.0], share])[below]
        part = {f"q{10 * tenth}": bucket[:, column] for column, tenth in enumerate(DECILES)}
        part["above"] = random.binomial(total, np.clip(tail, 0, 1))
        part["machine"], part["total"] = places + 1, np.full(len(places), total)
        parts.append(part)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return columns | {"series_id": np.full(len(columns["machine"]), one)}


def _edges(
    histograms: Sequence[tuple[Floats, Ints] | None], choice: Ints, factor: Floats, peers: Ints
) -> Floats:
    """Returns for each group the logarithm from which on samples lie above the bucket of their 95th
    percentile."""
    edges = np.zeros(peers.max() + 1)
    for group in range(len(edges)):
        some = np.flatnonzero(peers == group)[:MACHINES_OF_EDGE]
        of = [(histograms[choice[at]], factor[at]) for at in some]
        logs = np.concatenate([histogram[0] + by for histogram, by in of if histogram] or [[0.0]])
        n = np.concatenate([histogram[1] for histogram, _ in of if histogram] or [[1]])
        order = np.argsort(logs)
        at = logs[order][np.searchsorted(np.cumsum(n[order]), 0.95 * n.sum())]
        low, _ = bucket_bounds(int(bucket_of_log(at)) + 1)
        edges[group] = np.log(low + 0.5)
    return edges


def family_of(series: Row) -> str:
    """Returns the family of a series."""
    return str(series["probe"]).split(".")[0]


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
        self.of_family = {
            family: random.normal(0, SPREAD.get(family, GUESS)[0], len(fleet)) for family in families
        }
        self.fleet = fleet

    def of(self, series: int, places: Ints) -> Floats:
        """Returns the factors of some machines for a series."""
        family = family_of(self.series[series])
        common = [
            self.group[self.fleet[place].model][family] + self.group[self.fleet[place].kernel][family]
            for place in places
        ]
        own = self.random.normal(0, SPREAD.get(family, GUESS)[1], len(places))
        factors: Floats = self.of_family[family][places] + common + own
        return factors
