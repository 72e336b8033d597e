"""Structures of a zip file, packed and unpacked, and its end records, which locate the directory (rules A2 to A4).

Two readers that find different end records see different archives, so exactly one reading is accepted: the last end
record, ending where the file ends, with nothing between it and the directory but the ZIP64 end records it announces.

The values of the other structures' fixed fields are checked elsewhere.

Source: APPNOTE.TXT 6.3.10 (PKWARE), sections 4.3.7 (local header), 4.3.9 (data descriptor), 4.3.12 (directory entry),
4.3.14 to 4.3.16 (end records), 4.5.3 (ZIP64 extra field).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pt2kit.errors import ArchiveError, LimitError
from pt2kit.messages import count_text
from pt2kit.zip.foreign import identify
from pt2kit.zip.source import Limits, Source

LOCAL_SIGNATURE: Final = b"PK\x03\x04"
ENTRY_SIGNATURE: Final = b"PK\x01\x02"
DESCRIPTOR_SIGNATURE: Final = b"PK\x07\x08"
END_SIGNATURE: Final = b"PK\x05\x06"
END64_SIGNATURE: Final = b"PK\x06\x06"
LOCATOR_SIGNATURE: Final = b"PK\x06\x07"

LOCAL: Final = struct.Struct("<4s5H3I2H")
"""signature, version, flags, method, time, date, crc32, compressed size, size, name length, extra length."""
ENTRY: Final = struct.Struct("<4s6H3I5H2I")
"""signature, made by, version, flags, method, time, date, crc32, compressed size, size, name length, extra length,
comment length, disk, internal attributes, external attributes, header offset."""
ENTRY_PARTS: Final = struct.Struct("<8x2H4x3I4H2x2I")
"""The same without signature, versions, time, date and internal attributes."""
END: Final = struct.Struct("<4s4H2IH")
"""signature, this disk, directory's disk, entries here, entries, directory size, directory offset, comment length."""
END64: Final = struct.Struct("<4sQ2H2I4Q")
"""signature, size of the rest, made by, version, this disk, directory's disk, entries here, entries, directory size,
directory offset."""
LOCATOR: Final = struct.Struct("<4sIQI")
"""signature, disk of the ZIP64 end record, its offset, number of disks."""

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

_TAIL: Final = END.size + MAX16
"""Bytes from the end of the file that can hold the end record: it, and the longest comment after it."""


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


def descriptor_forms(crc32: int, compressed_size: int, size: int) -> Iterator[bytes]:
    """Yield every form of the data descriptor of a record with these values, the usual one first."""
    for numbers in ("<3I", "<I2Q") if max(compressed_size, size) <= MAX32 else ("<I2Q",):
        short = struct.pack(numbers, crc32, compressed_size, size)
        yield DESCRIPTOR_SIGNATURE + short
        yield short


@dataclass(frozen=True, slots=True)
class DirectorySpan:
    """Location of the directory.

    Args:
        offset: of its first byte in the file, in bytes.
        size: in bytes.
        count: number of entries.
    """

    offset: int
    size: int
    count: int


def read_end(source: Source, limits: Limits) -> DirectorySpan:
    """Read the end records; they must fit the file exactly.

    Raises:
        ArchiveError: not a zip file, truncated, followed by other data, or contradicting itself (A2, A3, A4).
        LimitError: more entries or a larger directory than `limits` allow (A18).
    """
    pos = _find_end(source)
    fields = END.unpack(source.read(pos, END.size))
    span, end_of_directory = _resolve(source, pos, fields[1:-1])
    if span.offset + span.size != end_of_directory:
        raise ArchiveError(
            f"{source.name}: expected the directory to end at {end_of_directory}, where the end records begin, got "
            f"{span.size} bytes at offset {span.offset}, which end at {span.offset + span.size}",
            rule="A4",
        )
    if span.count * ENTRY.size > span.size:
        raise ArchiveError(
            f"{source.name}: expected a directory of at least {span.count * ENTRY.size} bytes for {span.count} "
            f"entries, got {span.size}",
            rule="A4",
        )
    _check_limit(source, "entries", span.count, limits.max_entries, "max_entries")
    _check_limit(source, "bytes of directory", span.size, limits.max_directory_bytes, "max_directory_bytes")
    return span


def _start(source: Source) -> bytes:
    """Return the first four bytes of a file; refuse a file that they show to be of another kind."""
    start = bytes(source.read(0, min(4, source.size)))
    if start != LOCAL_SIGNATURE and (what := identify(source)):
        raise ArchiveError(f"{source.name}: expected a .pt2 file, got {what}", rule="A2")
    return start


def _find_end(source: Source) -> int:
    """Return the offset of the end record."""
    plain = source.size - END.size
    if plain >= 0:
        last = bytes(source.read(plain, END.size))
        if last[:4] == END_SIGNATURE and last[-2:] == b"\0\0":
            return plain
    tail = bytes(source.read(max(0, source.size - _TAIL), min(source.size, _TAIL)))
    in_tail = tail.rfind(END_SIGNATURE)
    if in_tail < 0:
        start = _start(source)
        kind = "is cut off" if start == LOCAL_SIGNATURE else f"is no zip file (it begins with {start!r})"
        raise ArchiveError(
            f"{source.name}: expected a zip end record in the last {len(tail)} of {source.size} bytes, got none: "
            f"the file {kind}",
            rule="A2",
        )
    pos = source.size - len(tail) + in_tail
    if len(tail) - in_tail < END.size:
        raise ArchiveError(
            f"{source.name}: expected an end record of {END.size} bytes at {pos}, got {len(tail) - in_tail} bytes: "
            "the file is cut off",
            rule="A2",
        )
    end = pos + END.size + END.unpack_from(tail, in_tail)[7]
    if end != source.size:
        _start(source)  # a tar archive of a zip archive has an end record within
        what = "is cut off" if end > source.size else "is cut off, or other data follows the archive"
        raise ArchiveError(
            f"{source.name}: expected the file to end at {end}, as its last end record says, got {source.size} bytes: "
            f"it {what}",
            rule="A2",
        )
    return pos


def _resolve(source: Source, pos: int, fields: tuple[int, ...]) -> tuple[DirectorySpan, int]:
    """Return the directory's span by the end record at `pos`, or by the ZIP64 ones before it; and where it must end."""
    locator_pos = pos - LOCATOR.size
    locator = bytes(source.read(locator_pos, LOCATOR.size)) if locator_pos >= 0 else b""
    if locator[:4] != LOCATOR_SIGNATURE:
        return _span(source, fields), pos
    _, locator_disk, pos64, disks = LOCATOR.unpack(locator)
    fields64 = _read_end64(source, pos64, locator_pos)
    span = _span(source, fields64)
    if locator_disk or disks != 1:
        raise ArchiveError(f"{source.name}: expected an archive on 1 disk, got {disks}", rule="A3")
    pairs = zip(
        ("this disk", "the directory's disk", "entries on this disk", "entries", "directory size", "directory offset"),
        fields,
        (MAX16, MAX16, MAX16, MAX16, MAX32, MAX32),
        fields64,
        strict=True,
    )
    for what, short, sentinel, long in pairs:
        if short not in (long, sentinel):
            raise ArchiveError(
                f"{source.name}: expected the end record and the ZIP64 end record to agree on {what}, "
                f"got {short} and {long}",
                rule="A3",
            )
    return span, pos64


def _read_end64(source: Source, pos64: int, locator_pos: int) -> tuple[int, ...]:
    if pos64 + END64.size != locator_pos:
        raise ArchiveError(
            f"{source.name}: expected the ZIP64 end record right before its locator, at {locator_pos - END64.size}, "
            f"got offset {pos64}",
            rule="A3",
        )
    fields = END64.unpack(source.read(pos64, END64.size))
    if fields[0] != END64_SIGNATURE or fields[1] != END64.size - 12:
        raise ArchiveError(
            f"{source.name}: expected a ZIP64 end record at {pos64}, got {fields[0]!r} with length {fields[1]}",
            rule="A3",
        )
    return fields[4:]


def _span(source: Source, fields: tuple[int, ...]) -> DirectorySpan:
    """Return the directory's span of the fields that both end records have; refuse an archive on several disks."""
    disk, start_disk, here, count, size, offset = fields
    if disk or start_disk:
        raise ArchiveError(
            f"{source.name}: expected an archive on one disk, got disk {disk} with its directory on {start_disk}",
            rule="A12",
        )
    if here != count:
        raise ArchiveError(
            f"{source.name}: expected {count_text(count, 'entry', 'entries')} on this disk, got {here}", rule="A4"
        )
    return DirectorySpan(offset, size, count)


def _check_limit(source: Source, what: str, got: int, limit: int, field: str) -> None:
    if got > limit:
        raise LimitError(
            f"{source.name}: expected at most {limit} {what}, got {got}; raise Limits.{field} if you trust the file",
            rule="A18",
        )
