"""Calls that the tests of the fleet share. Import it after `pytest.importorskip`."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import latscope
from latscope.fleet import Lake
from latscope.fleet._engine import DuckDb
from latscope.fleet._ingest import Account, ingest
from latscope.fleet._sources import items


def add(lake: Lake, *paths: str | Path, **options: Any) -> Account:
    *_, account = ingest(lake, items([str(path) for path in paths]), processes=1, **options)
    return account


def ask(lake: Lake, sql: str) -> list[dict[str, Any]]:
    engine = DuckDb(lake.snapshot())
    try:
        rows: list[dict[str, Any]] = engine.query(sql).to_pylist()
        return rows
    finally:
        engine.close()


def command(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(latscope.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path} | options.pop("env", {})
    called = [sys.executable, "-m", "latscope.fleet", *map(str, words)]
    return subprocess.run(called, capture_output=True, text=True, env=environment, check=False, **options)
