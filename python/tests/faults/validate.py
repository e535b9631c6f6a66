"""Tries `latscope-fleet sick` on fleets of known truth, drawn from one half of the set of faults.

    python3 -m faults.validate --half validate --machines 10000 --fleets 3 --draws 100

prints what was named and found of each kind, beside a plain rule, and in how many days without sick machines
none was named. A rule is chosen with `--half tune`.
"""

import argparse
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from faults.drawn import Machine, Pool, draw, machines
from faults.drawn import pool as pool_of
from faults.kinds import HEALTHY
from latscope.fleet import Lake, _judge, _questions
from latscope.fleet._engine import DuckDb, Engine

#: Share of sick machines.
SICK = 0.01

#: Spreads of healthy machines by which a kind moves a series, to be one that must be found.
MOVES = 3.0

#: Shares of the series in which a machine is outside, for the plain rule to name it.
PLAIN = {"plain rule, any series": 0.0, "plain rule, 10 % of the series": 0.1}


class Day:
    """Fleet of one day: what is sick in it by kind of fault, and what each rule named."""

    def __init__(self, engine: Engine, fleet: list[Machine], everything: bool = True) -> None:
        self.sick = {one.name: one.kind for one in fleet if one.kind not in HEALTHY}
        begin = time.monotonic()
        self.rows, self.notes = _questions.sick(engine)
        self.seconds = time.monotonic() - begin
        self.named = {"`sick`": {str(row["machine_id"]) for row in self.rows}}
        if everything:
            self.series = _questions.series_of(engine)
            self.groups, _ = _questions.groups_of(engine, self.series)
            outside = _outside(engine)
            for text, share in PLAIN.items():
                least = share * len(self.series)
                self.named[text] = {name for name, number in outside.items() if number > least}

    def wrong(self) -> str:
        """Returns a line for each healthy machine that was named."""
        rows = (row for row in self.rows if row["machine_id"] not in self.sick)
        return "".join(f"wrong: {row['machine_id']} {row['why']} {row['p']:.2g}\n" for row in rows)


@contextmanager
def engine_of(pool: Pool, fleet: list[Machine], seed: int) -> Iterator[Engine]:
    """Gives an engine over a new lake with a fleet."""
    with tempfile.TemporaryDirectory(prefix="latscope-faults-") as directory:
        lake = Lake(Path(directory) / "lake", create=True)
        draw(lake, pool, fleet, seed)
        with closing(DuckDb(lake.snapshot())) as engine:
            yield engine


#: Median of each machine and series, as a bucket, with its group: the same processor and kernel.
_MEDIANS = """
    SELECT cpu_model || ' ' || kernel AS peers, machine_id, series_id,
           MIN(CASE WHEN cum * 2 >= total THEN bucket END) AS q50
    FROM (SELECT *, SUM(n) OVER (PARTITION BY machine_id, series_id ORDER BY bucket) AS cum,
                 SUM(n) OVER (PARTITION BY machine_id, series_id) AS total FROM h)
    JOIN (SELECT machine_id, cpu_model, kernel FROM runs) USING (machine_id)
    GROUP BY ALL"""


def _outside(engine: Engine) -> dict[str, int]:
    """Returns in how many series each machine's median is more than three median absolute deviations from
    the median of its group: the plain rule."""
    table = engine.query(_MEDIANS).to_pandas()
    table["log"] = _judge.log_of_bucket(table["q50"].to_numpy())
    series = table.groupby(["peers", "series_id"])["log"]
    off = (table["log"] - series.transform("median")).abs()
    limit = 3 * off.groupby([table["peers"], table["series_id"]]).transform("median")
    return {
        str(name): int(number) for name, number in (off > limit).groupby(table["machine_id"]).sum().items()
    }


def moves(days: list[Day]) -> dict[str, dict[tuple[str, str], float]]:
    """Returns by how many spreads each kind moves each series (its title, and body or tail): the median over
    the machines of the kind."""
    seen: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for day in days:
        for group in day.groups:
            for kind, distance in (("body", group.found.body), ("tail", group.found.tail)):
                with warnings.catch_warnings():
                    # A series that all machines lack has no median.
                    warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
                    score = _judge.scores(distance, _judge.LEAST_SCALES[kind])
                for row, name in enumerate(group.found.machines):
                    if name in day.sick:
                        for place, one in enumerate(group.found.series):
                            of = seen[day.sick[name]][(day.series[one]["title"], kind)]
                            of.append(float(score[row, place]))
    return {
        kind: {series: float(np.nanmedian(of)) for series, of in all_of.items() if not np.all(np.isnan(of))}
        for kind, all_of in seen.items()
    }


def table_of_kinds(days: list[Day], moved: dict[str, float]) -> str:
    """Returns what was found of each kind, as a table of Markdown, and a line on each rule."""
    rules = list(days[0].named)
    of_kind: dict[str, list[tuple[Day, str]]] = {}
    for day in days:
        for name, kind in day.sick.items():
            of_kind.setdefault(kind, []).append((day, name))
    lines = [f"| kind | spreads | machines | {' | '.join(rules)} |", "|---" * (3 + len(rules)) + "|"]
    for kind, of in sorted(of_kind.items(), key=lambda one: (-moved.get(one[0], 0), one[0])):
        found = [str(sum(name in day.named[rule] for day, name in of)) for rule in rules]
        lines.append(f"| {kind} | {moved.get(kind, 0):.3g} | {len(of)} | {' | '.join(found)} |")
    strong = [one for kind, of in of_kind.items() if moved.get(kind, 0) >= MOVES for one in of]
    lines.append("")
    for rule in rules:
        named = sum(len(day.named[rule]) for day in days)
        right = sum(len(day.named[rule] & day.sick.keys()) for day in days)
        recall = sum(name in day.named[rule] for day, name in strong) / max(len(strong), 1)
        lines.append(
            f"{rule}: named {named}, of them {right} sick (precision {right / max(named, 1):.3f}); "
            f"recall over the kinds that move some series by {MOVES:g} spreads {recall:.3f}"
        )
    return "\n".join(lines)


def healthy_days(pool: Pool, number: int, draws: int, seed: int) -> int:
    """Returns on how many days without sick machines none was named."""
    none = 0
    for one in range(seed, seed + draws):
        fleet = machines(number, [], one)
        with engine_of(pool, fleet, one) as engine:
            day = Day(engine, fleet, everything=False)
        none += not day.rows
        print(day.wrong(), end="")
    return none


def faulty_days(pool: Pool, number: int, fleets: int, seed: int) -> list[Day]:
    """Returns days on which one machine in a hundred is sick, with the kinds in turn."""
    kinds = sorted(kind for kind in pool.kinds if kind not in HEALTHY)
    many, days = round(number * SICK), []
    for one in range(fleets):
        fleet = machines(number, [kinds[(one * many + at) % len(kinds)] for at in range(many)], seed + one)
        with engine_of(pool, fleet, seed + one) as engine:
            days.append(Day(engine, fleet))
        print(f"fleet {one}: sick took {days[-1].seconds:.1f} s", flush=True)
        print(days[-1].wrong(), end="")
    return days


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--half", choices=("tune", "validate"), default="validate")
    parser.add_argument("--machines", type=int, default=10_000)
    parser.add_argument("--fleets", type=int, default=3)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--machines-of-draws", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    runs = pool_of(arguments.half)
    if arguments.fleets:
        days = faulty_days(runs, arguments.machines, arguments.fleets, arguments.seed)
        shifts = moves(days)
        print(table_of_kinds(days, {kind: max(of.values()) for kind, of in shifts.items()}))
        for kind, of in sorted(shifts.items()):
            most = sorted(of.items(), key=lambda one: -one[1])[:3]
            print(f"{kind}: " + "; ".join(f"{title} ({what}) {far:.1f}" for (title, what), far in most))
    if arguments.draws:
        none = healthy_days(runs, arguments.machines_of_draws, arguments.draws, arguments.seed + 1000)
        print(f"{none} of {arguments.draws} days without sick machines named none")


if __name__ == "__main__":
    main()
