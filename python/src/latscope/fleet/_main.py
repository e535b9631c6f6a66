"""The command `latscope-fleet`."""

import argparse
import math
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from deltalake.exceptions import DeltaError

from . import _care, _nothing, _questions
from ._drift import drift
from ._engine import engine
from ._errors import FleetError, sentence
from ._ingest import Account, ingest
from ._lake import Lake, Snapshot, today
from ._output import FORMATS, text_of, toml_of
from ._sources import items
from ._views import tables_in

#: Most rows that `sql` reads without --no-limit.
MOST_ROWS = 200_000_000


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command. Returns its exit code: 0; 1 after an error; 2 where files were set aside, or damage
    was found."""
    arguments = _parser().parse_args(words)
    # Without a handler SIGTERM ends Python at once, and the files of a sort stay.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        if None not in (arguments.since, arguments.until) and arguments.since > arguments.until:
            raise FleetError(f"--since {arguments.since} is after --until {arguments.until}")
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (FleetError, ValueError) as error:
        print(f"latscope-fleet: {sentence(error)}", file=sys.stderr)
    except (OSError, DeltaError) as error:
        # A store, or a disk, fails in the middle of anything.
        print(f"latscope-fleet: {arguments.lake or 'demo'}: {sentence(error)}", file=sys.stderr)
    return 1


def _terminated(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


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
    _add_pages(command)
    return parser


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
        print(f"set aside: {_one_line(name)}: {_one_line(reason)}", file=sys.stderr)
    print(f"{account.added} runs added, {account.known} were there, {len(account.aside)} files set aside")
    return 2 if account.aside else 0


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


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
        show(arguments, ask(opened))
    return 0


def show(arguments: argparse.Namespace, rows: Any) -> None:
    """Prints rows in the format that was asked for, or writes them to the file."""
    if arguments.format == "parquet":
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        if arguments.output is None:
            raise FleetError("--format parquet needs --output FILE")
        pq.write_table(pa.Table.from_pylist(rows), arguments.output)
        return
    text = text_of(rows, arguments.format)
    if arguments.output is not None:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text)


def _sql(arguments: argparse.Namespace) -> int:
    snapshot = Lake(arguments.lake).snapshot(arguments.since, arguments.until)
    with engine(arguments.engine, snapshot, arguments.master) as opened:
        opened.check(arguments.query)
        rows = sum(file.rows for name in tables_in(arguments.query) for file in snapshot.files[name])
        if rows > MOST_ROWS and not arguments.no_limit:
            raise FleetError(
                f"the query reads {rows} rows, more than {MOST_ROWS}: choose days by --since, or --no-limit"
            )
        show(arguments, opened.query(arguments.query).to_pylist())
    return 0


def _sick(arguments: argparse.Namespace) -> int:
    lake = Lake(arguments.lake)
    snapshot = _snapshot(arguments)
    if arguments.since is None:
        snapshot = lake.snapshot(snapshot.days()[-1], arguments.until)

    def ask(opened: Any) -> Any:
        rows, notes = _questions.sick(opened, arguments.rate)
        for note in notes:
            print(note, file=sys.stderr)
        return rows

    return _ask(arguments, ask, snapshot)


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
            print(_nothing.of_probe(opened, arguments.probe), file=sys.stderr)
        return rows

    return _ask(arguments, ask)


def _drift(arguments: argparse.Namespace) -> int:
    snapshot = _snapshot(arguments)
    note = _nothing.of_drift(snapshot)
    if note is not None:
        print(note, file=sys.stderr)
    return _ask(arguments, lambda opened: drift(opened, arguments.least, arguments.by), snapshot)


def _normal(arguments: argparse.Namespace) -> int:
    if not arguments.toml:
        return _ask(arguments, _questions.normal)
    with engine(arguments.engine, _snapshot(arguments), arguments.master) as opened:
        sys.stdout.write(toml_of(_questions.normal(opened)))
    return 0
