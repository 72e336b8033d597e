"""Find the directory of a zip file by its end records (rules A2 to A4).

Two readers that find different end records see different archives, so exactly one reading is accepted: the last end
record, ending where the file ends, with nothing between it and the directory but the ZIP64 end records it announces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pt2kit.errors import ArchiveError, LimitError
from pt2kit.zip import headers as h
from pt2kit.zip.foreign import identify
from pt2kit.zip.limits import Limits
from pt2kit.zip.source import Source

_TAIL: Final = h.END.size + h.MAX16
"""Bytes from the end of the file that can hold the end record: it, and the longest comment after it."""


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
    fields = h.END.unpack(source.read(pos, h.END.size))
    span, end_of_directory = _resolve(source, pos, fields)
    if span.offset + span.size != end_of_directory:
        raise ArchiveError(
            f"{source.name}: expected the directory to end at {end_of_directory}, where the end records begin, got "
            f"{span.size} bytes at offset {span.offset}, which end at {span.offset + span.size}",
            rule="A4",
        )
    if span.count * h.ENTRY.size > span.size:
        raise ArchiveError(
            f"{source.name}: expected a directory of at least {span.count * h.ENTRY.size} bytes for {span.count} "
            f"entries, got {span.size}",
            rule="A4",
        )
    _check_limit(source, "entries", span.count, limits.max_entries, "max_entries")
    _check_limit(source, "bytes of directory", span.size, limits.max_directory_bytes, "max_directory_bytes")
    return span


def _find_end(source: Source) -> int:
    """Return the offset of the end record."""
    plain = source.size - h.END.size
    if plain >= 0:
        last = bytes(source.read(plain, h.END.size))
        if last[:4] == h.END_SIGNATURE and last[-2:] == b"\0\0":
            return plain
    tail = bytes(source.read(max(0, source.size - _TAIL), min(source.size, _TAIL)))
    in_tail = tail.rfind(h.END_SIGNATURE)
    if in_tail < 0:
        start = bytes(source.read(0, min(4, source.size)))
        if start != h.LOCAL_SIGNATURE and (what := identify(source)):
            raise ArchiveError(f"{source.name}: expected a .pt2 file, got {what}", rule="A2")
        kind = "is cut off" if start == h.LOCAL_SIGNATURE else f"is no zip file (it begins with {start!r})"
        raise ArchiveError(
            f"{source.name}: expected a zip end record in the last {len(tail)} of {source.size} bytes, got none: "
            f"the file {kind}",
            rule="A2",
        )
    pos = source.size - len(tail) + in_tail
    if len(tail) - in_tail < h.END.size:
        raise ArchiveError(
            f"{source.name}: expected an end record of {h.END.size} bytes at {pos}, got {len(tail) - in_tail} bytes: "
            "the file is cut off",
            rule="A2",
        )
    end = pos + h.END.size + h.END.unpack_from(tail, in_tail)[7]
    if end != source.size:
        what = "is cut off" if end > source.size else "is cut off, or other data follows the archive"
        raise ArchiveError(
            f"{source.name}: expected the file to end at {end}, as its last end record says, got {source.size} bytes: "
            f"it {what}",
            rule="A2",
        )
    return pos


def _resolve(source: Source, pos: int, fields: tuple[int, ...]) -> tuple[DirectorySpan, int]:
    """Return the directory's span by the end record at `pos`, or by the ZIP64 ones before it; and where it must end."""
    _, disk, start_disk, here, count, size, offset, _ = fields
    locator_pos = pos - h.LOCATOR.size
    locator = bytes(source.read(locator_pos, h.LOCATOR.size)) if locator_pos >= 0 else b""
    if locator[:4] != h.LOCATOR_SIGNATURE:
        _check_disks(source, disk, start_disk, here, count)
        return DirectorySpan(offset, size, count), pos
    _, locator_disk, pos64, disks = h.LOCATOR.unpack(locator)
    fields64 = _read_end64(source, pos64, locator_pos)
    disk64, start_disk64, here64, count64, size64, offset64 = fields64
    _check_disks(source, disk64, start_disk64, here64, count64)
    if locator_disk or disks != 1:
        raise ArchiveError(f"{source.name}: expected an archive on 1 disk, got {disks}", rule="A3")
    pairs = zip(
        ("this disk", "the directory's disk", "entries on this disk", "entries", "directory size", "directory offset"),
        (disk, start_disk, here, count, size, offset),
        (h.MAX16, h.MAX16, h.MAX16, h.MAX16, h.MAX32, h.MAX32),
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
    return DirectorySpan(offset64, size64, count64), pos64


def _read_end64(source: Source, pos64: int, locator_pos: int) -> tuple[int, ...]:
    if pos64 + h.END64.size != locator_pos:
        raise ArchiveError(
            f"{source.name}: expected the ZIP64 end record right before its locator, at {locator_pos - h.END64.size}, "
            f"got offset {pos64}",
            rule="A3",
        )
    fields = h.END64.unpack(source.read(pos64, h.END64.size))
    if fields[0] != h.END64_SIGNATURE or fields[1] != h.END64.size - 12:
        raise ArchiveError(
            f"{source.name}: expected a ZIP64 end record at {pos64}, got {fields[0]!r} with length {fields[1]}",
            rule="A3",
        )
    return fields[4:]


def _check_disks(source: Source, disk: int, start_disk: int, here: int, count: int) -> None:
    if disk or start_disk:
        raise ArchiveError(
            f"{source.name}: expected an archive on one disk, got disk {disk} with its directory on {start_disk}",
            rule="A12",
        )
    if here != count:
        raise ArchiveError(f"{source.name}: expected {count} entries on this disk, got {here}", rule="A4")


def _check_limit(source: Source, what: str, got: int, limit: int, field: str) -> None:
    if got > limit:
        raise LimitError(
            f"{source.name}: expected at most {limit} {what}, got {got}; raise Limits.{field} if you trust the file",
            rule="A18",
        )
