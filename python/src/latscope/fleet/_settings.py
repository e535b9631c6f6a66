"""Settings that few machines have: checks of `latscope doctor` in another state than on nearly all peers, and
whether what they affect is slower there."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from . import _judge

#: Machines of one processor and kernel of which at most one may have a setting that is seen as odd.
RARE = 100


@dataclass(frozen=True)
class Setting:
    """State of a check on a machine that `many` of its `peers` machines have, and the patterns of the probes
    that it affects."""

    machine: str
    check: str
    state: str
    many: int
    peers: int
    affects: tuple[str, ...]

    def concerns(self, probe: str) -> bool:
        """Returns whether the check affects a probe."""
        return any(fnmatchcase(probe, pattern) for pattern in self.affects)

    def __str__(self) -> str:
        return f"doctor calls {self.check} {self.state}, on {self.many} of {self.peers} such machines"


def rare(runs: Sequence[Mapping[str, Any]]) -> list[Setting]:
    """Returns the settings that at most one in RARE machines with the same processor and kernel have, of the
    last run of each machine, and that affect something. `runs` are the rows of settings.sql."""
    last = {row["machine_id"]: row for row in runs}
    peers, many = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for row in last.values():
        for check, state in dict(row["checks"] or ()).items():
            peers[row["cpu_model"], row["kernel"], check] += 1
            many[row["cpu_model"], row["kernel"], check, state] += 1
    found = []
    for machine, row in last.items():
        states = dict(row["checks"] or ())
        for check, affects in dict(row["affects"] or ()).items():
            key, state = (row["cpu_model"], row["kernel"], check), states[check]
            if many[(*key, state)] * RARE <= peers[key]:
                patterns = tuple(affects.split(","))
                found.append(Setting(machine, check, state, many[(*key, state)], peers[key], patterns))
    return found


def judge(
    settings: Sequence[Setting],
    found: _judge.Distances,
    family: Sequence[str],
    probes: Sequence[str],
    usual: _judge.Usual,
) -> list[_judge.Finding]:
    """Returns for each setting of a machine in `found` what is oddest about the machine among the series that
    the setting affects. `family` and `probes` have those of each series."""
    rows = {machine: row for row, machine in enumerate(found.machines)}
    known: dict[tuple[str, ...], list[_judge.Finding]] = {}
    findings = []
    for one in settings:
        if one.machine not in rows:
            continue
        if one.affects not in known:
            places = [at for at, probe in enumerate(probes) if one.concerns(probe)]
            known[one.affects] = _judge.judge(found.of_series(places), [family[at] for at in places], usual)
        if known[one.affects]:
            findings.append(known[one.affects][rows[one.machine]])
    return findings
