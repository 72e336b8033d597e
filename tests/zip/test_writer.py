"""Written archives hold the given data, and every reader agrees."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import samples
from tests.packages import Stream, bytes_of

from pt2kit.errors import ArchiveError, LimitError
from pt2kit.package.layouts.detection import detect
from pt2kit.zip.reader import Archive, open_archive
from pt2kit.zip.writer import ALIGNMENT, ArchiveWriter, padding

CONTENT = {
    "models/model.json": (b'{"a": 1}' * 5000, True),
    "data/weights/weight_0": (bytes(range(256)) * 100, False),
    "data/weights/weight_1": (b"", False),
    "data/weights/empty_deflated": (b"", True),
    "data/weights/weight_2": (b"x", False),
    "extra/é/ü.txt": ("ü".encode(), False),
    "archive_format": (b"pt2", False),
    "archive_version": (b"0", False),
}


def write_all(target: Any, pieces: int = 0, **options: Any) -> None:
    """Write CONTENT as whole buffers, or in iterables of `pieces` bytes each."""
    with ArchiveWriter(target, root="m", **options) as writer:
        for name, (data, deflate) in CONTENT.items():
            if pieces:
                parts = (data[at : at + pieces] for at in range(0, len(data), pieces))
                writer.write(name, parts, deflate=deflate, size=len(data) if len(name) % 2 else None)
            else:
                writer.write(name, data, deflate=deflate)


def written(**options: Any) -> bytes:
    """The bytes of CONTENT as an archive."""
    return bytes_of(write_all, **options)


def read_all(archive: Archive) -> dict[str, bytes]:
    """Every record's content."""
    return {name: bytes(archive.read(name)) for name in archive.records}


EXPECTED = {f"m/{name}": data for name, (data, _) in CONTENT.items()}


def test_our_reader_reads_it() -> None:
    """The strict reader finds names, order and content."""
    with open_archive(written()) as archive:
        assert list(archive.records) == list(EXPECTED)
        assert read_all(archive) == EXPECTED
        for name, (_, deflate) in CONTENT.items():
            assert archive.records[f"m/{name}"].is_stored is not deflate
            if not deflate:
                assert archive.data_offset(f"m/{name}") % ALIGNMENT == 0


def test_zipfile_reads_it() -> None:
    """Python's zipfile finds the same, with permissions of a plain file and a valid date."""
    with zipfile.ZipFile(io.BytesIO(written())) as reference:
        assert reference.testzip() is None
        assert {name: reference.read(name) for name in reference.namelist()} == EXPECTED
        for info in reference.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert info.external_attr >> 16 == 0o100644


@pytest.mark.skipif(shutil.which("unzip") is None, reason="no unzip here")
def test_unzip_reads_it(tmp_path: Path) -> None:
    """Info-ZIP finds nothing to complain about."""
    path = tmp_path / "x.pt2"
    write_all(path)
    done = subprocess.run(["unzip", "-t", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No errors detected" in done.stdout


def test_same_bytes_however_it_is_given(tmp_path: Path) -> None:
    """Buffers or pieces, a path, a file object or a stream: the file is the same, and has no trace of the clock."""
    expected = written()
    for pieces in (1000, 3):
        assert written(pieces=pieces) == expected
    for stream in (Stream(), Stream(most=7)):
        write_all(stream)
        assert bytes(stream.data) == expected
        stream.data.clear()
        write_all(stream, pieces=1000)
        assert bytes(stream.data) == expected
    for name in ("a.pt2", "b.pt2"):
        write_all(tmp_path / name)
        assert (tmp_path / name).read_bytes() == expected
    with (tmp_path / "c.pt2").open("wb", buffering=0) as file:
        write_all(file, pieces=1000)
    assert (tmp_path / "c.pt2").read_bytes() == expected


RECORDS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\\/:."), min_size=1, max_size=20),
    st.tuples(st.binary(max_size=300), st.booleans()),
    max_size=8,
)


@given(RECORDS)
def test_round_trip(records: dict[str, tuple[bytes, bool]]) -> None:
    """Any names and contents come back, unless two names collide."""
    file = io.BytesIO()
    kept = {}
    with ArchiveWriter(file) as writer:
        for name, (data, deflate) in records.items():
            try:
                writer.write(name, data, deflate=deflate)
            except ArchiveError as error:
                assert error.rule == "A7"
            else:
                kept[f"archive/{name}"] = data
    with open_archive(file) as archive:
        assert read_all(archive) == kept
    with zipfile.ZipFile(file) as reference:
        # Python's zipfile cuts what it reads at a NUL only; none is in these names.
        assert {name: reference.read(name) for name in reference.namelist()} == kept


@pytest.mark.parametrize("start", range(130))
def test_padding(start: int) -> None:
    """Padding is nothing, or one well-formed extra field, after which data is aligned."""
    extra = padding(start)
    assert (start + len(extra)) % ALIGNMENT == 0
    assert len(extra) < ALIGNMENT + 4
    if extra:
        assert struct.unpack_from("<2H", extra) == (0x4246, len(extra) - 4)


@pytest.mark.parametrize("pieces", [0, 1000])
def test_zip64(monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    """With the threshold lowered, the ZIP64 fields appear exactly where needed and are read by both readers."""
    make = ArchiveWriter.__init__

    def lowered(self: ArchiveWriter, *args: Any, **options: Any) -> None:
        make(self, *args, **options)
        self._zip64_size, self._zip64_count = 1000, 3

    monkeypatch.setattr(ArchiveWriter, "__init__", lowered)
    data = written(pieces=pieces)
    with open_archive(data) as archive:
        assert read_all(archive) == EXPECTED
        for name, record in archive.records.items():
            local = struct.unpack_from("<4s5H3I2H", data, record.header_offset)
            assert (local[7] == 0xFFFFFFFF) == (max(record.size, record.compressed_size) >= 1000), name
    with zipfile.ZipFile(io.BytesIO(data)) as reference:
        assert {name: reference.read(name) for name in reference.namelist()} == EXPECTED
    assert data[-22 - 20 : -22 - 16] == b"PK\6\7"


def test_no_zip64_without_need() -> None:
    """An ordinary archive has no ZIP64 records."""
    assert b"PK\6\6" not in written()


def test_more_entries_than_16_bits_hold() -> None:
    """From 65,535 records on, the ZIP64 end record counts them."""
    file = io.BytesIO()
    with ArchiveWriter(file) as writer:
        for index in range(65_536):
            writer.write(str(index), b"")
    assert file.getvalue()[-22 - 20 : -22 - 16] == b"PK\6\7"
    with open_archive(file) as archive:
        assert len(archive.records) == 65_536


def test_files_beyond_4_gib(tmp_path: Path) -> None:
    """A record of more than 4 GiB, and one after it, are written and found again (in a file full of holes)."""
    path = tmp_path / "large.pt2"
    size = (4 << 30) + 10
    with Holes(path) as file, ArchiveWriter(file, root="m") as writer:
        block = bytes(16 << 20)
        blocks = itertools.chain(itertools.repeat(block, 256), [b"0123456789"])
        writer.write("weight_0", blocks, size=size)
        writer.write("weight_1", b"after")
    if path.stat().st_blocks * 512 > 1 << 30:
        pytest.skip("this file system makes no holes")
    with open_archive(path) as archive:
        assert archive.records["m/weight_0"].size == size
        assert bytes(archive.read("m/weight_0", verify=False)[-10:]) == b"0123456789"
        assert bytes(archive.read("m/weight_1")) == b"after"
        assert archive.data_offset("m/weight_1") % ALIGNMENT == 0
    with zipfile.ZipFile(path) as reference:
        assert [info.file_size for info in reference.infolist()] == [size, 5]
        assert reference.read("m/weight_1") == b"after"


class Holes:
    """A file that skips over large blocks of zeros instead of writing them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: Any) -> int:
        if len(data) >= 1 << 20:
            self._file.seek(len(data), io.SEEK_CUR)
        else:
            self._file.write(data)
        return len(data)


# name: (record names, rule)
BAD_NAMES = {
    "absolute": (["/a"], "A6"),
    "upwards": (["../a"], "A6"),
    "empty": ([""], "A6"),
    "folder": (["a/"], "A6"),
    "backslash": (["a\\b"], "A6"),
    "surrogate": (["a\ud800"], "A6"),
    "twice": (["a", "a"], "A7"),
    "other case": (["data/A", "DATA/a"], "A7"),
    "too long": (["x" * 505], "A18"),
}


@pytest.mark.parametrize("case", BAD_NAMES)
def test_bad_names(case: str) -> None:
    """A name that a reader would refuse is refused before anything of the record is written; the archive goes on."""
    names, rule = BAD_NAMES[case]
    file = io.BytesIO()
    with ArchiveWriter(file, root="archive") as writer:
        for name in names[:-1]:
            writer.write(name, b"good")
        before = file.tell()
        with pytest.raises((ArchiveError, LimitError)) as caught:
            writer.write(names[-1], b"bad")
        assert caught.value.rule == rule
        assert file.tell() == before
        writer.write("last", b"good")
    with open_archive(file) as archive:
        assert len(archive.records) == len(names)


def test_longest_name() -> None:
    """A name of 511 bytes, root included, is the longest."""
    file = io.BytesIO()
    with ArchiveWriter(file, root="m") as writer:
        writer.write("x" * 509, b"")
        with pytest.raises(LimitError, match=r"at most 511 bytes, which is what torch lists, got 512.*\[A18\]"):
            writer.write("y" * 510, b"")
        assert [name for name, _, _ in writer.checksums] == ["m/" + "x" * 509]


def test_roots(tmp_path: Path) -> None:
    """The root folder is the file's stem, "archive" without a usable one, or what the caller says, none included."""
    for target, root, expected in (
        (tmp_path / "mlp.pt2", None, "mlp"),
        (tmp_path / "a.b.pt2", None, "a.b"),
        (tmp_path / "c:.pt2", None, "archive"),
        (tmp_path / (os.fsdecode(b"\xff.pt2") if sys.platform == "linux" else "c:.pt2"), None, "archive"),
        (io.BytesIO(), None, "archive"),
        (io.BytesIO(), "m", "m"),
        (io.BytesIO(), "", ""),
    ):
        with ArchiveWriter(target, root=root) as writer:
            assert writer.root == expected
            writer.write("x", b"")
            assert [name for name, _, _ in writer.checksums] == [f"{expected}/x" if expected else "x"]
    for root in ("a/b", "..", "a\\b", "/"):
        with pytest.raises(ArchiveError, match=r"expected the name of one folder as root, got .*\[A6\]"):
            ArchiveWriter(tmp_path / "x.pt2", root=root)
    assert not (tmp_path / "x.pt2").exists()


@pytest.mark.parametrize("wrong", [-1, 1, 5000])
@pytest.mark.parametrize("seekable", [True, False])
def test_wrong_size(tmp_path: Path, wrong: int, seekable: bool) -> None:
    """An iterable that gives more or less than stated makes the archive invalid, which is then not put in place."""
    target: Any = tmp_path / "x.pt2" if seekable else Stream()
    text = rf": m/w: expected {10 + wrong} bytes as stated, got 10( or more)? \[A27\]$"
    with pytest.raises(ArchiveError, match=text), ArchiveWriter(target, root="m") as writer:
        writer.write("w", iter([b"01234", b"56789"]), size=10 + wrong)
    assert list(tmp_path.iterdir()) == []


def test_error_in_the_middle(tmp_path: Path) -> None:
    """Whatever goes wrong while writing, the old file stays and no temporary file is left."""
    path = tmp_path / "x.pt2"
    path.write_bytes(b"old")

    def failing() -> Iterator[bytes]:
        yield bytes(100)
        raise RuntimeError("source failed")

    with pytest.raises(RuntimeError, match="source failed"), ArchiveWriter(path) as writer:
        writer.write("a", failing(), size=200)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_error_that_was_caught(tmp_path: Path) -> None:
    """An archive with half a record cannot be finished, even if the error was swallowed."""
    writer = ArchiveWriter(tmp_path / "x.pt2")
    with pytest.raises(ArchiveError, match="as stated"):
        writer.write("a", iter([b"x"]), size=2)
    with pytest.raises(ArchiveError, match=r"got a failed one \[A27\]"):
        writer.write("b", b"data")
    with pytest.raises(ArchiveError, match=r"expected all records to be written, got an error before \[A27\]"):
        writer.close()
    assert list(tmp_path.iterdir()) == []


def test_use_after_close() -> None:
    """A finished archive takes no more records; closing again does nothing."""
    file = io.BytesIO()
    writer = ArchiveWriter(file)
    writer.write("a", b"data")
    writer.close()
    size = file.tell()
    writer.close()
    writer.abort()
    assert file.tell() == size
    with pytest.raises(ArchiveError, match=r"got a closed one \[A27\]"):
        writer.write("b", b"data")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "'NoneType' object is not iterable"),
        (3, "'int' object is not iterable"),
        ("text", "a: expected bytes or an iterable of bytes, got str; encode it first"),
        ([1, 2], "archive/a: expected buffers, got int"),
        (["text"], "archive/a: expected buffers, got str"),
        (memoryview(b"abcd")[::2], r"expected a C-contiguous buffer, got strides \(2,\) for shape \(2,\)"),
    ],
)
def test_other_data(data: Any, message: str) -> None:
    """Data that is no buffer raises a TypeError."""
    with pytest.raises(TypeError, match=f"{message}$"), ArchiveWriter(io.BytesIO()) as writer:
        writer.write("a", data)


def test_buffers_of_any_shape() -> None:
    """Anything with a contiguous buffer gives its bytes as they are in memory, without a copy."""
    np = pytest.importorskip("numpy")
    arrays = {
        "f2": np.arange(5, dtype="f2"),
        "i8": np.arange(6).reshape(2, 3),
        "bool": np.array([True, False]),
        "zero": np.zeros((3, 0)),
        "scalar": np.array(1.5),
        "c16": np.array([1 + 2j]).view("u1"),
        "array": bytearray(b"xyz"),
    }
    file = io.BytesIO()
    with ArchiveWriter(file) as writer:
        for name, array in arrays.items():
            writer.write(name, array)
    with open_archive(file) as archive:
        for name, array in arrays.items():
            assert archive.read(f"archive/{name}") == bytes(memoryview(array).tobytes())
    for array in (np.array([None]), np.zeros(2, "M8[s]")):
        with pytest.raises(TypeError, match="expected a buffer of plain items, got"):
            ArchiveWriter(io.BytesIO()).write("a", array)


def test_large_buffers_are_not_copied(tmp_path: Path) -> None:
    """Writing costs no memory beyond the data itself."""
    data = bytes(8 << 20)
    with ArchiveWriter(tmp_path / "x.pt2") as writer:
        tracemalloc.start()
        writer.write("a", data)
        writer.write("b", (data for _ in range(4)), size=4 * len(data))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()


def test_crc_and_sizes_are_in_the_headers() -> None:
    """There are no data descriptors: every local header says all there is to know."""
    data = written(pieces=1000)
    with open_archive(data) as archive:
        for name, record in archive.records.items():
            fields = struct.unpack_from("<4s5H3I2H", data, record.header_offset)
            assert fields[2] == 0x0800
            assert fields[6] == zlib.crc32(EXPECTED[name]) == record.crc32
            assert fields[7:9] == (record.compressed_size, record.size)


@pytest.mark.parametrize("release", samples.RELEASES)
def test_repacking_real_files(release: str, tmp_path: Path) -> None:
    """Every record of a real archive goes through the writer unchanged."""
    path = tmp_path / "copy.pt2"
    with open_archive(samples.sample(release, "mlp")) as old:
        layout = detect(old)
        with ArchiveWriter(path, root=layout.root.rstrip("/")) as writer:
            for name in old.records:
                writer.write(name[len(layout.root) :], old.read(name), deflate=name.endswith(".json"))
        with open_archive(path) as new:
            assert read_all(new) == read_all(old)
            assert detect(new) == layout


@pytest.mark.parametrize("can_seek", [True, False])
def test_streams(can_seek: bool) -> None:
    """A record written through a file object is the same as one written at once, wherever it goes."""
    pieces = [b"one", b"", bytes(100_000), b"end"]
    file = io.BytesIO()
    if not can_seek:
        file.seekable = lambda: False  # type: ignore[method-assign]
    with ArchiveWriter(file) as writer:
        writer.write("a", b"before")
        with writer.stream("b", size_hint=10) as record:
            assert not record.seekable()
            for piece in pieces:
                assert record.write(piece) == len(piece)
            record.flush()
        writer.write("c", b"after")
    whole = io.BytesIO()
    with ArchiveWriter(whole) as writer:
        for name, data in (("a", b"before"), ("b", b"".join(pieces)), ("c", b"after")):
            writer.write(name, data)
    assert file.getvalue() == whole.getvalue()
    assert writer.checksums[1] == ("archive/b", zlib.crc32(b"".join(pieces)), sum(map(len, pieces)))


def test_streams_of_an_archive_in_an_archive() -> None:
    """An archive can be written into a record of another one."""
    file = io.BytesIO()
    with (
        ArchiveWriter(file) as outer,
        outer.stream("inner", size_hint=0) as record,
        ArchiveWriter(record, root="in") as inner,  # type: ignore[arg-type]
    ):
        inner.write("a", bytes(1000))
        inner.write("b", b"deflated" * 99, deflate=True)
    with open_archive(file) as archive, open_archive(bytes(archive.read("archive/inner"))) as held:
        assert {name: held.read(name).nbytes for name in held.records} == {"in/a": 1000, "in/b": 8 * 99}


def test_streams_of_four_gigabytes() -> None:
    """Their header has room for sizes of 64 bits from the beginning; without a hint of that, more is refused."""
    file = io.BytesIO()
    with ArchiveWriter(file) as writer, writer.stream("short", size_hint=1 << 32) as record:
        record.write(b"less than was said")
    with open_archive(file) as archive:
        assert bytes(archive.read("archive/short")) == b"less than was said"
    with zipfile.ZipFile(file) as theirs:
        assert theirs.testzip() is None
        assert theirs.read("archive/short") == b"less than was said"
    writer = ArchiveWriter(io.BytesIO())
    writer._zip64_size = (64 << 20) + 100
    message = r"archive/a: expected about 10 bytes, got .* \[A18\]"
    with pytest.raises(LimitError, match=message), writer.stream("a", size_hint=10) as record:
        record.write(bytes((64 << 20) + 100))
    with pytest.raises(ArchiveError, match="A27"):
        writer.close()


def test_streams_that_break_off() -> None:
    """The archive cannot go on after one, as after any record that is not whole; taken names are refused."""
    writer = ArchiveWriter(io.BytesIO())
    writer.write("a", b"")
    with pytest.raises(ArchiveError, match="A7"), writer.stream("A", size_hint=0):
        pass
    with pytest.raises(ZeroDivisionError, match="in the block"), writer.stream("b", size_hint=0):
        raise ZeroDivisionError("in the block")
    with pytest.raises(ArchiveError, match="A27"):
        writer.write("c", b"")
