"""latscope: every latency of a Linux machine. Reads results, and calls the command. See docs/python.md."""

from collections.abc import Iterable
from typing import Any

from ._command import binary, measure
from ._errors import CommandError, Error, ForeignError, MergeError, ResultError, SelectionError
from ._histogram import Bins, Histogram
from ._point import Point, Reason, Round, Value
from ._read import Run, Source, runs_from
from ._results import Results

__all__ = [
    "Bins",
    "CommandError",
    "Error",
    "ForeignError",
    "Histogram",
    "MergeError",
    "Point",
    "Reason",
    "ResultError",
    "Results",
    "Round",
    "Run",
    "SelectionError",
    "Value",
    "binary",
    "read",
    "run",
]


def read(source: Source | Iterable[Source]) -> Results:
    """Returns the results in files that `--json` wrote (docs/result-schema.md).

    `source` is a path (.json or .json.gz; `-` is standard input), a directory (its files .json and .json.gz,
    by name), a file object, or a list of these. Of a directory, JSON that is no result is skipped, with a
    warning unless latscope wrote it; a run that is there twice is counted once, with a warning.

    Raises ResultError, which names the file and the reason, for a damaged file, one of more than 1 GiB
    (uncompressed), and where there is no result at all; ForeignError, a ResultError, for JSON of another
    kind; OSError if a file cannot be read. For outputs of other programs see docs/import.md: `latscope show F
    --json G` makes results of them.
    """
    return Results(runs_from(source))


def run(*words: str, **options: Any) -> Results:
    """Returns a result that the command measures now: `run("survey", quick=True)`, `run("cpu", "cycle",
    label={"board": "a7"})`.

    An option's name has `-` for `_`; True gives the option alone, None and False leave it out, a list is
    joined by commas, a dictionary gives the option once a pair. Times are texts with a unit, as the command
    takes them ("10s"). Each page of docs/ has the options of its command.

    A criterion that is exceeded or cannot be judged is no error: see `Point.verdict`. Raises CommandError if
    the command is missing or fails, with its text (exit codes: docs/method.md), and ResultError if its result
    is damaged.
    """
    return Results((measure(words, options),))
