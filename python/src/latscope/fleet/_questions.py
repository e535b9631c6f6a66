"""Questions to the lake. Each returns rows, as dictionaries, that `_output` prints."""

import math
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from . import _judge, _past, _settings
from ._engine import Engine, dicts, question, words_of
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

#: What `compare` can group runs by, beside `label=NAME`: the words of compare.sql.
BY = ("kernel", "model", "architecture", "microcode")

#: Families that are parts of those of latscope: their series go their own way, on healthy machines and under
#: a fault.
DISK, CORE_TO_CORE, DRAM = "disk", "core-to-core", "dram"

#: Least size of loads that no cache has, bytes.
LEAST_DRAM = 64 << 20

#: Probes of the disk, unless the file lies in memory.
_OF_DISK = ("file.fsync", "file.fdatasync", "file.read-direct")

#: Days of machines before the one that is judged that are read: of more machines, only those of small groups.
MOST_DAYS = 12_000

#: First day there can be: all days are the one that is judged.
ALWAYS = date(1, 1, 1)

#: Probability of a single day from which on a machine is suspected.
SUSPECT = 0.01

#: Machines that are listed, the oddest ones first, whether they are sick or not.
LISTED = 10


@dataclass(frozen=True)
class Group:
    """Machines that are compared with each other: their distances, the family of each series, and what is
    usual among them."""

    title: str
    found: _judge.Distances
    family: list[str]
    usual: _judge.Usual


@dataclass(frozen=True)
class Fleet:
    """What `sick` judges: groups of peers, the days before (None without any), notes on what cannot be
    judged, the family of each series, and the group of each idle machine by its number."""

    groups: list[Group]
    past: _past.Days | None
    notes: list[str]
    family: dict[int, str]


def groups_of(engine: Engine, series: dict[int, Row], since: date = ALWAYS) -> Fleet:
    """Returns what is judged together: the days from `since` on as one, and those before it."""
    rows = dicts(engine.query("SELECT DISTINCT machine_id FROM runs ORDER BY machine_id"))
    machines = [row["machine_id"] for row in rows]
    peers = dicts(engine.query(question("peers"), since=since.isoformat()))
    table = _columns(engine, machines, since, _with_past(peers))
    columns = {name: table[name].to_numpy() for name in table.column_names}
    families = {one: family_of(row) for one, row in series.items()}
    return grouped(peers, columns, _waited(engine, len(machines), since), machines, families)


def _with_past(peers: Sequence[Row]) -> list[str]:
    """Returns the idle groups whose days before are read, as texts: all, or where these are too many those
    that are too small to be judged by one day."""
    idle = [one for one in peers if not one["busy"]]
    if sum(one["machines"] for one in idle) * (_past.DAYS + 1) > MOST_DAYS:
        idle = [one for one in idle if one["machines"] < _judge.FEWEST]
    return [str(one["peers"]) for one in idle]


def _waited(engine: Engine, machines: int, since: date) -> _judge.Floats:
    """Returns the quartiles of waits.sql of all machines, in the order of their numbers."""
    table = engine.query(question("waits"), since=since.isoformat())
    waited = np.full((machines, 2), np.nan)
    waited[table["machine"].to_numpy() - 1] = np.column_stack(
        [table[name].to_numpy() for name in ("w50", "w75")]
    )
    return waited


def family_of(series: Row) -> str:
    """Returns the family of a series."""
    probe, parameters = str(series["probe"]), dict(series.get("params") or ())
    if probe in _OF_DISK and parameters.get("filesystem") != "tmpfs":
        return DISK
    size = parameters.get("size", "")
    if probe == "memory.latency" and size.isdecimal() and int(size) >= LEAST_DRAM:
        return DRAM
    return CORE_TO_CORE if probe == "sync.core-to-core" else probe.split(".", maxsplit=1)[0]


def references(peers: Sequence[Row]) -> dict[int, int]:
    """Returns for each group of peers (same processor, kernel, and state: idle or busy), by its number, the
    group from whose medians its machines are measured: busy machines from the idle ones, if these are enough,
    else a group from its own medians, if it is enough. Others are left out."""
    many = {(one["cpu_model"], one["kernel"], one["busy"]): one for one in peers}
    found = {}
    for one in peers:
        idle = many.get((one["cpu_model"], one["kernel"], 0), one)
        enough = [each["peers"] for each in (idle,) if each["machines"] >= _judge.FEWEST]
        enough += [one["peers"]] if one["machines"] >= _judge.FEWEST_SHOWN else []
        if enough:
            found[one["peers"]] = enough[0]
    return found


def grouped(
    peers: Sequence[Row],
    columns: Mapping[str, NDArray[Any]],
    waited: _judge.Floats,
    machines: list[str],
    family: dict[int, str],
) -> Fleet:
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
        rows &= columns["day"] == 0
        own, others = _judge.distances(
            {name: column[rows] for name, column in columns.items()}, waited, machines, reference
        )
        groups.append(Group(titles[reference], own, [family[one] for one in own.series], usual[reference]))
        busy.append(others)
    if sum(len(one.machines) for one in busy) >= _judge.FEWEST:
        found = _judge.together(busy)
        groups.append(Group(BUSY, found, [family[one] for one in found.series], _judge.BUSY))
        measured = {one: one for one in measured}
    past = _days(peers, columns, machines)
    few = (one for one in peers if measured.get(one["peers"]) != one["peers"])
    notes = [
        f"not judged: {one['machines']} of {titles[one['peers']]}; {_judge.FEWEST_SHOWN} peers are needed"
        for one in few
    ]
    return Fleet(groups, past, notes, family)


def _days(
    peers: Sequence[Row], columns: Mapping[str, NDArray[Any]], machines: list[str]
) -> _past.Days | None:
    """Returns the days of idle machines; None if there are none before the one that is judged."""
    if not (columns["day"] > 0).any():
        return None
    chosen = np.isin(columns["peers"], [int(one) for one in _with_past(peers)])
    return _past.dense(columns, machines, chosen)


def _columns(engine: Engine, machines: list[str], since: date, groups: list[str]) -> pa.Table:
    """Returns the rows of sick.sql of all machines, which are in order: those of a range after those of
    another."""
    (rows,) = dicts(engine.query("SELECT COUNT(*) AS n FROM h"))
    step = -(-len(machines) // max(-(-rows["n"] // SORTED_ROWS), 1))
    ranges = [machines[first : first + step] for first in range(0, len(machines), step)]
    words = {"since": since.isoformat(), "groups": groups}
    text = question("sick")
    return pa.concat_tables([engine.query(text, first=part[0], last=part[-1], **words) for part in ranges])


def series_of(engine: Engine) -> dict[int, Row]:
    """Returns the probe, the title and the parameters of each series, by its id."""
    return {
        row["series_id"]: row
        for row in dicts(engine.query("SELECT series_id, probe, title, params FROM series"))
    }


#: States of a verdict.
SICK, SUSPECTED, NORMAL = "sick", "suspicion", "not significant"


@dataclass(frozen=True)
class Verdict:
    """What is oddest about a machine, in comparison with its peers (`group`) or with its own last `days`
    (None then). Chance makes a healthy machine as odd with the probability `once` on one day, and `p` is that
    of all that counts as evidence, infinite where nothing can be evidence; `alone` is what is oddest about
    the last day. The state is one of SICK, SUSPECTED and NORMAL."""

    finding: _judge.Finding
    group: Group | None
    days: int
    once: float
    p: float
    alone: _judge.Finding
    state: str = NORMAL


def sick(
    engine: Engine, rate: float = 0.05, judged: Fleet | None = None, since: date = ALWAYS
) -> tuple[list[Row], list[str]]:
    """Returns the sick machines, and notes on what was not judged: first those that a quota stops and almost
    none of their peers, then those that are slower than their peers or than they used to be, the surest
    first, then those with a rare setting where what it affects is slower. Suspected machines follow, and
    normal ones up to LISTED in all.

    The days from `since` on are judged as one, and compared with those before. At most a share `rate` of the
    second and of the third is expected to be chance, over all machines. `judged` is what `groups_of`
    returned, if that is known."""
    words = {"since": since.isoformat()}
    text = "SELECT machine_id, MAX(name) AS name FROM runs GROUP BY machine_id"
    names = {row["machine_id"]: row["name"] for row in dicts(engine.query(text))}
    series = series_of(engine)
    fleet = judged or groups_of(engine, series, since)
    settings = _settings.rare(dicts(engine.query(question("settings"), **words)))
    stopped = dicts(engine.query(question("throttled"), **words))
    rows = [_throttled(row, names[row["machine_id"]]) for row in stopped]
    verdicts = verdicts_of(fleet, rate)
    by_settings = named_by_settings(fleet.groups, series, settings, rate)
    found = [one for one in verdicts if one.state == SICK]
    found += [
        Verdict(finding, group, 0, finding.p, finding.p, finding, SICK) for finding, group in by_settings
    ]
    found += [one for one in verdicts if one.state != SICK]
    listed = {row["machine_id"] for row in rows}
    for one in found:
        machine = one.finding.machine
        if machine not in listed and (one.state != NORMAL or len(rows) < LISTED):
            listed.add(machine)
            own = [each for each in settings if each.machine == machine]
            rows.append(_row(one, names.get(machine, ""), series, fleet.family, own))
    notes = fleet.notes + [_double(row) for row in dicts(engine.query(question("doubles"), **words))]
    return rows, notes


def verdicts_of(fleet: Fleet, rate: float) -> list[Verdict]:
    """Returns the verdicts on all machines, the surest first. Machines that are named no longer say what is
    usual: all are judged again without them, until no other one is named."""
    named = frozenset[str]()
    for _ in range(MOST_ROUNDS):
        found = sorted(_once(fleet, named), key=lambda one: (one.p, one.once, one.finding.machine))
        limit = _judge.limit([one.p for one in found], rate)
        sick = {one.finding.machine for one in found if one.p <= limit}
        if sick <= named:
            break
        named |= sick
    order = {SICK: 0, SUSPECTED: 1, NORMAL: 2}
    verdicts = [
        replace(one, state=SICK) if one.finding.machine in sick else replace(one, finding=one.alone)
        for one in found
    ]
    return sorted(verdicts, key=lambda one: (order[one.state], one.p if one.state == SICK else one.once))


#: Most rounds in which machines are judged again.
MOST_ROUNDS = 5


def _once(fleet: Fleet, without: frozenset[str]) -> Iterator[Verdict]:
    """Yields a verdict on each machine; the machines `without` do not say what is usual. What is likeliest of
    some comparisons counts, each with the same share of the error."""
    ways = [*_of_past(fleet, without), list(_of_groups(fleet, without))]
    found: dict[str, list[Verdict]] = defaultdict(list)
    for one in (one for way in ways for one in way):
        found[one.finding.machine].append(one)
    for own in found.values():
        best, odd = min(own, key=lambda one: (one.p, one.once)), min(own, key=lambda one: one.once)
        # Only those that can be evidence share the error.
        p = min(max(sum(one.p < math.inf for one in own), 1) * best.p, 1.0)
        once = min(len(own) * odd.once, 1.0)
        yield replace(best, p=p, once=once, alone=odd.alone, state=SUSPECTED if once <= SUSPECT else NORMAL)


def _of_past(fleet: Fleet, without: frozenset[str]) -> Iterator[list[Verdict]]:
    """Yields verdicts by two days: in comparison with the own past, and with the peers."""
    if fleet.past is None:
        return
    family = [fleet.family[one] for one in fleet.past.series]
    groups = {machine: group for group in fleet.groups for machine in group.found.machines}
    for own in (True, False):
        odd = _past.judge(fleet.past, family, own, without)
        yield [
            Verdict(
                one.finding,
                None if own else groups[one.finding.machine],
                one.days,
                one.once,
                _evidence(one),
                one.alone,
            )
            for one in odd
        ]


def _evidence(odd: _past.Odd) -> float:
    """Returns the probability of both days, or of the last alone if enough days say what is usual."""
    return min(2 * min(odd.once, odd.twice), 1.0) if odd.rows >= _judge.ENOUGH else odd.twice


def _of_groups(fleet: Fleet, without: frozenset[str]) -> Iterator[Verdict]:
    """Yields verdicts by one day. It is enough for the waiting, for busy machines, and among many peers."""
    for group in fleet.groups:
        peers = np.array([one not in without for one in group.found.machines], bool)
        many = len(group.found.machines)
        is_large = many >= _judge.ENOUGH
        is_enough = group.usual is _judge.BUSY or is_large
        usual = _judge.MANY if is_large and group.usual is _judge.IDLE else group.usual
        waits = _judge.judge(group.found.of_waiting(), [], usual, peers)
        waiting = dict(zip(group.found.machines, waits, strict=True)) if waits else {}
        for finding in _judge.judge(group.found, group.family, usual, peers):
            own = waiting.get(finding.machine)
            p = finding.p if is_enough else 1.0
            if own is not None and min(2 * own.p, 1.0) < p:
                verdict = Verdict(own, group, 0, own.p, 2 * own.p, own)
            else:
                verdict = Verdict(finding, group, 0, finding.p, p, finding)
            # The oddest one of few peers is no evidence.
            yield verdict if many >= _judge.FEWEST else replace(verdict, p=math.inf)


def named(groups: list[Group], rate: float) -> list[tuple[_judge.Finding, Group]]:
    """Returns the findings against the machines that their peers alone name, with their groups, the surest
    first."""
    fleet = Fleet(groups, None, [], {})
    return [(one.finding, one.group) for one in verdicts_of(fleet, rate) if one.state == SICK and one.group]


def _below(pairs: list[tuple[_judge.Finding, Group]], rate: float) -> list[tuple[_judge.Finding, Group]]:
    """Returns the findings that a false discovery rate leaves, the surest first."""
    limit = _judge.limit([one.p for one, _ in pairs], rate, 1)
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
    verdict: Verdict,
    name: str,
    series: dict[int, Row],
    families: Mapping[int, str],
    settings: Sequence[_settings.Setting],
) -> Row:
    finding, group = verdict.finding, verdict.group
    about = {
        "machine_id": finding.machine,
        "name": name,
        "state": verdict.state,
        "significant": verdict.state == SICK,
        "family": finding.family or "waiting",
        "kind": finding.kind,
        "ratio": None,
        "score": round(finding.score, 1),
        "p": verdict.p,
    }
    if finding.kind == _judge.WAITED:
        assert group is not None
        return about | {
            "why": _waiting(finding, group),
            "probe": "",
            "series": "",
            "confirm": _command("noise"),
        }
    if finding.series is None:
        telling = _telling(finding, group, series, families)
        subject = f"{finding.family}: {len(telling)} series"
    else:
        telling = [series[finding.series]]
        subject = telling[0]["title"]
    ratio = float(np.exp(min(finding.distance, 50.0)))
    often = "" if finding.kind == "body" else "on average "
    other = f"on its peers ({group.title})" if group else f"on its own {verdict.days} days before"
    why = f"{subject} take {often}{ratio:.3g} times as long as {other}"
    if verdict.state == SUSPECTED:
        why += "; needs a second day"
    why = "; ".join([why, *(str(one) for one in settings if one.concerns(telling[0]["probe"]))])
    return about | {
        "ratio": round(ratio, 3),
        "why": why,
        "probe": telling[0]["probe"],
        "series": "; ".join(one["title"] for one in telling[:3]),
        "confirm": _command(telling[0]["probe"]),
    }


def _telling(
    finding: _judge.Finding, group: Group | None, series: dict[int, Row], families: Mapping[int, str]
) -> list[Row]:
    """Returns the series of the family of a finding, those that are farthest from the peers first."""
    if group is None:
        return [series[one] for one in sorted(series) if families[one] == finding.family]
    found = group.found
    own = (found.body if finding.kind == "body" else found.mean)[found.machines.index(finding.machine)]
    places = [at for at, one in enumerate(group.family) if one == finding.family and not np.isnan(own[at])]
    return [series[found.series[at]] for at in sorted(places, key=lambda at: (-own[at], at))]


def _waiting(finding: _judge.Finding, group: Group) -> str:
    """Returns why a machine is odd on which threads that measured waited for a CPU: other threads had it."""
    found = group.found
    half, quarter = 100 * found.waited[found.machines.index(finding.machine)]
    usual = 100 * np.nanmedian(found.waited, axis=0)
    return (
        f"threads waited for a CPU in {half:.3g} % of the time at half of the points or more, in "
        f"{quarter:.3g} % at a quarter; on its peers {usual[0]:.3g} and {usual[1]:.3g} % ({group.title})"
    )


def _throttled(row: Row, name: str) -> Row:
    """Returns the row of a machine that its control group stops: a fact, for which no series tells."""
    many = f"{row['many']} of {row['peers']} machines were ({row['cpu_model']}, {row['kernel']})"
    return {
        "machine_id": row["machine_id"],
        "name": name,
        "state": SICK,
        "significant": True,
        "family": "quota",
        "kind": "account",
        "ratio": None,
        "score": None,
        "p": row["many"] / row["peers"],
        "why": f"throttled by its control group in {100 * row['throttled']:.0f} % of the periods; {many}",
        "probe": "",
        "series": "",
        "confirm": "latscope doctor",
    }


def _command(probe: str) -> str:
    return shlex.join(["latscope", "survey", "--quick", "--only", probe, "--json", "again.json"])


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
    rows = dicts(engine.query(question("compare"), **words_of(by, BY)))
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
        return list(dicts(engine.query(question("machine_runs"), machine=machine_id)))
    return list(dicts(engine.query(question("machine"), machine=machine_id, probe=probe)))


def worst(engine: Engine, probe: str, top: int) -> list[Row]:
    """Returns the longest values of single events, ns, of probes that a pattern of SQL (`wake.%`) names."""
    return list(dicts(engine.query(question("worst"), probe=probe, top=top)))


def missing(engine: Engine, days: int, now: date) -> list[Row]:
    """Returns the machines that have not reported for `days` days."""
    return list(dicts(engine.query(question("missing"), since=(now - timedelta(days=days)).isoformat())))
