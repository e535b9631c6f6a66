"""Errors of the package. All are subclasses of `latscope.Error`."""

from collections.abc import Sequence


class Error(Exception):
    """Base of the errors that this package raises by itself."""


class ResultError(Error, ValueError):
    """A file that is no result, or a damaged one. `source` names the file, `reason` says what is wrong with
    it."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot use {self.source}: {self.reason}"


class ForeignError(ResultError):
    """A file of JSON that is no result of latscope: of another program, of another schema, or a
    `trial.json`."""


class SelectionError(Error, LookupError):
    """Not exactly one point matches. The text names the parameters that tell the candidates apart."""


class MergeError(Error, ValueError):
    """Results that do not add up: of different machines, or with different ticks."""


class CommandError(Error, RuntimeError):
    """The command `latscope` is missing or failed. `arguments` are its words, `code` is its exit code (None:
    it was not started) and `stderr` its text."""

    def __init__(self, arguments: Sequence[str], code: int | None, stderr: str) -> None:
        super().__init__(arguments, code, stderr)
        self.arguments = tuple(arguments)
        self.code = code
        self.stderr = stderr

    def __str__(self) -> str:
        ended = "did not start" if self.code is None else f"ended with {self.code}"
        return f"{' '.join(self.arguments)} {ended}: {self.stderr.strip()}"
