"""The end of a zip file: one reading or none."""

from __future__ import annotations

import pytest
from tests.zip.zip_forge import Entry, check_refused, forge, simple

from pt2kit.errors import LimitError
from pt2kit.zip.reader import open_archive
from pt2kit.zip.source import Limits

GOOD = simple()
A, B = Entry(b"m/a", b"first"), Entry(b"m/b", b"second")
END = GOOD[-22:]

# name: (file, rule, text of the message)
REFUSED: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "A2", "x.pt2: expected a .pt2 file, got an empty file"),
    "text": (b"hello world" * 20, "A2", "expected a .pt2 file, got a text"),
    "nothing known": (
        b"\x01\x02\x03\xff" * 20,
        "A2",
        "the file is no zip file (it begins with b'\\x01\\x02\\x03\\xff')",
    ),
    "too short": (b"PK\5\6", "A2", "expected an end record of 22 bytes at 0, got 4 bytes: the file is cut off"),
    "cut": (GOOD[:40], "A2", "the file is cut off"),
    "cut in the end record": (GOOD[:-1], "A2", "of 22 bytes at"),
    "byte after": (GOOD + b"\0", "A2", f"expected the file to end at {len(GOOD)}"),
    "end record after": (GOOD + END, "A4", f"got 98 bytes at offset {len(GOOD) - 120}"),
    "comment too long": (forge(A, B, end={"clen": 5}, comment=b"four"), "A2", "it is cut off"),
    "comment too short": (forge(A, B, end={"clen": 3}, comment=b"four"), "A2", "it is cut off, or other data follows"),
    "end record in comment": (forge(A, B, comment=b"PK\5\6" + bytes(18) + b"x"), "A2", "expected the file to end at"),
    "two archives": (GOOD + GOOD, "A4", "expected the directory to end at"),
    "bytes before": (b"#!/bin/sh\n" + GOOD, "A4", "expected the directory to end at"),
    "gap before the end": (forge(A, B, after_directory=b"gap"), "A4", "where the end records begin"),
    "offset": (forge(A, B, end={"offset": 3}), "A4", "bytes at offset 3, which end at"),
    "size": (forge(A, B, end={"size": 0xFFFFFFF0}), "A4", "4294967280 bytes at offset"),
    "size and offset": (forge(A, B, end={"offset": 0, "size": len(GOOD) - 22}), "A5", "expected signature"),
    "too many entries": (forge(A, B, end={"count": 3, "here": 3}), "A4", "at least 138 bytes for 3 entries, got 98"),
    "too few entries": (forge(A, B, end={"count": 1, "here": 1}), "A4", "to fill the directory of 98 bytes, got 49"),
    "entries elsewhere": (forge(A, B, end={"here": 1}), "A4", "expected 2 entries on this disk, got 1"),
    "second disk": (forge(A, B, end={"disk": 1}), "A12", "expected an archive on one disk, got disk 1"),
    "directory on second disk": (forge(A, B, end={"start_disk": 1}), "A12", "with its directory on 1"),
    "zip64 disagrees on entries": (forge(A, B, end64={"count": 3, "here": 3}), "A3", "on this disk, got 2 and 3"),
    "zip64 disagrees on size": (forge(A, B, end64={"size": 97}), "A3", "agree on directory size, got 98 and 97"),
    "zip64 disagrees on offset": (forge(A, B, end64={"offset": 1}), "A3", "agree on directory offset, got"),
    "zip64 disks": (forge(A, B, end64={}, locator={"disks": 2}), "A3", "expected an archive on 1 disk, got 2"),
    "zip64 disk": (forge(A, B, end64={}, locator={"disk": 1}), "A3", "expected an archive on 1 disk"),
    "zip64 moved": (forge(A, B, end64={}, locator={"offset": 0}), "A3", "right before its locator"),
    "zip64 beyond": (forge(A, B, end64={}, locator={"offset": 2**63}), "A3", f"got offset {2**63}"),
    "zip64 signature": (forge(A, B, end64={"signature": b"PK\6\5"}), "A3", "got b'PK\\x06\\x05' with length 44"),
    "zip64 length": (forge(A, B, end64={"length": 45}), "A3", "with length 45"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """An end that does not fit the file exactly is refused, with the place and both numbers."""
    check_refused(*REFUSED[case])


ACCEPTED = {
    "plain": GOOD,
    "comment": forge(A, B, comment=b"made by hand"),
    "longest comment": forge(A, B, comment=b"x" * 0xFFFF),
    "zip64": forge(A, B, end64={}),
    "zip64 with sentinels": forge(
        A, B, end64={}, end={"here": 0xFFFF, "count": 0xFFFF, "size": 0xFFFFFFFF, "offset": 0xFFFFFFFF}
    ),
    "an archive inside": forge(A, Entry(b"m/b", simple())),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(case: str) -> None:
    """Archives that are valid and unambiguous are read."""
    with open_archive(ACCEPTED[case]) as archive:
        assert list(archive.records) == ["m/a", "m/b"]
        assert bytes(archive.read("m/a")) == b"first"


def test_limits() -> None:
    """Counts and sizes are limited before anything of that size is made."""
    with pytest.raises(LimitError, match=r"at most 1 entries, got 2; raise Limits.max_entries .*\[A18\]"):
        open_archive(GOOD, limits=Limits(max_entries=1))
    with pytest.raises(LimitError, match=r"at most 97 bytes of directory, got 98; .*max_directory_bytes"):
        open_archive(GOOD, limits=Limits(max_directory_bytes=97))


def test_no_entries() -> None:
    """An empty zip is an archive without records."""
    with open_archive(forge()) as archive:
        assert len(archive.records) == 0
