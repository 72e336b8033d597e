"""Sources of bytes."""

from __future__ import annotations

import gc
import gzip
import io
import mmap
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest
from tests.zip.zip_forge import simple

from pt2kit.errors import ArchiveError, LimitError
from pt2kit.zip.listing import open_source
from pt2kit.zip.reader import open_archive
from pt2kit.zip.source import FileSource, Limits, MemorySource, Source

DATA = bytes(range(256)) * 10


class Pipe(io.RawIOBase):
    """A stream that cannot seek and gives little at a time."""

    def __init__(self, data: bytes) -> None:
        self._rest = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part, self._rest = self._rest[: min(7, len(buffer))], self._rest[min(7, len(buffer)) :]
        buffer[: len(part)] = part
        return len(part)


class Trickle(io.BytesIO):
    """A file object that gives less than it is asked for."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size, 5) if size and size > 0 else size)


def _sources(path: Path) -> list[tuple[str, Source]]:
    path.write_bytes(DATA)
    opened = path.open("rb")
    raw = path.open("rb", buffering=0)
    both = path.open("r+b")
    found = [
        ("path", open_source(path)),
        ("text path", open_source(str(path))),
        ("bytes", open_source(DATA)),
        ("bytearray", open_source(bytearray(DATA))),
        ("memoryview", open_source(memoryview(DATA))),
        ("BytesIO", open_source(io.BytesIO(DATA))),
        ("file", open_source(opened)),
        ("raw file", open_source(raw)),
        ("read-write file", open_source(both)),
        ("trickle", open_source(Trickle(DATA))),
        ("pipe", open_source(Pipe(DATA))),  # type: ignore[arg-type]
        ("gzip", open_source(gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(DATA))))),  # type: ignore[arg-type]
    ]
    for file in (opened, raw, both):
        file.close()  # A mapping does not need the file object any more.
    return found


def test_all_sources_read_the_same(tmp_path: Path) -> None:
    """Whatever the bytes come from, ranges give them, read-only."""
    for kind, source in _sources(tmp_path / "x.bin"):
        assert source.size == len(DATA), kind
        for offset, length in ((0, len(DATA)), (0, 0), (len(DATA), 0), (1, 255), (len(DATA) - 1, 1)):
            view = source.read(offset, length)
            assert view == DATA[offset : offset + length], kind
            assert view.readonly, kind
        assert isinstance(source, Source)
        source.close()
        source.close()
        with pytest.raises(ArchiveError, match=r"expected an open archive, got one that is closed \[A27\]"):
            source.read(0, 1)


@pytest.mark.parametrize("place", [(-1, 1), (0, -1), (0, len(DATA) + 1), (len(DATA), 1), (2**64, 1)])
def test_ranges_outside(tmp_path: Path, place: tuple[int, int]) -> None:
    """A range that is not inside the file is refused, with both numbers."""
    for _, source in _sources(tmp_path / "x.bin"):
        with pytest.raises(ArchiveError, match=rf"inside the {len(DATA)} bytes .* got {place[1]} bytes .*\[A1\]"):
            source.read(*place)


def test_local_sources_copy_nothing(tmp_path: Path) -> None:
    """A view of memory is the memory itself."""
    data = bytearray(DATA)
    source = open_source(data)
    view = source.read(0, 4)
    data[0] = 99
    assert view[0] == 99
    view.release()
    source.close()
    path = tmp_path / "x.bin"
    path.write_bytes(DATA)
    assert open_source(path).is_local
    with path.open("rb") as file:
        assert isinstance(open_source(file), MemorySource)
    assert open_source(io.BytesIO(DATA)).is_local
    assert not open_source(Trickle(DATA)).is_local


def test_bytes_io_stays_usable() -> None:
    """Reading a BytesIO keeps a snapshot: its owner may go on writing."""
    file = io.BytesIO(DATA)
    file.seek(5)
    source = open_source(file)
    file.seek(0)
    file.write(b"new bytes" * 1000)
    assert source.read(0, source.size) == DATA[5:]


def test_positions_are_put_back() -> None:
    """Reading a file object leaves its position alone and starts there."""
    file = Trickle(DATA)
    file.seek(17)
    source = open_source(file)
    assert isinstance(source, FileSource)
    assert source.read(0, 20) == DATA[17:37]
    assert source.size == len(DATA) - 17
    assert file.tell() == 17
    source.close()
    assert not file.closed


def test_views_outlive_the_source(tmp_path: Path) -> None:
    """Closing while views are out is fine; they stay readable, and the mapping goes with the last of them."""
    path = tmp_path / "x.bin"
    path.write_bytes(DATA)
    source = open_source(path)
    view = source.read(10, 20)
    source.close()
    del source
    gc.collect()
    assert view == DATA[10:30]


def test_replaced_file_stays_readable(tmp_path: Path) -> None:
    """A file that is replaced by renaming keeps its old bytes for who has it open."""
    path, other = tmp_path / "x.bin", tmp_path / "y.bin"
    path.write_bytes(DATA)
    source = open_source(path)
    other.write_bytes(b"other")
    os.replace(other, path)
    assert source.read(0, len(DATA)) == DATA


def test_empty_file(tmp_path: Path) -> None:
    """Nothing can be mapped of an empty file, but it opens, and is no archive."""
    path = tmp_path / "empty.pt2"
    path.touch()
    assert open_source(path).size == 0
    assert bytes(open_source(b"").read(0, 0)) == b""
    with path.open("rb") as file:
        assert open_source(file).size == 0
    with pytest.raises(ArchiveError, match=r"empty\.pt2: expected a \.pt2 file, got an empty file"):
        open_archive(path)


def test_missing_and_forbidden(tmp_path: Path) -> None:
    """Errors of the operating system about a path are raised unchanged."""
    with pytest.raises(FileNotFoundError, match=r"none\.pt2"):
        open_archive(tmp_path / "none.pt2")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"x\.pt2"):
        open_archive(tmp_path / "file" / "x.pt2")


def test_folder(tmp_path: Path) -> None:
    """A folder is no archive."""
    with pytest.raises(ArchiveError, match=r"expected a file, got a folder \[A1\]"):
        open_archive(tmp_path)


def test_text_that_is_no_path() -> None:
    """Text that cannot be a path is an error of ours."""
    with pytest.raises(ArchiveError, match=r"'a\\x00b': expected a path.*\[A1\]"):
        open_archive("a\0b")


@pytest.mark.parametrize("value", [None, 3, ["x"], 1.5])
def test_other_types(value: Any) -> None:
    """Anything else is a mistake of the caller."""
    with pytest.raises(TypeError, match="expected a path, a URL, bytes or a binary file object, got"):
        open_source(value)


def test_text_file_objects(tmp_path: Path) -> None:
    """A file object in text mode is named as such."""
    path = tmp_path / "x.txt"
    path.write_text("text")
    with path.open() as file, pytest.raises(ArchiveError, match=r"x\.txt: .*in binary mode\), got str"):
        open_source(file)  # type: ignore[arg-type]
    with pytest.raises(ArchiveError, match="in binary mode"):
        open_source(io.StringIO("text"))  # type: ignore[arg-type]
    with pytest.raises(ArchiveError, match=r"in binary mode.*, got NoneType"):
        open_source(SimpleNamespace(read=lambda size: None))


def test_unreadable_file_objects(tmp_path: Path) -> None:
    """A closed or write-only file object is an error of ours."""
    closed = io.BytesIO(DATA)
    closed.close()
    with pytest.raises(ArchiveError, match=r"open for reading bytes: .*closed.*\[A1\]"):
        open_source(closed)
    with (tmp_path / "x.bin").open("wb") as file, pytest.raises(ArchiveError, match="open for reading bytes"):
        open_source(file)


def test_a_truncated_compressed_file_object() -> None:
    """Errors of file objects that decompress, which are no OSError, are errors of ours."""
    whole = gzip.compress(simple())
    for data in (whole[:-20], whole[:12] + bytes(4) + whole[16:]):
        with gzip.open(io.BytesIO(data)) as file, pytest.raises(ArchiveError, match=r"for reading bytes: .*\[A1\]"):
            open_source(file)  # type: ignore[arg-type]


def test_mapped_file_objects(tmp_path: Path) -> None:
    """An mmap is a file object, whose seek returns nothing before Python 3.13."""
    path = tmp_path / "a.pt2"
    path.write_bytes(simple())
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        open_archive(mapped) as archive,  # type: ignore[arg-type]
    ):
        assert bytes(archive.read("m/a")) == b"first"


def test_file_object_closed_meanwhile() -> None:
    """A file object that its owner closes is noticed at the next read."""
    file = Trickle(DATA)
    source = open_source(file)
    file.close()
    with pytest.raises(ArchiveError, match=r"expected 5 bytes at offset 0, got: .*closed"):
        source.read(0, 5)


def test_file_object_cut_meanwhile() -> None:
    """A file object that became shorter is noticed."""
    file = Trickle(DATA)
    source = open_source(file)
    file.truncate(12)
    with pytest.raises(ArchiveError, match=r"expected 20 bytes at offset 0, got 12 \[A1\]"):
        source.read(0, 20)


def test_streams_are_limited() -> None:
    """A stream without end is not read without end."""

    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return bytes(size)

    with pytest.raises(LimitError, match=r"at most 3000000 bytes from a stream that cannot be read in parts.*\[A18\]"):
        open_archive(Endless(), limits=Limits(max_stream_bytes=3_000_000))  # type: ignore[arg-type]


def test_temporary_files() -> None:
    """Files that are being written are read as far as they are written."""
    with tempfile.TemporaryFile() as file:
        file.write(DATA)
        file.seek(0)
        assert open_source(file).read(0, len(DATA)) == DATA
    with tempfile.NamedTemporaryFile() as named:
        named.write(DATA)
        named.seek(0)
        assert open_source(named).size == len(DATA)
    with tempfile.SpooledTemporaryFile() as spooled:
        spooled.write(DATA)
        spooled.seek(0)
        assert open_source(spooled).read(0, len(DATA)) == DATA


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_named_pipe(tmp_path: Path) -> None:
    """A path that is a pipe is read to its end."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=(simple(),))
    thread.start()
    with open_archive(path) as archive:
        assert bytes(archive.read("m/a")) == b"first"
    thread.join()


@pytest.mark.parametrize("piped", [True, False])
def test_standard_input(tmp_path: Path, piped: bool) -> None:
    """Standard input is read whether it is a pipe or a file."""
    code = "import sys; from pt2kit.zip.reader import open_archive; print(list(open_archive(sys.stdin.buffer).records))"
    path = tmp_path / "x.pt2"
    path.write_bytes(simple())
    command = [sys.executable, "-W", "error", "-c", code]
    if piped:
        done = subprocess.run(command, input=path.read_bytes(), capture_output=True, check=True)
    else:
        with path.open("rb") as file:
            done = subprocess.run(command, stdin=file, capture_output=True, check=True)
    assert done.stdout.strip() == b"['m/a', 'm/b']"


def test_a_source_passes_through() -> None:
    """A source is used as it is; a name can be given to bytes."""
    source: Source = open_source(simple(), name="inner.pt")
    assert open_source(source) is source
    assert open_source(_named(io.BytesIO(DATA), "given")).name == "<BytesIO>"
    with open_archive(source) as archive:
        assert archive.source.name == "inner.pt"


def _named(file: IO[bytes], name: str) -> IO[bytes]:
    return file


@pytest.mark.skipif(not hasattr(os, "pread"), reason="there the bytes come from the mapping")
def test_peek_after_the_file_was_cut(tmp_path: Path) -> None:
    """Small reads of a file that became shorter are refused; the mapping, which would end the process, is not asked."""
    path = tmp_path / "x.bin"
    path.write_bytes(DATA)
    source = open_source(path)
    assert source.peek(1, 2) == DATA[1:3]
    os.truncate(path, 2)
    with pytest.raises(ArchiveError, match=r"expected 2 bytes at offset 1, got 1: the file was cut short .* \[A1\]"):
        source.peek(1, 2)
    source.close()


def test_files_are_read_from_where_they_stand(tmp_path: Path) -> None:
    """Bytes before the position of an open file are no part of the archive: plain files and BytesIO."""
    path = tmp_path / "behind.bin"
    path.write_bytes(b"1234" + DATA)
    for file in (path.open("rb"), path.open("rb", buffering=0), path.open("r+b"), io.BytesIO(b"1234" + DATA)):
        with file:
            file.seek(4)
            source = open_source(file)
            assert (source.size, source.peek(1, 3), bytes(source.read(0, len(DATA)))) == (len(DATA), DATA[1:4], DATA)


def test_open_files_are_not_pickled(tmp_path: Path) -> None:
    """Pickling what reads an open file says what to do instead, as for processes that are spawned."""
    path = tmp_path / "archive.zip"
    path.write_bytes(simple())
    with open_archive(path) as archive, pytest.raises(TypeError, match=r"archive\.zip: .* pass the path on"):
        pickle.dumps(archive)
