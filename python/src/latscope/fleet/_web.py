"""What the pages of `latscope-fleet serve` show: answers of the lake, kept while the lake stays the same."""

import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, TypeVar

import numpy as np

from . import _judge, _mutes, _past, _questions
from ._engine import DuckDb, Engine, dicts, question
from ._lake import Lake, files_of
from ._schema import TABLES
from ._table import Row

T = TypeVar("T")

#: Days before the one that is shown of which a machine's runs and a series' medians are listed.
DAYS = 90

#: How long a version of the lake is taken for the last one, s.
STEADY = 2.0


class Answers:
    """Answers to questions, the `most` that were used last, until the lake changes. Several threads may ask:
    who asks what is being found out waits for it."""

    def __init__(self, lake: Lake, most: int) -> None:
        self.lake, self.most = lake, most
        self.kept: OrderedDict[object, Future[Any]] = OrderedDict()
        self.version: tuple[int, ...] = ()
        self.checked = -STEADY
        self.lock = threading.Lock()

    def get(self, key: object, find: Callable[[], T]) -> T:
        """Returns the answer of a key, of `find` if it is not known. Raises what `find` raises."""
        with self.lock:
            self._renew()
            known = self.kept.get(key)
            asked: Future[Any] = known or Future()
            self.kept[key] = asked
            self.kept.move_to_end(key)
            if len(self.kept) > self.most:
                self.kept.popitem(last=False)
        if known is None:
            try:
                asked.set_result(find())
            except BaseException as error:
                with self.lock:
                    self.kept.pop(key, None)
                asked.set_exception(error)
        found: T = asked.result()
        return found

    def _renew(self) -> None:
        if time.monotonic() - self.checked >= STEADY:
            mutes = self.lake.optional("mutes")
            version = tuple(self.lake.table(name).version() for name in TABLES)
            version += () if mutes is None else (mutes.version(),)
            if version != self.version:
                self.kept.clear()
            self.version, self.checked = version, time.monotonic()


@dataclass(frozen=True)
class Judged:
    """Judgement of a day: the rows of `sick` about sick, muted and suspected machines, its notes, the groups
    of peers, and each machine's place in them (group, row). For each group, `shift` has how much longer than
    its peers each machine is, by family: a ratio; `far` the same in robust deviations of the peers, and
    `score` that of each series (machines by series)."""

    sick: dict[str, Row]
    muted: dict[str, Row]
    suspected: dict[str, Row]
    notes: list[str]
    groups: list[_questions.Group]
    places: dict[str, tuple[int, int]]
    families: list[str]
    shift: list[dict[str, _judge.Floats]]
    far: list[dict[str, _judge.Floats]]
    score: list[_judge.Floats]
    series: dict[int, Row]

    def families_of(self, machine: str) -> dict[str, tuple[float, float]]:
        """Returns the ratio of each family of a machine to its peers, and its distance in deviations; of a
        machine without peers none."""
        if machine not in self.places:
            return {}
        group, row = self.places[machine]
        shift, far = self.shift[group], self.far[group]
        found = {name: (float(shift[name][row]), float(far[name][row])) for name in shift}
        return {name: pair for name, pair in found.items() if not np.isnan(pair[0])}


@dataclass
class Fleet:
    """Questions of the pages to a lake."""

    lake: Lake
    answers: Answers = field(init=False)
    judged: Answers = field(init=False)
    _working: threading.Semaphore = field(init=False, default_factory=lambda: threading.Semaphore(2))

    def __post_init__(self) -> None:
        # A judgement of 10,000 machines has 50 MB.
        self.answers, self.judged = Answers(self.lake, 200), Answers(self.lake, 4)

    def days(self) -> list[date]:
        """Returns the days of the lake, the last first."""

        def find() -> list[date]:
            files = files_of(self.lake.table("runs"))
            return sorted({file.day for file in files if file.day is not None}, reverse=True)

        return self.answers.get("days", find)

    def days_before(self, day: date) -> list[date]:
        """Returns the days whose runs are listed beside those of a day, that day among them."""
        return [one for one in self.days() if day - timedelta(days=DAYS) <= one <= day]

    def rows(self, name: str, since: date, until: date, /, **words: Any) -> list[Row]:
        """Returns the answer to a question of sql/ about some days."""

        def find() -> list[Row]:
            return self._ask(since, until, lambda engine: list(dicts(engine.query(question(name), **words))))

        return self.answers.get((name, since, until, *sorted(words.items())), find)

    def of_day(self, name: str, day: date, /, **words: Any) -> list[Row]:
        """Returns the answer to a question about one day."""
        return self.rows(name, day, day, **words)

    def before(self, name: str, day: date, /, **words: Any) -> list[Row]:
        """Returns the answer to a question about a day and those before it."""
        return self.rows(name, day - timedelta(days=DAYS), day, **words)

    def judge(self, day: date) -> Judged:
        """Returns the judgement of a day, in comparison with those before."""
        since = day - timedelta(days=_past.DAYS)

        def judge(engine: Engine) -> Judged:
            return _judgement(engine, day, _mutes.mutes(self.lake, day))

        return self.judged.get(day, lambda: self._ask(since, day, judge))

    def missing(self, day: date) -> list[Row]:
        """Returns the machines that reported in the days before, and not for two days up to this one."""
        return self.before("missing", day, since=(day - timedelta(days=2)).isoformat())

    def _ask(self, since: date, until: date, ask: Callable[[Engine], T]) -> T:
        with self._working:
            engine = DuckDb(self.lake.snapshot(since, until))
            try:
                return ask(engine)
            finally:
                engine.close()


def _judgement(engine: Engine, day: date, muted: list[Row]) -> Judged:
    series = _questions.series_of(engine)
    fleet = _questions.groups_of(engine, series, day)
    groups = fleet.groups
    rows, notes = _questions.sick(engine, judged=fleet, since=day)
    places = {
        machine: (place, row)
        for place, group in enumerate(groups)
        for row, machine in enumerate(group.found.machines)
    }
    families = sorted({family for group in groups for family in group.family})
    _mutes.apply(rows, muted)
    named = {row["machine_id"]: row for row in rows if row["significant"]}
    sick = {machine: row for machine, row in named.items() if not row["muted"]}
    suspected = {row["machine_id"]: row for row in rows if row["state"] == _questions.SUSPECTED}
    with warnings.catch_warnings():
        # A machine may lack all series of a family, and all machines a series.
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        shift = [{family: _shift(group, family) for family in sorted(set(group.family))} for group in groups]
        far = [
            {name: _judge.scores(np.log(one)[:, np.newaxis])[:, 0] for name, one in column.items()}
            for column in shift
        ]
        score = [_judge.scores(group.found.body) for group in groups]
    looked_at = {machine: row for machine, row in named.items() if row["muted"]}
    return Judged(sick, looked_at, suspected, notes, groups, places, families, shift, far, score, series)


def _shift(group: _questions.Group, family: str) -> _judge.Floats:
    """Returns how many times as long as on its peers the family's series are on each machine: the median."""
    places = [place for place, one in enumerate(group.family) if one == family]
    found: _judge.Floats = np.exp(np.nanmedian(group.found.body[:, places], axis=1))
    return found
