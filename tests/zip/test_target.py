"""Targets of written archives."""

from __future__ import annotations

import errno
import io
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pt2kit.errors import ArchiveError
from pt2kit.zip.reader import open_archive
from pt2kit.zip.target import not_while_reading, open_target, replacing
from pt2kit.zip.writer import ArchiveWriter

POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions and pipes of POSIX")


def write(target: Any, **options: Any) -> None:
    """Write a small archive."""
    with ArchiveWriter(target, root="m", **options) as writer:
        writer.write("a", b"first")


def mode(path: Path) -> int:
    """Permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_the_target_appears_whole(tmp_path: Path) -> None:
    """Until the end the target is not there; afterwards nothing else is."""
    path = tmp_path / "x.pt2"
    with ArchiveWriter(path) as writer:
        writer.write("a", b"first")
        assert not path.exists()
        assert len(list(tmp_path.iterdir())) <= 1
    assert list(tmp_path.iterdir()) == [path]
    with open_archive(path) as archive:
        assert bytes(archive.read("x/a")) == b"first"


@pytest.mark.parametrize("fsync", [True, False])
def test_readers_keep_the_old_file(tmp_path: Path, fsync: bool) -> None:
    """Who has the old file open goes on reading it while it is replaced."""
    path = tmp_path / "x.pt2"
    write(path)
    with open_archive(path) as old:
        with ArchiveWriter(path, root="m", fsync=fsync) as writer:
            writer.write("b", b"second")
        assert bytes(old.read("m/a")) == b"first"
    with open_archive(path) as new:
        assert list(new.records) == ["m/b"]


@POSIX
def test_permissions(tmp_path: Path) -> None:
    """A new file gets the permissions of any new file, a replaced one keeps its own."""
    code = (
        "import os, sys; os.umask(0o027); sys.path.insert(0, sys.argv[2]); "
        "from tests.zip.test_target import write; write(sys.argv[1])"
    )
    path = tmp_path / "x.pt2"
    root = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", code, str(path), root], check=True)
    assert mode(path) == 0o640
    path.chmod(0o604)
    write(path)
    assert mode(path) == 0o604


@POSIX
def test_links_are_followed(tmp_path: Path) -> None:
    """A symbolic link stays one; the file it points to is replaced."""
    (tmp_path / "real").mkdir()
    link = tmp_path / "x.pt2"
    link.symlink_to("real/x.pt2")
    for _ in range(2):
        write(link)
        assert link.is_symlink()
        assert [path.name for path in (tmp_path / "real").iterdir()] == ["x.pt2"]


@POSIX
def test_pipes_and_devices_are_written_to(tmp_path: Path) -> None:
    """Pipes and devices are not replaced by files."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got = []
    thread = threading.Thread(target=lambda: got.append(path.read_bytes()))
    thread.start()
    write(path)
    thread.join()
    assert stat.S_ISFIFO(path.stat().st_mode)
    with open_archive(got[0]) as archive:
        assert bytes(archive.read("m/a")) == b"first"
    write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_folders_and_missing_folders(tmp_path: Path) -> None:
    """A folder is no target; a missing one is reported as the operating system does."""
    with pytest.raises(ArchiveError, match=r"expected a file to write, got a folder \[A1\]"):
        write(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"none"):
        write(tmp_path / "none" / "x.pt2")


def test_failing_replacement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last step fails, the temporary file goes and the old file stays."""
    path = tmp_path / "x.pt2"
    path.write_bytes(b"old")

    def fail(*args: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match=r"^no$"):
        write(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_full_disk(tmp_path: Path) -> None:
    """If the disk is full, the error comes through and nothing is left."""

    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"):
        write(Full())
    path = tmp_path / "x.pt2"
    for open_it in (replacing, ArchiveWriter):
        with pytest.raises(OSError, match="full") as caught, open_it(path):
            raise OSError(errno.ENOSPC, "full")
        assert caught.value.filename == str(path)  # write() itself does not name it
    with pytest.raises(OSError, match="full") as caught, replacing(path):
        raise OSError(errno.ENOSPC, "full", "another file")
    assert caught.value.filename == "another file"
    assert not list(tmp_path.iterdir())


def test_file_objects_stay_open(tmp_path: Path) -> None:
    """A file object is written from where it stands, flushed, and left to its owner."""
    file = io.BytesIO(b"before")
    file.seek(6)
    with ArchiveWriter(file, root="m") as writer:
        writer.write("a", iter([b"fir", b"st"]), size=5)
    assert file.getvalue().startswith(b"before")
    with open_archive(file.getvalue()[6:]) as archive:
        assert bytes(archive.read("m/a")) == b"first"
    with (tmp_path / "x.pt2").open("wb") as opened:
        write(opened)
        with open_archive(tmp_path / "x.pt2") as archive:
            assert bytes(archive.read("m/a")) == b"first"


def test_append_mode(tmp_path: Path) -> None:
    """A file object that always writes at its end is treated as a stream."""
    path = tmp_path / "x.pt2"
    with path.open("ab") as file, ArchiveWriter(file, root="m") as writer:
        writer.write("a", iter([b"fir", b"st"]), size=5)
    with open_archive(path) as archive:
        assert bytes(archive.read("m/a")) == b"first"


@pytest.mark.parametrize("answer", [0, None])
def test_odd_file_objects(answer: int | None) -> None:
    """A file object that does not say what it took is believed; one that takes nothing is not written to for ever."""

    class Odd:
        def write(self, data: memoryview) -> int | None:
            return answer

        def flush(self) -> None:
            pass

    if answer is None:
        write(Odd())
    else:
        with pytest.raises(ArchiveError, match=r"<Odd>: expected to write \d+ bytes, got 0 written \[A1\]"):
            write(Odd())


@pytest.mark.parametrize("target", [None, 3, b"bytes", io.StringIO()])
def test_other_types(target: Any) -> None:
    """Anything else is a mistake of the caller."""
    with pytest.raises(TypeError, match="expected a path or a binary file object, got"), open_target(target):
        pass


@pytest.mark.parametrize("how", ["same handle", "another handle", "in memory"])
def test_writing_onto_the_own_source(tmp_path: Path, how: str) -> None:
    """A file that is read while it is written gets the new content alone, and nothing of the old one is behind it."""
    path = tmp_path / "x.pt2"
    with ArchiveWriter(path, root="m") as writer:
        writer.write("a", b"first")
        writer.write("b", bytes(10_000))
    with path.open("r+b") as opened, path.open("r+b") as other:
        file: Any = io.BytesIO(path.read_bytes()) if how == "in memory" else opened
        target = other if how == "another handle" else file
        with (
            open_archive(file) as archive,
            not_while_reading(archive.source, target) as new,
            ArchiveWriter(new, root="m") as writer,
        ):
            writer.write("a", archive.read("m/a"))
            writer.write("c", archive.read("m/b")[:10])
        target.seek(0)
        with open_archive(target) as archive:
            assert list(archive.records) == ["m/a", "m/c"]
            assert bytes(archive.read("m/a")) == b"first"


def test_other_targets_are_written_to_directly(tmp_path: Path) -> None:
    """No temporary file where the target is not what is read."""
    path = tmp_path / "x.pt2"
    write(path)
    target = io.BytesIO()
    with open_archive(path) as archive, not_while_reading(archive.source, target) as new:
        assert new is target
