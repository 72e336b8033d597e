"""A JSON file as an archive of one record."""

from __future__ import annotations

import io
import zlib
from pathlib import Path

import pytest

from pt2kit.errors import ArchiveError, LimitError
from pt2kit.package.layouts.bare_json import BareJson, JsonFileArchive
from pt2kit.package.layouts.base import Parts
from pt2kit.package.layouts.detection import find_json
from pt2kit.zip.listing import open_source
from pt2kit.zip.source import Limits

TEXT = b' {"a": 1}'


def test_one_record(tmp_path: Path) -> None:
    """The file is the record, under its own name; its checksum is that of its bytes."""
    path = tmp_path / "sub" / "prog.json"
    path.parent.mkdir()
    path.write_bytes(TEXT)
    with JsonFileArchive(open_source(path), Limits()) as archive:
        [(name, record)] = archive.records.items()
        assert (name, record.size, record.crc32, record.is_stored) == ("prog.json", 9, zlib.crc32(TEXT), True)
        assert bytes(archive.read(name)) == TEXT
        assert archive.read(name).readonly
        assert archive.data_offset(name) == 0
        with pytest.raises(ArchiveError, match="expected a record other, got none"):
            archive.read("other")


@pytest.mark.parametrize("source", [TEXT, io.BytesIO(TEXT), memoryview(TEXT)])
def test_sources_without_a_name(source: object) -> None:
    """Bytes and file objects have a record too."""
    with JsonFileArchive(open_source(source), Limits()) as archive:  # type: ignore[arg-type]
        assert list(archive.records) == ["program.json"]
        assert bytes(archive.read("program.json")) == TEXT


def test_too_large() -> None:
    """A file beyond the limit is refused with both numbers."""
    with pytest.raises(LimitError, match=r"expected at most 4 bytes of JSON, got 9.* \[A18\]"):
        JsonFileArchive(open_source(TEXT), Limits(max_inflated_bytes=4))


@pytest.mark.parametrize("data", [b"PK\x03\x04{", b"", b"[{}]"])
def test_other_files(data: bytes) -> None:
    """A file that does not begin with a brace is no JSON."""
    assert find_json(open_source(data), Limits()) is None


def test_layout() -> None:
    """The layout has a program and nothing else."""
    with JsonFileArchive(open_source(b"{}"), Limits()) as archive:
        layout = BareJson(archive, "", ("model",), "")
        assert layout.parts("model") == Parts("program.json")
        assert layout.sample_inputs_record("model") is None
        assert layout.extra_files() == {}
