"""The command `latscope`: where it is, and what is asked of it."""

import json
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from os import environ
from pathlib import Path
from typing import Any

from ._errors import CommandError
from ._read import Run, run_from_text

#: Exit codes with a result: done, a criterion is exceeded, a criterion cannot be judged (docs/method.md).
MEASURED = (0, 2, 3)


def binary() -> str:
    """Returns the path of the command: $LATSCOPE_BINARY, else that of this package's wheel, else the first
    `latscope` of PATH. Raises CommandError if there is none."""
    found = environ.get("LATSCOPE_BINARY") or _of_wheel() or shutil.which("latscope")
    if not found:
        raise CommandError(
            ["latscope"], None, "it is neither named by $LATSCOPE_BINARY, nor in this package, nor in PATH"
        )
    return found


def measure(words: Sequence[str], options: Mapping[str, Any]) -> Run:
    """Returns the run that the command measures. See `latscope.run`."""
    for name in ("json", "quiet"):
        if name in options:
            raise TypeError(f"the option {name} is given by run() itself")
    with tempfile.TemporaryDirectory(prefix="latscope-") as directory:
        result = Path(directory) / "result.json"
        arguments = [*words, *_options(options), "--quiet", "--json", str(result)]
        _, messages, code = _call(arguments, b"", MEASURED)
        if not result.exists():
            raise CommandError(["latscope", *arguments], code, messages or "it wrote no result")
        return run_from_text(result.read_bytes(), f"latscope {' '.join(words)}")


def page(run: Run) -> str:
    """Returns the page of a run, HTML that needs no other file (`latscope show - --html -`,
    docs/report.md)."""
    return _call(["show", "-", "--quiet", "--html", "-"], run.text, (0,))[0].decode()


def compare(a: Sequence[Run], b: Sequence[Run], options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parsed comparison of two sides. See `Results.compare`."""
    with tempfile.TemporaryDirectory(prefix="latscope-") as directory:
        sides = [_written(Path(directory) / name, runs) for name, runs in (("a", a), ("b", b))]
        arguments = ["compare", *_options(options), "--quiet", "--json", "-", *sides[0], "--", *sides[1]]
        text, _, _ = _call(arguments, b"", MEASURED)
    compared: dict[str, Any] = json.loads(text)
    return compared


def _written(directory: Path, runs: Sequence[Run]) -> list[str]:
    directory.mkdir()
    paths = [directory / f"{place}.json" for place in range(len(runs))]
    for path, run in zip(paths, runs, strict=True):
        path.write_bytes(run.text)
    return [str(path) for path in paths]


def _of_wheel() -> str | None:
    try:
        files = metadata.files("latscope") or []
    except metadata.PackageNotFoundError:
        return None
    paths = (file.locate() for file in files if file.name == "latscope" and file.parent.name == "bin")
    return next((str(path.resolve()) for path in map(Path, map(str, paths)) if path.is_file()), None)


def _options(options: Mapping[str, Any]) -> list[str]:
    """Returns the words of options: `batch_size=4, quick=True, label={"a": "b"}` is `--batch-size 4 --quick
    --label a=b`. What is None or false is left out, a sequence is joined by commas."""
    words: list[str] = []
    for name, value in options.items():
        # The underscore of p99_9 is part of the name.
        option = "--" + (name if re.fullmatch(r"p\d+_\d+", name) else name.rstrip("_").replace("_", "-"))
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            words += [word for key, one in value.items() for word in (option, f"{key}={one}")]
        elif isinstance(value, list | tuple | range):
            words += [option, ",".join(map(str, value))]
        else:
            words += [option, str(value)]
    return words


def _call(arguments: Sequence[str], text: bytes, expected: Sequence[int]) -> tuple[bytes, str, int]:
    """Runs the command. Returns its output, its messages and its exit code, which must be an expected one."""
    command = [binary(), *arguments]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise CommandError(command, None, str(error)) from None
    with process:
        try:
            output, messages = process.communicate(text)
        except BaseException:
            # It undoes what it changed on the machine, and then ends.
            process.send_signal(signal.SIGTERM)
            process.wait()
            raise
    remarks = messages.decode(errors="replace")
    if process.returncode not in expected:
        raise CommandError(command, process.returncode, remarks)
    return output, remarks, process.returncode
