"""Runs, and how they are read from files. See docs/result-schema.md ("Report")."""

import gzip
import io
import json
import os
import sys
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias

from . import _json
from ._errors import Error, ForeignError, ResultError
from ._files import open_regular
from ._point import Point, point_from_json

SCHEMA = "latscope/1"

#: The most bytes of a result that are read, uncompressed.
LIMIT = 1 << 30

Source: TypeAlias = str | os.PathLike[str] | IO[bytes] | IO[str]


@dataclass(frozen=True)
class Run:
    """One run: where and when it was measured, and its points.

    `source` names the file. `started` and `finished` are RFC 3339 times in UTC; `finished` is None where the
    run was interrupted. `machine`, `warnings` and `findings` are the parsed fields of the file; what else it
    has is in `document`. The fields are those of docs/result-schema.md ("Report").
    """

    source: str
    run_id: str
    labels: Mapping[str, str]
    tool: Mapping[str, Any]
    started: str | None
    finished: str | None
    machine: Mapping[str, Any]
    warnings: tuple[Mapping[str, Any], ...]
    findings: tuple[Mapping[str, Any], ...]
    points: tuple[Point, ...]
    packed: bytes | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> bytes:
        """Text of the result file, UTF-8. Raises Error for a merged run, which has no file."""
        if self.packed is None:
            raise Error(f"{self.source} has no result file: choose one of the runs that were merged")
        return zlib.decompress(self.packed)

    @property
    def document(self) -> dict[str, Any]:
        """Whole result file, parsed anew at each call, with blocks and outliers. Raises Error for a merged
        run."""
        document: dict[str, Any] = json.loads(self.text)
        return document


def runs_from(source: Source | Iterable[Source]) -> tuple[Run, ...]:
    """Returns the runs of a file, a directory, a file object or several of them. See `latscope.read`."""
    found: dict[str, Run] = {}
    for run in _each(source):
        # Older results have no name: they are the same run if they have the same text.
        other = found.setdefault(run.run_id or repr(run.packed), run)
        if other is not run:
            warnings.warn(f"{run.source} is the same run as {other.source}: it is counted once", stacklevel=3)
    if not found:
        raise ResultError(_name(source), "there is no result in it (choose files that --json wrote)")
    return tuple(found.values())


def run_from_text(text: bytes, source: str) -> Run:
    """Returns the run of a result's text. Raises ResultError, ForeignError if it is JSON of something
    else."""
    try:
        document = json.loads(text.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ResultError(
            source, f"it is not a latscope result, or a damaged one ({_short(error)})"
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("schema"), str):
        raise ForeignError(source, 'it is not a latscope result, for it has no "schema" field')
    if document["schema"] != SCHEMA:
        schema = document["schema"]
        raise ForeignError(source, f"its schema is {schema!r:.60}, and this reads {SCHEMA!r}")
    try:
        return _run(document, text, source)
    except (ValueError, OverflowError) as error:
        raise ResultError(source, f"it is a damaged result: {_short(error)}") from None


def _run(document: _json.Object, text: bytes, source: str) -> Run:
    batches = _batches(_json.get(document, "plan", dict))
    return Run(
        source=source,
        run_id=_json.get(document, "run_id", str, ""),
        labels=_json.get(document, "labels", dict, {}),
        tool=_json.get(document, "tool", dict),
        started=_json.get(document, "started", str, "") or None,
        finished=_json.get(document, "finished", str, "") or None,
        machine=_json.get(document, "machine", dict),
        warnings=tuple(_json.objects(document, "warnings")),
        findings=tuple(_json.objects(document, "findings")),
        points=tuple(_points(_json.get(document, "measurements", list), batches)),
        packed=zlib.compress(text, 1),
    )


def _points(measurements: list[Any], batches: Mapping[object, int]) -> Iterator[Point]:
    for place, item in enumerate(measurements):
        try:
            fields = _json.checked(item, "the measurement", dict)
            yield point_from_json(fields, batches.get(_identity(fields)))
        except ValueError as error:
            raise ValueError(f"measurements[{place}]: {error}") from None


def _batches(plan: _json.Object) -> dict[object, int]:
    """Returns the planned length of a batch of each point, ns. The first step that plans a point counts."""
    batches: dict[object, int] = {}
    for step in _json.objects(plan, "steps"):
        batch_ns = _json.get(step, "stop", dict, {}).get("batch_ns")
        if isinstance(batch_ns, int):
            for point in _json.objects(step, "points"):
                batches.setdefault(_identity(point), batch_ns)
    return batches


def _identity(fields: _json.Object) -> object:
    params = _json.get(fields, "params", dict)
    return _json.get(fields, "probe", str), json.dumps(params, sort_keys=True)


def _each(source: Source | Iterable[Source]) -> Iterator[Run]:
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if str(path) == "-":
            yield run_from_text(_limited(sys.stdin.buffer, "standard input"), "standard input")
        elif path.is_dir():
            yield from _of_directory(path)
        else:
            yield _of_file(str(path))
    elif hasattr(source, "read"):
        name = _name(source)
        yield run_from_text(_limited(source, name), name)
    else:
        for one in source:
            yield from _each(one)


def _of_directory(directory: Path) -> Iterator[Run]:
    names = (path for path in sorted(directory.iterdir()) if path.name.endswith((".json", ".json.gz")))
    for path in names:
        try:
            yield _of_file(str(path), str(directory))
        except ForeignError as error:
            # Commands of latscope leave other files beside results: trial.json, comparisons.
            if "'latscope-" not in error.reason:
                warnings.warn(f"skipped: {error}", stacklevel=5)


def _of_file(path: str, below: str | None = None) -> Run:
    # A pipe or a device would be waited for. A link that others placed in a directory is not followed.
    try:
        file = open_regular(path, below, follows=below is None)
    except OSError as error:
        if error.errno is not None:
            raise
        raise ResultError(path, f"{error}: give what it has as a file object") from None
    with file:
        return run_from_text(_limited(file, path), path)


def _limited(file: Any, name: str) -> bytes:
    """Reads a file object, compressed or not, up to the limit."""
    text = file.read(LIMIT + 1)
    raw = text.encode() if isinstance(text, str) else bytes(text)
    if raw.startswith(b"\x1f\x8b"):
        raw = _uncompressed(raw, name)
    if len(raw) > LIMIT:
        raise ResultError(name, "it has more than 1 GiB")
    return raw


def _uncompressed(raw: bytes, name: str) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            return file.read(LIMIT + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ResultError(name, f"its compression is damaged ({error})") from None


def _name(source: object) -> str:
    if isinstance(source, str | os.PathLike):
        return str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the file object" if hasattr(source, "read") else "the list"


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _short(error: BaseException) -> str:
    return f"{error!s:.200}"
