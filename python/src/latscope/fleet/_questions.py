"""Questions to the lake. Each returns rows, as dictionaries, that `_output` prints."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import pyarrow.compute as pc

from . import _judge
from ._engine import Engine, dicts, question
from ._series import bucket_bounds

Row: TypeAlias = dict[str, Any]

#: Columns that `compare` can group runs by.
BY = {"kernel": "kernel", "model": "cpu_model", "architecture": "architecture", "microcode": "microcode"}

#: Families that are one command without names of probes.
_WHOLE = ("wake", "noise", "ipc", "remote")


def sick(engine: Engine, rate: float = 0.05) -> tuple[list[Row], list[str]]:
    """Returns the machines that differ from their peers, the surest first, and notes on what was not judged.

    At most a share `rate` of what is named is expected to be chance, over all machines and series.
    """
    table, series = engine.query(question("sick")), {row["series_id"]: row for row in dicts(engine.query("SELECT series_id, probe, title FROM series"))}
    names = {row["machine_id"]: row["name"] for row in dicts(engine.query("SELECT machine_id, MAX(name) AS name FROM runs GROUP BY machine_id"))}
    rows, notes = list[Row](), [_double(row) for row in dicts(engine.query(question("doubles")))]
    groups = dicts(engine.query(question("peers")))
    for group in groups:
        state = "busy" if group["busy"] else "idle"
        title = f"{group['cpu_model']}, {group['kernel']}, {state}"
        if group["machines"] < _judge.FEWEST:
            notes.append(f"not judged: {group['machines']} of {title}; {_judge.FEWEST} peers are needed")
            continue
        part = table.filter(pc.equal(table["peers"], group["peers"]))
        columns = {name: part[name].to_numpy() for name in part.column_names if name != "machine_id"}
        found = _judge.distances(columns, part["machine_id"].to_pylist())
        family = [series[one]["probe"].split(".")[0] for one in found.series]
        # Each group has its share, so that all together keep the rate.
        for machine, findings in _by_machine(_judge.judge(found, family, rate / len(groups))):
            rows.append(_row(machine, names.get(machine, ""), title, findings, found, family, series))
    return sorted(rows, key=lambda row: (row["p"], row["machine_id"])), notes


def _by_machine(findings: Sequence[_judge.Finding]) -> Iterator[tuple[str, list[_judge.Finding]]]:
    for machine, found in groupby(sorted(findings, key=lambda one: (one.machine, one.p)), key=lambda one: one.machine):
        yield machine, list(found)


def _row(machine: str, name: str, peers: str, findings: list[_judge.Finding], found: _judge.Distances, family: list[str], series: dict[int, Row]) -> Row:
    first = findings[0]
    distance = found.body if first.kind == "body" else found.tail
    own = distance[found.machines.index(machine)]
    of_family = [place for place, one in enumerate(family) if one == first.family and not np.isnan(own[place])]
    places = sorted(of_family, key=lambda place: (-own[place], place))[:3]
    telling = [series[found.series[place]] for place in places]
    ratio = float(np.exp(min(first.distance, 50.0)))
    subject = f"{first.family}: {len(of_family)} series" if first.series is None else series[first.series]["title"]
    if first.kind == "body":
        why = f"{subject} take {ratio:.3g} times as long as on its peers ({peers})"
    else:
        why = f"{subject} have {ratio:.3g} times as many samples in the slowest twentieth as its peers ({peers})"
    return {
        "machine_id": machine,
        "name": name,
        "family": first.family,
        "kind": first.kind,
        "ratio": round(ratio, 3),
        "score": round(first.score, 1),
        "p": first.p,
        "why": why,
        "series": "; ".join(one["title"] for one in telling),
        "confirm": _command(telling[0]["probe"] if telling else first.family),
    }


def _command(probe: str) -> str:
    family, _, name = probe.partition(".")
    words = ["latscope", family, *([name] if name and family not in _WHOLE else [])]
    return shlex.join(words)


def _double(row: Row) -> str:
    return f"several machines have the id {row['machine_id']} on {row['day']} ({row['one']}, {row['other']}): give each --machine-id"


def normal(engine: Engine) -> list[Row]:
    """Returns the usual range of each series and processor, ns."""
    return list(dicts(engine.query(question("normal"))))


def compare(engine: Engine, by: str) -> list[Row]:
    """Returns the median and the 99th percentile of each series, ns, by kernel, model, or label (`label=NAME`)."""
    column = BY.get(by)
    if by.startswith("label="):
        name = by.removeprefix("label=").replace("'", "''")
        column = f"COALESCE(labels['{name}'], '')"
    if column is None:
        raise ValueError(f"--by {by}: choose {', '.join(BY)} or label=NAME")
    rows = dicts(engine.query(question("compare").replace(":by", column)))
    for row in rows:
        for name in ("p50", "p99"):
            bucket = row.pop(f"b_{name}")
            row[name] = None if bucket is None else sum(bucket_bounds(bucket)) / 2 * row["tick_ps"] / 1000
        del row["tick_ps"]
    return list(rows)


def drift(engine: Engine, least: float = 0.1) -> list[Row]:
    """Returns the changes of machines' daily medians, by at least a share `least`: the day, before and after, ns."""
    rows = []
    for _, found in groupby(dicts(engine.query(question("drift"))), key=lambda row: (row["machine_id"], row["series_id"])):
        days = list(found)
        step = _step([row["p50"] for row in days], least)
        if step is not None:
            place, before, after = step
            row = {name: days[place][name] for name in ("machine_id", "probe", "title", "series_id", "day")}
            rows.append(row | {"before": before, "after": after, "ratio": round(after / before, 3)})
    return sorted(rows, key=lambda row: (-abs(np.log(row["ratio"])), row["machine_id"], row["series_id"]))


def _step(values: Sequence[float], least: float) -> tuple[int, float, float] | None:
    """Returns the place of the largest step of medians, with the medians before and after; None if there is none that
    is four times what neighbouring days differ by, with three days on each side."""
    best = None
    for place in range(3, len(values) - 2):
        before, after = median(values[:place]), median(values[place:])
        rest = [abs(np.log(one / before)) for one in values[:place]] + [abs(np.log(one / after)) for one in values[place:]]
        size, noise = abs(np.log(after / before)), max(1.4826 * median(rest), 0.005)
        if size >= np.log1p(least) and size >= 4 * noise and (best is None or size / noise > best[0]):
            best = (size / noise, place, before, after)
    return None if best is None else best[1:]


def worst(engine: Engine, probe: str, top: int) -> list[Row]:
    """Returns the longest values of single events, ns, of probes that a pattern of SQL (`wake.%`) names."""
    return list(dicts(engine.query(question("worst", probe=probe, top=top))))


def missing(engine: Engine, days: int, now: date) -> list[Row]:
    """Returns the machines that have not reported for `days` days."""
    return list(dicts(engine.query(question("missing", since=(now - timedelta(days=days)).isoformat()))))
