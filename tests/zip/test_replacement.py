"""A file that takes the place of another one: whole or not at all, synced, and nothing is left by a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pt2kit.zip import target
from pt2kit.zip.target import replacing

LOCKS = pytest.mark.skipif(target.fcntl is None, reason="locks of POSIX")
OLD, NEW = b"old" * 1000, b"new" * 2000


def names(folder: Path) -> list[str]:
    """List a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("exists", [False, True])
def test_the_file_appears_at_the_end(tmp_path: Path, exists: bool) -> None:
    """Until then the path is as it was; afterwards it has the new content and nothing is next to it."""
    path = tmp_path / "x.pt2"
    if exists:
        path.write_bytes(OLD)
    with replacing(path) as file:
        file.write(NEW)
        file.flush()
        assert (path.read_bytes() == OLD) if exists else not path.exists()
    assert path.read_bytes() == NEW
    assert names(tmp_path) == ["x.pt2"]


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    """And nothing else."""
    path = tmp_path / "x.pt2"
    path.write_bytes(OLD)
    with pytest.raises(TypeError, match="bytes-like"), replacing(path) as file:
        file.writelines([NEW, "text"])  # type: ignore[list-item]
    assert path.read_bytes() == OLD
    assert names(tmp_path) == ["x.pt2"]


@pytest.mark.parametrize(("exists", "fsync", "expected"), [(True, False, 2), (False, True, 2), (False, False, 0)])
def test_a_replaced_file_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool, fsync: bool, expected: int
) -> None:
    """The file before it takes the place, its folder after; a new file only if that is asked for."""
    path = tmp_path / "x.pt2"
    if exists:
        path.write_bytes(OLD)
    synced: list[str] = []
    real_sync, real_replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        synced.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        real_sync(descriptor)

    def replace(source: str, target: str) -> None:
        synced.append("replaced")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    with replacing(path, fsync=fsync) as file:
        file.write(NEW)
    assert len([step for step in synced if step != "replaced"]) == expected
    assert synced == (["file", "replaced", "folder"] if expected else ["replaced"])


def test_a_failing_sync_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content that cannot be synced never replaces the old file."""
    path = tmp_path / "x.pt2"
    path.write_bytes(OLD)

    def fail(descriptor: int) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk is gone"), replacing(path) as file:
        file.write(NEW)
    assert path.read_bytes() == OLD
    assert names(tmp_path) == ["x.pt2"]


@LOCKS
def test_abandoned_files_are_removed(tmp_path: Path) -> None:
    """By the next writer to the same path; a living writer's file, and those of other paths, stay."""
    path, other = tmp_path / "x.pt2", tmp_path / "y.pt2"
    code = "import os, sys; from pt2kit.zip.target import replacing\nwith replacing(sys.argv[1]): os._exit(0)"
    for written in (path, other):
        subprocess.run([sys.executable, "-c", code, str(written)], check=True)
    left = names(tmp_path)
    assert len(left) == 2
    with replacing(path) as living:
        with replacing(path) as file:
            assert len(names(tmp_path)) == 3  # the other path's, the living one's, and this one
            file.write(NEW)
        assert path.read_bytes() == NEW
        living.write(OLD)
    assert path.read_bytes() == OLD
    with replacing(other):
        pass
    assert names(tmp_path) == ["x.pt2", "y.pt2"]


KILLED = """
import os, sys
from pt2kit.zip.writer import ArchiveWriter
content = os.urandom(1 << 20)
print("ready", flush=True)
while True:
    with ArchiveWriter(sys.argv[1], root="m") as writer:
        for number in range(8):
            writer.write(f"r{number}", content)
"""


@LOCKS
def test_kills(tmp_path: Path) -> None:
    """Whenever a writer is killed, the file is whole; what may be left has one of the known names, and goes later."""
    from pt2kit.zip.reader import open_archive

    path = tmp_path / "x.pt2"
    with replacing(path) as file:
        file.write(b"")
    path.unlink()
    for attempt in range(12):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if path.exists():
            with open_archive(path) as archive:
                assert len({len(archive.read(name)) for name in archive.records}) == 1
        left = [name for name in names(tmp_path) if name != "x.pt2"]
        assert len(left) <= 1
        assert all(name.startswith(".pt2kit-") and name.endswith(".tmp") for name in left)
    with replacing(path) as file:
        file.write(NEW)
    assert names(tmp_path) == ["x.pt2"]
