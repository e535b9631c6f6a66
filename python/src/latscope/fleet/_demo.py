"""Demonstration: a small lake of shipped results, the sick machines in it, and a page."""

import html
from datetime import date
from pathlib import Path
from typing import Any

import latscope

from . import _questions
from ._compact import compact
from ._engine import DuckDb
from ._generate import Fault, generate
from ._lake import Lake

DAY = date(2026, 11, 24)

#: Machines of the demonstration, and those that were made sick.
MACHINES = 60
FAULTS = {7: Fault("syscall", shift=2.0), 23: Fault("memory", shift=1.6)}

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;border-bottom:1px solid
#8886;text-align:left;vertical-align:top}
code{font-family:ui-monospace,monospace}@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"""


def demo(directory: Path) -> Path:
    """Makes the lake and its page in a directory. Returns the path of the page.

    The fleet is made: every machine draws its samples from the shipped results, and two are slowed down.
    """
    lake = Lake(directory / "lake", create=True)
    runs = latscope.read(Path(__file__).parent / "demo").runs
    if not lake.snapshot().days():
        generate(lake, runs, MACHINES, DAY, FAULTS)
    for _ in compact(lake):
        pass
    return page(lake, directory / "fleet.html")


def page(lake: Lake, path: Path) -> Path:
    """Writes a page of the lake's last day: an overview, and the sick machines on top. Returns its path."""
    day = lake.snapshot().days()[-1]
    engine = DuckDb(lake.snapshot(day))
    try:
        rows, notes = _questions.sick(engine)
        totals = engine.query(
            "SELECT COUNT(DISTINCT machine_id) AS machines, COUNT(*) AS runs, "
            "COUNT(DISTINCT cpu_model) AS models, COUNT(DISTINCT kernel) AS kernels FROM runs"
        ).to_pylist()[0]
    finally:
        engine.close()
    sick = [{name: row[name] for name in ("machine_id", "name", "why", "series", "confirm")} for row in rows]
    found = _table(sick) if sick else "<p>No machine differs from its peers.</p>"
    said = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    path.write_text(
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Fleet on {day}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>Fleet on {day}</h1><h2>Sick machines: {len(sick)}</h2>{found}{said}"
        f"<h2>Overview</h2>{_table([totals])}"
        "</body></html>\n",
        encoding="utf-8",
    )
    return path


def _table(rows: list[dict[str, Any]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
    lines = ("".join(f"<td>{html.escape(str(value))}</td>" for value in row.values()) for row in rows)
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
