"""When did machines or groups of them become slower or faster, and what changed with them?"""

import contextlib
import json
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from .._command import binary
from .._errors import CommandError
from .._files import open_regular
from . import _steps
from ._document import text_of
from ._engine import Engine, dicts, question, words_of
from ._nothing import SIDE_DAYS
from ._questions import family_of, series_of
from ._sources import ENDINGS

Row: TypeAlias = dict[str, Any]

#: What `drift` can be asked by, beside `label=NAME`: the words of drift.sql and facts.sql.
SIDES = ("machine", "model", "kernel")

#: Most machines whose results `latscope history` reads.
MOST_HISTORIES = 5

#: Fewest runs that `latscope history` judges, and how long it may take, s.
FEWEST_RUNS = 10
PATIENCE = 60.0

#: Names of facts, as they are printed.
_WORDS = {
    "cpu_model": "CPU model",
    "tool": "latscope",
    "tool_commit": "latscope's commit",
    "kernel_version": "kernel build",
}


@dataclass(frozen=True)
class Side:
    """Machine, or group of machines: its days in order, and the logarithms of its daily medians, days by
    series."""

    name: str
    days: list[str]
    medians: _steps.Floats


def drift(engine: Engine, least: float = 0.1, by: str = "machine") -> list[Row]:
    """Returns the days on which the daily medians of machines, or of groups of them, changed by at least a
    share `least`: one row a side and day, with the facts that changed on that day. Rows of several machines
    that got the same fact come first."""
    words, series = words_of(by, SIDES), series_of(engine)
    sides, listed = _sides(engine.query(question("drift"), **words))
    family = [family_of(series[one]) for one in listed]
    facts = _facts(engine, words)
    found = _steps.steps([side.medians for side in sides], family, least)
    rows, shared = list[Row](), list[Row]()
    names = _names(engine) if by == "machine" else {}
    if by == "machine":
        shared = _shared(sides, family, facts, [{step.place for step in own} for own in found])
    for side, own in zip(sides, found, strict=True):
        rows += [
            _row(by, side, step, facts.get(side.name, []), family, listed, series, names)
            for step in own
            if not _is_known(shared, side, step, family[step.of])
        ]
    rows.sort(
        key=lambda row: (-row["moved"], row["day"], str(row["machine_id" if by == "machine" else "group"]))
    )
    if by == "machine":
        changed = [row["machine_id"] for row in rows]
        steps = _histories({one: facts[one] for one in dict.fromkeys(changed) if one in facts})
        for row in rows:
            row["history"] = _nearest(steps.get(row["machine_id"], []), row["day"])
    for row in shared:
        del row["_days"], row["_families"]
    return [*shared, *rows]


def _names(engine: Engine) -> dict[str, str]:
    text = "SELECT machine_id, MAX(name) AS name FROM runs GROUP BY machine_id"
    return {row["machine_id"]: row["name"] or "" for row in dicts(engine.query(text))}


def _sides(table: pa.Table) -> tuple[list[Side], list[int]]:
    """Returns the sides, from the rows of drift.sql, and the series in the order of their columns."""
    names, side = np.unique(table["side"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    series, place = np.unique(table["series_id"].to_numpy(), return_inverse=True)
    days, day = np.unique(table["day"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    medians = np.log(table["p50"].to_numpy())
    found = []
    for number, name in enumerate(names.tolist()):
        rows = np.flatnonzero(side == number)
        own, at = np.unique(day[rows], return_inverse=True)
        figures = np.full((len(own), len(series)), np.nan)
        figures[at, place[rows]] = medians[rows]
        found.append(Side(name, days[own].tolist(), figures))
    return found, [int(one) for one in series]


def _row(
    by: str,
    side: Side,
    step: _steps.Step,
    facts: Sequence[Row],
    family: Sequence[str],
    listed: Sequence[int],
    series: Mapping[int, Row],
    names: Mapping[str, str],
) -> Row:
    """Returns the row of a step."""
    changed, place = _changed_near(side, step, facts)
    day = side.days[place]
    there = np.asarray(~np.isnan(side.medians).all(axis=0))
    moved = Counter(family[one] for one in step.moved)
    all_of = Counter(one for one, is_there in zip(family, there, strict=True) if is_there)
    # The one that the step was found in, and those of which most moved.
    others = [
        name for name, many in moved.most_common() if 2 * many > all_of[name] and name != family[step.of]
    ]
    parts = [f"{name} {moved[name]} of {all_of[name]}" for name in (family[step.of], *others)]
    farthest = step.moved[np.argsort(-np.abs(step.sizes), kind="stable")][:3]
    first = (
        {"machine_id": side.name, "name": names.get(side.name, "")}
        if by == "machine"
        else {"group": side.name}
    )
    return first | {
        "day": day,
        "after": side.days[place - 1],
        "moved": len(step.moved),
        "series": int(there.sum()),
        "ratio": round(float(np.exp(np.median(step.sizes))), 3),
        "with": changed,
        "families": ", ".join(parts[:4]),
        "most": "; ".join(str(series[listed[one]]["title"]) for one in farthest),
        "machines": 1 if by == "machine" else None,
        "history": None,
    }


def _changed_near(side: Side, step: _steps.Step, facts: Sequence[Row]) -> tuple[str, int]:
    """Returns the facts that changed on the day of a step, and the place of this day. If another day is as
    likely, and a fact changed on that one alone, it is the day."""
    for place in (step.place, *range(step.first, step.last + 1)):
        changed = _changed(facts, side.days[place - 1], side.days[place])
        if changed:
            return "; ".join(f"{_WORDS.get(name, name)}: {a} → {b}" for name, a, b in changed), place
    return "", step.place


def _is_known(shared: Sequence[Row], side: Side, step: _steps.Step, family: str) -> bool:
    """Returns whether a row about several machines has a step: it is of one of them, on the day on which it
    got the fact or next to it, and in a family that changed on all."""
    near = side.days[step.place - 1 : step.place + 2]
    return any(row["_days"].get(side.name) in near and family in row["_families"] for row in shared)


def _facts(engine: Engine, side: dict[str, str]) -> dict[str, list[Row]]:
    """Returns the facts about the runs of all sides, in order of time."""
    rows = dicts(engine.query(question("facts"), **side))
    return {name: list(runs) for name, runs in groupby(rows, key=lambda row: str(row["side"]))}


def _changed(runs: Sequence[Row], before: str, day: str) -> list[tuple[str, str, str]]:
    """Returns the facts that most runs of a day have otherwise than most of the day before: name, old and
    new."""
    old, new = (_usual(row for row in runs if row["day"] == one) for one in (before, day))
    pairs = ((name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()))
    return [(name, a or "none", b or "none") for name, a, b in pairs if a != b]


def _usual(runs: Iterable[Row]) -> dict[str, str | None]:
    """Returns the facts that more than half of some runs share; None where no value has so many."""
    rows = list(runs)
    facts = [
        {name: value for name, value in row.items() if name not in ("side", "day", "checks", "source")}
        | {f"check {name}": state for name, state in dict(row["checks"] or ()).items()}
        for row in rows
    ]
    usual: dict[str, str | None] = {}
    for name in {name for one in facts for name in one}:
        ((value, n),) = Counter(one.get(name) for one in facts).most_common(1)
        usual[name] = value if 2 * n > len(rows) else None
    return usual


#: Machines that a roll-out has at least, the deviations by which a family moved on them, and by how much it
#: did.
FEWEST_TOGETHER, DEVIATIONS, LEAST_TOGETHER = 3, 4.5, 0.03


def _shared(
    sides: Sequence[Side],
    family: Sequence[str],
    facts: Mapping[str, Sequence[Row]],
    steps: Sequence[set[int]],
) -> list[Row]:
    """Returns the rows of roll-outs: facts that several machines got, and what changed on the day on which
    each got it. Days of machines that got nothing, and did not change, say what chance does."""
    got: dict[tuple[tuple[str, str, str], ...], list[tuple[Side, int]]] = defaultdict(list)
    calm: list[tuple[Side, int]] = []
    for side, own in zip(sides, steps, strict=True):
        for place in range(SIDE_DAYS, len(side.days) - SIDE_DAYS + 1):
            changed = _changed(facts.get(side.name, ()), side.days[place - 1], side.days[place])
            if changed:
                got[tuple(changed)].append((side, place))
            elif not own:
                calm.append((side, place))
    listed, rows = sorted(set(family)), list[Row]()
    of = [np.flatnonzero([one == name for one in family]) for name in listed]
    if not calm:
        return []
    by_chance = np.array([_of_families(side, place, of) for side, place in calm])
    spread = np.maximum(1.4826 * np.nanmedian(np.abs(by_chance), axis=0), _steps.LEAST)
    for facts_changed, places in got.items():
        if len({side.name for side, _ in places}) < FEWEST_TOGETHER:
            continue
        size = np.nanmedian(np.array([_of_families(side, place, of) for side, place in places]), axis=0)
        # The median of some machines scatters 1.25 times as much as their mean.
        far = np.abs(size) * np.sqrt(len(places)) / (1.25 * spread)
        moved = np.flatnonzero((far >= DEVIATIONS) & (np.abs(size) >= LEAST_TOGETHER))
        if moved.size:
            rows.append(
                _together(facts_changed, places, [(listed[at], float(np.exp(size[at]))) for at in moved])
            )
    return rows


def _of_families(side: Side, place: int, of: Sequence[Any]) -> _steps.Floats:
    """Returns the step of each family at a place: the median over its series."""
    size = _steps.size_at(side.medians, place)
    return np.array(
        [np.nanmedian(size[places]) if (~np.isnan(size[places])).any() else np.nan for places in of]
    )


def _together(
    changed: Sequence[tuple[str, str, str]],
    places: Sequence[tuple[Side, int]],
    families: Sequence[tuple[str, float]],
) -> Row:
    """Returns the row of a roll-out."""
    days = {side.name: side.days[place] for side, place in places}
    families = sorted(families, key=lambda one: -abs(np.log(one[1])))
    return {
        "machine_id": "",
        "name": f"{len(days)} machines",
        "day": min(days.values()),
        "after": max(days.values()),
        "moved": len(families),
        "series": None,
        "ratio": round(families[0][1], 3),
        "with": "; ".join(f"{_WORDS.get(name, name)}: {a} → {b}" for name, a, b in changed),
        "families": ", ".join(f"{name} × {ratio:.3g}" for name, ratio in families[:4]),
        "most": "on the day each got it: " + ", ".join(sorted(days)),
        "machines": len(days),
        "history": None,
        "_days": days,
        "_families": [name for name, _ in families],
    }


def _histories(facts: dict[str, list[Row]]) -> dict[str, list[tuple[str, str]]]:
    """Returns the changes (day, text) that `latscope history` finds in the results of machines whose files
    are where they were ingested from; none without the command."""
    try:
        command = binary()
    except CommandError:
        return {}
    found: dict[str, list[tuple[str, str]]] = {}
    for machine, runs in list(facts.items())[:MOST_HISTORIES]:
        sources = [row["source"] for row in runs if row["source"].endswith(ENDINGS)]
        found[machine] = _history(command, sources)
    return found


def _history(command: str, sources: Sequence[str]) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="latscope-fleet-") as directory:
        runs = 0
        for source in sources:
            # A lake of others may name any file, or none.
            with contextlib.suppress(OSError, ValueError), open_regular(source) as file:
                Path(directory, f"{runs:06}.json").write_bytes(text_of(file, source))
                runs += 1
        if runs < FEWEST_RUNS:
            return []
        words = [command, "history", directory, "--quiet", "--json", "-"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
            machines = json.loads(done.stdout)["machines"] if done.returncode == 0 else []
        except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired):
            return []
    return [
        (machine["runs"][change["run"]]["started"][:10], _text(change))
        for machine in machines
        for change in machine["changes"]
    ]


def _text(change: Row) -> str:
    return f"change {change['id']}: {len(change['moved'])} figures"


def _nearest(steps: Sequence[tuple[str, str]], day: str) -> str | None:
    """Returns the text of the change that is nearest to a day, at most two days away."""
    near = [(abs((date.fromisoformat(at) - date.fromisoformat(day)).days), text) for at, text in steps]
    days, text = min(near, default=(3, ""))
    return text if days <= 2 else None
