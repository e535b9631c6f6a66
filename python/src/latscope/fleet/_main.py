"""The command `latscope-fleet`."""

import argparse
import getpass
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from deltalake.exceptions import DeltaError

from .._clean import one_line, tell, warn
from . import _care, _confirm, _mutes, _nothing, _past, _questions
from ._drift import drift
from ._engine import engine
from ._errors import FleetError, sentence
from ._ingest import Account, ingest
from ._lake import Lake, Snapshot, today
from ._output import FORMATS, toml_of, write
from ._sources import items
from ._views import tables_in

#: Days that a machine is muted without --until.
MUTED_DAYS = 14

#: Most rows that `sql` reads without --no-limit.
MOST_ROWS = 200_000_000


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command. Returns its exit code: 0; 1 after an error; 2 where files were set aside, or damage
    was found."""
    arguments = _parser().parse_args(words)
    # Without a handler SIGTERM ends Python at once, and the files of a sort stay.
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGINT, _interrupted)
    _SEEN.clear()
    try:
        if None not in (arguments.since, arguments.until) and arguments.since > arguments.until:
            raise FleetError(f"--since {arguments.since} is after --until {arguments.until}")
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        # A library may lose the exception within its own work. Pages are served until a signal comes.
        is_serving = arguments.run in (_care.serve_command, _care.demo_command)
        return 128 + _SEEN[0] if _SEEN and not is_serving else code
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (FleetError, ValueError) as error:
        warn(f"latscope-fleet: {one_line(sentence(error))}")
    except (OSError, DeltaError) as error:
        # A store, or a disk, fails in the middle of anything.
        warn(f"latscope-fleet: {arguments.lake or 'demo'}: {one_line(sentence(error))}")
    return 1


#: Signals that came while the command ran.
_SEEN: list[int] = []


def _terminated(number: int, _frame: object) -> None:
    _SEEN.append(number)
    raise SystemExit(128 + number)


def _interrupted(number: int, _frame: object) -> None:
    _SEEN.append(number)
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("latscope-fleet", description="results of many machines: docs/fleet.md")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str, asks: bool = False) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        added.add_argument(
            "--lake", required=name != "demo", help="directory or s3://bucket/path of the lake"
        )
        added.add_argument("--since", type=date.fromisoformat, metavar="DAY", help="first day, YYYY-MM-DD")
        added.add_argument("--until", type=date.fromisoformat, metavar="DAY", help="last day")
        if asks:
            added.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
            added.add_argument("--master", default="local-cluster[2,1,1024]", help="of Spark")
            added.add_argument("--format", choices=FORMATS, default="table")
            added.add_argument("--output", type=Path, help="file instead of standard output")
        return added

    one = command("ingest", _ingest, "add results: files, directories, archives, - for standard input")
    one.add_argument("paths", nargs="+", metavar="PATH")
    one.add_argument(
        "--day", type=date.fromisoformat, help="day of all results, if machines' clocks are wrong"
    )
    one.add_argument("--processes", type=_count, help="as many as CPUs without it")
    one.add_argument("--set-aside", metavar="DIRECTORY", help="for files that are no results")
    one.add_argument("--quiet", action="store_true", help="no progress")
    command("compact", _care.compact_command, "make one file a table of each day, and its roll-up")
    one = command("vacuum", _care.vacuum_command, "remove files that no version of the last hours needs")
    one.add_argument("--hours", type=_whole, default=168)
    one.add_argument("--dry-run", action="store_true")
    command("verify", _care.verify_command, "read all files, and compare their counts")
    command("tables", _care.tables_command, "name the tables and views with their columns", asks=True)
    one = command("sql", _sql, "answer a query", asks=True)
    one.add_argument("query")
    one.add_argument("--no-limit", action="store_true", help=f"read more than {MOST_ROWS} rows")
    one = command(
        "sick",
        _sick,
        "name machines that are slower than their peers; of the last day, without --since",
        asks=True,
    )
    one.add_argument("--rate", type=float, default=0.05, help="share of what is named that may be chance")
    one = command("normal", _normal, "print the usual range of each series and processor, ns", asks=True)
    one.add_argument("--toml", action="store_true")
    one = command(
        "compare",
        lambda a: _ask(a, lambda e: _questions.compare(e, a.by)),
        "compare groups of runs",
        asks=True,
    )
    one.add_argument("--by", default="kernel", help="kernel, model, architecture, microcode or label=NAME")
    one = command(
        "drift",
        _drift,
        "find steps in daily medians, and what changed with them",
        asks=True,
    )
    one.add_argument("--by", default="machine", help="machine, model, kernel (of a model) or label=NAME")
    one.add_argument("--least", type=_share, default=0.1, help="least change, as a share")
    one = command(
        "machine", _machine, "name the runs of a machine, or print figures of its series", asks=True
    )
    one.add_argument("machine", metavar="ID")
    one.add_argument("--probe", help="figures of series, by a pattern of SQL: wake.%%")
    one = command(
        "worst",
        _worst,
        "longest single values",
        asks=True,
    )
    one.add_argument("--probe", default="%", help="pattern of SQL: wake.%%")
    one.add_argument("--top", type=_count, default=20)
    one = command(
        "missing",
        lambda a: _ask(a, lambda e: _questions.missing(e, a.days, a.until or today())),
        "machines that stopped reporting",
        asks=True,
    )
    one.add_argument("--days", type=_whole, default=2)
    one = command("bench", _care.bench_command, "measure ingestion, sizes and questions on a made fleet")
    one.add_argument("--machines", type=_count, nargs="+", default=[100, 1000], help="numbers of machines")
    one.add_argument("--plot", type=Path, metavar="FILE", help="SVG of the days' sizes and times")
    _add_answers(command)
    _add_pages(command)
    return parser


def _add_answers(command: Callable[..., argparse.ArgumentParser]) -> None:
    one = command(
        "confirm", _confirm_again, "compare what was measured again on a machine with its peers", asks=True
    )
    one.add_argument("paths", nargs="+", metavar="RESULT", help="what the command of sick wrote there")
    for name, run, text in (
        ("mute", _mute, "note that somebody looks at a machine: it alarms no more, until the day --until"),
        ("unmute", _unmute, "end what mute began"),
    ):
        one = command(name, run, text)
        one.add_argument("machine", metavar="ID")
        one.add_argument("--family", default="", help="this one alone: a name in the column family of sick")
        one.add_argument("--who", help="who looks at it; you without it")
        if name == "mute":
            one.add_argument("--why", required=True, help="why it needs no alarm")
    command("mutes", _list_mutes, "list what is muted", asks=True)


def _user() -> str:
    """Returns the name of the user, or the number of one without a name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _add_pages(command: Callable[..., argparse.ArgumentParser]) -> None:
    one = command("serve", _care.serve_command, "show the fleet on pages for a browser, which only read")
    one.add_argument("--listen", default="127.0.0.1:8100", metavar="HOST:PORT", help="port 0 is a free one")
    one.add_argument(
        "--token",
        default="",
        help="who has it may read; none: all may; without it none on loopback, else a random one. "
        "$LATSCOPE_FLEET_TOKEN is not seen by other users",
    )
    one.add_argument("--results", type=Path, metavar="DIR", help="where the ingested files are, for reports")
    command(
        "metrics", _care.metrics_command, "print the figures of the last day, or of --until, as OpenMetrics"
    )
    one = command("demo", _care.demo_command, "make a small lake of shipped results, and show its pages")
    one.add_argument("--directory", type=Path, help="where; a new temporary one without it")
    one.add_argument("--no-serve", action="store_true", help="no pages")


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        raise argparse.ArgumentTypeError(f"{text} is no number from 0 to 999999")
    return int(text)


def _count(text: str) -> int:
    if _whole(text) == 0:
        raise argparse.ArgumentTypeError("0 is too few")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no share: 0.1 is 10 %")
    return share


def _ingest(arguments: argparse.Namespace) -> int:
    account = Account()
    lake = Lake(arguments.lake, create=True)
    found = ingest(
        lake,
        items(arguments.paths),
        day=arguments.day,
        processes=arguments.processes,
        aside=arguments.set_aside,
    )
    shows = sys.stderr.isatty() and not arguments.quiet
    for number, account in enumerate(found):
        if shows:
            print(
                f"\r{number + 1} files, {account.bytes / 1e6:.0f} MB, {len(account.aside)} set aside",
                end="",
                file=sys.stderr,
            )
    if shows:
        print(file=sys.stderr)
    for name, reason in account.aside:
        warn(f"set aside: {one_line(name)}: {one_line(reason)}")
    before = f", {account.left} set aside before" if account.left else ""
    tell(
        f"{account.added} runs added, {account.known} were there, "
        f"{len(account.aside)} files set aside{before}"
    )
    return 2 if account.aside else 0


def _snapshot(arguments: argparse.Namespace) -> Snapshot:
    """Returns the days that were asked for. Raises FleetError if they have no runs."""
    lake = Lake(arguments.lake)
    snapshot = lake.snapshot(arguments.since, arguments.until)
    _nothing.refuse_without_runs(lake, snapshot, arguments.since, arguments.until)
    return snapshot


def _ask(arguments: argparse.Namespace, ask: Any, snapshot: Snapshot | None = None) -> int:
    """Asks a question of a snapshot, and prints its rows."""
    if snapshot is None:
        snapshot = _snapshot(arguments)
    with engine(arguments.engine, snapshot, arguments.master) as opened:
        write(ask(opened), arguments.format, arguments.output)
    return 0


def _sql(arguments: argparse.Namespace) -> int:
    snapshot = Lake(arguments.lake).snapshot(arguments.since, arguments.until)
    with engine(arguments.engine, snapshot, arguments.master) as opened:
        opened.check(arguments.query)
        rows = sum(file.rows for name in tables_in(arguments.query) for file in snapshot.files[name])
        if rows > MOST_ROWS and not arguments.no_limit:
            raise FleetError(
                f"the query reads {rows} rows, more than {MOST_ROWS}: choose days by --since, or --no-limit"
            )
        write(opened.answer(arguments.query), arguments.format, arguments.output)
    return 0


def _sick(arguments: argparse.Namespace) -> int:
    lake = Lake(arguments.lake)
    snapshot = _snapshot(arguments)
    since = arguments.since or snapshot.days()[-1]
    snapshot = lake.snapshot(since - timedelta(days=_past.DAYS), arguments.until)

    def ask(opened: Any) -> Any:
        rows, notes = _questions.sick(opened, arguments.rate, since=since)
        for note in notes:
            warn(one_line(note))
        _mutes.apply(rows, _mutes.mutes(lake, arguments.until))
        return rows

    return _ask(arguments, ask, snapshot)


def _confirm_again(arguments: argparse.Namespace) -> int:
    rows = []
    with engine("duckdb", _snapshot(arguments)) as opened:
        for result in _confirm.parsed(arguments.paths):
            rows += _confirm.confirm(opened, result)
    write(rows, arguments.format, arguments.output)
    return 0


def _mute(arguments: argparse.Namespace) -> int:
    lake = Lake(arguments.lake)
    snapshot = _questions.snapshot_of(lake, arguments.machine, None)
    with engine("duckdb", snapshot) as opened:
        if not _questions.machine(opened, arguments.machine, None):
            raise _nothing.of_machine(lake, arguments.machine, None)
    until = arguments.until or today() + timedelta(days=MUTED_DAYS)
    _mutes.mute(lake, arguments.machine, arguments.family, until, arguments.who or _user(), arguments.why)
    tell(one_line(f"{arguments.machine} {arguments.family or 'as a whole'} is muted until {until}"))
    return 0


def _unmute(arguments: argparse.Namespace) -> int:
    _mutes.unmute(Lake(arguments.lake), arguments.machine, arguments.family, arguments.who or _user())
    return 0


def _list_mutes(arguments: argparse.Namespace) -> int:
    write(_mutes.mutes(Lake(arguments.lake), arguments.until), arguments.format, arguments.output)
    return 0


def _machine(arguments: argparse.Namespace) -> int:
    lake = Lake(arguments.lake)
    snapshot = _questions.snapshot_of(
        lake, arguments.machine, arguments.probe, arguments.since, arguments.until
    )

    def ask(opened: Any) -> Any:
        rows = _questions.machine(opened, arguments.machine, arguments.probe)
        if not rows:
            raise _nothing.of_machine(lake, arguments.machine, arguments.probe)
        return rows

    return _ask(arguments, ask, snapshot)


def _worst(arguments: argparse.Namespace) -> int:
    def ask(opened: Any) -> Any:
        rows = _questions.worst(opened, arguments.probe, arguments.top)
        if not rows:
            warn(one_line(_nothing.of_probe(opened, arguments.probe)))
        return rows

    return _ask(arguments, ask)


def _drift(arguments: argparse.Namespace) -> int:
    snapshot = _snapshot(arguments)
    note = _nothing.of_drift(snapshot)
    if note is not None:
        warn(one_line(note))
    return _ask(arguments, lambda opened: drift(opened, arguments.least, arguments.by), snapshot)


def _normal(arguments: argparse.Namespace) -> int:
    if not arguments.toml:
        return _ask(arguments, _questions.normal)
    with engine(arguments.engine, _snapshot(arguments), arguments.master) as opened:
        sys.stdout.write(toml_of(_questions.normal(opened)))
    return 0
