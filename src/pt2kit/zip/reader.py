"""Strict zip reader: `Archive`, named records of a `.pt2` file or of any zip that keeps the rules A1 to A18 and A27.

An archive that two readers could understand differently is refused when it is opened. Opening reads the directory, and
of a local file the local headers; content is read on access, checked against its CRC-32 the first time, and copied only
if it must be inflated or fetched.

Deflated bytes are inflated to content of exactly the stated size, in bounded memory (rule A15).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock
from types import MappingProxyType
from typing import Any, Final

from pt2kit.errors import ArchiveError, IntegrityError, LimitError, PayloadError
from pt2kit.messages import count_text
from pt2kit.zip.checksums import combine
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.directory import (
    Peek,
    Record,
    check_descriptor,
    check_headers,
    check_local_header,
    read_directory,
)
from pt2kit.zip.listing import FileLike, open_source
from pt2kit.zip.source import DEFAULT_LIMITS, KIB, Limits, Source, read_into

_IN: Final = 64 * KIB


def inflate(where: str, data: memoryview, size: int) -> memoryview:
    """Inflate raw deflate data.

    Args:
        where: what messages call the record.
        data: the deflated bytes.
        size: bytes that must come out.

    Returns:
        the content, read-only. Takes `size` bytes and those that 64 KiB of data inflate to (66 MiB at most), whatever
        the data claims.

    Raises:
        ArchiveError: broken data, or more or fewer bytes in or out than stated (A15).
    """
    out = bytearray(size)
    done = taken = 0
    engine = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        while taken < data.nbytes and done <= size and not engine.eof:
            piece = data[taken : taken + _IN]
            taken += piece.nbytes
            # One byte more than fits, so that too long a content shows itself.
            part = engine.decompress(piece, size - done + 1)
            out[done : done + len(part)] = part
            done += len(part)
    except zlib.error as exc:
        raise ArchiveError(f"{where}: expected deflated data, got: {exc}", rule="A15") from exc
    if done > size:
        raise ArchiveError(f"{where}: expected {size} bytes once inflated, got more", rule="A15")
    unused = len(engine.unused_data) + data.nbytes - taken
    if not engine.eof or done != size or unused:
        end = f"with {unused} bytes left over" if engine.eof else "without an end"
        raise ArchiveError(
            f"{where}: expected {size} bytes from {data.nbytes} deflated ones, got {done} {end}", rule="A15"
        )
    return memoryview(out).toreadonly()


class Archive:
    """An open archive. Reading is safe from several threads; use it as a context manager, or close it.

    Args:
        source: where the bytes are; closed with the archive.
        directory: its entries.
        limits: the limits of reading.

    Attributes:
        source, limits: as above.
        records: the records by full name, in directory order; folders are left out.
    """

    def __init__(self, source: Source, directory: tuple[Record, ...], limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self.records: Mapping[str, Record] = MappingProxyType(
            {record.name: record for record in directory if record.name[-1] != "/"}
        )
        self._data_offsets: dict[str, int] = {}
        self._verified: set[str] = set()
        if source.is_local:
            self._data_offsets = check_headers(source.name, directory, source.peek, source.size)

    def read(self, name: str, *, verify: bool = True) -> memoryview:
        """Return the content of a record.

        Args:
            name: full name of the record.
            verify: compare the content with its CRC-32, if that has not been done for this record yet.

        Returns:
            read-only bytes: a view of the mapping if the record is stored and the source local, which remains valid
            after `close`; a copy otherwise. Checking the CRC reads all bytes once; a remote record is one request.

        Raises:
            ArchiveError: no such record (A17), or the file contradicts its directory (A1, A12 to A15).
            IntegrityError: the content does not have its CRC-32 (A16).
            LimitError: it is deflated and larger than `Limits.max_inflated_bytes` (A18).
        """
        record = self._record(name)
        if not record.is_stored and record.size > self.limits.max_inflated_bytes:
            raise LimitError(
                f"{self._where(name)}: expected at most {self.limits.max_inflated_bytes} bytes once inflated, "
                f"got {record.size}; raise Limits.max_inflated_bytes if you trust the file",
                rule="A18",
            )
        content = self._packed(record)
        if not record.is_stored:
            content = inflate(self._where(name), content, record.size)
        if verify and name not in self._verified:
            total = self.sum_of(name)
            total.add(content)
            total.check()
        return content

    def data_offset(self, name: str) -> int:
        """Return the offset in the file, in bytes, of a record's stored or deflated data.

        Raises:
            ArchiveError: no such record (A17), or its local header contradicts the directory (A12 to A14).
        """
        return self.place_of(name)[1]

    def place_of(self, name: str) -> tuple[Source, int]:
        """Return the source of a record's stored or deflated data, and its offset there; as `data_offset`."""
        record = self._record(name)
        known = self._data_offsets.get(name)
        return self.source, self._fetch_data_offset(record, self.source.read) if known is None else known

    def read_into(self, name: str, start: int, buffer: memoryview) -> None:
        """Fill a buffer with the bytes of a stored record from `start` on, uncompared; see `sum_of`.

        Raises: as `read`, but for A16 and A18.
        """
        source, offset = self.place_of(name)
        read_into(source, offset + start, buffer)

    def sum_of(self, name: str) -> Sum:
        """Return a sum to which the bytes of a record can be added as they are read, to be compared at the end.

        That of a record that is in no zip file is compared with nothing.
        """
        record = self.records[name]
        if not record.is_zipped:
            return Sum(lambda piece, total: total, lambda got: None, lambda first, second, nbytes: 0)
        return Sum(zlib.crc32, lambda got: self._verify(record, got), combine)

    def is_in_place(self, name: str) -> bool:
        """Return whether reading a record copies nothing: it is stored, and the source local."""
        return self.records[name].is_stored and self.source.is_local

    def storage(self, name: str) -> Storage:
        """Return the content of a record, to be read on demand.

        Raises:
            ArchiveError: no such record (A17).
        """
        return Storage(name, self._record(name).size, partial(self.read, name), in_place=self.is_in_place(name))

    def close(self) -> None:
        """Close the source. Views that were handed out remain valid; may be called twice."""
        self.source.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _record(self, name: str) -> Record:
        record = self.records.get(name)
        if record is None:
            raise ArchiveError(
                f"{self.source.name}: expected a record {show_name(name)}, got none of that name "
                f"among {count_text(len(self.records), 'record')}",
                rule="A17",
            )
        return record

    def _where(self, name: str) -> str:
        return f"{self.source.name}: {show_name(name)}"

    def _packed(self, record: Record) -> memoryview:
        """Return the record's data as stored in its file."""
        if self.source.is_local or not record.is_zipped:
            source, offset = self.place_of(record.name)
            return source.read(offset, record.compressed_size)
        # One request for header, data and descriptor: where the header ends is not known before.
        base = record.header_offset
        slot = self.source.read(base, record.end_offset - base)

        def peek(offset: int, length: int) -> memoryview:
            return slot[offset - base : offset - base + length]

        offset = self._fetch_data_offset(record, peek)
        check_descriptor(self.source.name, record, peek, offset)
        return peek(offset, record.compressed_size)

    def _fetch_data_offset(self, record: Record, peek: Peek) -> int:
        offset = check_local_header(self.source.name, record, peek, record.end_offset)
        self._data_offsets[record.name] = offset
        return offset

    def _verify(self, record: Record, got: int) -> None:
        if got != record.crc32:
            raise IntegrityError(
                f"{self._where(record.name)}: expected CRC-32 {record.crc32:#010x} over {record.size} bytes, "
                f"got {got:#010x}: the file is damaged",
                rule="A16",
            )
        self._verified.add(record.name)


class Storage:
    """Bytes that are read on demand: those under one or more tensors. Compares by identity: tied weights hold one.

    Args:
        record: full name of the record, or another name of the storage, for messages.
        nbytes: its length in bytes, known without reading.
        load: returns the bytes; called on first access.
        in_place: whether the result of `load` is part of a mapped file, or of existing memory, not a copy.
    """

    __slots__ = ("_data", "_load", "_lock", "in_place", "nbytes", "record")

    def __init__(self, record: str, nbytes: int, load: Callable[[], memoryview], *, in_place: bool = False) -> None:
        self.record = record
        self.nbytes = nbytes
        self.in_place = in_place
        self._load = load
        self._data: memoryview | None = None
        self._lock = Lock()

    def read(self, *, keep: bool = True) -> memoryview:
        """Return the bytes, read-only.

        Args:
            keep: remember them. Costs nothing if they are in place; if they were fetched or inflated, they
                remain in memory as long as this object. False for one pass over many tensors.

        Raises:
            PayloadError: the loader returned another number of bytes than `nbytes` (P9).
            Pt2Error: whatever the loader raises for a damaged or missing record.
        """
        with self._lock:  # Two threads must not fetch the same gigabyte.
            data = self._data
            if data is None:
                data = self._load().toreadonly()
                if data.nbytes != self.nbytes:
                    raise PayloadError(f"{self.record}: expected {self.nbytes} bytes, got {data.nbytes}", rule="P9")
                if keep:
                    self._data = data
        return data

    def __repr__(self) -> str:
        return f"Storage({self.record!r}, {self.nbytes} bytes)"


@dataclass(slots=True)
class Sum:
    """The checksum of a record that is read piece by piece.

    Args:
        update: (piece, sum so far) -> sum.
        compare: refuses a sum of all that is another one.
        combine: (sum so far, sum of the next piece alone, bytes of that piece) -> sum; None if pieces can only be
            summed in order.
        value: the sum so far.
    """

    update: Callable[[memoryview, int], int]
    compare: Callable[[int], None]
    combine: Callable[[int, int, int], int] | None = None
    value: int = 0

    @property
    def is_parallel(self) -> bool:
        """Return whether pieces can be summed on their own, by `of_piece`, and joined later."""
        return self.combine is not None

    def of_piece(self, piece: memoryview) -> int:
        """Return the sum of a piece alone; safe from several threads."""
        return self.update(piece, 0)

    def join(self, piece_sum: int, nbytes: int) -> None:
        """Add the sum of the next piece, which has `nbytes` bytes; only if `is_parallel`."""
        if self.combine is None:
            raise TypeError("these sums cannot be joined")
        self.value = self.combine(self.value, piece_sum, nbytes)

    def add(self, piece: memoryview) -> None:
        """Add the next bytes."""
        self.value = self.update(piece, self.value)

    def check(self) -> None:
        """Compare, once all bytes were added.

        Raises:
            IntegrityError: they are not those that were written.
        """
        self.compare(self.value)


def open_archive(
    file: FileLike | Source,
    *,
    name: str = "<bytes>",
    limits: Limits = DEFAULT_LIMITS,
    storage_options: Mapping[str, Any] | None = None,
) -> Archive:
    """Open an archive and check its directory.

    Args:
        file: a path, any fsspec URL, bytes, or a binary file object; see `open_source`.
        name: what messages call bytes, which may come from inside another file.
        limits: the limits of opening and reading.
        storage_options: passed to fsspec for a URL.

    Returns:
        the archive. Costs the directory and, for a local file, one look at each local header (a millisecond per few
        hundred records); for a remote one the end of the file (66 KiB), and the directory if it is larger than that.

    Raises:
        OSError: the path cannot be opened.
        ArchiveError: the file is no zip archive with exactly one meaning (A1 to A14).
        LimitError: it requires more than `limits` allow (A18).
    """
    source = open_source(file, name=name, storage_options=storage_options, max_stream_bytes=limits.max_stream_bytes)
    try:
        return Archive(source, read_directory(source, limits), limits)
    except BaseException:
        source.close()
        raise
