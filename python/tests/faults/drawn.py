"""Fleets of known truth, drawn from the set of faults: what each machine has was measured, on a machine that
was healthy or really sick."""

import csv
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from latscope.fleet import Lake
from latscope.fleet._engine import DuckDb, Engine
from latscope.fleet._generate import bucket_of_log
from latscope.fleet._ingest import ingest
from latscope.fleet._judge import log_of_bucket
from latscope.fleet._schema import TABLES
from latscope.fleet._sources import items

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Row: TypeAlias = dict[str, Any]

SET = Path(__file__).parent / "set"
DAY = date(2026, 11, 24)

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
    """Runs of a kind: the rows of the lake's table `runs`, and of each run the logarithms of ticks and the
    counts of each series, by id."""

    rows: list[Row] = field(default_factory=list)
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
            for row in _rows(engine, "SELECT * FROM runs ORDER BY source"):
                runs = found.kinds.setdefault(kind_of[Path(row["source"]).name], Runs())
                runs.rows.append(row)
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


def draw(lake: Lake, pool: Pool, fleet: Sequence[Machine], seed: int) -> None:
    """Adds one run of each machine to a lake.

    A machine takes each family of probes from a random run of its kind, with the samples drawn anew, and
    multiplies it by its own factors and by those of its processor and kernel.
    """
    random = np.random.default_rng((seed, 1))
    lake.append("series", pa.Table.from_pylist(list(pool.series.values()), schema=TABLES["series"]))
    factors = _Factors(random, fleet, pool.series)
    families = sorted({family_of(one) for one in pool.series.values()})
    choice = {family: random.integers(1 << 30, size=len(fleet)) for family in families}
    for start in range(0, len(fleet), 2000):
        part = range(start, min(start + 2000, len(fleet)))
        lake.append("h", _h(random, pool, fleet, part, choice, factors))
    lake.append("runs", pa.Table.from_pylist(list(_runs(random, pool, fleet)), schema=TABLES["runs"]))


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


def _h(
    random: np.random.Generator,
    pool: Pool,
    fleet: Sequence[Machine],
    part: range,
    choice: dict[str, Ints],
    factors: _Factors,
) -> pa.Table:
    """Returns the rows of `h` of some machines."""
    machine, ids, bucket, count = [], [], [], []
    of_kind = {
        kind: np.array([place for place in part if fleet[place].kind == kind], dtype=np.int64)
        for kind in pool.kinds
    }
    for kind, runs in pool.kinds.items():
        for number, run in enumerate(runs.histograms):
            for one, (logs, n) in run.items():
                chosen = choice[family_of(factors.series[one])][of_kind[kind]] % len(runs.rows) == number
                places = of_kind[kind][chosen]
                if not len(places):
                    continue
                drawn = random.multinomial(min(int(n.sum()), 1 << 40), n / n.sum(), size=len(places))
                stretched = bucket_of_log(logs + factors.of(one, places)[:, np.newaxis])
                row, column = np.nonzero(drawn)
                machine.append(places[row])
                ids.append(np.full(len(row), one))
                bucket.append(stretched[row, column])
                count.append(drawn[row, column])
    places, series, buckets, n = (np.concatenate(one) for one in (machine, ids, bucket, count))
    order = np.lexsort((buckets, series, places))
    names = pa.array([one.name for one in fleet]).take(pa.array(places[order]))
    columns = {
        "day": pa.repeat(pa.scalar(DAY), len(order)),
        "batch": pa.repeat(pa.scalar(1, pa.int64()), len(order)),
        "run_id": names,
        "machine_id": names,
        "series_id": series[order],
        "bucket": np.minimum(buckets[order], np.iinfo(np.int16).max).astype(np.int16),
        "n": n[order],
    }
    return pa.table(columns, schema=TABLES["h"])


def _runs(random: np.random.Generator, pool: Pool, fleet: Sequence[Machine]) -> Iterator[Row]:
    """Returns the rows of `runs`: the account is that of one of the runs of the machine's kind."""
    started = datetime(DAY.year, DAY.month, DAY.day, 3, tzinfo=timezone.utc)
    for one in fleet:
        rows = pool.kinds[one.kind].rows
        yield rows[random.integers(len(rows))] | {
            "day": DAY,
            "batch": 1,
            "run_id": one.name,
            "machine_id": one.name,
            "name": one.name,
            "cpu_model": one.model,
            "kernel": one.kernel,
            "started": started,
            "finished": started,
            "source": "drawn",
        }
