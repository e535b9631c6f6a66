"""Whether what was measured again on a machine is slower than on its peers."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import _judge, _questions
from ._engine import Engine, dicts, question
from ._errors import FleetError
from ._parse import Parsed, Parser, unpacked
from ._sources import items

Row: TypeAlias = dict[str, Any]

#: States of a family: half of its series or more are above the band of the peers, some are, or none is.
CONFIRMED, IN_PART, NOT = "confirmed", "in part", "not confirmed"


def parsed(paths: Sequence[str]) -> list[Parsed]:
    """Returns the results of some paths. Raises FleetError if one is none, or if there are none."""
    found = [Parser(None).parse(item) for item in items(paths)]
    for one in found:
        if one.fault is not None:
            raise FleetError(f"{one.name}: {one.fault}")
    if not found:
        raise FleetError(f"{', '.join(paths)}: there are no results")
    return found


def confirm(engine: Engine, result: Parsed) -> list[Row]:
    """Returns a row for each family of a result: how many of its series have a median above the 95th
    percentile of the runs of other machines with the same processor and kernel, the median ratio to their
    median, and the series that is farthest. Degraded points are left out, here and there. Raises FleetError
    if no series has five such machines."""
    assert result.run is not None
    run = result.run
    about = {name: run[name] for name in ("machine_id", "name")}
    words = {"model": run["cpu_model"] or "", "kernel": run["kernel"] or "", "machine": run["machine_id"]}
    bands = {row["series_id"]: row for row in dicts(engine.query(question("band"), **words))}
    points = unpacked(result.points)
    points = points.filter(pc.is_in(points["level"], pa.array(["ok", "unstable"])))
    medians = dict(zip(points["series_id"].to_pylist(), points["p50"].to_pylist(), strict=True))
    families = defaultdict[str, list[tuple[float, bool, str]]](list)
    for series in result.series:
        band, p50 = bands.get(series["series_id"]), medians.get(series["series_id"])
        if band is not None and p50 is not None and band["machines"] >= _judge.FEWEST_SHOWN:
            ratio = p50 / max(band["middle"], 1e-9)
            families[_questions.family_of(series)].append((ratio, p50 > band["high"], series["title"]))
    if not families:
        raise FleetError(
            f"{result.name}: no series of it is that of {_judge.FEWEST_SHOWN} other machines with "
            f"{words['model']} and kernel {words['kernel']}: measure by the command that `sick` prints"
        )
    return [about | _row(family, of) for family, of in sorted(families.items())]


def _row(family: str, found: list[tuple[float, bool, str]]) -> Row:
    above = sum(is_above for _, is_above, _ in found)
    ratio, _, title = max(found)
    return {
        "family": family,
        "state": CONFIRMED if 2 * above >= len(found) else IN_PART if above else NOT,
        "series": len(found),
        "above": above,
        "ratio": round(float(np.median([one for one, _, _ in found])), 3),
        "farthest": f"{title}: {ratio:.3g} times as long",
    }
