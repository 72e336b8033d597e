"""Files that appear whole or not at all, and storages that are read once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.tensors.helpers import storage, view

from pt2kit.errors import UnsupportedError
from pt2kit.schema import ScalarType
from pt2kit.tensors import MetaView, OpaquePayload, Storage
from pt2kit.tensors.export import Reader, new_file


def test_file_appears_at_the_end(tmp_path: Path) -> None:
    """Until the end the old file does not change; then only the new one is left."""
    path = tmp_path / "a.npy"
    path.write_bytes(b"old")
    with new_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.npy"]


def test_error_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """An error on the way removes what was written so far."""
    path = tmp_path / "a.npy"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError, match="on the way"), new_file(path):
        raise ZeroDivisionError("on the way")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.npy"]


def test_permissions(tmp_path: Path) -> None:
    """A new file has those of any new file; a replaced one keeps its own."""
    new, old, plain = tmp_path / "new", tmp_path / "old", tmp_path / "plain"
    plain.touch()
    old.touch()
    old.chmod(0o604)
    for path in (new, old):
        with new_file(path) as file:
            file.write(b"new")
    assert new.stat().st_mode == plain.stat().st_mode
    assert old.stat().st_mode & 0o777 == 0o604


def test_links_are_followed(tmp_path: Path) -> None:
    """Writing through a link writes the file that it points to."""
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with new_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("path", [os.devnull, "."])
def test_only_files_are_replaced(path: str) -> None:
    """A device or a folder is not renamed over."""
    with (
        pytest.raises(UnsupportedError, match=r"expected a file to write, got a folder or a device \[P18\]"),
        new_file(path),
    ):
        pass


def test_missing_folder(tmp_path: Path) -> None:
    """The operating system's error is the caller's to handle."""
    with pytest.raises(FileNotFoundError, match="none"), new_file(tmp_path / "none" / "a"):
        pass


def test_each_storage_is_read_once_and_let_go() -> None:
    """A storage is loaded for its first view and held until its last, not longer."""
    loads = []

    def load(name: str) -> memoryview:
        loads.append(name)
        return memoryview(bytes(8))

    a, b = (Storage(name, 8, lambda name=name: load(name)) for name in "ab")  # type: ignore[misc]
    views = [view(under, ScalarType.FLOAT, (2,)) for under in (a, b, a, b, a)]
    reader = Reader(views)
    for found in views:
        assert reader.take(found).nbytes == 8
    assert loads == ["a", "b"]
    assert reader._held == {}


def test_what_is_not_one_array() -> None:
    """Meta tensors and objects have nothing to write."""
    with pytest.raises(UnsupportedError, match=r"'m': expected a tensor that is one array, got f32\[2\] meta \[P18\]"):
        MetaView("m", ScalarType.FLOAT, (2,), (1,)).dense()
    with pytest.raises(UnsupportedError, match="would run code"):
        OpaquePayload("k", storage(b"\x80\x02N."), "opaque").dense()
