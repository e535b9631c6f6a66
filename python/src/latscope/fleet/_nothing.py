"""Why a question has no answer, in a sentence with what to ask instead."""

from datetime import date
from difflib import get_close_matches
from typing import Any, TypeAlias

from ._engine import DuckDb, Engine, dicts, question
from ._errors import FleetError
from ._lake import Lake, Snapshot

Row: TypeAlias = dict[str, Any]

#: Days on each side of a step.
SIDE_DAYS = 3


def refuse_without_runs(lake: Lake, snapshot: Snapshot, since: date | None, until: date | None) -> None:
    """Raises FleetError if a snapshot of the days from `since` to `until` has no runs."""
    if snapshot.days():
        return
    days = lake.snapshot(only=("runs",)).days()
    if not days:
        raise FleetError(
            f"{lake.root} has no runs yet: `latscope-fleet ingest PATH --lake {lake.root}` adds results"
        )
    asked = [f"{word} {day}" for word, day in (("from", since), ("until", until)) if day is not None]
    raise FleetError(
        f"{lake.root} has no runs {' '.join(asked)}: its {len(days)} days are from {days[0]} to {days[-1]}"
    )


def of_machine(lake: Lake, machine: str, probe: str | None) -> FleetError:
    """Returns why nothing was found of a machine: an error that names the days it has, or what it may be."""
    engine = DuckDb(lake.snapshot(only=("runs",)))
    try:
        rows = dicts(engine.query(question("machines")))
    finally:
        engine.close()
    for row in rows:
        if row["machine_id"] == machine:
            days = f"it has {row['runs']} runs from {row['first']} to {row['last']}"
            if probe is None:
                return FleetError(f"{lake.root} has no run of the machine {machine} on these days: {days}")
            return FleetError(
                f"no series of the machine {machine} matches --probe {probe} on these days: "
                f"give a pattern of SQL, such as wake.%; {days}"
            )
    named = [row["machine_id"] for row in rows if row["name"] == machine]
    if named:
        return FleetError(f"{machine} is a name: ask for its id, {' or '.join(named[:5])}")
    ids = [row["machine_id"] for row in rows]
    near = [one for one in ids if one.startswith(machine)] or get_close_matches(machine, ids)
    hint = f"similar ids are {', '.join(near[:5])}" if near else "`missing --days 0` lists all"
    return FleetError(f"{lake.root} has no machine {machine}: {hint}")


def of_probe(engine: Engine, probe: str) -> str:
    """Returns why `worst` found no value of a probe."""
    kinds = {row["sampling"] for row in dicts(engine.query(question("matching"), probe=probe))}
    if not kinds:
        return f"no series matches --probe {probe}: give a pattern of SQL, such as wake.%"
    if "event" not in kinds:
        return f"--probe {probe} has only means of batches: the longest values are of single events (wake.%)"
    return f"no series of --probe {probe} has samples on these days"


def of_drift(snapshot: Snapshot) -> str | None:
    """Returns why `drift` can find no step; None if it could."""
    days = len(snapshot.days())
    if days >= 2 * SIDE_DAYS:
        return None
    return f"a step needs {SIDE_DAYS} days on each side: there are {days} days in all"
