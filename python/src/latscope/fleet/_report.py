"""Report of one run: the page of `latscope show --html`, of its result file where that is at hand, else of
what the lake keeps of it."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from .. import _command
from .._errors import Error
from .._files import open_regular
from .._read import Run, _limited, run_from_text
from ._schema import QUANTILES
from ._series import BUCKETS, bucket_bounds

Row = dict[str, Any]

#: Facts of a machine that a result has and the lake does not keep.
#: Those that are missed, for the page to name.
_UNKNOWN_TEXTS = ["rounds", "the clock", "caches", "checks of doctor", "the run's account", "outliers"]

_UNKNOWN = ("online", "allowed", "caches_from", "memory_available", "load_average", "clock")


def raw_result(directory: Path, row: Row) -> Run | None:
    """Returns the run of a row of `runs` from its file below a directory; None where it is not there. The
    file is the one that was ingested, by its path or its name: it counts only with the same run_id."""
    root = str(directory.resolve())
    for name in (row["source"], Path(row["source"]).name):
        path = Path(root, name)
        if ".." in path.parts or not path.is_relative_to(root):
            continue
        try:
            with open_regular(str(path), root) as file:
                run = run_from_text(_limited(file, path.name), path.name)
        except (Error, OSError, ValueError):
            continue
        if run.run_id == row["run_id"]:
            return run
    return None


def page_of(run: Run) -> str:
    """Returns the report of a run. Raises CommandError where the command is missing."""
    return _command.page(run)


def run_of(row: Row, points: Sequence[Row], buckets: Sequence[Row]) -> Run:
    """Returns the run that the lake keeps: without rounds, blocks, outliers, and the texts of reasons. `row`
    is of `runs`, `points` and `buckets` are the rows of page_points.sql and page_buckets.sql."""
    of_series = defaultdict(list)
    for one in buckets:
        of_series[one["series_id"]].append((one["bucket"], one["n"]))
    keys = ("name", "kernel", "kernel_version", "architecture", "command_line", "cpu_model", "microcode")
    program = f"{row['program']} {row['tool']}" if row["program"] == "latscope" else row["program"]
    machine: Row = {name: row[name] or None for name in (*keys, "hypervisor", "scheduler")}
    document = {
        "schema": "latscope/1",
        "tool": {"name": "latscope", "version": row["tool"], "commit": row["tool_commit"]},
        "run_id": row["run_id"],
        "labels": dict(row["labels"] or []),
        "imported": {"program": program, "version": None, "unknown": _UNKNOWN_TEXTS},
        "started": _instant(row["started"]),
        "finished": _instant(row["finished"]),
        "plan": {"job": row["job"], "steps": [], "rounds": 1, "cpus": ""},
        "machine": machine
        | dict.fromkeys(_UNKNOWN)
        | {"id": row["machine_id"], "cpus": [], "caches": [], "checks": []}
        | {"memory": row["memory"], "root": row["root"]},
        "warnings": [],
        "findings": [],
        "measurements": [_measurement(point, of_series[point["series_id"]]) for point in points],
    }
    return run_from_text(json.dumps(document).encode(), row["source"])


def _instant(time: datetime | None) -> str | None:
    return None if time is None else f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"


def _measurement(point: Row, buckets: list[tuple[int, int]]) -> Row:
    identity, tick, units = json.loads(point["identity"]), point["tick_ps"] or 1, dict(point["value_units"])
    count, limit = point["count"], point["level"]
    reasons = [one for one in point["reasons"].split(",") if one]
    ns = {name: None if point[name] is None else point[name] * tick / 1000 for name in ("min", "max", "sum")}
    return {
        "probe": identity["probe"],
        "revision": identity["revision"],
        "params": identity["params"],
        "title": point["title"],
        "row": True,
        "sampling": {"batch": {"ops": 0}} if identity["sampling"] == "batch" else "event",
        "times": identity["times"],
        "quality": {
            "level": limit,
            "reasons": [{"id": one, "level": limit, "text": one.replace("-", " ")} for one in reasons],
        },
        "summary": {
            **{"count": count, "rejected": None, "missed": None, "min": ns["min"], "max": ns["max"]},
            **{name: point[name] for name in QUANTILES},
            "mean": ns["sum"] / count if count else None,
        },
        "values": {
            name: {"value": value, "unit": units.get(name, ""), "better": "neither"}
            for name, value in point["quantities"] or []
        },
        "histogram": {
            **{name: point[name] or 0 for name in ("min", "max", "sum", "overflow")},
            "tick_ps": tick,
            "buckets": [[*bucket_bounds(index), n] for index, n in buckets if index < BUCKETS],
        },
    }
