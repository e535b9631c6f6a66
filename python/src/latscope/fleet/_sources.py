"""What an ingestion reads: files, directories with all below them, archives, standard input."""

import bz2
import gzip
import lzma
import os
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from .._files import open_regular, regular_below
from ._document import MOST_BYTES

#: Endings of results. Other files of a directory or an archive are no results.
ENDINGS = (".json", ".json.gz")

_UNPACKERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".tar": lambda file: file,
    ".tar.gz": lambda file: gzip.GzipFile(fileobj=file),
    ".tgz": lambda file: gzip.GzipFile(fileobj=file),
    ".tar.bz2": bz2.BZ2File,
    ".tar.xz": lzma.LZMAFile,
}

#: Directories of a lake, which may be below one that is named: they have JSON of their own.
_OF_LAKE = frozenset({"_delta_log", "set-aside"})

_TOO_LONG = f"it has more than {MOST_BYTES >> 20} MiB"
_DAMAGES = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)


@dataclass(frozen=True)
class Item:
    """One result to read: its name, and its text if it was not read from a file of that name. `fault` says
    why there is no text, `size` is that of the file or the text, `below` the directory that was named."""

    name: str
    text: bytes | None = None
    fault: str | None = None
    size: int = 0
    below: str | None = None


def items(paths: Sequence[str]) -> Iterator[Item]:
    """Yields the results under some paths, `-` for standard input (a result or an archive). Only
    regular files are opened, and below a directory no link is followed."""
    for path in paths:
        if path == "-":
            yield from _of_stream(sys.stdin.buffer)
        elif os.path.isdir(path):
            for found in regular_below(path, (*ENDINGS, *_UNPACKERS), _OF_LAKE):
                yield from _of_file(Item(found.path, fault=found.fault, size=found.size, below=path))
        else:
            yield from _of_file(Item(path))


def _of_file(item: Item) -> Iterator[Item]:
    ending = next((one for one in _UNPACKERS if item.name.endswith(one)), None)
    if ending is None or item.fault is not None:
        yield item
        return
    try:
        with open_regular(item.name, item.below) as file:
            yield from _members(_Stream(_UNPACKERS[ending](file)), item.name)
    except _DAMAGES as error:
        yield Item(item.name, fault=f"it is a damaged archive: {error}")


def _of_stream(stream: IO[bytes]) -> Iterator[Item]:
    head = stream.read(512)
    if head[257:262] == b"ustar":
        try:
            yield from _members(_Stream(stream, head), "standard input")
        except _DAMAGES as error:
            yield Item("standard input", fault=f"it is a damaged archive: {error}")
    else:
        text = head + stream.read(MOST_BYTES)
        yield Item("standard input", text, size=len(text))


def _members(stream: Any, name: str) -> Iterator[Item]:
    with tarfile.TarFile(fileobj=stream) as opened:
        archive: Any = opened
        while (member := archive.next()) is not None:
            # It would keep all of them.
            archive.members.clear()
            if not (member.isfile() and member.name.endswith(ENDINGS)):
                continue
            own = f"{name}:{member.name}"
            if member.size > MOST_BYTES:
                yield Item(own, fault=_TOO_LONG)
            elif (file := archive.extractfile(member)) is not None:
                text = file.read(MOST_BYTES)
                yield Item(own, text, size=len(text))


class _Stream:
    """Stream that is only read forwards, and no more at once than a result may have: the header of a member
    may ask for any length."""

    def __init__(self, inner: IO[bytes], head: bytes = b"") -> None:
        self.inner, self.head, self.place = inner, head, 0

    def read(self, size: int) -> bytes:
        if size > MOST_BYTES + tarfile.BLOCKSIZE:
            raise tarfile.ReadError(f"a header of {size} bytes")
        parts = [self.head[:size]]
        self.head, rest = self.head[size:], size - len(parts[0])
        while rest and (part := self.inner.read(rest)):
            parts.append(part)
            rest -= len(part)
        self.place += size - rest
        return b"".join(parts)

    def tell(self) -> int:
        return self.place

    def seek(self, place: int) -> None:
        while self.place < place and self.read(min(place - self.place, 1 << 14)):
            pass
