"""What an ingestion reads: files, directories with all below them, archives, standard input."""

import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .._read import LIMIT

#: Endings of results. Other files of a directory or an archive are no results.
ENDINGS = (".json", ".json.gz")
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True)
class Item:
    """One result to read: its name, and its text if it was not read from a file of that name. `fault` says
    why there is no text."""

    name: str
    text: bytes | None = None
    fault: str | None = None


def items(paths: Sequence[str]) -> Iterator[Item]:
    """Yields the results under some paths, `-` for standard input (a result or an archive)."""
    for path in paths:
        if path == "-":
            yield from _of_stream(sys.stdin.buffer)
        elif Path(path).is_dir():
            # A lake below the directory has JSON of its own.
            inner = {"_delta_log", "set-aside"}
            found = (
                one for one in sorted(Path(path).rglob("*")) if one.is_file() and inner.isdisjoint(one.parts)
            )
            names = (str(one) for one in found)
            yield from items([name for name in names if name.endswith(ENDINGS + _ARCHIVES)])
        elif path.endswith(_ARCHIVES):
            try:
                with tarfile.open(path) as archive:
                    yield from _members(archive, path)
            except (tarfile.TarError, OSError, EOFError) as error:
                yield Item(path, fault=f"it is a damaged archive: {error}")
        else:
            yield Item(path)


def _of_stream(stream: IO[bytes]) -> Iterator[Item]:
    head = stream.read(512)
    if head[257:262] == b"ustar":
        rest: Any = _Joined(head, stream)
        try:
            with tarfile.open(fileobj=rest, mode="r|") as archive:
                yield from _members(archive, "standard input")
        except (tarfile.TarError, OSError, EOFError) as error:
            yield Item("standard input", fault=f"it is a damaged archive: {error}")
    else:
        yield Item("standard input", head + stream.read(LIMIT + 1))


def _members(archive: tarfile.TarFile, name: str) -> Iterator[Item]:
    for member in archive:
        if member.isfile() and member.name.endswith(ENDINGS):
            if member.size > LIMIT:
                yield Item(f"{name}:{member.name}", fault="it has more than 1 GiB")
            elif (file := archive.extractfile(member)) is not None:
                yield Item(f"{name}:{member.name}", file.read())


class _Joined:
    """Stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self.head, self.rest = head, rest

    def read(self, size: int) -> bytes:
        taken, self.head = self.head[:size], self.head[size:]
        return taken + self.rest.read(size - len(taken)) if len(taken) < size else taken
