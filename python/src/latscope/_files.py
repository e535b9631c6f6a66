"""Files that others may have placed: opened without following links, looked at, and only then read; and files
that are written whole or not at all."""

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

#: The deepest directory below one that is named.
DEEPEST = 32

_HELD = os.O_CLOEXEC | os.O_NOFOLLOW
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/dev/std(?:out|err)|/(?:dev|proc/self)/fd/([0-9]{1,6})")
_KINDS = {
    stat.S_IFLNK: "a symbolic link: name what it leads to",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Found(NamedTuple):
    """File below a directory: its path from there, and its size. `fault` says why it is not read."""

    path: str
    size: int = 0
    fault: str | None = None


def open_regular(path: str, below: str | None = None, follows: bool = False) -> BinaryIO:
    """Opens a regular file to read it. Nothing else is opened: opening a device can act, and opening a pipe
    waits. A link is not followed, unless `follows` is true; with `below` no part of the path after that
    directory is.

    Raises OSError, with what it is in place of a file.
    """
    where, name = os.path.split(path)
    directory = _directory(where or "." if below is None else below)
    try:
        parts = [] if below is None else Path(where).relative_to(below).parts
        for part in parts:
            inner = _directory(part, directory)
            os.close(directory)
            directory = inner
        return _opened(name, directory, 0 if follows else os.O_NOFOLLOW)
    finally:
        os.close(directory)


def regular_below(root: str, endings: tuple[str, ...], without: frozenset[str] = frozenset()) -> list[Found]:
    """Returns the files below a directory whose names have one of some endings, in order of their paths.
    Links, pipes, devices and directories that are named `without` are left out; a directory that cannot be
    read is in the list with its fault."""
    try:
        directory = _directory(root)
    except OSError as error:
        return [Found(root, fault=f"it cannot be read: {error.strerror}")]
    return sorted(_below(directory, root, endings, without, DEEPEST))


def _below(
    directory: int, path: str, endings: tuple[str, ...], without: frozenset[str], deeper: int
) -> Iterator[Found]:
    with contextlib.closing(os.scandir(directory)) as entries:
        try:
            for entry in entries:
                own = os.path.join(path, entry.name)
                if entry.is_dir(follow_symlinks=False) and entry.name not in without:
                    if deeper == 0:
                        yield Found(own, fault=f"it is deeper than {DEEPEST} directories")
                        continue
                    try:
                        inner = _directory(entry.name, directory)
                    except OSError as error:
                        yield Found(own, fault=f"it cannot be read: {error.strerror}")
                        continue
                    yield from _below(inner, own, endings, without, deeper - 1)
                elif entry.is_file(follow_symlinks=False) and entry.name.endswith(endings):
                    yield Found(own, entry.stat(follow_symlinks=False).st_size)
        finally:
            os.close(directory)


def _directory(path: str, at: int | None = None) -> int:
    """Opens a directory. Below another one a link to it is not followed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if at is None else os.O_NOFOLLOW)
    return os.open(path, flags, dir_fd=at)


def _opened(name: str, directory: int, flags: int) -> BinaryIO:
    # This descriptor only says what the file is: no driver is asked.
    held = os.open(name, os.O_PATH | os.O_CLOEXEC | flags, dir_fd=directory)
    try:
        status = os.fstat(held)
        kind = _KINDS.get(stat.S_IFMT(status.st_mode))
        if kind is not None:
            raise OSError(f"it is no plain file, but {kind}")
        if status.st_nlink > 1 and status.st_uid != os.fstat(directory).st_uid:
            # Who placed this name may not be allowed to read the file.
            raise OSError("it is a second name of another user's file")
        return os.fdopen(os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_CLOEXEC), "rb")
    finally:
        os.close(held)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file: all of it, or the old one stays as it was. A new one has its mode. A descriptor, a pipe
    or a device that is named (/dev/stdout) is written to. Raises OSError."""
    path = os.path.abspath(path)
    descriptor = _DESCRIPTOR.fullmatch(path)
    if descriptor is not None:
        with os.fdopen(os.dup(_STREAMS.get(path) or int(descriptor[1])), "wb") as file:
            file.write(data)
        return
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        status = None
    if status is not None and _is_written_to(path, status):
        _write_to(path, stat.S_ISLNK(status.st_mode), data)
        return
    mode = stat.S_IMODE(status.st_mode) if status is not None and stat.S_ISREG(status.st_mode) else None
    directory = _directory(os.path.dirname(path))
    try:
        replace_below(directory, os.path.basename(path), data, mode)
    finally:
        os.close(directory)


def _is_written_to(path: str, status: os.stat_result) -> bool:
    """Returns true for a pipe or a character device, also if a link of root or of this user leads to it."""
    if stat.S_ISLNK(status.st_mode) and status.st_uid in (0, os.geteuid()):
        with contextlib.suppress(OSError):
            status = os.stat(path)
    return stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode)


def _write_to(path: str, follows: bool, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC | (0 if follows else os.O_NOFOLLOW)
    with os.fdopen(os.open(path, flags), "wb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} was a pipe or a device, and is another file now")
        file.write(data)


def replace_below(directory: int, name: str, data: bytes, mode: int | None = None) -> None:
    """Writes a file into an open directory, in place of what has its name there. Raises OSError."""
    made = f".{name[:100]}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _HELD
    descriptor = os.open(made, flags, 0o666 if mode is None else 0o600, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.rename(made, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made, dir_fd=directory)
        raise


@contextlib.contextmanager
def own_directory(path: str | os.PathLike[str]) -> Iterator[int]:
    """Gives a directory for files of this user alone, made with mode 0700 if it is missing. Raises OSError if
    it is a link, or belongs to another user."""
    with contextlib.suppress(FileExistsError):
        os.makedirs(path, 0o700)
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _HELD)
    try:
        if os.fstat(directory).st_uid not in (0, os.geteuid()):
            raise OSError(f"{os.fspath(path)} belongs to another user")
        yield directory
    finally:
        os.close(directory)
