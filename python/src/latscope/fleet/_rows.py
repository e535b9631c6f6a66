"""Rows of the lake from one result, by columns. See docs/lake.md."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa

from .._errors import ResultError
from .._point import enough_medians, median_of_rounds
from ._document import Document
from ._histograms import Histograms, histograms_of
from ._schema import KEYS, QUANTILES, RUN_ID, TABLES
from ._series import Series, series

Row = dict[str, Any]

#: Day before which no result can have been measured: latscope did not exist.
FIRST_DAY = date(2025, 1, 1)

#: The most points of a run, and the most characters of a text in the lake.
MOST_POINTS = 100_000
LONGEST = 4096

#: Parts that the mantissa of a limit is rounded to: at most 0.05 %.
BITS = 1 << 12

#: Columns of points and of buckets that do not say of which run they are.
_OWN = {name: pa.schema([one for one in TABLES[name] if one.name not in KEYS]) for name in ("points", "h")}


@dataclass(frozen=True)
class Rows:
    """Rows of one run: that of `runs`, with 0 for its batch; those of `series`; those of `points` and `h`
    without the columns KEYS."""

    run: Row
    series: list[Row]
    points: pa.Table
    h: pa.Table


def rows_of(
    document: Document, text: bytes, source: str, day: date | None = None, known: set[int] | None = None
) -> Rows:
    """Returns the rows of a valid result with its text. `day` is used for the day on which the run started.
    Series of `known` have no rows; the others are added to it.

    Raises ResultError if the run cannot be in the lake: its clock is years off, it says no day, its id is
    malformed, or numbers do not fit.
    """
    measurements = document["measurements"]
    if len(measurements) > MOST_POINTS:
        raise ResultError(source, f"it has {len(measurements)} points, more than {MOST_POINTS}")
    run = {
        "day": day or _day(document, source),
        "batch": 0,
        "run_id": run_id(document, text, source),
        "machine_id": machine_id(document["machine"]),
        **_run(document, source),
    }
    try:
        found = histograms_of([point["histogram"] for point in measurements])
    except ValueError as error:
        raise ResultError(source, f"it is a damaged result: {error!s:.200}") from None
    all_series = _all_series(document, found)
    _refuse_twice(measurements, all_series, source)
    known = set() if known is None else known
    fresh = [place for place, one in enumerate(all_series) if one.id not in known]
    known.update(one.id for one in all_series)
    ids = np.array([one.id for one in all_series], np.int64)
    return Rows(
        run,
        [_series(measurements[place], all_series[place], run["program"]) for place in fresh],
        _points(measurements, found, ids),
        _table("h", series_id=np.repeat(ids, found.length), bucket=found.bucket.astype(np.int16), n=found.n),
    )


def _table(name: str, **columns: Any) -> pa.Table:
    return pa.table([columns[field.name] for field in _OWN[name]], schema=_OWN[name])


def _refuse_twice(measurements: Sequence[Document], all_series: Sequence[Series], source: str) -> None:
    seen: set[int] = set()
    for point, one in zip(measurements, all_series, strict=True):
        if one.id in seen:
            raise ResultError(
                source, f"it has the point {point['probe']:.100} {point['params']!s:.100} twice"
            )
        seen.add(one.id)


def run_id(document: Document, text: bytes, source: str) -> str:
    """Returns the id of a run; of one without an id (older results) the hash of its text. Raises
    ResultError."""
    found: str = document["run_id"]
    if not found:
        return "text:" + hashlib.sha256(text).hexdigest()[:32]
    if not RUN_ID.fullmatch(found):
        raise ResultError(source, f"its run_id is {found!r:.90}: letters, digits and :._- are allowed")
    return found


def machine_id(machine: Mapping[str, Any]) -> str:
    """Returns the id of a machine, else `name:` with its host name."""
    return _text(machine.get("id")) or f"name:{_text(machine.get('name')) or 'unknown'}"


def _day(document: Document, source: str) -> date:
    started = _time(document["started"], source)
    if started is None:
        raise ResultError(source, "it does not say when it was measured: give --day YYYY-MM-DD")
    if not FIRST_DAY <= started.date() <= (datetime.now(timezone.utc) + timedelta(days=2)).date():
        text = document["started"]
        raise ResultError(source, f"its clock was wrong, it started {text:.40}: give --day YYYY-MM-DD")
    return started.date()


def _time(text: str | None, source: str) -> datetime | None:
    try:
        return (
            None if not text else datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)
        )
    except (ValueError, OverflowError):
        raise ResultError(source, f"{text!r:.60} is no RFC 3339 time") from None


def _program(document: Mapping[str, Any]) -> str:
    imported = document.get("imported")
    return _text(imported.get("program")) or "unknown" if isinstance(imported, dict) else "latscope"


def _run(document: Document, source: str) -> Row:
    machine, account, tool = document["machine"], document.get("activity") or {}, document["tool"]
    checks = machine.get("checks") or ()
    ended = document["finished"] or (document["started"] if document.get("interrupted") else None)
    texts = ("name", "kernel", "kernel_version", "architecture", "command_line", "cpu_model", "microcode")
    return {
        **{name: _text(machine.get(name)) for name in (*texts, "hypervisor", "scheduler")},
        "started": _time(document["started"], source),
        "finished": _time(ended, source),
        "tool": _text(tool.get("version")),
        "tool_commit": _text(tool.get("commit")),
        "program": _program(document),
        "job": _text(document["plan"].get("job")),
        "topology": _topology(machine),
        "cpus": len(machine.get("cpus") or ()),
        "memory": _whole(machine.get("memory")),
        "root": machine.get("root"),
        "checks": {_text(item["id"]): _text(item["state"]) for item in checks},
        "affects": {
            _text(item["id"]): _text(",".join(item["affects"])) for item in checks if item["affects"]
        },
        "wall_ns": _whole(account.get("wall_ns")),
        "others": _others(account),
        **{name: _share(account.get(name)) for name in ("load", "peer", "stolen")},
        "throttled": _throttled(account.get("quota")),
        "points": len(document["measurements"]),
        "labels": {_text(name): _text(value) for name, value in (document.get("labels") or {}).items()},
        "source": _text(source),
    }


def _topology(machine: Mapping[str, Any]) -> str:
    cpus = machine.get("cpus") or ()
    parts = (("packages", "package"), ("nodes", "node"))
    cores = len({(cpu.get("package"), cpu.get("core")) for cpu in cpus})
    return " ".join(
        [
            f"cpus={len(cpus)}",
            f"cores={cores}",
            *(f"{many}={len({cpu.get(one) for cpu in cpus})}" for many, one in parts),
        ]
    )


def _throttled(quota: object) -> float | None:
    """Returns the share of periods in which the quota stopped the run, 0 to 1."""
    if not isinstance(quota, dict):
        return None
    periods, throttled = _whole(quota.get("periods")), _whole(quota.get("throttled"))
    return throttled / periods if periods and throttled is not None else None


def _all_series(document: Document, found: Histograms) -> list[Series]:
    """Returns the series of all points."""
    program, batches = _program(document), _batches(document["plan"])
    all_series = []
    for point, count in zip(document["measurements"], found.count.tolist(), strict=True):
        params, sampled = tuple(sorted(point["params"].items())), None
        if count:
            histogram, is_event = point["histogram"], point["sampling"] == "event"
            bins = histogram.get("bins")
            sampled = (
                "event" if is_event else "batch",
                None if is_event else batches.get((point["probe"], params)),
                histogram["tick_ps"],
                (bins["width"], bins.get("per_octave")) if bins else None,
            )
        revision = point.get("revision", 1)
        all_series.append(series(point["probe"], revision, params, point["times"], program, sampled))
    return all_series


def _batches(plan: Mapping[str, Any]) -> dict[tuple[str, Any], int]:
    """Returns the planned length of a batch of each point, ns. The first step that plans a point counts."""
    batches: dict[tuple[str, Any], int] = {}
    for step in plan.get("steps") or ():
        batch_ns = (step.get("stop") or {}).get("batch_ns")
        if batch_ns is not None:
            for point in step.get("points") or ():
                batches.setdefault((point["probe"], tuple(sorted(point["params"].items()))), batch_ns)
    return batches


def _series(point: Document, one: Series, program: str) -> Row:
    fields = json.loads(one.identity)
    return {
        "series_id": one.id,
        "probe": point["probe"],
        "revision": fields["revision"],
        "params": {name: str(value) for name, value in sorted(point["params"].items())},
        "times": point["times"],
        "program": program,
        "sampling": fields["sampling"],
        "batch_ns": fields.get("batch_ns"),
        "tick_ps": fields.get("tick_ps"),
        "title": _text(point.get("title")),
        "unit": "ns",
        "value_units": {
            _text(name): _text(value["unit"]) for name, value in sorted((point.get("values") or {}).items())
        },
        "identity": one.identity,
    }


def _points(measurements: Sequence[Document], found: Histograms, ids: Any) -> pa.Table:
    has_values = found.count > 0
    ticks = {"min": found.least, "max": found.greatest, "sum": found.total}
    figures = found.figures()
    for place, point in enumerate(measurements):
        rounds = point.get("rounds") or ()
        medians = enough_medians([(one["count"], one["p50"], one.get("run")) for one in rounds])
        if medians:
            figures["p50"][place] = median_of_rounds(medians)
    qualities = [point.get("quality") or {} for point in measurements]
    intervals = [point.get("interval") or {} for point in measurements]
    return _table(
        "points",
        series_id=ids,
        count=found.count,
        overflow=found.overflow,
        **{name: pa.array(values, mask=~has_values) for name, values in ticks.items()},
        **{name: pa.array(figures[name], from_pandas=True) for name in QUANTILES},
        **{name: outward([one.get(name, np.nan) for one in intervals], name) for name in ("low", "high")},
        quantities=_quantities(measurements),
        waited=[_waited(point.get("contention")) for point in measurements],
        level=[one.get("level", "ok") for one in qualities],
        reasons=[",".join(sorted(_text(each["id"]) for each in one.get("reasons", ()))) for one in qualities],
        verdict=[(point.get("verdict") or {}).get("status") for point in measurements],
    )


def outward(limits: Any, name: str) -> pa.Array:
    """Returns the `low` or `high` limits of intervals with 12 bits, rounded away from the middle: digits that
    say nothing take room."""
    mantissa, exponent = np.frexp(np.asarray(limits, float))
    rounds = np.floor if name == "low" else np.ceil
    return pa.array(np.ldexp(rounds(mantissa * BITS) / BITS, exponent), from_pandas=True)


def _waited(contention: object) -> float | None:
    """Returns the share of the time of the threads that measured, 0 to 1, in which they waited for a CPU.

    Four digits: further ones take room and say nothing."""
    if not isinstance(contention, dict):
        return None
    time, delay = _whole(contention.get("threads_ns")), _whole(contention.get("run_delay_ns"))
    time = time or _whole(contention.get("wall_ns"))
    return round(min(delay / time, 1.0), 4) if time and delay is not None else None


def _quantities(measurements: Sequence[Document]) -> pa.Array:
    pairs = [sorted((point.get("values") or {}).items()) for point in measurements]
    offsets = np.cumsum([0, *map(len, pairs)])
    names = [_text(name) for point in pairs for name, _ in point]
    values = [value["value"] for point in pairs for _, value in point]
    offsets = pa.array(offsets, pa.int32())
    return pa.MapArray.from_arrays(offsets, pa.array(names, pa.string()), pa.array(values, pa.float64()))


def _text(value: object) -> str:
    """Returns a text that every reader takes: no control characters, no half of a pair, not too long."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) <= LONGEST and text.isprintable():
        return text
    text = text[:LONGEST].encode("utf-8", "replace").decode()
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _others(account: Mapping[str, Any]) -> float | None:
    """Returns the share that others used; None where the run was too short for the ticks, by the rule
    of `latscope_core::account`."""
    share, unseen = _share(account.get("others")), _share(account.get("unseen"))
    if share is not None and share < 0.05 and (unseen or 0) >= 0.25:
        return None
    return share


def _share(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None
