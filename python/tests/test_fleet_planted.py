"""Files that others placed where results are looked for, where rows are written, and in an archive."""

import contextlib
import gzip
import io
import json
import os
import random
import shutil
import stat
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from conftest import DATA

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

from fleet_help import add
from test_fleet_hostile import called

import latscope
from latscope._files import open_regular, own_directory, regular_below, write_whole
from latscope.fleet import Lake, _ingest, _sources
from latscope.fleet._parse import Parsed
from latscope.fleet._report import raw_result
from latscope.fleet._sources import Item, items

SECRET = "TOP SECRET KEY=abc123"
NOBODY = 65534


def link(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def hard_link(path: Path, secret: Path) -> None:
    # As where the kernel does not protect hard links: the directory is another user's.
    os.link(secret, path)
    os.chown(path.parent, NOBODY, NOBODY)


def fifo(path: Path, secret: Path) -> None:
    os.mkfifo(path)


def device(path: Path, secret: Path) -> None:
    # Its driver would say that it was opened: there is none.
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(240, 0))


def directory_link(path: Path, secret: Path) -> None:
    path.with_suffix("").symlink_to(secret.parent)


def socket_file(path: Path, secret: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


PLANTS = (link, hard_link, fifo, device, directory_link, socket_file)
ENDINGS = (".json", ".json.gz", ".tar", ".tgz", ".tar.bz2", ".tar.xz")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """File that only its owner may read."""
    (tmp_path / "private").mkdir()
    path = tmp_path / "private" / "secret.json"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """Directory with one result, into which others write."""
    (tmp_path / "spool").mkdir()
    shutil.copy(DATA / "wake.json.gz", tmp_path / "spool")
    return tmp_path / "spool"


def published(*roots: Path) -> str:
    """Returns the texts of all files below directories, unpacked."""
    found = []
    for path in (one for root in roots for one in root.rglob("*") if one.is_file() and not one.is_symlink()):
        text = path.read_bytes()
        found.append(gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text)
    return b"\n".join(found).decode(errors="replace")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices and files of others")
@pytest.mark.parametrize("plant", PLANTS)
def test_what_was_planted_is_not_read(
    lake: Lake, spool: Path, secret: Path, plant: Callable[[Path, Path], None]
) -> None:
    for number, ending in enumerate(ENDINGS):
        plant(spool / f"planted{number}{ending}", secret)
    planted = [one for one in spool.iterdir() if one.name.startswith("planted")]
    assert len(planted) == len(ENDINGS)
    # Below a directory, and by their names.
    named = planted if plant is not directory_link else [one / "secret.json" / "x" for one in planted]
    for words in ([str(spool)], [str(one) for one in named]):
        code, _, said = called("ingest", "--lake", lake.root, "--processes", "1", *words)
        assert code in (0, 1, 2), said
        assert SECRET not in published(Path(lake.root))
    assert len(lake.snapshot().files["runs"]) == 1
    for one in planted:
        row = {"source": str(one.relative_to(spool)), "run_id": "x"}
        assert raw_result(spool, row) is None
    with pytest.raises((latscope.Error, OSError)):
        latscope.read(spool) if plant is not directory_link else latscope.read(
            planted[0].parent / "none.json"
        )


def test_a_directory_that_is_exchanged_is_not_followed(lake: Lake, spool: Path, secret: Path) -> None:
    inner = spool / "inner"
    inner.mkdir()
    (inner / "secret.json").write_text("{")
    (found,) = [one for one in items([str(spool)]) if one.name.endswith("secret.json")]
    inner.rename(spool / "other")
    inner.symlink_to(secret.parent)
    (parsed,) = _ingest._parse_all([found], None, 1)
    assert parsed.fault is not None
    assert parsed.packed is None


def test_what_is_set_aside_is_of_this_user_alone(
    lake: Lake, spool: Path, secret: Path, tmp_path: Path
) -> None:
    (spool / "bad.json").write_text("{")
    umask = os.umask(0)
    try:
        add(lake, spool)
    finally:
        os.umask(umask)
    aside = Path(lake.root) / "set-aside"
    assert stat.S_IMODE(aside.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in aside.iterdir()} == {0o600}
    assert len(list(aside.iterdir())) == 2
    # A link in its place leads nowhere.
    shutil.rmtree(aside)
    aside.symlink_to(secret.parent)
    code, _, said = called("ingest", "--lake", lake.root, "--processes", "1", str(spool))
    assert (code, len(list(secret.parent.iterdir()))) == (1, 1), said
    if os.geteuid() == 0:
        os.chown(spool, NOBODY, NOBODY)
        with pytest.raises(OSError, match="another user"), own_directory(spool):
            pass


def test_a_deep_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * 40)).mkdir(parents=True)
    assert ["deeper" in (one.fault or "") for one in regular_below(str(tmp_path), (".json",))] == [True]


@contextlib.contextmanager
def full_disk(directory: Path) -> Iterator[Path]:
    """File system without room, and with a good file."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    try:
        (directory / "answer").write_text("the old answer\n")
        with contextlib.suppress(OSError), (directory / "filling").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_a_full_disk_keeps_the_old_answer(lake: Lake, tmp_path: Path, form: str) -> None:
    add(lake, DATA / "survey-a.json.gz")
    with full_disk(tmp_path / "disk") as disk:
        words = ["sql", "--lake", lake.root, "--format", form, "--output", str(disk / "answer")]
        code, _, said = called(*words, "SELECT *, random() AS r FROM points CROSS JOIN range(3)")
        assert (code, "No space left" in said) == (1, True), said
        assert (disk / "answer").read_text() == "the old answer\n"
        assert sorted(one.name for one in disk.iterdir()) == ["answer", "filling"]


def test_a_written_file_is_new_and_keeps_its_mode(tmp_path: Path, secret: Path) -> None:
    answer = tmp_path / "answer"
    answer.write_text("old")
    answer.chmod(0o640)
    held = answer.open()
    write_whole(answer, b"new")
    assert (answer.read_text(), held.read(), stat.S_IMODE(answer.stat().st_mode)) == ("new", "old", 0o640)
    held.close()
    # A link that others placed is replaced, and not followed.
    answer.unlink()
    answer.symlink_to(secret)
    write_whole(answer, b"new")
    assert (answer.is_symlink(), answer.read_text(), secret.read_text()) == (False, "new", SECRET)
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "private", b"new")
    write_whole("/dev/null", b"new")
    assert Path("/dev/null").is_char_device()


def test_a_pipe_is_written_to_and_no_link_in_its_place(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"new")
    reader.join()
    assert read == [b"new"]
    # It is exchanged after it was looked at.
    status = os.lstat(pipe)
    pipe.unlink()
    for place in (os.symlink, os.link):
        place(secret, pipe)
        with monkeypatch.context() as changed:
            changed.setattr(os, "lstat", lambda _: status)
            with pytest.raises(OSError, match=r"symbolic|another file now"):
                write_whole(pipe, b"new")
        pipe.unlink()
        assert secret.read_text() == SECRET


def test_output_to_a_descriptor_goes_there(lake: Lake, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        file.write(b"before\n")
        file.flush()
        write_whole(f"/dev/fd/{file.fileno()}", b"new\n")
    assert (tmp_path / "out").read_text() == "before\nnew\n"


def archive(path: Path, ending: str, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    kind = {"tgz": "gz"}.get(
        ending.rsplit(".", maxsplit=1)[-1], ending.rsplit(".", maxsplit=1)[-1].replace("tar", "")
    )
    made = path / f"a.{ending}"
    with tarfile.open(made, f"w:{kind}") as file:  # type: ignore[call-overload]
        for member, text in members:
            file.addfile(member, io.BytesIO(text))
    return made


def member(name: str, text: bytes, kind: bytes = tarfile.REGTYPE) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.type, made.size = kind, len(text)
    return made, text


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tgz", "tar.bz2", "tar.xz"])
def test_members_of_an_archive_are_read_up_to_the_limit(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sources, "MOST_BYTES", 20_000)
    text = random.Random(1).randbytes(15_000)
    named = [member("a.json", text), member("../b.json", text[:100]), member("c.txt", text)]
    planted = [member("d.json", b"", kind) for kind in (tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)]
    members = [*named, *planted, member("long.json", bytes(30_000)), member("e.json", b"last")]
    found = list(items([str(archive(tmp_path, ending, members))]))
    assert [(one.name.rpartition(":")[2], one.text) for one in found if one.fault is None] == [
        ("a.json", text), ("../b.json", text[:100]), ("e.json", b"last"),
    ]  # fmt: skip
    assert [one.name.rpartition(":")[2] for one in found if one.fault is not None] == ["long.json"]
    assert all(one.size == len(one.text or b"") for one in found)


def test_a_header_that_asks_for_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sources, "MOST_BYTES", 20_000)
    header, _ = member("pax", b"", tarfile.XHDTYPE)
    header.size = 1 << 33
    path = tmp_path / "a.tgz"
    path.write_bytes(gzip.compress(header.tobuf() + bytes(1 << 20)))
    (found,) = items([str(path)])
    assert "damaged archive" in (found.fault or "")


def test_standard_input_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sources, "MOST_BYTES", 20_000)
    stream = io.BytesIO(b"{" * 90_000)
    monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": stream}))
    (found,) = items(["-"])
    assert 20_000 < len(found.text or b"") < 21_000


def test_the_bytes_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ingest, "HELD_BYTES", 1000)
    monkeypatch.setattr(_ingest, "CHUNK_BYTES", 300)
    begun, held, most = 0, 0, 0

    def made() -> Iterator[Item]:
        nonlocal begun, held, most
        for number, size in enumerate([90, 600, 5, 400, 300] * 20):
            begun, held = begun + 1, held + size
            most = max(most, held)
            yield Item(str(number), bytes(size), size=size)

    def submit(chunk: list[Item]) -> "Future[list[Parsed]]":
        done: Future[list[Parsed]] = Future()
        done.set_result([Parsed(one.name, one.size) for one in chunk])
        return done

    names = []
    for parsed in _ingest._in_order(made(), 100, submit):
        held -= parsed.size
        names.append(parsed.name)
    assert names == [str(number) for number in range(100)]
    # The limit, and a chunk of one above its own.
    assert most <= 1000 + 300 + 600
    assert begun == 100


def test_a_lake_names_no_file_of_elsewhere(lake: Lake, tmp_path: Path) -> None:
    add(lake, DATA / "wake.json.gz")
    log = sorted((Path(lake.root) / "runs" / "_delta_log").glob("*.json"))[-1]
    (action,) = [line for line in log.read_text().splitlines() if '"add"' in line]
    outside = tmp_path / "outside.parquet"
    shutil.copy(lake.snapshot().files["runs"][0].uri, outside)
    for path in ("../../outside.parquet", "day=2026-11-24/*.parquet", "day=2026-11-24/'); COPY x TO 'y"):
        odd = json.loads(action)
        odd["add"]["path"] = path
        log.write_text(log.read_text().replace(action, json.dumps(odd)))
        action = json.dumps(odd)
        code, out, said = called("sql", "--lake", lake.root, "SELECT * FROM runs")
        assert (code, out) == (1, ""), path
        assert "no latscope names so" in said


def test_a_file_that_is_read_is_the_one_that_was_looked_at(spool: Path) -> None:
    with open_regular(str(spool / "wake.json.gz"), str(spool)) as file:
        assert file.read() == (DATA / "wake.json.gz").read_bytes()
    with pytest.raises(FileNotFoundError):
        open_regular(str(spool / "none.json"))
