"""Builds zip files byte by byte, so that any field can say something wrong."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import pytest

from pt2kit.errors import ArchiveError
from pt2kit.zip.reader import open_archive

LOCAL_FIELDS = ("signature", "version", "flags", "method", "time", "date", "crc32", "csize", "size", "nlen", "xlen")
ENTRY_FIELDS = (
    "signature",
    "made_by",
    "version",
    "flags",
    "method",
    "time",
    "date",
    "crc32",
    "csize",
    "size",
    "nlen",
    "xlen",
    "clen",
    "disk",
    "internal",
    "attributes",
    "offset",
)
END_FIELDS = ("signature", "disk", "start_disk", "here", "count", "size", "offset", "clen")
END64_FIELDS = ("signature", "length", "made_by", "version", "disk", "start_disk", "here", "count", "size", "offset")
LOCATOR_FIELDS = ("signature", "disk", "offset", "disks")


@dataclass
class Entry:
    """One record; `local` and `entry` override fields of its two headers."""

    name: bytes
    data: bytes = b""
    deflate: bool = False
    packed: bytes | None = None
    flags: int = 0x0800
    local: dict[str, Any] = field(default_factory=dict)
    entry: dict[str, Any] = field(default_factory=dict)
    local_name: bytes | None = None
    local_extra: bytes = b""
    entry_extra: bytes = b""
    descriptor: bytes = b""
    gap: bytes = b""


def deflated(data: bytes) -> bytes:
    """Raw deflate data."""
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    return engine.compress(data) + engine.flush()


def zip64(*values: int) -> bytes:
    """A ZIP64 extra field."""
    return struct.pack(f"<2H{len(values)}Q", 1, 8 * len(values), *values)


def forge(
    *entries: Entry,
    before: bytes = b"",
    after_directory: bytes = b"",
    end: dict[str, Any] | None = None,
    end64: dict[str, Any] | None = None,
    locator: dict[str, Any] | None = None,
    comment: bytes = b"",
    after: bytes = b"",
) -> bytes:
    """A zip file of these entries; `end`, `end64` and `locator` override fields of the end records."""
    out = bytearray(before)
    directory = bytearray()
    for entry in entries:
        offset = len(out)
        packed = entry.packed if entry.packed is not None else deflated(entry.data) if entry.deflate else entry.data
        common = {
            "version": 20,
            "flags": entry.flags,
            "method": 8 if entry.deflate else 0,
            "crc32": zlib.crc32(entry.data),
            "csize": len(packed),
            "size": len(entry.data),
        }
        local_name = entry.name if entry.local_name is None else entry.local_name
        lengths = {"nlen": len(local_name), "xlen": len(entry.local_extra)}
        local = {"signature": b"PK\3\4", **common, **lengths, **entry.local}
        out += struct.pack("<4s5H3I2H", *(local.get(name, 0) for name in LOCAL_FIELDS))
        out += local_name + entry.local_extra + packed + entry.descriptor + entry.gap
        lengths = {"nlen": len(entry.name), "xlen": len(entry.entry_extra), "offset": offset}
        fields = {"signature": b"PK\1\2", **common, **lengths, **entry.entry}
        directory += struct.pack("<4s6H3I5H2I", *(fields.get(name, 0) for name in ENTRY_FIELDS))
        directory += entry.name + entry.entry_extra
    start = len(out)
    out += directory + after_directory
    span = {"here": len(entries), "count": len(entries), "size": len(directory), "offset": start}
    if end64 is not None:
        pos64 = len(out)
        fields = {"signature": b"PK\6\6", "length": 44, "version": 45, **span, **end64}
        out += struct.pack("<4sQ2H2I4Q", *(fields.get(name, 0) for name in END64_FIELDS))
        fields = {"signature": b"PK\6\7", "offset": pos64, "disks": 1, **(locator or {})}
        out += struct.pack("<4sIQI", *(fields.get(name, 0) for name in LOCATOR_FIELDS))
    fields = {"signature": b"PK\5\6", "clen": len(comment), **span, **(end or {})}
    out += struct.pack("<4s4H2IH", *(fields.get(name, 0) for name in END_FIELDS))
    return bytes(out + comment + after)


def simple(**changes: Any) -> bytes:
    """A zip file of two small records, `changes` applied to the second."""
    return forge(Entry(b"m/a", b"first"), Entry(**{"name": b"m/b", "data": b"second", **changes}))


def check_refused(data: bytes, rule: str, text: str, place: str = "") -> None:
    """Expect that an archive is refused by a rule, with a part of the message, which begins with its name."""
    with pytest.raises(ArchiveError) as caught:
        open_archive(data, name="x.pt2")
    assert caught.value.rule == rule
    assert text in str(caught.value)
    assert str(caught.value).startswith(f"x.pt2: {place}")
