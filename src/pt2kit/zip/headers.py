"""Structures of a zip file: pack and unpack their fixed fields. Their values are checked elsewhere.

Source: APPNOTE.TXT 6.3.10 (PKWARE), sections 4.3.7 (local header), 4.3.9 (data descriptor), 4.3.12 (directory entry),
4.3.14 to 4.3.16 (end records), 4.5.3 (ZIP64 extra field).
"""

from __future__ import annotations

import struct
from typing import Final

LOCAL_SIGNATURE: Final = b"PK\x03\x04"
ENTRY_SIGNATURE: Final = b"PK\x01\x02"
DESCRIPTOR_SIGNATURE: Final = b"PK\x07\x08"
END_SIGNATURE: Final = b"PK\x05\x06"
END64_SIGNATURE: Final = b"PK\x06\x06"
LOCATOR_SIGNATURE: Final = b"PK\x06\x07"

LOCAL: Final = struct.Struct("<4s5H3I2H")
"""signature, version, flags, method, time, date, crc32, compressed size, size, name length, extra length."""
LOCAL_PARTS: Final = struct.Struct("<4s2x2H4x12s2H")
"""The same without version, time and date; CRC-32 and both sizes in one."""
ENTRY: Final = struct.Struct("<4s6H3I5H2I")
"""signature, made by, version, flags, method, time, date, crc32, compressed size, size, name length, extra length,
comment length, disk, internal attributes, external attributes, header offset."""
ENTRY_PARTS: Final = struct.Struct("<8x2H4x3I4H2x2I")
"""The same without signature, versions, time, date and internal attributes."""
ENTRY_WORDS: Final = struct.Struct("<4xI4x3IH6s2x2I")
"""All fields after the signature, combined: flags and method, crc32, compressed size, size, name length, the three
numbers after it, external attributes, header offset.
"""
END: Final = struct.Struct("<4s4H2IH")
"""signature, this disk, directory's disk, entries here, entries, directory size, directory offset, comment length."""
END64: Final = struct.Struct("<4sQ2H2I4Q")
"""signature, size of the rest, made by, version, this disk, directory's disk, entries here, entries, directory size,
directory offset."""
LOCATOR: Final = struct.Struct("<4sIQI")
"""signature, disk of the ZIP64 end record, its offset, number of disks."""

DESCRIPTOR: Final = struct.Struct("<4s3I")
"""signature, crc32, compressed size, size: the usual form; `descriptor_forms` has the others."""

MAX16: Final = 0xFFFF
MAX32: Final = 0xFFFFFFFF
"""Sentinel in a 16-bit or 32-bit field: the value is in the ZIP64 field instead."""

STORED: Final = 0
DEFLATED: Final = 8

FLAG_DEFLATE_LEVEL: Final = 0x0006
FLAG_DESCRIPTOR: Final = 0x0008
FLAG_UTF8: Final = 0x0800
FLAGS_ENCRYPTED: Final = 0x2041
"""Bits 0, 6 and 13: encrypted, strongly encrypted, headers masked."""
FLAGS_KNOWN: Final = FLAG_DEFLATE_LEVEL | FLAG_DESCRIPTOR | FLAG_UTF8

EXTRA_HEADER: Final = struct.Struct("<2H")
EXTRA_ZIP64: Final = 0x0001
EXTRA_UNICODE_PATH: Final = 0x7075
EXTRA_PADDING: Final = 0x4246
"""'FB': the extra field with which torch pads a local header so that data begins aligned (caffe2, 1.0 and later)."""

MAX_EXTRA: Final = 0xFFFF
DESCRIPTOR_LENGTHS: Final = (12, 16, 20, 24)
"""With 32-bit or 64-bit sizes, without or with a signature."""


def split_extra(extra: bytes) -> list[tuple[int, bytes]] | None:
    """Split an extra field into its (id, data) parts; None if it does not divide into whole parts."""
    parts = []
    pos, end = 0, len(extra)
    while pos < end:
        if end - pos < 4:
            return None
        tag, length = EXTRA_HEADER.unpack_from(extra, pos)
        pos += 4
        if length > end - pos:
            return None
        parts.append((tag, extra[pos : pos + length]))
        pos += length
    return parts


def zip64_values(parts: list[tuple[int, bytes]]) -> tuple[int, ...] | None:
    """Return the 64-bit values of the ZIP64 part (a 4-byte rest, the disk number, last).

    () without one; None if malformed.
    """
    zip64_parts = [data for tag, data in parts if tag == EXTRA_ZIP64]
    if not zip64_parts:
        return ()
    data = zip64_parts[0]
    if len(zip64_parts) > 1 or len(data) % 8 not in (0, 4):
        return None
    values = struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8])
    return (*values, *struct.unpack("<I", data[-4:])) if len(data) % 8 else values


def descriptor_forms(crc32: int, compressed_size: int, size: int) -> tuple[bytes, ...]:
    """Return every form of the data descriptor of a record with these values."""
    forms = []
    if compressed_size <= MAX32 and size <= MAX32:
        forms.append(struct.pack("<3I", crc32, compressed_size, size))
    forms.append(struct.pack("<I2Q", crc32, compressed_size, size))
    return tuple(form for short in forms for form in (short, DESCRIPTOR_SIGNATURE + short))
