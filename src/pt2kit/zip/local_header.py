"""What stands around a record's data in the file, compared with what the directory says of it (rules A12 to A14).

Readers differ in which of the two they believe; an archive where they disagree has no single meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from pt2kit.errors import ArchiveError
from pt2kit.messages import quote
from pt2kit.zip import headers as h
from pt2kit.zip.directory import Record, check_unicode_path
from pt2kit.zip.record_name import show_name

_LOCAL_SIZE: Final = h.LOCAL.size
_ZEROS: Final = bytes(12)


def check_headers(
    where: str, directory: Iterable[Record], view: memoryview, peek: Callable[[int, int], bytes]
) -> dict[str, int]:
    """Compare every record's local header and descriptor with its directory entry.

    Args:
        where: what messages call the archive.
        directory: the entries.
        view: the whole file.
        peek: gives a few bytes of it, by their offset and number.

    Returns:
        record name -> offset in the file of its data.

    Raises:
        ArchiveError: as `check_local_header` and `check_descriptor`, for the first record that they refuse.
    """
    records = tuple(directory)
    if (usual := _usual_offsets(records, peek)) is not None:
        return usual
    offsets = {}
    for record in records:
        offset = check_local_header(where, record, view, 0)
        check_descriptor(where, record, view[offset + record.compressed_size : record.end_offset])
        offsets[record.name] = offset
    return offsets


def _usual_offsets(records: Iterable[Record], peek: Callable[[int, int], bytes]) -> dict[str, int] | None:
    """Where the data of records is if all around them is as torch and pt2kit write it; None if anything is not.

    That is: one record after the other; CRC-32 and sizes either in the header or, in its short form, in a descriptor;
    nothing in the extra field but padding. What stands between the data of two records is compared at once.
    """
    offsets = {}
    descriptor, position = b"", 0
    for text, size, compressed_size, method, crc32, flags, start, end in records:
        if start != position or size > h.MAX32 or compressed_size > h.MAX32:
            return None
        name, before = text.encode("utf-8"), descriptor
        descriptor, stated = h.DESCRIPTOR.pack(h.DESCRIPTOR_SIGNATURE, crc32, compressed_size, size), _ZEROS
        if not flags & h.FLAG_DESCRIPTOR:
            descriptor, stated = b"", descriptor[len(h.DESCRIPTOR_SIGNATURE) :]
        offsets[text] = offset = end - len(descriptor) - compressed_size
        extra = offset - start - _LOCAL_SIZE - len(name)
        if extra and not 4 <= extra <= h.MAX_EXTRA:
            return None
        named = name + h.EXTRA_HEADER.pack(h.EXTRA_PADDING, extra - 4) if extra else name
        fixed = len(before)
        between = peek(start - fixed, fixed + _LOCAL_SIZE + len(named))
        parts = (h.LOCAL_SIGNATURE, flags, method, stated, len(name), extra)
        if not between.startswith(before) or not between.endswith(named):
            return None
        if h.LOCAL_PARTS.unpack_from(between, fixed) != parts:
            return None
        position = end
    return offsets if peek(position - len(descriptor), len(descriptor)) == descriptor else None


def check_local_header(where: str, record: Record, view: memoryview, base: int) -> int:
    """Compare a record's local header with its directory entry.

    Args:
        where: what messages call the archive.
        record: the directory entry.
        view: bytes of the file that hold the header with its name and extra fields.
        base: offset in the file of the first byte of `view`.

    Returns:
        the offset in the file of the record's data.

    Raises:
        ArchiveError: they differ (A13), or data and descriptor do not fill the space up to the next record (A12, A14).
    """
    pos = record.header_offset - base
    fields = h.LOCAL.unpack_from(view, pos)
    signature, _, flags, method, _, _, crc32, compressed_size, size, name_length, extra_length = fields
    name_pos = pos + h.LOCAL.size
    extra_pos = name_pos + name_length
    name = view[name_pos:extra_pos]
    if (
        signature != h.LOCAL_SIGNATURE
        or flags != record.flags
        or method != record.method
        or name != record.name.encode("utf-8")
    ):
        _refuse(where, record, signature, flags, method, bytes(name))
    data_offset = int(base + extra_pos + extra_length)
    _check_extent(where, record, data_offset)
    extra = bytes(view[extra_pos : extra_pos + extra_length])
    stated = (crc32, compressed_size, size)
    exact = stated == (record.crc32, record.compressed_size, record.size)
    left_out = stated == (0, 0, 0) and flags & h.FLAG_DESCRIPTOR
    if not ((exact or left_out) and _is_padding(extra)):
        _check_sizes(where, record, stated, extra)
    return data_offset


def header_length(record: Record, view: memoryview) -> int:
    """The length in bytes of the local header at the start of `view`, name and extra fields included."""
    fields = h.LOCAL.unpack_from(view, 0)
    return h.LOCAL.size + int(fields[9]) + int(fields[10])


def check_descriptor(where: str, record: Record, tail: memoryview) -> None:
    """Check what stands between a record's data and the next record: its descriptor, or nothing (A14).

    A descriptor is required to be there by flag 3 alone, and read by its length, as torch writes 64-bit sizes for all
    records from 4 GiB on and 32-bit ones before.
    """
    if not record.flags & h.FLAG_DESCRIPTOR:
        return
    if bytes(tail) not in h.descriptor_forms(record.crc32, record.compressed_size, record.size):
        raise ArchiveError(
            f"{where}: {show_name(record.name)}: expected a data descriptor with CRC-32 {record.crc32:#010x}, "
            f"sizes {record.compressed_size} and {record.size}, got {bytes(tail).hex()}",
            rule="A14",
        )


def _is_padding(extra: bytes) -> bool:
    """Whether there is nothing but the one field with which torch aligns data: the usual case, made quick."""
    return not extra or (extra[:2] == b"FB" and int.from_bytes(extra[2:4], "little") == len(extra) - 4)


def _refuse(where: str, record: Record, signature: bytes, flags: int, method: int, name: bytes) -> None:
    where = f"{where}: {show_name(record.name)}: local header at {record.header_offset}"
    pairs = (
        ("signature", repr(h.LOCAL_SIGNATURE), repr(signature)),
        ("flags", f"{record.flags:#06x}", f"{flags:#06x}"),
        ("method", str(record.method), str(method)),
    )
    for what, expected, got in pairs:
        if expected != got:
            raise ArchiveError(f"{where}: expected {what} {expected}, got {got}", rule="A13")
    raise ArchiveError(f"{where}: expected name {quote(record.name.encode())}, got {quote(name)}", rule="A13")


def _check_extent(where: str, record: Record, data_offset: int) -> None:
    """The data, and a descriptor if flag 3 says so, must end where the next record begins."""
    rest = record.end_offset - data_offset - record.compressed_size
    if record.flags & h.FLAG_DESCRIPTOR:
        if rest not in h.DESCRIPTOR_LENGTHS:
            raise ArchiveError(
                f"{where}: {show_name(record.name)}: expected a data descriptor of 12 to 24 bytes up to "
                f"{record.end_offset}, got {rest} bytes",
                rule="A14",
            )
    elif rest:
        raise ArchiveError(
            f"{where}: {show_name(record.name)}: expected its {record.compressed_size} bytes of data at {data_offset} "
            f"to end at {record.end_offset}, where the next record begins, got {data_offset + record.compressed_size}",
            rule="A12",
        )


def _check_sizes(where: str, record: Record, stated: tuple[int, int, int], extra: bytes) -> None:
    where = f"{where}: {show_name(record.name)}: local header at {record.header_offset}"
    parts = h.split_extra(extra)
    values = None if parts is None else h.zip64_values(parts)
    if parts is None or values is None:
        raise ArchiveError(f"{where}: expected well-formed extra fields, got {extra[:64].hex()}", rule="A5")
    check_unicode_path(where, parts, record.name.encode("utf-8"))
    later = bool(record.flags & h.FLAG_DESCRIPTOR)
    truth = (record.crc32, record.compressed_size, record.size)
    # With a descriptor the header may say 0, of both sizes or of none; with a ZIP64 field they may say "see there".
    elsewhere = (0, h.MAX32) if values else (0,)
    left_out = later and stated[0] == 0 and all(size in elsewhere for size in stated[1:])
    for what, expected, got in zip(("CRC-32", "compressed size", "size"), truth, stated, strict=True):
        later_or_there = later and got == 0 if what == "CRC-32" else left_out or (got == h.MAX32 and bool(values))
        if got != expected and not later_or_there:
            raise ArchiveError(f"{where}: expected {what} {expected}, got {got}", rule="A13")
    _check_zip64(where, record, stated, values, later)


def _check_zip64(
    where: str, record: Record, stated: tuple[int, int, int], values: tuple[int, ...], later: bool
) -> None:
    """The ZIP64 values must be the sizes; torch also writes its header's offset there, and sizes not known yet as 0."""
    moved = [
        truth for truth, short in ((record.size, stated[2]), (record.compressed_size, stated[1])) if short == h.MAX32
    ]
    if moved and not later:
        fits = list(values[: len(moved)]) == moved
    else:
        known = {record.size, record.compressed_size, record.header_offset} | ({0} if later else set())
        fits = known.issuperset(values)
    if not fits:
        raise ArchiveError(
            f"{where}: expected ZIP64 sizes {record.size} and {record.compressed_size}, got {list(values)}", rule="A13"
        )
