"""The directory: every entry well formed, and all of them together one archive."""

from __future__ import annotations

import struct

import pytest
from tests.zip.zip_forge import Entry, check_refused, deflated, forge, simple, zip64

from pt2kit.errors import LimitError
from pt2kit.zip.reader import open_archive
from pt2kit.zip.source import Limits

MAX32 = 0xFFFFFFFF
FIRST = Entry(b"m/a", b"first")
LINK = 0o120777 << 16


def unicode_path(name: bytes) -> bytes:
    """The extra field that gives a second name."""
    return struct.pack("<2HBI", 0x7075, 5 + len(name), 1, 0) + name


# name: (file, rule, text of the message)
REFUSED: dict[str, tuple[bytes, str, str]] = {
    "signature": (simple(entry={"signature": b"PK\1\3"}), "A5", "directory entry 1: expected signature"),
    "name too long": (simple(entry={"nlen": 400}), "A5", "expected it to end by 98 of the directory"),
    "extra too long": (simple(entry={"xlen": 1}), "A5", "expected it to end by 98"),
    "comment too long": (simple(entry={"clen": 1}), "A5", "expected it to end by 98"),
    "comment hides the second": (
        forge(Entry(b"m/a", b"first", entry={"clen": 49}), Entry(b"m/b", b"second")),
        "A5",
        "directory entry 1",
    ),
    "broken extra": (simple(entry_extra=b"\1\0\x09\0x"), "A5", "m/b: expected well-formed extra fields"),
    "two zip64 fields": (simple(entry_extra=zip64(1) * 2), "A5", "expected well-formed extra fields"),
    "zip64 of odd length": (simple(entry_extra=b"\1\0\2\0xx"), "A5", "expected well-formed extra fields"),
    "zip64 missing": (simple(entry={"size": MAX32, "csize": MAX32}), "A5", "expected 2 ZIP64 values, got 0"),
    "zip64 unasked": (simple(entry_extra=zip64(6)), "A5", "expected 0 ZIP64 values, got 1"),
    "zip64 too few": (simple(entry={"size": MAX32, "csize": MAX32}, entry_extra=zip64(6)), "A5", "got 1"),
    "second name": (simple(entry_extra=unicode_path(b"m/x")), "A5", "got a second one, b'm/x'"),
    "bad name": (simple(name=b"m/../b"), "A6", "x.pt2: expected a relative record name"),
    "not utf-8": (simple(name=b"m/\xff"), "A6", "in UTF-8"),
    "empty name": (simple(name=b""), "A6", "is empty"),
    "same name": (simple(name=b"m/a"), "A7", "got m/a and m/a"),
    "same short name": (forge(Entry(b"a"), Entry(b"a")), "A7", "got a and a"),
    "other case": (simple(name=b"M/A"), "A7", "got m/a and M/A"),
    "folder and file": (simple(name=b"m/a/", data=b""), "A7", "got m/a and m/a/"),
    "composed and decomposed": (
        forge(Entry("é".encode()), Entry("e\u0301".encode())),
        "A7",
        "that differ by more than case",
    ),
    "symbolic link": (simple(entry={"attributes": LINK}), "A8", "expected a plain file, got a symbolic link"),
    "device": (simple(entry={"attributes": 0o020666 << 16}), "A8", "got file mode 0o20666"),
    "file called a folder": (simple(entry={"attributes": 0o040755 << 16}), "A8", "expected a plain file"),
    "folder called a file": (
        simple(name=b"m/sub/", data=b"", entry={"attributes": 0o100644 << 16}),
        "A8",
        "expected a plain folder",
    ),
    "folder with content": (simple(name=b"m/sub/", data=b"x"), "A8", "expected an empty folder entry, got 1 bytes"),
    "encrypted": (simple(flags=0x0801), "A9", "that is not encrypted, got flags 0x0801"),
    "strongly encrypted": (simple(flags=0x0840), "A9", "not encrypted"),
    "masked": (simple(flags=0x2800), "A9", "not encrypted"),
    "patched": (simple(flags=0x0820), "A9", "expected no flags beyond 0x080e, got 0x0820"),
    "method": (simple(local={"method": 93}, entry={"method": 93}), "A10", "(deflated), got 93"),
    "stored sizes": (simple(entry={"size": 1 << 30}), "A11", "of one size, got 1073741824 bytes in 6"),
    "impossible size": (
        simple(deflate=True, entry={"size": 3 << 30}),
        "A11",
        "from 8 deflated ones, got a stated size of 3221225472",
    ),
    "disk": (simple(entry={"disk": 1}), "A12", "expected a record on disk 0, got disk 1"),
    "zip64 disk": (
        simple(entry={"disk": 0xFFFF}, entry_extra=struct.pack("<2HI", 1, 4, 7)),
        "A12",
        "expected a record on disk 0, got disk 7",
    ),
    "alias": (simple(entry={"offset": 0}), "A12", "which overlaps it"),
    "overlap": (simple(entry={"offset": 20}), "A12", "m/b: expected it to begin after m/a, at 38"),
    "past the end": (simple(entry={"csize": 1 << 20, "size": 1 << 20}), "A12", "the directory: expected it to begin"),
    "zip64 past the end": (
        simple(entry={"csize": MAX32, "size": MAX32}, entry_extra=zip64(1 << 62, 1 << 62)),
        "A12",
        "the directory: expected it to begin",
    ),
    "offset beyond": (simple(entry={"offset": 1 << 30}), "A12", "m/b: expected it to begin after m/a, at 38 to 65573"),
    "gap at the start": (forge(FIRST, before=b"x"), "A12", "after the file's first byte, at 0 to 0, got 1"),
    "large gap": (forge(Entry(b"m/a", gap=bytes(65536)), Entry(b"m/b")), "A12", "at 33 to 65568, got 65569"),
    "archive in a gap": (
        forge(Entry(b"m/a", b"first", gap=simple() * 400), Entry(b"m/b")),
        "A12",
        "which leaves a gap",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """An entry that breaks a rule is refused with its name, the rule and what was expected."""
    check_refused(*REFUSED[case])


def test_records() -> None:
    """Records come in directory order with what the directory says of them; folders are left out."""
    data = forge(Entry(b"m/"), Entry(b"m/b", b"x" * 100, deflate=True), Entry(b"m/a", b"first"), Entry(b"m/sub/"))
    with open_archive(data) as archive:
        assert list(archive.records) == ["m/b", "m/a"]
        record = archive.records["m/b"]
        assert (record.size, record.compressed_size, record.method) == (100, len(deflated(b"x" * 100)), 8)
        assert not record.is_stored
        assert archive.records["m/a"].is_stored
        assert archive.records["m/a"].header_offset == record.end_offset


def test_zip64_fields() -> None:
    """Sizes, offset and disk are taken from the ZIP64 field if, and only if, the entry requires it."""
    entries = [
        Entry(b"m/a", b"first", entry={"csize": MAX32, "size": MAX32}, entry_extra=zip64(5, 5)),
        Entry(b"m/b", b"second", entry={"size": MAX32}, entry_extra=zip64(6)),
        Entry(b"m/c", b"third", entry={"offset": MAX32}, entry_extra=zip64(38 + 39)),
        Entry(b"m/d", b"", entry={"disk": 0xFFFF}, entry_extra=struct.pack("<2HI", 1, 4, 0)),
    ]
    with open_archive(forge(*entries)) as archive:
        assert [bytes(archive.read(name)) for name in archive.records] == [b"first", b"second", b"third", b""]


def test_unknown_extra_fields_are_ignored() -> None:
    """Times, owners and the same name once more do no harm."""
    extra = b"UT\5\0\3abcd" + unicode_path(b"m/b")
    with open_archive(simple(entry_extra=extra, local_extra=extra)) as archive:
        assert bytes(archive.read("m/b")) == b"second"


def test_inflated_size_is_limited_by_file_size() -> None:
    """Deflated records may not claim much more than the file could reasonably hold; stored ones may be any size."""
    zeros = bytes(100_000)
    data = forge(Entry(b"m/a", zeros, deflate=True), Entry(b"m/b", zeros, deflate=True))
    with pytest.raises(LimitError, match=r"expected at most 150000 bytes from all deflated records .* got 200000"):
        open_archive(data, limits=Limits(free_inflated_bytes=150_000))
    open_archive(data, limits=Limits(free_inflated_bytes=200_000)).close()
    open_archive(data, limits=Limits(free_inflated_bytes=0, max_ratio=1000)).close()
    open_archive(forge(Entry(b"m/a", zeros)), limits=Limits(free_inflated_bytes=0, max_ratio=1)).close()
