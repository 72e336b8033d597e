"""Archives as a whole: opening, reading, verifying, closing."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.threads import in_threads
from tests.zip.zip_forge import Entry, forge, simple

from pt2kit.errors import ArchiveError, IntegrityError, LimitError, Pt2Error
from pt2kit.zip.reader import open_archive
from pt2kit.zip.source import Limits, MemorySource
from pt2kit.zip.writer import ArchiveWriter


class Seekable(io.BytesIO):
    """A file object of unknown kind."""


@pytest.mark.parametrize("path", samples.corpus(), ids=samples.release_id)
def test_real_files(path: Path) -> None:
    """Every file that a release of torch wrote opens, and gives what Python's zipfile gives."""
    with open_archive(path) as archive, zipfile.ZipFile(path) as reference:
        assert list(archive.records) == reference.namelist()
        for info in reference.infolist():
            assert archive.records[info.filename].size == info.file_size
            assert archive.read(info.filename) == reference.read(info)


@pytest.mark.parametrize("release", samples.RELEASES)
def test_torch_save_files_inside(release: str) -> None:
    """The torch.save files inside the archives are archives by the same rules."""
    found = 0
    with open_archive(samples.sample(release, "mlp")) as archive:
        for name in archive.records:
            content = archive.read(name)
            if bytes(content[:4]) == b"PK\3\4":
                with open_archive(content, name=name) as inner:
                    assert inner.source.name == name
                    assert all(inner.read(other).nbytes == inner.records[other].size for other in inner.records)
                    found += 1
    assert found


def test_stored_records_are_views(tmp_path: Path) -> None:
    """A stored record of a local file is not copied, and its place in the file is known."""
    path = tmp_path / "x.zip"
    with ArchiveWriter(path) as writer:
        writer.write("weight", bytes(1 << 20))
    with open_archive(path) as archive:
        tracemalloc.start()
        view = archive.read("x/weight")
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
        tracemalloc.stop()
        offset = archive.data_offset("x/weight")
        assert path.read_bytes()[offset : offset + view.nbytes] == view
        assert offset % 64 == 0
    assert view[0] == 0, "views stay valid after close"


LARGE = bytes(range(256)) * 4096
READING: dict[str, dict[str, Any]] = {
    "small": {"data": b"second"},
    "large": {"data": LARGE},
    "deflated": {"data": LARGE, "deflate": True},
}


@pytest.mark.parametrize("case", READING)
def test_damage_is_found_each_time(case: str) -> None:
    """A record that is damaged is said to be, each time it is read."""
    data = bytearray(simple(**READING[case]))
    with open_archive(data) as archive:
        assert archive.read("m/b") == READING[case]["data"]
        assert archive.read("m/b") == READING[case]["data"]
        middle = archive.data_offset("m/b") + archive.records["m/b"].compressed_size // 2
    data[middle] ^= 1
    with open_archive(data) as archive:
        for _ in range(2):
            with pytest.raises((IntegrityError, ArchiveError), match=r"m/b: expected .*\[A\d+\]"):
                archive.read("m/b")


def test_crc_is_checked_once() -> None:
    """Damage is found when a record is first read, unless the caller does not want to know."""
    data = bytearray(simple())
    at = data.index(b"second")
    data[at] ^= 1
    with open_archive(data) as archive:
        assert bytes(archive.read("m/b", verify=False)) == b"recond"
        with pytest.raises(IntegrityError, match=r"m/b: expected CRC-32 0x\w{8} over 6 bytes, got 0x\w{8}.*\[A16\]"):
            archive.read("m/b")
        data[at] ^= 1
        assert bytes(archive.read("m/b")) == b"second"
        data[at] ^= 1
        assert bytes(archive.read("m/b")) == b"recond", "verified before: not checked again"


def test_crc_of_deflated_records() -> None:
    """The CRC is that of the content, not of the deflated bytes."""
    good = Entry(b"m/a", b"content" * 100, deflate=True)
    bad = Entry(b"m/b", b"content", deflate=True, local={"crc32": 1}, entry={"crc32": 1})
    with open_archive(forge(good, bad)) as archive:
        assert archive.read("m/a") == b"content" * 100
        with pytest.raises(IntegrityError, match=r"expected CRC-32 0x00000001 over 7 bytes"):
            archive.read("m/b")


def test_missing_record() -> None:
    """A missing record is an error with its name, for reading as for offsets."""
    with open_archive(simple(), name="x.pt2") as archive:
        for ask in (archive.read, archive.data_offset):
            with pytest.raises(ArchiveError, match=r"^x\.pt2: expected a record m/c, got none .* 2 records \[A17\]$"):
                ask("m/c")


def test_large_inflated_record() -> None:
    """One record may not inflate to more than the limit; the others stay readable."""
    data = forge(Entry(b"m/a", bytes(5000), deflate=True), Entry(b"m/b", b"second"))
    with open_archive(data, limits=Limits(max_inflated_bytes=4999)) as archive:
        assert bytes(archive.read("m/b")) == b"second"
        with pytest.raises(LimitError, match=r"m/a: expected at most 4999 bytes once inflated, got 5000.*\[A18\]"):
            archive.read("m/a")


def test_closed_archive() -> None:
    """A closed archive reads nothing more, and can be closed again."""
    archive = open_archive(simple())
    archive.close()
    archive.close()
    assert "m/a" in archive.records
    with pytest.raises(ArchiveError, match=r"\[A27\]"):
        archive.read("m/a")


def test_failed_open_closes_the_source(tmp_path: Path) -> None:
    """Nothing stays mapped when an archive is refused."""
    source = MemorySource(memoryview(b"no zip"), "here")
    with pytest.raises(ArchiveError, match=r"\[A2\]"):
        open_archive(source)
    with pytest.raises(ArchiveError, match=r"\[A27\]"):
        source.read(0, 1)


def test_unknown_file_objects_are_read_when_needed() -> None:
    """Of a file object of unknown cost, local headers are checked when a record is first read, descriptors too."""
    entries = [
        Entry(b"m/a", b"first"),
        Entry(b"m/b", b"second", local_name=b"m/x"),
        Entry(b"m/c", b"third", flags=0x0808, descriptor=bytes(12)),
    ]
    with open_archive(Seekable(forge(*entries))) as archive:
        assert bytes(archive.read("m/a")) == b"first"
        assert archive.data_offset("m/a") == 33
        with pytest.raises(ArchiveError, match=r"expected name b'm/b', got b'm/x' \[A13\]"):
            archive.read("m/b")
        assert archive.data_offset("m/c") > 0
        with pytest.raises(ArchiveError, match=r"expected a data descriptor .*\[A14\]"):
            archive.read("m/c")


def test_threads() -> None:
    """Many threads may read one archive, through one file object, at once."""
    content = {f"r{n}": struct.pack("<I", n) * 1000 for n in range(50)}
    file = Seekable()
    with ArchiveWriter(file) as writer:
        for name, data in content.items():
            writer.write(name, data, deflate=name.endswith("7"))
    with open_archive(file) as archive:

        def failures(_: int) -> list[str]:
            return [name for name, data in content.items() if archive.read(f"archive/{name}") != data]

        assert in_threads(failures, range(8)) == [[]] * 8


def test_many_entries() -> None:
    """Tens of thousands of records are no problem."""
    file = io.BytesIO()
    with ArchiveWriter(file) as writer:
        for index in range(30_000):
            writer.write(f"data/weights/weight_{index}", b"x")
    with open_archive(file) as archive:
        assert len(archive.records) == 30_000
        assert bytes(archive.read("archive/data/weights/weight_29999")) == b"x"


@pytest.mark.parametrize("path", [case["path"] for case in samples.hostile()], ids=lambda path: path.stem)
def test_hostile_files_give_only_our_errors(path: Path) -> None:
    """Whatever is in a file, opening it and reading all of it gives content or an error of ours."""
    if not path.exists():
        pytest.skip("not among the sample files")
    try:
        with open_archive(path) as archive:
            for name in archive.records:
                archive.read(name)
    except Pt2Error as error:
        assert str(error).startswith(str(path))
        assert error.rule.startswith("A")
