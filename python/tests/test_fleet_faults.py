"""`sick` on a fleet of machines that were really made sick, and that every fault is undone."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from faults import drawn, kinds, validate
from faults.make import plan, trimmed


@pytest.fixture(scope="module")
def pool() -> drawn.Pool:
    """Runs that a rule may be chosen with."""
    return drawn.pool("tune")


def test_a_fleet_is_drawn_from_the_set_and_judged(pool: drawn.Pool) -> None:
    sick = ["quota", "seccomp", "swap", "timers", "tracepoints"]
    fleet = drawn.machines(1100, sick, seed=2, groups=drawn.GROUPS[:1])
    day = validate.Day(pool, fleet, 2)
    assert sorted(day.sick.values()) == sorted(sick)
    shifts = validate.moves([day])
    # The one that its quota stops has no peers that are busy, and is named all the same.
    assert all(max(shifts[kind].values()) >= validate.MOVES for kind in sick if kind != "quota")
    assert day.named["`sick`"] == day.sick.keys()
    # The plain rule names nearly everything.
    assert len(day.named["plain rule, any series"]) > 550


def test_the_smallest_shift_of_a_series_is_found(pool: drawn.Pool) -> None:
    fleet = drawn.machines(3200, [], seed=2, groups=drawn.GROUPS[:1])
    group = drawn.groups(pool, fleet, 2)[0]
    place = group.family.index("cpu")
    assert validate.smallest(group, [place], 1)[place] > 1.1


def test_the_set_has_its_truth() -> None:
    rows = drawn.truth()
    assert {row["file"] for row in rows} == {path.name for path in drawn.SET.glob("*.json.gz")}
    assert {row["kind"] for row in rows} <= kinds.KINDS.keys()
    assert sum(path.stat().st_size for path in drawn.SET.iterdir()) < 20_000_000


@pytest.mark.parametrize("old", ["always [madvise] never\n", "tsc\n", "10\n"])
def test_a_setting_is_undone_also_if_the_survey_is_interrupted(tmp_path: Path, old: str) -> None:
    path = tmp_path / "setting"
    path.write_text(old)

    def interrupted() -> None:
        with ExitStack() as undo:
            kinds.setting(undo, path, "never")
            assert path.read_text() == "never"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == {"always [madvise] never\n": "madvise"}.get(old, old.strip())


def test_a_program_beside_the_survey_ends_with_it() -> None:
    with pytest.raises(KeyboardInterrupt), kinds.process(["sleep", "1000"]) as pid:  # noqa: PT012
        assert Path(f"/proc/{pid}").exists()
        raise KeyboardInterrupt
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(RuntimeError), kinds.process(["false"]):
        pass


def test_the_order_is_random_and_any_part_of_it_has_all_kinds() -> None:
    listed = plan(8, 80, 16, 1, list(kinds.KINDS))
    assert listed == plan(8, 80, 16, 1, list(kinds.KINDS)) != plan(8, 80, 16, 2, list(kinds.KINDS))
    assert len(set(listed)) == len(listed) == 96 + 8 * (len(kinds.KINDS) - 2)
    half = [kind for kind, _ in listed[: len(listed) // 2]]
    assert all(half.count(kind) in (3, 4, 5) for kind in kinds.KINDS if kind not in kinds.HEALTHY)


def test_a_trimmed_result_names_no_process(edited: Callable[..., Path]) -> None:
    import json  # noqa: PLC0415

    document: dict[str, Any] = json.loads(edited("one").read_text())
    document["activity"] = document.get("activity", {}) | {"top": [{"name": "secret"}]}
    text = json.dumps(trimmed(document))
    assert "secret" not in text
    assert '"blocks"' not in text
