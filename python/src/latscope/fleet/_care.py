"""Commands that take care of a lake, and the demonstration."""

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from ._bench import bench
from ._compact import compact, vacuum, verify
from ._demo import demo
from ._lake import Lake
from ._output import text_of
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
            print(f"{one.day}: an ingestion is at work, left for the next time", file=sys.stderr)
    print(f"{done['compacted']} days compacted, {done['left']} were compact, {done['busy']} left")
    return 0


def vacuum_command(arguments: argparse.Namespace) -> int:
    """Removes old files, and prints their names."""
    removed = vacuum(Lake(arguments.lake), arguments.hours, arguments.dry_run)
    sys.stdout.writelines(f"{name}\n" for name in removed)
    return 0


def verify_command(arguments: argparse.Namespace) -> int:
    """Prints what is wrong with a lake. Returns 2 if something is."""
    faults = verify(Lake(arguments.lake))
    sys.stdout.writelines(f"{fault}\n" for fault in faults or ["no fault found"])
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
        for name in views(snapshot)
        if name not in TABLES
    ]
    if arguments.format == "parquet":
        from ._main import show  # noqa: PLC0415

        show(arguments, rows)
    else:
        sys.stdout.write(text_of(rows, arguments.format))
    return 0


def demo_command(arguments: argparse.Namespace) -> int:
    """Makes the demonstration, and prints where its page is."""
    directory = arguments.directory or Path(tempfile.mkdtemp(prefix="latscope-fleet-"))
    print(demo(directory))
    return 0


def bench_command(arguments: argparse.Namespace) -> int:
    """Measures on a fleet that is made in the lake, and prints a table."""
    rows = bench(Lake(arguments.lake, create=True), arguments.machines)
    rounded = [
        {name: float(f"{value:.3g}") if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]
    sys.stdout.write(text_of(rounded, "table"))
    return 0
