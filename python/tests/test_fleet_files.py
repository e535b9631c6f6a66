"""Files of compacted days: their order, what is read of them, and others that write meanwhile."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from deltalake.exceptions import CommitFailedError
from fleet_help import add, ask

import latscope
from latscope.fleet import Lake, _days, _questions
from latscope.fleet._compact import compact, verify
from latscope.fleet._engine import DuckDb
from latscope.fleet._generate import generate
from latscope.fleet._rows import outward
from latscope.fleet._schema import ORDER

DAY = date(2026, 11, 23)
DEMO = Path(latscope.__file__).parent / "fleet" / "demo"


@pytest.fixture
def made(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Lake of a compacted day of 40 machines, whose small row groups make several files."""
    for name, rows in {"GROUP_ROWS": {"points": 500, "h": 5000}, "GROUPS": {"points": 2, "h": 2}}.items():
        monkeypatch.setattr(_days, name, rows)
    runs = latscope.read(DEMO).runs[:3]
    generate(lake, runs, 40, DAY, {}, only=("cpu", "syscall"), points=True)
    list(compact(lake))
    return lake


def test_files_and_their_rows_are_in_order(made: Lake) -> None:
    for name, keys in ORDER.items():
        files = made.snapshot().files[name]
        assert (len(files) > 2) == (name in ("points", "h"))
        # The log lists files in no order.
        read = [pq.ParquetFile(file.uri).read(list(keys)).to_pylist() for file in files]
        rows = [
            row for part in sorted(read, key=lambda part: tuple(part[0][key] for key in keys)) for row in part
        ]
        found = [tuple(row[key] for key in keys) for row in rows]
        assert found == sorted(found)


def test_a_machine_is_read_from_the_files_that_have_it(made: Lake) -> None:
    whole = made.snapshot()
    for machine in ("m000000", "m000017", "m000039"):
        part = _questions.snapshot_of(made, machine, "cpu.%")
        assert 0 < len(part.files["points"]) < len(whole.files["points"]) / 2
        assert (part.files["runs"], part.files["h"]) == ((), ())
        answers = []
        for snapshot in (whole, part):
            engine = DuckDb(snapshot)
            answers.append(_questions.machine(engine, machine, "cpu.%"))
            engine.close()
        assert answers[0] == answers[1] != []


def test_long_ids_of_machines_are_found(lake: Lake, edited: Callable[..., Path]) -> None:
    # The log has the first letters of a long text only.
    for last in "az\N{GREEK SMALL LETTER OMEGA}":
        add(lake, edited(f"r{ord(last)}", machine={"id": "m" * 300 + last}))
    for _ in range(2):
        for last in "az\N{GREEK SMALL LETTER OMEGA}":
            engine = DuckDb(_questions.snapshot_of(lake, "m" * 300 + last, "%"))
            assert {row["run_id"] for row in _questions.machine(engine, "m" * 300 + last, "%")} == {
                f"r{ord(last)}"
            }
            engine.close()
        list(compact(lake))


def test_rows_that_come_during_a_compaction_stay(
    lake: Lake, edited: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(lake, edited("a"))
    add(lake, edited("b"))
    replace, late = _days.replace_day, iter(["c"])

    def meanwhile(table: Any, *words: Any) -> None:
        for name in late:
            add(lake, edited(name))
        replace(table, *words)

    monkeypatch.setattr("latscope.fleet._compact.replace_day", meanwhile)
    assert [one.what for one in compact(lake)] == ["compacted"]
    assert [row["run_id"] for row in ask(lake, "SELECT run_id FROM runs ORDER BY run_id")] == ["a", "b", "c"]
    assert verify(lake) == []
    assert [one.what for one in compact(lake)] == ["compacted"]
    assert [one.what for one in compact(lake)] == ["left"]
    assert [row["run_id"] for row in ask(lake, "SELECT run_id FROM runs ORDER BY run_id")] == ["a", "b", "c"]


def test_one_of_two_compactions_at_once_fails_and_nothing_counts_twice(
    lake: Lake, edited: Callable[..., Path]
) -> None:
    add(lake, edited("a"))
    (day,) = lake.snapshot().days()
    old = lake.table("points")
    rows = old.to_pyarrow_table().combine_chunks()
    list(compact(lake))
    with pytest.raises(CommitFailedError):
        _days.replace_day(old, "points", day, rows.to_batches())
    assert ask(lake, "SELECT COUNT(*) AS n FROM points") == [{"n": rows.num_rows}]


def test_limits_are_rounded_away_from_the_middle() -> None:
    for value in (0.0, 1.0, 3.373997562, 1234.567, 8.4e9, 1e-3):
        (low,), (high,) = (outward([value], name).to_pylist() for name in ("low", "high"))
        assert value * (1 - 2**-11) <= low <= value <= high <= value * (1 + 2**-11)
    assert outward([float("nan"), 2.0], "low").to_pylist() == [None, 2.0]
