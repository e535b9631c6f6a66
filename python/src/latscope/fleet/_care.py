"""Commands that take care of a lake, and the demonstration."""

import argparse
import os
import shlex
import sys
import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from .._clean import clean, one_line, tell, warn
from .._files import write_whole
from ._bench import bench
from ._compact import compact, vacuum, verify
from ._demo import demo
from ._drift import drift
from ._engine import engine
from ._lake import Lake
from ._output import text_of, write
from ._past import DAYS
from ._questions import sick
from ._schema import TABLES
from ._views import views


def compact_command(arguments: argparse.Namespace) -> int:
    """Compacts days, and prints how many."""
    if os.environ.get("LATSCOPE_FLEET_READY"):
        print("ready", flush=True)
    done: Counter[str] = Counter()
    for one in compact(Lake(arguments.lake), arguments.since, arguments.until):
        done[one.what] += 1
        if one.what == "busy":
            warn(f"{one.day}: an ingestion is at work, left for the next time")
    tell(f"{done['compacted']} days compacted, {done['left']} were compact, {done['busy']} left")
    return 0


def vacuum_command(arguments: argparse.Namespace) -> int:
    """Removes old files, and prints their names."""
    removed = vacuum(Lake(arguments.lake), arguments.hours, arguments.dry_run)
    for name in removed:
        tell(one_line(name))
    return 0


def verify_command(arguments: argparse.Namespace) -> int:
    """Prints what is wrong with a lake. Returns 2 if something is."""
    faults = verify(Lake(arguments.lake))
    for fault in faults or ["no fault found"]:
        tell(one_line(fault))
    return 2 if faults else 0


def tables_command(arguments: argparse.Namespace) -> int:
    """Prints the tables with files, rows and bytes, their columns, and the names of the views."""
    snapshot = Lake(arguments.lake).snapshot(arguments.since, arguments.until)
    rows: list[dict[str, Any]] = [
        {
            "table": name,
            "files": len(files),
            "rows": sum(file.rows for file in files),
            "bytes": sum(file.bytes for file in files),
            "columns": " ".join(TABLES[name].names),
        }
        for name, files in snapshot.files.items()
    ]
    rows += [
        {"table": name, "files": None, "rows": None, "bytes": None, "columns": "view"}
        for name in views(False)
        if name not in TABLES
    ]
    write(rows, arguments.format, arguments.output)
    return 0


def demo_command(arguments: argparse.Namespace) -> int:
    """Makes the demonstration, names the sick machines, and serves the pages until a signal comes; without
    a terminal or with --no-serve it prints what to call."""
    directory = arguments.directory or Path(tempfile.mkdtemp(prefix="latscope-fleet-"))
    lake = demo(directory)
    day = lake.snapshot().days()[-1]
    with engine("duckdb", lake.snapshot(day - timedelta(days=DAYS))) as opened:
        rows, _ = sick(opened, since=day)
        changes = drift(opened)
    parts = (
        (("machine_id", "state", "why", "confirm"), rows),
        (("machine_id", "day", "ratio", "families", "with"), changes),
    )
    for wanted, some in parts:
        sys.stdout.write(text_of([{name: row[name] for name in wanted} for row in some], "table", widest=160))
    if arguments.no_serve or not sys.stdout.isatty():
        tell(f"latscope-fleet serve --lake {shlex.quote(lake.root)}")
        return 0
    from ._serve import serve  # noqa: PLC0415

    serve(lake, "127.0.0.1:0")
    return 0


def serve_command(arguments: argparse.Namespace) -> int:
    """Serves the pages until a signal comes."""
    from ._serve import serve  # noqa: PLC0415

    token = None if arguments.token == "none" else arguments.token
    serve(Lake(arguments.lake), arguments.listen, token, arguments.results)
    return 0


def metrics_command(arguments: argparse.Namespace) -> int:
    """Prints the figures of a day."""
    from ._metrics import metrics  # noqa: PLC0415
    from ._web import Fleet  # noqa: PLC0415

    sys.stdout.write(clean(metrics(Fleet(Lake(arguments.lake)), arguments.until)))
    return 0


def bench_command(arguments: argparse.Namespace) -> int:
    """Measures on a fleet that is made in the lake, and prints a table."""
    rows = bench(Lake(arguments.lake, create=True), arguments.machines)
    if arguments.plot is not None:
        from ._plots import Look, fleets  # noqa: PLC0415

        write_whole(arguments.plot, fleets([row for row in rows if row["machines"]], Look()))
    rounded = [
        {name: float(f"{value:.3g}") if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]
    sys.stdout.write(text_of(rounded, "table"))
    return 0
