"""Questions to the lake. Each returns rows, as dictionaries, that `_output` prints."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import _judge, _settings
from ._engine import Engine, dicts, question
from ._lake import Lake, Snapshot
from ._nothing import refuse_without_runs
from ._series import BUCKETS, bucket_bounds

Row: TypeAlias = dict[str, Any]

#: Rows of `h` that `sick` sorts at once.
SORTED_ROWS = 8_000_000

#: States of machines, by the number that the view `peers` has.
STATES = ("idle", "busy")

#: Title of the busy machines that are measured from idle ones.
BUSY = "busy machines, each beside idle ones of its processor and kernel"

#: Columns that `compare` can group runs by.
BY = {"kernel": "kernel", "model": "cpu_model", "architecture": "architecture", "microcode": "microcode"}

#: Families that are one command without names of probes.
_WHOLE = ("wake", "noise", "ipc", "remote")


@dataclass(frozen=True)
class Group:
    """Machines that are compared with each other: their distances, the family of each series, and what is
    usual among them."""

    title: str
    found: _judge.Distances
    family: list[str]
    usual: _judge.Usual


def groups_of(engine: Engine, series: dict[int, Row]) -> tuple[list[Group], list[str]]:
    """Returns the groups of machines that are judged together, and notes on those that are too few."""
    rows = dicts(engine.query("SELECT DISTINCT machine_id FROM runs ORDER BY machine_id"))
    machines = [row["machine_id"] for row in rows]
    peers = dicts(engine.query(question("peers")))
    table = _columns(engine, machines)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    families = {one: family_of(row) for one, row in series.items()}
    return grouped(peers, columns, _waited(engine, len(machines)), machines, families)


def _waited(engine: Engine, machines: int) -> _judge.Floats:
    """Returns the quartiles of waits.sql of all machines, in the order of their numbers."""
    table = engine.query(question("waits"))
    waited = np.full((machines, 2), np.nan)
    waited[table["machine"].to_numpy() - 1] = np.column_stack(
        [table[name].to_numpy() for name in ("w50", "w75")]
    )
    return waited


def family_of(series: Row) -> str:
    """Returns the family of a series."""
    return str(series["probe"]).split(".")[0]


def references(peers: Sequence[Row]) -> dict[int, int]:
    """Returns for each group of peers (same processor, kernel, and state: idle or busy), by its number, the
    group from whose medians its machines are measured: busy machines from the idle ones, if these are enough,
    else a group from its own medians, if it is enough. Others are left out."""
    many = {(one["cpu_model"], one["kernel"], one["busy"]): one for one in peers}
    found = {}
    for one in peers:
        idle = many.get((one["cpu_model"], one["kernel"], 0), one)
        enough = [each["peers"] for each in (idle, one) if each["machines"] >= _judge.FEWEST]
        if enough:
            found[one["peers"]] = enough[0]
    return found


def grouped(
    peers: Sequence[Row],
    columns: Mapping[str, NDArray[Any]],
    waited: _judge.Floats,
    machines: list[str],
    family: dict[int, str],
) -> tuple[list[Group], list[str]]:
    """Returns what `groups_of` does. `columns` are those of sick.sql, `waited` those of waits.sql, `peers`
    the rows of peers.sql, `family` that of each series.

    Busy machines that are measured from idle ones are judged together, whatever their processors and kernels
    are: how far busy machines are from idle ones is usual or not.
    """
    measured, groups, busy = references(peers), list[Group](), list[_judge.Distances]()
    titles = {one["peers"]: f"{one['cpu_model']}, {one['kernel']}, {STATES[one['busy']]}" for one in peers}
    usual = {one["peers"]: _judge.BUSY if one["busy"] else _judge.IDLE for one in peers}
    for reference in sorted(set(measured.values())):
        rows = np.isin(columns["peers"], [one for one, of in measured.items() if of == reference])
        own, others = _judge.distances(
            {name: column[rows] for name, column in columns.items()}, waited, machines, reference
        )
        groups.append(Group(titles[reference], own, [family[one] for one in own.series], usual[reference]))
        busy.append(others)
    if sum(len(one.machines) for one in busy) >= _judge.FEWEST:
        found = _judge.together(busy)
        groups.append(Group(BUSY, found, [family[one] for one in found.series], _judge.BUSY))
        measured = {one: one for one in measured}
    few = (one for one in peers if measured.get(one["peers"]) != one["peers"])
    return groups, [
        f"not judged: {one['machines']} of {titles[one['peers']]}; {_judge.FEWEST} peers are needed"
        for one in few
    ]


def _columns(engine: Engine, machines: list[str]) -> pa.Table:
    """Returns the rows of sick.sql of all machines, which are in order: those of a range after those of
    another."""
    (rows,) = dicts(engine.query("SELECT COUNT(*) AS n FROM h"))
    step = -(-len(machines) // max(-(-rows["n"] // SORTED_ROWS), 1))
    ranges = [machines[first : first + step] for first in range(0, len(machines), step)]
    texts = [question("sick", first=part[0], last=part[-1]) for part in ranges]
    return pa.concat_tables([engine.query(text) for text in texts])


def series_of(engine: Engine) -> dict[int, Row]:
    """Returns the probe and the title of each series, by its id."""
    return {
        row["series_id"]: row for row in dicts(engine.query("SELECT series_id, probe, title FROM series"))
    }


def sick(
    engine: Engine, rate: float = 0.05, judged: tuple[list[Group], list[str]] | None = None
) -> tuple[list[Row], list[str]]:
    """Returns the sick machines, and notes on what was not judged: first those that a quota stops and almost
    none of their peers, then those that are slower than their peers, the surest first, then those with a rare
    setting where what it affects is slower.

    At most a share `rate` of the second and of the third is expected to be chance, over all machines.
    `judged` is what `groups_of` returned, if that is known.
    """
    text = "SELECT machine_id, MAX(name) AS name FROM runs GROUP BY machine_id"
    names = {row["machine_id"]: row["name"] for row in dicts(engine.query(text))}
    series = series_of(engine)
    groups, notes = judged or groups_of(engine, series)
    settings = _settings.rare(dicts(engine.query(question("settings"))))
    pairs = [*named(groups, rate), *named_by_settings(groups, series, settings, rate)]
    rows = [_throttled(row, names[row["machine_id"]]) for row in dicts(engine.query(question("throttled")))]
    listed = {row["machine_id"] for row in rows}
    for finding, group in pairs:
        if finding.machine not in listed:
            listed.add(finding.machine)
            own = [one for one in settings if one.machine == finding.machine]
            rows.append(_row(finding, names.get(finding.machine, ""), group, series, own))
    return rows, notes + [_double(row) for row in dicts(engine.query(question("doubles")))]


def named(groups: list[Group], rate: float) -> list[tuple[_judge.Finding, Group]]:
    """Returns the findings against the machines that are named, with their groups, the surest first."""
    pairs = [(one, group) for group in groups for one in _judge.judge(group.found, group.family, group.usual)]
    return _below(pairs, rate)


def _below(pairs: list[tuple[_judge.Finding, Group]], rate: float) -> list[tuple[_judge.Finding, Group]]:
    """Returns the findings that a false discovery rate leaves, the surest first."""
    limit = _judge.limit([one.p for one, _ in pairs], rate)
    chosen = [(one, group) for one, group in pairs if one.p <= limit]
    return sorted(chosen, key=lambda pair: (pair[0].p, pair[0].machine))


def named_by_settings(
    groups: list[Group], series: dict[int, Row], settings: Sequence[_settings.Setting], rate: float
) -> list[tuple[_judge.Finding, Group]]:
    """Returns the findings against machines with rare settings, among the series that these affect, the
    surest first. They are tested apart from the others: that a setting is rare says nothing about how long
    anything takes."""
    pairs = []
    for group in groups:
        probes = [str(series[one]["probe"]) for one in group.found.series]
        found = _settings.judge(settings, group.found, group.family, probes, group.usual)
        pairs += [(one, group) for one in found]
    return _below(pairs, rate)


def _row(
    finding: _judge.Finding,
    name: str,
    group: Group,
    series: dict[int, Row],
    settings: Sequence[_settings.Setting],
) -> Row:
    if finding.kind == _judge.WAITED:
        return _waiting(finding, name, group)
    found, machine = group.found, finding.machine
    own = (found.body if finding.kind == "body" else found.mean)[found.machines.index(machine)]
    of_family = [at for at, one in enumerate(group.family) if one == finding.family and not np.isnan(own[at])]
    places = sorted(of_family, key=lambda place: (found.series[place] != finding.series, -own[place], place))
    telling = [series[found.series[place]] for place in places[:3]]
    ratio = float(np.exp(min(finding.distance, 50.0)))
    if finding.series is None:
        subject = f"{finding.family}: {len(of_family)} series"
    else:
        subject = series[finding.series]["title"]
    if finding.kind == "body":
        why = f"{subject} take {ratio:.3g} times as long as on its peers ({group.title})"
    else:
        why = f"{subject} take on average {ratio:.3g} times as long as on its peers ({group.title})"
    why = "; ".join([why, *(str(one) for one in settings if one.concerns(telling[0]["probe"]))])
    return {
        "machine_id": machine,
        "name": name,
        "family": finding.family,
        "kind": finding.kind,
        "ratio": round(ratio, 3),
        "score": round(finding.score, 1),
        "p": finding.p,
        "why": why,
        "series": "; ".join(one["title"] for one in telling),
        "confirm": _command(telling[0]["probe"]),
    }


def _waiting(finding: _judge.Finding, name: str, group: Group) -> Row:
    """Returns the row of a machine on which threads that measured waited for a CPU: other threads had it."""
    found = group.found
    half, quarter = 100 * found.waited[found.machines.index(finding.machine)]
    usual = 100 * np.nanmedian(found.waited, axis=0)
    return {
        "machine_id": finding.machine,
        "name": name,
        "family": "waiting",
        "kind": finding.kind,
        "ratio": None,
        "score": round(finding.score, 1),
        "p": finding.p,
        "why": f"threads waited for a CPU in {half:.3g} % of the time at half of the points or more, in "
        f"{quarter:.3g} % at a quarter; on its peers {usual[0]:.3g} and {usual[1]:.3g} % ({group.title})",
        "series": "",
        "confirm": "latscope noise",
    }


def _throttled(row: Row, name: str) -> Row:
    """Returns the row of a machine that its control group stops: a fact, for which no series tells."""
    many = f"{row['many']} of {row['peers']} machines were ({row['cpu_model']}, {row['kernel']})"
    return {
        "machine_id": row["machine_id"],
        "name": name,
        "family": "quota",
        "kind": "account",
        "ratio": None,
        "score": None,
        "p": row["many"] / row["peers"],
        "why": f"throttled by its control group in {100 * row['throttled']:.0f} % of the periods; {many}",
        "series": "",
        "confirm": "latscope doctor",
    }


def _command(probe: str) -> str:
    family, _, name = probe.partition(".")
    words = ["latscope", family, *([name] if name and family not in _WHOLE else [])]
    return shlex.join(words)


def _double(row: Row) -> str:
    names = f"{row['one']}, {row['other']}"
    return (
        f"several machines have the id {row['machine_id']} on {row['day']} ({names}): give each --machine-id"
    )


def normal(engine: Engine) -> list[Row]:
    """Returns the usual range of each series and processor, ns."""
    return list(dicts(engine.query(question("normal"))))


def compare(engine: Engine, by: str) -> list[Row]:
    """Returns the median and the 99th percentile of each series, ns, by kernel, model, or label
    (`label=NAME`)."""
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
            row[name] = (
                None
                if bucket is None or bucket == BUCKETS
                else sum(bucket_bounds(bucket)) / 2 * row["tick_ps"] / 1000
            )
        del row["tick_ps"]
    return list(rows)


def snapshot_of(
    lake: Lake, machine_id: str, probe: str | None, since: date | None = None, until: date | None = None
) -> Snapshot:
    """Returns what `machine` reads: no other table, and no file without the machine. Raises FleetError if no
    machine has runs on these days."""
    tables = ("runs",) if probe is None else ("series", "points")
    snapshot = lake.snapshot(since, until, ("runs", *tables))
    refuse_without_runs(lake, snapshot, since, until)
    return snapshot.of_machine(machine_id, tables)


def machine(engine: Engine, machine_id: str, probe: str | None) -> list[Row]:
    """Returns the runs of a machine, in order of time; with `probe`, a pattern of SQL (`wake.%`), the figures
    of its series instead, ns."""
    if probe is None:
        return list(dicts(engine.query(question("machine_runs", machine=machine_id))))
    return list(dicts(engine.query(question("machine", machine=machine_id, probe=probe))))


def worst(engine: Engine, probe: str, top: int) -> list[Row]:
    """Returns the longest values of single events, ns, of probes that a pattern of SQL (`wake.%`) names."""
    return list(dicts(engine.query(question("worst", probe=probe, top=top))))


def missing(engine: Engine, days: int, now: date) -> list[Row]:
    """Returns the machines that have not reported for `days` days."""
    return list(dicts(engine.query(question("missing", since=(now - timedelta(days=days)).isoformat()))))
