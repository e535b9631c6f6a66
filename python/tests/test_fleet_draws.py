"""`sick` and `drift` on a few fleets drawn from healthy runs. `fleet_draws.py`, called by hand, has the
tables of docs/fleet.md."""

import numpy as np
import pytest

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

import fleet_draws
from fleet_draws import Base, Fault

from latscope.fleet import _past, _questions


@pytest.fixture(scope="module")
def base() -> Base:
    """Runs that no rule was chosen with."""
    return fleet_draws.base("validate")


def test_healthy_fleets_name_no_machine_and_the_plain_rule_most(base: Base) -> None:
    found = fleet_draws.tally(base, (60,), 3, None, seed=1)
    assert (found.days, found.wrong["sick"]) == (3, 0)
    assert found.wrong["plain"] > 60


def test_a_lab_of_five_is_told_of_a_fault_on_its_second_day_and_of_nothing_else(base: Base) -> None:
    healthy = fleet_draws.tally(base, (5,), 40, None, seed=1)
    assert (healthy.days, healthy.wrong["sick"]) == (40, 0)
    for seed, fault in enumerate((("memory", 3.0), ("wake-ups", 10.0))):
        random = np.random.default_rng(seed)
        fleet, _ = fleet_draws.drawn(base, (5,), {2: Fault(*fault, -1)}, random)
        sick = {one for one, state in fleet_draws.named(fleet).items() if state == _questions.SICK}
        assert sick == {"m0002"}, fault


def test_one_odd_day_is_a_suspicion_and_two_are_evidence(base: Base) -> None:
    faults = {3: ("memory", 1.5), 20: ("wake-ups", 3.0), 41: ("core to core", 3.0)}
    states = []
    for first in (0, -1):
        fleet, _ = fleet_draws.drawn(
            base, (60,), {at: Fault(*fault, first) for at, fault in faults.items()}, np.random.default_rng(2)
        )
        states.append(fleet_draws.named(fleet))
    names = {f"m{at:04}" for at in faults}
    assert {states[0].get(name) for name in names} == {_questions.SUSPECTED}
    assert {name for name, state in states[1].items() if state == _questions.SICK} == names


def test_a_machine_that_is_far_out_hides_no_other_one(base: Base) -> None:
    # Both have the same fault; the second is hardly visible beside the first.
    faults = {3: Fault("wake-ups", 30.0, -3), 5: Fault("wake-ups", 2.0, -1)}
    fleet, _ = fleet_draws.drawn(base, (60,), faults, np.random.default_rng(3))
    sick = {one for one, state in fleet_draws.named(fleet).items() if state == _questions.SICK}
    assert sick == {"m0003", "m0005"}


def test_a_machine_without_a_past_has_no_evidence_of_its_own(base: Base) -> None:
    fleet, _ = fleet_draws.drawn(base, (8,), {2: Fault("memory", 9.0)}, np.random.default_rng(4), days=0)
    assert fleet.past is None
    (worst, *_) = _questions.verdicts_of(fleet, 0.05)
    assert worst.state == _questions.NORMAL
    fleet, _ = fleet_draws.drawn(base, (8,), {2: Fault("memory", 9.0)}, np.random.default_rng(4), days=4)
    assert fleet.past is not None
    assert _past.judge(fleet.past, base.family, own=True) == []


def test_a_changing_fleet_has_a_row_for_each_change(base: Base) -> None:
    rows = fleet_draws.drifts(base, np.random.default_rng(1))
    assert fleet_draws.changes_in(rows)[:3] == (True, True, True), rows
    assert len(rows) <= 4
    (cpu,) = [row for row in rows if row["machine_id"] == "id05"]
    assert (cpu["name"], cpu["after"], cpu["series"]) == ("node005", "2026-11-14", len(base.series))
    assert cpu["moved"] > 0.8 * cpu["series"]
    assert cpu["with"] == "CPU model: CPU 1 → CPU 2; microcode: 0x10 → 0x20"


def test_a_fleet_without_a_change_has_no_row(base: Base) -> None:
    assert fleet_draws.drifts(base, np.random.default_rng(2), changes=False) == []
