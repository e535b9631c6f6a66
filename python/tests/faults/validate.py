"""Tries the rule of `latscope-fleet sick` on fleets of known truth, drawn from one half of the set of faults.

    python3 -m faults.validate --half validate --machines 10000 --fleets 10 --draws 100

prints what was named and found of each kind, beside a plain rule, in how many days without sick machines none
was named, and the smallest shifts that are found. A rule is chosen with `--half tune`.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from faults.drawn import Machine, Pool, groups, machines, settings, stopped
from faults.drawn import pool as pool_of
from faults.kinds import HEALTHY
from latscope.fleet import _judge
from latscope.fleet._questions import Group, named, named_by_settings

#: Share of sick machines, and the false discovery rate of `sick`.
SICK, RATE = 0.01, 0.05

#: Spreads of healthy machines by which a kind moves a series, to be one that must be found.
MOVES = 3.0

#: Ratios that are tried for the smallest shift of a series, on so many machines each.
RATIOS, TRIALS = (1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0, 10.0), 10

#: Shares of the series in which a machine is outside, for the plain rule to name it.
PLAIN = {"plain rule, any series": 0.0, "plain rule, 10 % of the series": 0.1}


class Day:
    """Fleet of one day: what is sick in it by kind of fault, and what each rule named."""

    def __init__(self, pool: Pool, fleet: list[Machine], seed: int) -> None:
        found = groups(pool, fleet, seed)
        self.sick = {one.name: one.kind for one in fleet if one.kind not in HEALTHY}
        self.groups = found
        rare = settings(pool, fleet, seed)
        pairs = [*named(found, RATE), *named_by_settings(found, pool.series, rare, RATE)]
        self.findings = [one for one, _ in pairs]
        self.named = {"`sick`": {one.machine for one in self.findings} | stopped(pool, fleet)}
        outside = {name: share for group in found for name, share in _outside(group)}
        for text, least in PLAIN.items():
            self.named[text] = {name for name, share in outside.items() if share > least}

    def wrong(self) -> str:
        """Returns a line for each healthy machine that was named."""
        rows = (one for one in self.findings if one.machine not in self.sick)
        return "".join(f"wrong: {one.machine} {one.family} {one.kind} {one.p:.2g}\n" for one in rows)


def _outside(group: Group) -> Iterator[tuple[str, float]]:
    """Returns in which share of its series each machine is more than three median absolute deviations above
    the median of its group: the plain rule."""
    body = group.found.body
    far = body > 3 * _judge.spreads(body) / 1.4826
    yield from zip(group.found.machines, far.mean(axis=1).tolist(), strict=True)


def moves(days: list[Day]) -> dict[str, dict[tuple[int, str], float]]:
    """Returns by how many spreads each kind moves each series (its id, and body or mean): the median over the
    machines of the kind."""
    seen: dict[str, dict[tuple[int, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for group, sick in ((group, day.sick) for day in days for group in day.groups):
        for kind, distance in (("body", group.found.body), ("mean", group.found.mean)):
            score = _judge.scores(distance)
            for row, name in enumerate(group.found.machines):
                for place in np.flatnonzero(~np.isnan(score[row])) if name in sick else ():
                    seen[sick[name]][group.found.series[place], kind].append(float(score[row, place]))
    return {
        kind: {series: float(np.median(of)) for series, of in all_of.items()} for kind, all_of in seen.items()
    }


def usual(days: list[Day]) -> dict[str, float]:
    """Returns which share of the healthy peers is as far out as the machines of each kind, on the series that
    tells most: the median over the machines of the kind."""
    seen: dict[str, dict[tuple[int, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for group, sick in ((group, day.sick) for day in days for group in day.groups):
        is_healthy = np.array([name not in sick for name in group.found.machines])
        for kind, distance in (("body", group.found.body), ("mean", group.found.mean)):
            for row in np.flatnonzero(~is_healthy):
                shares = np.mean(distance[is_healthy] >= distance[row], axis=0)
                for place in np.flatnonzero(~np.isnan(distance[row])):
                    key = (group.found.series[place], kind)
                    seen[sick[group.found.machines[row]]][key].append(float(shares[place]))
    return {kind: min(float(np.median(of)) for of in all_of.values()) for kind, all_of in seen.items()}


def table_of_kinds(days: list[Day], moved: dict[str, float], shares: dict[str, float]) -> str:
    """Returns what was found of each kind, as a table of Markdown, and a line on each rule."""
    rules = list(days[0].named)
    of_kind: dict[str, list[tuple[Day, str]]] = {}
    for day in days:
        for name, kind in day.sick.items():
            of_kind.setdefault(kind, []).append((day, name))
    lines = [f"| kind | spreads | as far | machines | {' | '.join(rules)} |", "|---" * (4 + len(rules)) + "|"]
    for kind, of in sorted(of_kind.items(), key=lambda one: (-moved.get(one[0], 0), one[0])):
        found = [str(sum(name in day.named[rule] for day, name in of)) for rule in rules]
        far = f"{moved.get(kind, 0):.3g} | {100 * shares.get(kind, 1.0):.2g} %"
        lines.append(f"| `{kind}` | {far} | {len(of)} | {' | '.join(found)} |")
    strong = [one for kind, of in of_kind.items() if moved.get(kind, 0) >= MOVES for one in of]
    lines.append("")
    for rule in rules:
        all_named = sum(len(day.named[rule]) for day in days)
        right = sum(len(day.named[rule] & day.sick.keys()) for day in days)
        recall = sum(name in day.named[rule] for day, name in strong) / max(len(strong), 1)
        lines.append(
            f"{rule}: named {all_named}, of them {right} sick (precision {right / max(all_named, 1):.3f}); "
            f"recall over the kinds that move some series by {MOVES:g} spreads {recall:.3f}"
        )
    return "\n".join(lines)


def healthy_days(pool: Pool, number: int, draws: int, seed: int) -> int:
    """Returns on how many days without sick machines none was named."""
    none = 0
    for one in range(seed, seed + draws):
        fleet = machines(number, [], one)
        day = Day(pool, fleet, one)
        none += not day.named["`sick`"]
        print(day.wrong(), end="", flush=True)
    return none


def faulty_days(pool: Pool, number: int, fleets: int, seed: int) -> list[Day]:
    """Returns days on which one machine in a hundred is sick, with the kinds in turn."""
    kinds = sorted(kind for kind in pool.kinds if kind not in HEALTHY)
    many, days = round(number * SICK), []
    for one in range(fleets):
        fleet = machines(number, [kinds[(one * many + at) % len(kinds)] for at in range(many)], seed + one)
        days.append(Day(pool, fleet, seed + one))
        print(days[-1].wrong(), end="", flush=True)
    return days


def smallest(group: Group, places: Sequence[int], seed: int) -> dict[int, float]:
    """Returns by what some series of a machine must grow, as a ratio out of RATIOS, for nine of ten machines
    of a group to be named. Those that more than the largest must grow are left out."""
    random, found = np.random.default_rng(seed), dict[int, float]()
    for ratio in RATIOS:
        hits = np.zeros(len(places))
        for _ in range(TRIALS):
            rows = random.choice(len(group.found.machines), len(places), replace=False)
            body = group.found.body.copy()
            mean = group.found.mean.copy()
            body[rows, places] += np.log(ratio)
            mean[rows, places] += np.log(ratio)
            moved = replace(group, found=replace(group.found, body=body, mean=mean))
            names = {one.machine for one, _ in named([moved], RATE)}
            hits += [group.found.machines[row] in names for row in rows]
        for place, hit in zip(places, hits, strict=True):
            if hit >= 0.9 * TRIALS:
                found.setdefault(place, ratio)
    return found


def table_of_smallest(pool: Pool, group: Group) -> str:
    """Returns the smallest shifts of every tenth series, as a table of Markdown."""
    places = [
        at for at in range(0, len(group.found.series), 10) if not np.isnan(group.found.body[:, at]).all()
    ]
    ratios = smallest(group, places, 1)
    lines = ["| series | family | smallest shift |\n|---|---|---|"]
    for place in sorted(places, key=lambda at: (group.family[at], ratios.get(at, np.inf))):
        ratio = f"{ratios[place]:g}" if place in ratios else f"over {RATIOS[-1]:g}"
        lines.append(
            f"| {pool.series[group.found.series[place]]['title']} | {group.family[place]} | {ratio} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--half", choices=("tune", "validate"), default="validate")
    parser.add_argument("--machines", type=int, default=10_000)
    parser.add_argument("--fleets", type=int, default=10)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--machines-of-draws", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    pool = pool_of(arguments.half)
    if arguments.fleets:
        days = faulty_days(pool, arguments.machines, arguments.fleets, arguments.seed)
        shifts = moves(days)
        print(
            table_of_kinds(days, {kind: max(of.values()) for kind, of in shifts.items()}, usual(days)),
            flush=True,
        )
        for kind, of in sorted(shifts.items()):
            most = sorted(of.items(), key=lambda one: -one[1])[:3]
            texts = [f"{pool.series[one]['title']} ({what}) {far:.1f}" for (one, what), far in most]
            print(f"{kind}: {'; '.join(texts)}")
        print(table_of_smallest(pool, max(days[0].groups, key=lambda group: len(group.found.machines))))
    if arguments.draws:
        none = healthy_days(pool, arguments.machines_of_draws, arguments.draws, arguments.seed + 1000)
        print(f"{none} of {arguments.draws} days without sick machines named none")


if __name__ == "__main__":
    main()
