"""When did machines or groups of them become slower or faster, and what changed with them?"""

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from .._command import binary
from .._errors import CommandError
from ._engine import Engine, dicts, question
from ._nothing import SIDE_DAYS
from ._sources import ENDINGS

Row: TypeAlias = dict[str, Any]

#: What `drift` can be asked by, beside `label=NAME`.
SIDES = {"machine": "r.machine_id", "model": "r.cpu_model", "kernel": "CONCAT(r.cpu_model, ', ', r.kernel)"}

#: Facts that are compared are those of as many days before a step and from it on.
DAYS = 8

#: Most sides whose facts are compared, and machines whose results `latscope history` reads.
MOST_SIDES = 200
MOST_HISTORIES = 5

#: Fewest runs that `latscope history` judges, and how long it may take, s.
FEWEST_RUNS = 10
PATIENCE = 60.0


def side_of(by: str) -> str:
    """Returns the column of SQL whose values are machines or groups. Raises ValueError."""
    if by.startswith("label="):
        name = by.removeprefix("label=").replace("'", "''")
        return f"COALESCE(r.labels['{name}'], '')"
    if by not in SIDES:
        raise ValueError(f"--by {by}: choose {', '.join(SIDES)} or label=NAME")
    return SIDES[by]


def drift(engine: Engine, least: float = 0.1, by: str = "machine") -> list[Row]:
    """Returns the changes of the daily medians of machines, or of groups of them, by at least a share
    `least`: the day, before and after in ns, and what changed with them."""
    side, rows = side_of(by), list[Row]()
    found = dicts(engine.query(question("drift").replace(":side", side)))
    for _, group in groupby(found, key=lambda row: (row["side"], row["series_id"])):
        days = list(group)
        step = _step([row["p50"] for row in days], least)
        if step is not None:
            place, before, after = step
            row = {name: days[place][name] for name in ("side", "probe", "title", "series_id", "day")}
            rows.append(row | {"before": before, "after": after, "ratio": round(after / before, 3)})
    rows.sort(key=lambda row: (-abs(np.log(row["ratio"])), row["side"], row["series_id"]))
    facts = _facts(engine, side, list(dict.fromkeys(row["side"] for row in rows))[:MOST_SIDES])
    steps = _histories(facts) if by == "machine" else {}
    first = "machine_id" if by == "machine" else "group"
    return [
        {first: row.pop("side")}
        | row
        | {"with": _changed(own, row["day"]), "history": _nearest(steps.get(machine, []), row["day"])}
        for row in rows
        for machine in [row["side"]]
        for own in [facts.get(machine, [])]
    ]


def _step(values: Sequence[float], least: float) -> tuple[int, float, float] | None:
    """Returns the place of the step that leaves the least deviations from the medians on its sides, and these
    medians; None unless it is four times what days deviate by. There are SIDE_DAYS days on each side."""
    best = None
    for place in range(SIDE_DAYS, len(values) - SIDE_DAYS + 1):
        before, after = median(values[:place]), median(values[place:])
        rest = [abs(float(np.log(one / before))) for one in values[:place]]
        rest += [abs(float(np.log(one / after))) for one in values[place:]]
        if best is None or sum(rest) < best[0]:
            best = (sum(rest), max(1.4826 * median(rest), 0.005), place, before, after)
    if best is None:
        return None
    _, noise, place, before, after = best
    size = abs(float(np.log(after / before)))
    return (place, before, after) if size >= max(float(np.log1p(least)), 4 * noise) else None


def _facts(engine: Engine, side: str, sides: list[str]) -> dict[str, list[Row]]:
    """Returns the facts about the runs of some sides, in order of time."""
    if not sides:
        return {}
    rows = dicts(engine.query(question("facts", sides=sides).replace(":side", side)))
    return {name: list(runs) for name, runs in groupby(rows, key=lambda row: str(row["side"]))}


def _changed(runs: Sequence[Row], day: str) -> str:
    """Returns what most runs of the days before a day have, and most from it on have otherwise:
    `kernel: 6.1 → 6.12`."""
    before = sorted({row["day"] for row in runs if row["day"] < day})[-DAYS:]
    after = sorted({row["day"] for row in runs if row["day"] >= day})[:DAYS]
    old, new = (_usual(row for row in runs if row["day"] in days) for days in (before, after))
    pairs = ((name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()))
    return "; ".join(f"{name}: {a or 'none'} → {b or 'none'}" for name, a, b in pairs if a != b)


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


def _histories(facts: dict[str, list[Row]]) -> dict[str, list[tuple[str, str]]]:
    """Returns the changes (day, text) that `latscope history` finds in the results of machines whose files
    are where they were ingested from; none without the command."""
    try:
        command = binary()
    except CommandError:
        return {}
    found: dict[str, list[tuple[str, str]]] = {}
    for machine, runs in list(facts.items())[:MOST_HISTORIES]:
        files = [Path(row["source"]) for row in runs if row["source"].endswith(ENDINGS)]
        files = [file.absolute() for file in files if file.is_file()]
        if len(files) >= FEWEST_RUNS:
            found[machine] = _history(command, files)
    return found


def _history(command: str, files: Sequence[Path]) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="latscope-fleet-") as directory:
        for number, file in enumerate(files):
            ending = ".json.gz" if file.name.endswith(".gz") else ".json"
            (Path(directory) / f"{number:06}{ending}").symlink_to(file)
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
