"""Tables of the lake: their columns, and the version of their schema. docs/lake.md describes each column."""

import re

import pyarrow as pa

#: Version of the schema, a property of every table. It is raised when columns are added, never for other
#: changes.
VERSION = 1

#: Name of the property that has the version.
PROPERTY = "latscope.lake"

_TEXTS = pa.map_(pa.string(), pa.string())
_KEYS = [("day", pa.date32()), ("batch", pa.int64()), ("run_id", pa.string()), ("machine_id", pa.string())]
_QUANTILES = ("p10", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "p99_999")

TABLES: dict[str, pa.Schema] = {
    "runs": pa.schema(
        [
            *_KEYS,
            ("name", pa.string()),
            ("started", pa.timestamp("us", "UTC")),
            ("finished", pa.timestamp("us", "UTC")),
            ("tool", pa.string()),
            ("tool_commit", pa.string()),
            ("program", pa.string()),
            ("job", pa.string()),
            ("kernel", pa.string()),
            ("kernel_version", pa.string()),
            ("architecture", pa.string()),
            ("command_line", pa.string()),
            ("cpu_model", pa.string()),
            ("microcode", pa.string()),
            ("topology", pa.string()),
            ("cpus", pa.int32()),
            ("memory", pa.int64()),
            ("hypervisor", pa.string()),
            ("scheduler", pa.string()),
            ("root", pa.bool_()),
            ("checks", _TEXTS),
            ("affects", _TEXTS),
            ("wall_ns", pa.int64()),
            ("others", pa.float64()),
            ("load", pa.float64()),
            ("peer", pa.float64()),
            ("stolen", pa.float64()),
            ("throttled", pa.float64()),
            ("points", pa.int32()),
            ("labels", _TEXTS),
            ("source", pa.string()),
        ]
    ),
    "series": pa.schema(
        [
            ("series_id", pa.int64()),
            ("probe", pa.string()),
            ("revision", pa.int32()),
            ("params", _TEXTS),
            ("times", pa.string()),
            ("program", pa.string()),
            ("sampling", pa.string()),
            ("batch_ns", pa.int64()),
            ("tick_ps", pa.int64()),
            ("title", pa.string()),
            ("unit", pa.string()),
            ("value_units", _TEXTS),
            ("identity", pa.string()),
        ]
    ),
    "points": pa.schema(
        [
            *_KEYS,
            ("series_id", pa.int64()),
            ("count", pa.int64()),
            ("overflow", pa.int64()),
            ("min", pa.int64()),
            ("max", pa.int64()),
            ("sum", pa.int64()),
            *((name, pa.float64()) for name in _QUANTILES),
            ("low", pa.float64()),
            ("high", pa.float64()),
            ("quantities", pa.map_(pa.string(), pa.float64())),
            ("waited", pa.float64()),
            ("level", pa.string()),
            ("reasons", pa.string()),
            ("verdict", pa.string()),
        ]
    ),
    "h": pa.schema([*_KEYS, ("series_id", pa.int64()), ("bucket", pa.int16()), ("n", pa.int64())]),
    "daily": pa.schema(
        [
            ("day", pa.date32()),
            ("cpu_model", pa.string()),
            ("kernel", pa.string()),
            ("series_id", pa.int64()),
            ("bucket", pa.int16()),
            ("n", pa.int64()),
            ("runs", pa.int64()),
        ]
    ),
}

#: Table of what somebody has looked at: it is made by the first `mute`.
MUTES = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("machine_id", pa.string()),
        ("family", pa.string()),
        ("until", pa.date32()),
        ("who", pa.string()),
        ("why", pa.string()),
    ]
)

#: Form of the id of a run.
RUN_ID = re.compile(r"[0-9A-Za-z:._-]{1,80}")

#: Form of the path of a file below its table.
FILE = re.compile(r"(day=[0-9]{4}-[0-9]{2}-[0-9]{2}/)?[0-9A-Za-z_-][0-9A-Za-z._-]{1,200}")

#: Order of the rows of a compacted file: a machine's rows lie together, so that its ids cost nothing.
ORDER = {
    "runs": ("machine_id", "run_id"),
    "points": ("machine_id", "run_id", "series_id"),
    "h": ("machine_id", "run_id", "series_id", "bucket"),
    "daily": ("cpu_model", "kernel", "series_id", "bucket"),
}

#: Names of the columns that say of which run a row is.
KEYS = tuple(name for name, _ in _KEYS)

#: Names of the quantiles that `points` has, ns.
QUANTILES = _QUANTILES
