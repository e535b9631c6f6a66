"""Fleets of known truth, made of real runs: each machine draws from them, and some are made sick. Not
measured."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .._read import Run
from ._engine import question
from ._judge import log_of_bucket
from ._lake import Lake
from ._rows import Rows, outward, rows_of
from ._schema import TABLES

Ints: TypeAlias = NDArray[np.int64]
Histogram: TypeAlias = tuple[NDArray[np.float64], Ints]


@dataclass(frozen=True)
class Fault:
    """Fault of a machine: in a family, all values become `shift` times as long, and a share `tail_share` of
    them `tail` times."""

    family: str
    shift: float = 1.0
    tail: float = 1.0
    tail_share: float = 0.0


def bucket_of_log(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns indices of buckets from natural logarithms of ticks."""
    ticks = np.maximum(np.exp(value) - 0.5, 0).astype(np.int64)
    shift = np.maximum(np.floor(np.log2(np.maximum(ticks, 1))).astype(np.int64) - 7, 0)
    return (shift << 7) + (ticks >> shift)


def generate(
    lake: Lake,
    runs: Sequence[Run],
    machines: int,
    day: date,
    faults: Mapping[int, Fault],
    spread: float = 0.03,
    seed: int = 0,
    only: Sequence[str] = (),
    points: bool = False,
    facts: Mapping[int, dict[str, Any]] | None = None,
) -> None:
    """Adds one run of each of `machines` machines on a day to a lake.

    A machine takes each family from a random one of `runs`, with its samples drawn anew, and each series
    stretched by a factor of its own, of which `spread` is the standard deviation (of logarithms). Machines
    have the names `m000000`, … `faults` has those of sick ones by number. `only` are families to take. With
    `points`, the figures of each run are added too, from the buckets. `facts` are columns of `runs` of some
    machines, by number.
    """
    random = np.random.default_rng(seed)
    parts = [rows_of(run.document, run.text, run.source, day) for run in runs]
    series = {row["series_id"]: row for rows in parts for row in rows.series}
    lake.append("series", pa.Table.from_pylist(list(series.values()), schema=TABLES["series"]))
    batch = (seed + 1) << 20
    histograms = _histograms(parts)
    choice = {
        family: random.integers(len(runs), size=machines)
        for family in sorted({_family(one) for one in series.values()})
    }
    names = [f"m{number:06}" for number in range(machines)]
    for start in range(0, machines, 1000):
        numbers = range(start, min(start + 1000, machines))
        tables = [
            _series_rows(
                random, histograms[one], choice[_family(row)], numbers, faults, spread, _family(row), one
            )
            for one, row in sorted(series.items())
            if one in histograms and (not only or _family(row) in only)
        ]
        machine, ids, bucket, n = (np.concatenate(column) for column in zip(*tables, strict=True))
        order = np.argsort(machine, kind="stable")
        named = pa.array(names).take(pa.array(machine[order]))
        keys = {
            "day": pa.repeat(pa.scalar(day), len(order)),
            "batch": pa.repeat(pa.scalar(batch, pa.int64()), len(order)),
        }
        columns = keys | {
            "run_id": pc.binary_join_element_wise(named, pa.scalar(day.isoformat()), ":"),
            "machine_id": named,
            "series_id": ids[order],
            "bucket": bucket[order].astype(np.int16),
            "n": n[order],
        }
        buckets = pa.table(columns, schema=TABLES["h"])
        lake.append("h", buckets)
        if points:
            lake.append("points", _with_facts(random, points_of(buckets, series), parts))
    lake.append(
        "runs",
        pa.Table.from_pylist(list(_runs(parts, names, day, batch, facts or {})), schema=TABLES["runs"]),
    )


def points_of(buckets: pa.Table, series: Mapping[int, Mapping[str, Any]]) -> pa.Table:
    """Returns rows of `points` from rows of `h`: extremes and sums are those of the middles of buckets."""
    found = duckdb.connect()
    ticks = pa.table({"series_id": list(series), "tick_ps": [row["tick_ps"] for row in series.values()]})
    found.register("h", buckets)
    found.register("ticks", ticks)
    rows = found.sql(question("points_of")).to_arrow_table()
    found.close()
    missing = {"quantities": {}, "reasons": "", "level": "ok"}
    columns = {
        name: rows[name]
        if name in rows.column_names
        else pa.array([missing.get(name)] * rows.num_rows, TABLES["points"].field(name).type)
        for name in TABLES["points"].names
    }
    return pa.table(columns).cast(TABLES["points"])


def _with_facts(random: np.random.Generator, rows: pa.Table, parts: Sequence[Rows]) -> pa.Table:
    """Returns made points with intervals around their medians, with quantities, and with the time that
    threads waited: those of the same series of a random run, all but the last stretched by a factor of their
    own."""
    points = pa.concat_tables([one.points for one in parts])
    first = np.cumsum([0, *(one.points.num_rows for one in parts)])
    places = [
        {series: first[run] + place for place, series in enumerate(one.points["series_id"].to_pylist())}
        for run, one in enumerate(parts)
    ]
    drawn = random.integers(len(parts), size=rows.num_rows).tolist()
    from_where = [
        places[run].get(series) for run, series in zip(drawn, rows["series_id"].to_pylist(), strict=True)
    ]
    chosen = points.take(pa.array(from_where, pa.int64()))
    for name in ("low", "high"):
        limit = pc.multiply(rows["p50"], pc.divide(chosen[name], chosen["p50"]))
        rows = rows.set_column(rows.schema.get_field_index(name), name, outward(limit, name))
    rows = rows.set_column(rows.schema.get_field_index("waited"), "waited", chosen["waited"])
    facts = chosen["quantities"].combine_chunks()
    values = np.round(np.asarray(facts.items) * random.normal(1, 0.03, len(facts.items)), 6)
    facts = pa.MapArray.from_arrays(facts.offsets, facts.keys, pa.array(values))
    return rows.set_column(rows.schema.get_field_index("quantities"), "quantities", facts).cast(rows.schema)


def _family(series: Mapping[str, object]) -> str:
    return str(series["probe"]).split(".")[0]


def _histograms(parts: Sequence[Rows]) -> dict[int, list[Histogram]]:
    """Returns logarithms of ticks and counts of each series in the runs that have it."""
    found: dict[int, list[Histogram]] = {}
    for rows in parts:
        columns = {name: rows.h[name].to_numpy() for name in ("series_id", "bucket", "n")}
        for one in np.unique(columns["series_id"]):
            at = columns["series_id"] == one
            found.setdefault(int(one), []).append(
                (log_of_bucket(columns["bucket"][at].astype(np.int64)), columns["n"][at])
            )
    return found


def _series_rows(
    random: np.random.Generator,
    histograms: list[Histogram],
    choice: Ints,
    numbers: range,
    faults: Mapping[int, Fault],
    spread: float,
    family: str,
    one: int,
) -> tuple[Ints, ...]:
    """Returns columns of `h` for one series of some machines: machine, series, bucket, count."""
    factor = random.normal(0, spread, len(numbers))
    chosen = choice[numbers.start : numbers.stop] % len(histograms)
    sick = np.array([number in faults and faults[number].family == family for number in numbers], bool)
    parts = []
    for each, (logs, n) in enumerate(histograms):
        places = np.flatnonzero((chosen == each) & ~sick)
        drawn = random.multinomial(min(int(n.sum()), 1 << 40), n / n.sum(), len(places))
        parts.append(_counted(places, logs + factor[places, np.newaxis], drawn))
    for place in np.flatnonzero(sick).tolist():
        fault, (logs, n) = faults[numbers[place]], histograms[chosen[place]]
        drawn = random.multinomial(min(int(n.sum()), 1 << 40), n / n.sum())
        logs = logs + factor[place] + math.log(fault.shift)
        if fault.tail_share:
            hit = random.binomial(drawn, fault.tail_share)
            logs = np.concatenate([logs, logs + math.log(fault.tail)])
            drawn = np.concatenate([drawn - hit, hit])
        order = np.argsort(logs, kind="stable")
        parts.append(_counted(np.array([place]), logs[np.newaxis, order], drawn[np.newaxis, order]))
    of, bucket, count = (np.concatenate(column) for column in zip(*parts, strict=True))
    rank = np.argsort(of, kind="stable")
    return numbers.start + of[rank], np.full(len(of), one), bucket[rank], count[rank]


def _counted(places: Ints, logs: NDArray[np.float64], drawn: Ints) -> tuple[Ints, Ints, Ints]:
    """Returns columns of some machines: place, bucket, count. `logs` and `drawn` have a row each,
    ascending."""
    if not logs.size:
        return places[:0], places[:0], places[:0]
    bucket, place = bucket_of_log(logs).ravel(), np.repeat(places, logs.shape[1])
    starts = np.flatnonzero(np.diff(bucket, prepend=-1) | np.diff(place, prepend=-1))
    count = np.add.reduceat(drawn.ravel(), starts)
    keep = count > 0
    return place[starts][keep], bucket[starts][keep], count[keep]


def _runs(
    parts: Sequence[Rows],
    names: Sequence[str],
    day: date,
    batch: int,
    facts: Mapping[int, dict[str, Any]],
) -> Iterator[dict[str, object]]:
    row = parts[0].run
    started = datetime(day.year, day.month, day.day, 3, tzinfo=timezone.utc)
    for number, name in enumerate(names):
        own = {"run_id": f"{name}:{day.isoformat()}", "machine_id": name, "name": name, "source": "generated"}
        yield (
            row
            | own
            | {
                "day": day,
                "batch": batch,
                "started": started,
                "finished": started + timedelta(seconds=45),
                "others": 0.0,
                "stolen": 0.0,
            }
            | facts.get(number, {})
        )
