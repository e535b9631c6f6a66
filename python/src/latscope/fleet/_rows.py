"""Rows of the lake from one result. See docs/lake.md."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from .._errors import ResultError
from .._point import Point
from .._read import Run
from ._schema import QUANTILES, TABLES
from ._series import BUCKETS, Series, bucket_index, series_of

Row = dict[str, Any]

#: Day before which no result can have been measured: latscope did not exist.
FIRST_DAY = date(2025, 1, 1)

#: The most points of a run, and the most characters of a text in the lake.
MOST_POINTS = 100_000
LONGEST = 4096

_RUN_ID = re.compile(r"[0-9A-Za-z:._-]{1,80}")


@dataclass
class Rows:
    """Rows of one run or of several, by table."""

    tables: dict[str, list[Row]] = field(
        default_factory=lambda: {name: [] for name in ("runs", "series", "points")}
    )
    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in TABLES["h"].names})

    def arrow(self, name: str) -> pa.Table:
        """Returns a table of the lake with the rows of this batch."""
        if name == "h":
            return pa.table(self.columns, schema=TABLES["h"])
        return pa.Table.from_pylist(self.tables[name], schema=TABLES[name])


def rows_of(run: Run, batch: int, day: date | None = None) -> Rows:
    """Returns the rows of a run, in a batch of ingestion. `day` is used for the day on which the run started.

    Raises ResultError if the run cannot be in the lake: its clock is years off, it says no day, its id is
    malformed, or numbers do not fit.
    """
    keys: Row = {
        "day": day or _day(run),
        "batch": batch,
        "run_id": run_id(run),
        "machine_id": machine_id(run),
    }
    if len(run.points) > MOST_POINTS:
        raise ResultError(run.source, f"it has {len(run.points)} points, more than {MOST_POINTS}")
    rows = Rows()
    document = run.document
    rows.tables["runs"].append(keys | _run(run, document))
    seen: set[int] = set()
    for point, fields in zip(run.points, document["measurements"], strict=True):
        series = series_of(point, _program(document))
        if series.id in seen:
            raise ResultError(run.source, f"it has the point {point.name:.200} twice")
        seen.add(series.id)
        rows.tables["series"].append(_series(point, series, _program(document)))
        rows.tables["points"].append(keys | _point(run, point, fields, series.id))
        _buckets(rows.columns, keys, point, series.id)
    return rows


def run_id(run: Run) -> str:
    """Returns the id of a run; of one without an id (older results) the hash of its text. Raises
    ResultError."""
    if not run.run_id:
        return "text:" + hashlib.sha256(run.text).hexdigest()[:32]
    if not _RUN_ID.fullmatch(run.run_id):
        raise ResultError(
            run.source, f"its run_id is {run.run_id!r:.90}: letters, digits and :._- are allowed"
        )
    return run.run_id


def machine_id(run: Run) -> str:
    """Returns the id of the run's machine, else `name:` with its host name."""
    identity = run.machine.get("id")
    return _text(identity) or f"name:{_text(run.machine.get('name')) or 'unknown'}"


def _day(run: Run) -> date:
    if run.started is None:
        raise ResultError(run.source, "it does not say when it was measured: give --day YYYY-MM-DD")
    started = _time(run.started, run.source)
    assert started is not None
    if not FIRST_DAY <= started.date() <= (datetime.now(timezone.utc) + timedelta(days=2)).date():
        raise ResultError(
            run.source, f"its clock was wrong, it started {run.started:.40}: give --day YYYY-MM-DD"
        )
    return started.date()


def _time(text: str | None, source: str) -> datetime | None:
    try:
        return (
            None
            if text is None
            else datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)
        )
    except (ValueError, OverflowError):
        raise ResultError(source, f"{text!r:.60} is no RFC 3339 time") from None


def _program(document: Mapping[str, Any]) -> str:
    imported = document.get("imported")
    return _text(imported.get("program")) or "unknown" if isinstance(imported, dict) else "latscope"


def _run(run: Run, document: Mapping[str, Any]) -> Row:
    machine, account = run.machine, document.get("activity")
    account = account if isinstance(account, dict) else {}
    checks = {
        item["id"]: item["state"] for item in _dicts(machine.get("checks")) if {"id", "state"} <= item.keys()
    }
    texts = ("name", "kernel", "kernel_version", "architecture", "command_line", "cpu_model", "microcode")
    return {
        **{name: _text(machine.get(name)) for name in (*texts, "hypervisor", "scheduler")},
        "started": _time(run.started, run.source),
        "finished": _time(
            run.finished or ((run.started or None) if document.get("interrupted") else None), run.source
        ),
        "tool": _text(run.tool.get("version")),
        "tool_commit": _text(run.tool.get("commit")),
        "program": _program(document),
        "job": _text(document["plan"].get("job")),
        "topology": _topology(machine),
        "cpus": len(_dicts(machine.get("cpus"))),
        "memory": _whole(machine.get("memory")),
        "root": machine.get("root") if isinstance(machine.get("root"), bool) else None,
        "checks": {_text(name): _text(state) for name, state in checks.items()},
        "wall_ns": _whole(account.get("wall_ns")),
        **{name: _share(account.get(name)) for name in ("others", "load", "peer", "stolen")},
        "throttled": _throttled(account.get("quota")),
        "points": len(run.points),
        "labels": {_text(name): _text(value) for name, value in run.labels.items()},
        "source": _text(run.source),
    }


def _topology(machine: Mapping[str, Any]) -> str:
    cpus = _dicts(machine.get("cpus"))
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


def _series(point: Point, series: Series, program: str) -> Row:
    return {
        "series_id": series.id,
        "probe": point.probe,
        "revision": point.revision,
        "params": {name: str(value) for name, value in sorted(point.params.items())},
        "times": point.times,
        "program": program,
        "sampling": point.sampling if point.histogram.count else "none",
        "batch_ns": point.batch_ns if point.histogram.count else None,
        "tick_ps": point.histogram.tick_ps if point.histogram.count else None,
        "title": _text(point.title),
        "unit": "ns",
        "value_units": {_text(name): _text(value.unit) for name, value in sorted(point.values.items())},
        "identity": series.identity,
    }


def _point(run: Run, point: Point, fields: Mapping[str, Any], series_id: int) -> Row:
    histogram, figures = point.histogram, point.figures()
    interval: object = fields.get("interval")
    interval = interval if isinstance(interval, dict) else {}
    ticks = {"min": histogram.least, "max": histogram.greatest, "sum": histogram.total}
    if max(ticks.values()) >= 1 << 63:
        raise ResultError(run.source, f"{point.name:.200}: its sum has more than 63 bits")
    return {
        "series_id": series_id,
        "count": histogram.count,
        "overflow": histogram.overflow,
        **{name: value if histogram.count else None for name, value in ticks.items()},
        **{name: figures[name] for name in QUANTILES},
        "low": _number(interval.get("low")),
        "high": _number(interval.get("high")),
        "quantities": {_text(name): value.value for name, value in sorted(point.values.items())},
        "level": point.level,
        "reasons": ",".join(sorted(_text(reason.id) for reason in point.reasons)),
        "verdict": point.verdict,
    }


def _buckets(columns: dict[str, list[Any]], keys: Row, point: Point, series_id: int) -> None:
    buckets = [(bucket_index(low), n) for low, _, n in point.histogram.buckets]
    if point.histogram.overflow:
        buckets.append((BUCKETS, point.histogram.overflow))
    for name, value in (keys | {"series_id": series_id}).items():
        columns[name].extend([value] * len(buckets))
    columns["bucket"].extend(index for index, _ in buckets)
    columns["n"].extend(n for _, n in buckets)


def _dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    """Returns a text that every reader takes: no control characters, no half of a pair, not too long."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    text = text[:LONGEST].encode("utf-8", "replace").decode()
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _share(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None
