"""Read the directory of a zip file, and compare it with the local headers and descriptors (rules A5 to A14).

`read_directory` checks entries against each other and reads nothing outside the directory, so a remote file costs no
more than its end. `check_headers` compares what precedes and follows each record's data with its entry: readers differ
in which of the two they believe, and an archive in which they disagree has no single meaning.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable
from itertools import islice
from operator import itemgetter
from typing import Final, NamedTuple, NoReturn, TypeAlias

from pt2kit.errors import ArchiveError, LimitError
from pt2kit.messages import count_text, quote
from pt2kit.zip import end_record
from pt2kit.zip.chosen_names import collision_key, decode_name, show_name
from pt2kit.zip.end_record import read_end
from pt2kit.zip.source import Limits, Source

_MAX_DEFLATE: Final = 1032
"""Bytes that one byte of deflated data can make at most: 258 bytes for each match of 2 bits."""
_MAX32: Final = end_record.MAX32
_LOCAL_SIZE: Final = end_record.LOCAL.size
_PADDING_GUESS: Final = 128
"""Bytes of extra fields that are read with a header: torch pads a header by at most 67, and adds up to 28."""
_UNUSUAL_FLAGS: Final = 0xFFFF & ~(end_record.FLAG_DESCRIPTOR | end_record.FLAG_UTF8)
_SLACK_WITH_DESCRIPTOR: Final = end_record.MAX_EXTRA + end_record.DESCRIPTOR_LENGTHS[-1]
"""Bytes that a record with a data descriptor can have in addition to its header, name and data."""

Peek: TypeAlias = Callable[[int, int], bytes | memoryview]
"""(offset, length) -> a few bytes of the file."""


class Record(NamedTuple):
    """One entry of the directory.

    Args:
        name: full name, root folder included; a folder's ends with "/".
        size: bytes of its content.
        compressed_size: bytes it takes in the file; equal to `size` when stored.
        method: 0 stored, 8 deflated.
        crc32: of the content.
        flags: general purpose flags as written.
        header_offset: offset in the file of its local header.
        end_offset: offset in the file where the next record, or the directory, begins; 0 if it is in no zip file.
    """

    name: str
    size: int
    compressed_size: int
    method: int
    crc32: int
    flags: int
    header_offset: int
    end_offset: int

    @property
    def is_stored(self) -> bool:
        """Return whether the content is stored in the file uncompressed."""
        return self.method == end_record.STORED

    @property
    def is_zipped(self) -> bool:
        """Return whether it is in a zip file, which has its header and CRC-32."""
        return self.end_offset > 0


def unzipped(name: str, nbytes: int) -> Record:
    """Return a record that is in no zip file."""
    return Record(name, nbytes, nbytes, end_record.STORED, 0, 0, 0, 0)


_HEADER_OFFSET: Final = Record._fields.index("header_offset")


def read_directory(source: Source, limits: Limits) -> tuple[Record, ...]:
    """Read and check the directory.

    Returns:
        the records in directory order, entries for folders included. Linear in their number.

    Raises:
        ArchiveError: A2 to A12.
        LimitError: A18.
    """
    span = read_end(source, limits)
    data = bytes(source.read(span.offset, span.size))
    entries: list[Record] = []
    pos = 0
    for index in range(span.count):
        entry, pos = _read_entry(source, data, pos, index)
        entries.append(entry)
    if pos != span.size:
        raise ArchiveError(
            f"{source.name}: expected {span.count} entries to fill the directory of {span.size} bytes, got {pos} bytes",
            rule="A4",
        )
    _check_names(source, entries)
    _check_inflated(source, entries, limits)
    return _place(source, entries, span.offset)


def _read_entry(source: Source, data: bytes, pos: int, index: int) -> tuple[Record, int]:
    """Read the entry at `pos`; `end_offset` is the least it can be until `_place` finds the next record."""
    if len(data) - pos < end_record.ENTRY.size or data[pos : pos + 4] != end_record.ENTRY_SIGNATURE:
        raise ArchiveError(
            f"{source.name}: directory entry {index}: expected signature {end_record.ENTRY_SIGNATURE!r} at {pos} of "
            f"the directory's {count_text(len(data), 'byte')}, got {data[pos : pos + 4]!r}",
            rule="A5",
        )
    parts = end_record.ENTRY_PARTS.unpack_from(data, pos)
    flags, method, crc32, compressed_size, size, name_length, extra_length, comment_length, disk, mode, offset = parts
    name_pos = pos + end_record.ENTRY.size
    name_end = name_pos + name_length
    extra_end = name_end + extra_length
    end = extra_end + comment_length
    if end > len(data):
        raise ArchiveError(
            f"{source.name}: directory entry {index}: expected it to end by {len(data)} of the directory, got {end}",
            rule="A5",
        )
    raw_name = data[name_pos:name_end]
    name = decode_name(raw_name, source.name)
    # Archives have hundreds of records, nearly all of them neither large nor packed nor odd.
    if extra_length or disk or size == _MAX32 or compressed_size == _MAX32 or offset == _MAX32:
        where = f"{source.name}: {show_name(name)}"
        short = (size, compressed_size, offset)
        size, compressed_size, offset = _resolve_sizes(where, short, disk, data[name_end:extra_end], raw_name)
    if mode or name[-1] == "/":
        _check_kind(f"{source.name}: {show_name(name)}", name, mode, size)
    if method or size != compressed_size or flags & _UNUSUAL_FLAGS:
        _check_method(f"{source.name}: {show_name(name)}", flags, method, size, compressed_size)
    end_offset = offset + _LOCAL_SIZE + name_length + compressed_size
    return Record(name, size, compressed_size, method, crc32, flags, offset, end_offset), end


def _resolve_sizes(
    where: str, short: tuple[int, int, int], disk: int, extra: bytes, raw_name: bytes
) -> tuple[int, int, int]:
    """Return (size, compressed size, header offset) with ZIP64 values in place of the sentinels."""
    values = _zip64_values(where, extra, raw_name)
    wanted = sum(value == end_record.MAX32 for value in short) + (disk == end_record.MAX16)
    if wanted != len(values):
        raise ArchiveError(f"{where}: expected {wanted} ZIP64 values, got {len(values)}", rule="A5")
    long = iter(values)
    size, compressed_size, offset = (next(long) if value == end_record.MAX32 else value for value in short)
    disk = next(long, disk) if disk == end_record.MAX16 else disk
    if disk:
        raise ArchiveError(f"{where}: expected a record on disk 0, got disk {disk}", rule="A12")
    return size, compressed_size, offset


def _zip64_values(where: str, extra: bytes, raw_name: bytes) -> tuple[int, ...]:
    """Return the ZIP64 values of an extra field; refuse one that is malformed, or that has another name (A5)."""
    parts = end_record.split_extra(extra)
    values = None if parts is None else end_record.zip64_values(parts)
    if parts is None or values is None:
        raise ArchiveError(f"{where}: expected well-formed extra fields, got {extra[:64].hex()}", rule="A5")
    for tag, value in parts:
        if tag == end_record.EXTRA_UNICODE_PATH and value[5:] != raw_name:
            raise ArchiveError(
                f"{where}: expected one name, got a second one, {quote(value[5:])}, as extra field", rule="A5"
            )
    return values


def _check_kind(where: str, name: str, attributes: int, size: int) -> None:
    """Refuse an entry that is neither a plain file nor an empty folder (A8)."""
    mode = attributes >> 16
    folder = name.endswith("/")
    if stat.S_IFMT(mode) not in (0, stat.S_IFDIR if folder else stat.S_IFREG):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else f"file mode {mode:#o}"
        raise ArchiveError(f"{where}: expected a plain {'folder' if folder else 'file'}, got {kind}", rule="A8")
    if folder and size:
        raise ArchiveError(f"{where}: expected an empty folder entry, got {size} bytes", rule="A8")


def _check_method(where: str, flags: int, method: int, size: int, compressed_size: int) -> None:
    if flags & end_record.FLAGS_ENCRYPTED:
        raise ArchiveError(f"{where}: expected a record that is not encrypted, got flags {flags:#06x}", rule="A9")
    if flags & ~end_record.FLAGS_KNOWN:
        raise ArchiveError(
            f"{where}: expected no flags beyond {end_record.FLAGS_KNOWN:#06x}, got {flags:#06x}", rule="A9"
        )
    if method == end_record.STORED:
        if size != compressed_size:
            raise ArchiveError(
                f"{where}: expected a stored record of one size, got {size} bytes in {compressed_size}", rule="A11"
            )
    elif method == end_record.DEFLATED:
        if size > _MAX_DEFLATE * (compressed_size + 1):
            raise ArchiveError(
                f"{where}: expected at most {_MAX_DEFLATE * (compressed_size + 1)} bytes from {compressed_size} "
                f"deflated ones, got a stated size of {size}",
                rule="A11",
            )
    else:
        raise ArchiveError(
            f"{where}: expected method {end_record.STORED} (stored) or {end_record.DEFLATED} (deflated), got {method}",
            rule="A10",
        )


def _check_names(source: Source, entries: Iterable[Record]) -> None:
    seen: dict[str, str] = {}
    for entry in entries:
        key = collision_key(entry.name)
        if key in seen:
            raise ArchiveError(
                f"{source.name}: expected record names that differ by more than case, got "
                f"{show_name(seen[key])} and {show_name(entry.name)}",
                rule="A7",
            )
        seen[key] = entry.name


def _check_inflated(source: Source, entries: Iterable[Record], limits: Limits) -> None:
    total = sum(entry.size for entry in entries if entry.method == end_record.DEFLATED)
    allowed = max(limits.free_inflated_bytes, limits.max_ratio * source.size)
    if total > allowed:
        raise LimitError(
            f"{source.name}: expected at most {allowed} bytes from all deflated records of a file of {source.size}, "
            f"got {total}; raise Limits.max_ratio if you trust the file",
            rule="A18",
        )


def _place(source: Source, entries: list[Record], directory_offset: int) -> tuple[Record, ...]:
    """Assign each record the bytes up to its successor, and check that they can be right (A12)."""
    expected, previous, slack = 0, "the file's first byte", 0
    ordered = sorted(entries, key=itemgetter(_HEADER_OFFSET))
    starts = [entry.header_offset for entry in ordered]
    starts.append(directory_offset)
    ends: dict[str, int] = {}
    for entry, start, end in zip(ordered, starts, islice(starts, 1, None), strict=False):
        if not expected <= start <= expected + slack:
            _refuse_place(source, entry.name, start, expected, slack, previous)
        expected, previous = entry.end_offset, entry.name
        slack = _SLACK_WITH_DESCRIPTOR if entry.flags & end_record.FLAG_DESCRIPTOR else end_record.MAX_EXTRA
        ends[previous] = end
    if not expected <= directory_offset <= expected + slack:
        _refuse_place(source, "the directory", directory_offset, expected, slack, previous)
    return tuple([Record(*entry[:-1], ends[entry.name]) for entry in entries])


def _refuse_place(source: Source, name: str, offset: int, expected: int, slack: int, previous: str) -> NoReturn:
    kind = "overlaps it" if offset < expected else "leaves a gap"
    raise ArchiveError(
        f"{source.name}: {show_name(name)}: expected it to begin after {show_name(previous)}, at {expected} to "
        f"{expected + slack}, got {offset}, which {kind}",
        rule="A12",
    )


def check_headers(where: str, directory: Iterable[Record], peek: Peek, size: int) -> dict[str, int]:
    """Compare every record's local header and descriptor with its directory entry.

    Args:
        where: what messages call the archive.
        directory: the entries.
        peek, size: reads the file, and its length.

    Returns:
        record name -> offset in the file of its data.

    Raises:
        ArchiveError: as `check_local_header` and `check_descriptor`, for the first record that they refuse.
    """
    offsets = {}
    for record in directory:
        offsets[record.name] = offset = check_local_header(where, record, peek, size)
        check_descriptor(where, record, peek, offset)
    return offsets


def check_local_header(where: str, record: Record, peek: Peek, end: int) -> int:
    """Compare a record's local header with its directory entry.

    Args:
        where: what messages call the archive.
        record: the directory entry.
        peek: reads a few bytes of the file.
        end: offset up to which there are bytes to read.

    Returns:
        the offset in the file of the record's data.

    Raises:
        ArchiveError: they differ (A13), or data and descriptor do not fill the space up to the next record (A12, A14).
    """
    start, raw_name = record.header_offset, record.name.encode("utf-8")
    header = peek(start, min(_LOCAL_SIZE + len(raw_name) + _PADDING_GUESS, end - start))
    fields = end_record.LOCAL.unpack_from(header)
    signature, _, flags, method, _, _, crc32, compressed_size, size, name_length, extra_length = fields
    name_end = _LOCAL_SIZE + name_length
    header_end: int = name_end + extra_length
    if header_end > len(header):
        header = peek(start, min(header_end, end - start))
    name, extra = bytes(header[_LOCAL_SIZE:name_end]), bytes(header[name_end:header_end])
    here = f"{where}: {show_name(record.name)}: local header at {start}"
    if (signature, flags, method, name) != (end_record.LOCAL_SIGNATURE, record.flags, record.method, raw_name):
        _compare(here, "signature", end_record.LOCAL_SIGNATURE, signature)
        # Python 3.14 takes the flag of UTF-8 from the directory's entries of ASCII names when it adds to an archive.
        ignored = end_record.FLAG_UTF8 if raw_name.isascii() else 0
        _compare(here, "flags", f"{record.flags & ~ignored:#06x}", f"{flags & ~ignored:#06x}")
        _compare(here, "method", record.method, method)
        _compare(here, "name", raw_name, name)
    _check_extent(where, record, start + header_end)
    values = _zip64_values(here, extra, raw_name) if extra else ()
    _check_sizes(here, record, (crc32, compressed_size, size), values)
    return start + header_end


def _compare(where: str, what: str, expected: object, got: object) -> None:
    """Refuse a field of a local header that differs from the directory entry (A13)."""
    if expected != got:
        shown = [quote(value) if isinstance(value, bytes) else value for value in (expected, got)]
        raise ArchiveError(f"{where}: expected {what} {shown[0]}, got {shown[1]}", rule="A13")


def check_descriptor(where: str, record: Record, peek: Peek, data_offset: int) -> None:
    """Check the bytes between a record's data and the next record: its descriptor, or nothing (A14).

    A descriptor is required to be there by flag 3 alone, and read by its length, as torch writes 64-bit sizes for all
    records from 4 GiB on and 32-bit ones before.
    """
    if not record.flags & end_record.FLAG_DESCRIPTOR:
        return
    data_end = data_offset + record.compressed_size
    tail = bytes(peek(data_end, record.end_offset - data_end))
    if tail not in end_record.descriptor_forms(record.crc32, record.compressed_size, record.size):
        raise ArchiveError(
            f"{where}: {show_name(record.name)}: expected a data descriptor with CRC-32 {record.crc32:#010x}, "
            f"sizes {record.compressed_size} and {record.size}, got {tail.hex()}",
            rule="A14",
        )


def _check_extent(where: str, record: Record, data_offset: int) -> None:
    """Check that the data, and a descriptor if flag 3 is set, end where the next record begins."""
    rest = record.end_offset - data_offset - record.compressed_size
    if record.flags & end_record.FLAG_DESCRIPTOR:
        if rest not in end_record.DESCRIPTOR_LENGTHS:
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


def _check_sizes(where: str, record: Record, stated: tuple[int, int, int], values: tuple[int, ...]) -> None:
    """Compare CRC-32 and sizes of a local header, and its ZIP64 values, with the directory entry.

    With a descriptor the header may have 0 for the CRC-32, and for both sizes or for none; a size may be the sentinel
    of a ZIP64 value. torch also writes its header's offset among those, and unknown sizes as 0.
    """
    is_later = bool(record.flags & end_record.FLAG_DESCRIPTOR)
    usual = (0, 0, 0) if is_later else (record.crc32, record.compressed_size, record.size)
    if stated == usual and not values:
        return
    crc32, *sizes = stated
    true_sizes = [record.compressed_size, record.size]
    _compare(where, "CRC-32", record.crc32, record.crc32 if is_later and crc32 == 0 else crc32)
    moved = {end_record.MAX32} if values else set()
    are_left_out = is_later and crc32 == 0 and (moved | {0}).issuperset(sizes)
    for what, expected, got in zip(("compressed size", "size"), true_sizes, sizes, strict=True):
        _compare(where, what, expected, expected if are_left_out or got in moved else got)
    long = [true for true, short in zip(true_sizes, sizes, strict=True) if short == end_record.MAX32][::-1]
    if long and not is_later:
        fits = list(values[: len(long)]) == long
    else:
        fits = {*true_sizes, record.header_offset, *([0] if is_later else [])}.issuperset(values)
    if not fits:
        raise ArchiveError(
            f"{where}: expected ZIP64 sizes {record.size} and {record.compressed_size}, got {list(values)}", rule="A13"
        )
