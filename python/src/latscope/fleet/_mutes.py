"""Machines that somebody has looked at: `sick` still names them, with who muted them until when, and nothing
alarms."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any, TypeAlias

import pyarrow as pa

from ._errors import FleetError
from ._lake import Lake, today
from ._schema import MUTES

Row: TypeAlias = dict[str, Any]

#: Longest texts, in characters.
LONGEST = 300

#: Last day of what is not muted.
NEVER = date(1970, 1, 1)

#: Most days that a machine is muted: what is muted for ever is forgotten.
MOST_DAYS = 366


def mute(lake: Lake, machine: str, family: str, until: date, who: str, why: str) -> None:
    """Mutes a family of a machine, or all of them (an empty text), up to a day, this one included. Raises
    FleetError for texts that are empty or too long, and for days too far ahead."""
    for name, text in (("who", who), ("why", why)):
        if not text.strip() or len(text) > LONGEST:
            raise FleetError(f"{name} is a text of 1 to {LONGEST} characters")
    if not today() <= until <= today() + timedelta(days=MOST_DAYS):
        raise FleetError(
            f"a machine is muted until a day from today to {MOST_DAYS} days from now, not {until}"
        )
    _add(lake, machine, family, until, who, why)


def unmute(lake: Lake, machine: str, family: str, who: str) -> None:
    """Ends what `mute` began. Raises FleetError if nothing is muted there."""
    if not any(one["machine_id"] == machine and one["family"] == family for one in mutes(lake)):
        raise FleetError(f"{machine} {family or 'as a whole'} is not muted: `mutes` lists what is")
    _add(lake, machine, family, NEVER, who, "")


def _add(lake: Lake, machine: str, family: str, until: date, who: str, why: str) -> None:
    lake.create("mutes")
    row = {"at": datetime.now(timezone.utc), "machine_id": machine, "family": family, "until": until}
    lake.append("mutes", pa.Table.from_pylist([row | {"who": who, "why": why}], schema=MUTES))


def mutes(lake: Lake, day: date | None = None) -> list[Row]:
    """Returns what is muted on a day, today without it: of each machine and family the last word. Raises
    FleetError if the table has other columns."""
    table = lake.optional("mutes")
    if table is None:
        return []
    try:
        rows = table.to_pyarrow_table().select(MUTES.names).cast(MUTES).drop_null().to_pylist()
    except (KeyError, ValueError, pa.ArrowException) as error:
        raise FleetError(f"{lake.uri('mutes')} is no table of `mute`: {error!s:.200}") from None
    last: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: row["at"]):
        last[row["machine_id"], row["family"]] = row
    return [row for row in last.values() if row["until"] >= (day or today())]


def apply(rows: Iterable[Row], muted: Sequence[Row]) -> None:
    """Adds the column `muted` to rows of `sick`: until when, by whom and why; empty if it is not muted."""
    for row in rows:
        own = [one for one in muted if one["machine_id"] == row["machine_id"]]
        found = [one for one in own if one["family"] in ("", row["family"])]
        row["muted"] = "; ".join(f"until {one['until']} by {one['who']}: {one['why']}" for one in found)
