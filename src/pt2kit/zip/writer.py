"""Zip writer for archives that torch, Python's zipfile, unzip and this package's strict reader read alike.

Stored records begin at multiples of 64 bytes, so that they can be mapped; nothing in the file depends on the clock, the
user or the way the data was passed: same names and bytes in the same order, same file (deflated records as far as zlib
is the same). No data descriptors, no folders, ZIP64 fields only if a value needs them.

A path is replaced at the end, so that it is either the old file or the complete new one.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any, Final, NamedTuple, TypeAlias, cast

from pt2kit.errors import ArchiveError, LimitError
from pt2kit.zip import end_record
from pt2kit.zip.checksums import PIECE, Sums, summing
from pt2kit.zip.chosen_names import collision_key, encode_name, name_problem, show_name
from pt2kit.zip.source import MIB
from pt2kit.zip.target import open_target

ALIGNMENT: Final = 64
"""Stored data begins at a multiple of this. Source: caffe2/serialize/inline_container.h, 2.13 (kFieldAlignment)."""
MAX_NAME_BYTES: Final = 511
"""torch cuts longer names off when it lists an archive: its buffer for one has 512 bytes, with the closing zero."""
DEFAULT_ROOT: Final = "archive"
"""Root folder that torch uses for targets without a file name."""

_DATE: Final = 0x0021
"""1 January 1980, the first date that a zip can hold."""
_MADE_BY: Final = 3 << 8 | 45
_ATTRIBUTES: Final = 0o100644 << 16
_VERSION: Final = 20
_VERSION_ZIP64: Final = 45
DEFLATE_LEVEL: Final = 6
_COPY: Final = MIB
_SPOOL: Final = 16 * MIB
"""Limit of bytes that wait in memory until the size is known; more goes to a temporary file."""
_SLACK: Final = 64 * MIB
"""Margin by which a streamed record may exceed its size hint before ZIP64 fields are needed."""


Report: TypeAlias = Callable[[int], object]
"""Called with the number of bytes of each part that was written."""


def _ignored(count: int) -> None: ...


class _Written(NamedTuple):
    name: bytes
    method: int
    crc32: int
    compressed_size: int
    size: int
    offset: int


class ArchiveWriter:
    """Writes one archive; a context manager that finishes it, or on an exception leaves the target unchanged.

    Args:
        target: a path, or a binary file object open for writing, which need not be able to seek. Bytes written to a
            file object before an error remain in it; closing it is up to the caller.
        root: the root folder of all records; "" for none (the plain zip of torch 2.1 to 2.7). Derived from the path as
            torch does it: "mlp" for "mlp.pt2", and "archive" for a file object.
        fsync: wait until the disk has the bytes, also if no file is replaced. Replacing one always waits, so that a
            crash of the machine leaves the old file or the new one.
        compress: deflate the records that are written with `deflate`; some readers in other languages accept stored
            records only.

    Attributes:
        root: the root folder, without a slash.

    Raises:
        OSError: the target's folder cannot be written to.
        ArchiveError: `root` cannot be a folder's name (A6).
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | IO[bytes],
        *,
        root: str | None = None,
        fsync: bool = False,
        compress: bool = True,
    ) -> None:
        self._compress = compress
        self.root = _root(target) if root is None else root
        if "/" in self.root or (self.root and name_problem(self.root)):
            raise ArchiveError(f"expected the name of one folder as root, got {self.root!r}", rule="A6")
        self._closing = ExitStack()
        self._target = self._closing.enter_context(open_target(target, fsync=fsync))
        self._where = self._target.name
        self._written: list[_Written] = []
        self._keys: set[str] = set()
        self._zip64_size, self._zip64_count = end_record.MAX32, end_record.MAX16
        self._state = "open"

    @property
    def checksums(self) -> tuple[tuple[str, int, int], ...]:
        """Return (full name, CRC-32, size) of the records written so far."""
        return tuple((record.name.decode(), record.crc32, record.size) for record in self._written)

    def write(
        self, name: str, data: Any, *, deflate: bool = False, size: int | None = None, report: Report = _ignored
    ) -> None:
        """Write one record.

        Args:
            name: name below the root folder.
            data: anything with a contiguous buffer (bytes, memoryview, a numpy array), or an iterable of such buffers,
                which is consumed as it is written. Nothing is copied, except that an iterable is spooled (on disk
                beyond 16 MiB) if it is deflated, if `size` is not given, or if the target cannot seek.
            deflate: deflate the content; readers that map a file into memory cannot map such a record.
            size: for an iterable, its total number of bytes.
            report: called with the number of bytes of each part.

        Raises:
            ArchiveError: the name is unfit (A6) or taken (A7), in which case nothing was written and the archive can go
                on; `size` differs from the iterable's bytes, or an earlier write failed (A27).
            LimitError: the name is longer than torch can read (A18).
            TypeError: `data` is neither a contiguous buffer nor an iterable of such.
        """
        view = as_bytes(data)
        if view is None and isinstance(data, str):
            raise TypeError(f"{name}: expected bytes or an iterable of bytes, got str; encode it first")
        deflate = deflate and self._compress
        with self._record(name) as raw:
            if view is not None and not deflate and (view.nbytes < PIECE or not self._target.can_seek):
                self._begin(raw, end_record.STORED, zlib.crc32(view), view.nbytes, view.nbytes)
                self._target.write(view)
                report(view.nbytes)
                return
            where = f"{self._where}: {show_name(raw.decode())}"
            size = size if view is None else view.nbytes
            pieces = _views(data, where) if view is None else _pieces(view)
            with self._content(raw, size, report, deflate=deflate) as file:
                for piece in pieces:
                    if size is not None and file.size + piece.nbytes > size:
                        _check_size(where, size, file.size + piece.nbytes)
                    file.write(piece)
                _check_size(where, size, file.size)

    @contextmanager
    def stream(self, name: str, *, size_hint: int, report: Report = _ignored) -> Iterator[RecordFile]:
        """Write one stored record through a file object: bytes written to it go to the archive immediately.

        Args:
            name: name below the root folder.
            size_hint: about how many bytes it will be; from 4 GiB on more may come than that.
            report: called with the number of bytes of each write.

        Raises:
            ArchiveError: as `write`.
            LimitError: 4 GiB or more where `size_hint` was far less (A18).
        """
        with self._record(name) as raw, self._content(raw, size_hint, report, slack=_SLACK) as file:
            yield file

    def close(self) -> None:
        """Write the directory and put the file in its place.

        Raises:
            ArchiveError: an earlier write failed; the target is left as it was (A27).
        """
        if self._state == "closed":
            return
        if self._state == "failed":
            self.abort()
            raise ArchiveError(f"{self._where}: expected all records to be written, got an error before", rule="A27")
        self._state = "closed"
        with self._closing:
            self._write_directory()

    def abort(self, error: BaseException | None = None) -> None:
        """Abort: a path is left unchanged. The `error` is the reason; `replacing` adds the path to some."""
        if self._state != "closed":
            self._state = "closed"
            reason = error or InterruptedError()
            with suppress(OSError):  # The disk may be full: closing then fails once more.
                self._closing.__exit__(type(reason), reason, reason.__traceback__)

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort(error)

    @contextmanager
    def _record(self, name: str) -> Iterator[bytes]:
        """Yield the encoded name of a record that the block writes; after an error there, the archive cannot go on."""
        if self._state != "open":
            raise ArchiveError(f"{self._where}: expected an archive being written, got a {self._state} one", rule="A27")
        raw = self._claim(name)
        self._state = "failed"  # Until this record is whole.
        yield raw
        self._keys.add(collision_key(raw.decode()))
        self._state = "open"

    def _claim(self, name: str) -> bytes:
        full = f"{self.root}/{name}" if self.root else name
        raw = encode_name(full, self._where)
        if len(raw) > MAX_NAME_BYTES:
            raise LimitError(
                f"{self._where}: expected a record name of at most {MAX_NAME_BYTES} bytes, which is what torch lists, "
                f"got {len(raw)}: {name[:40]}…",
                rule="A18",
            )
        if collision_key(full) in self._keys:
            raise ArchiveError(
                f"{self._where}: expected record names that differ by more than case, got {show_name(full)} again",
                rule="A7",
            )
        return raw

    @contextmanager
    def _content(
        self, raw: bytes, size: int | None, report: Report, *, slack: int = 0, deflate: bool = False
    ) -> Iterator[RecordFile]:
        """Yield a file object that writes the content of a record.

        Its header is written again at the end, with the CRC-32; or if the target cannot seek, the content is deflated
        or its size unknown, the content is put aside until then.
        """
        # Those who stream may use their buffers again, so that nothing can be summed later.
        with summing(0 if slack else size or 0) as sums:
            if deflate or size is None or not self._target.can_seek:
                with _spool() as spool:
                    engine = zlib.compressobj(DEFLATE_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS) if deflate else None
                    write = (lambda view: spool.write(engine.compress(view))) if engine else spool.write
                    file = RecordFile(write, sums, report)
                    yield file
                    if engine:
                        spool.write(engine.flush())
                    method = end_record.DEFLATED if deflate else end_record.STORED
                    self._begin(raw, method, sums.total(), spool.tell(), file.size)
                    spool.seek(0)
                    while part := spool.read(_COPY):
                        self._target.write(memoryview(part))
                return
            is_long = size + slack >= self._zip64_size
            record = self._begin(raw, end_record.STORED, 0, 0, 0, is_long=is_long)
            file = RecordFile(self._target.write, sums, report)
            yield file
            if file.size >= self._zip64_size and not is_long:
                where = f"{self._where}: {show_name(raw.decode())}"
                raise LimitError(f"{where}: expected about {size} bytes, got {file.size}", rule="A18")
            record = record._replace(crc32=sums.total(), compressed_size=file.size, size=file.size)
            self._written[-1] = record
            self._target.patch(record.offset, self._local_header(record, is_long))

    def _begin(
        self, raw: bytes, method: int, crc32: int, compressed_size: int, size: int, *, is_long: bool = False
    ) -> _Written:
        record = _Written(raw, method, crc32, compressed_size, size, self._target.position)
        self._target.write(memoryview(self._local_header(record, is_long)))
        self._written.append(record)
        return record

    def _local_header(self, record: _Written, is_long: bool) -> bytes:
        compressed_size, size, extra, version = record.compressed_size, record.size, b"", _VERSION
        if is_long or max(compressed_size, size) >= self._zip64_size:
            extra = struct.pack("<2H2Q", end_record.EXTRA_ZIP64, 16, size, compressed_size)
            compressed_size = size = end_record.MAX32
            version = _VERSION_ZIP64
        if record.method == end_record.STORED:
            extra += padding(record.offset + end_record.LOCAL.size + len(record.name) + len(extra))
        fields = _fields(record, version, compressed_size, size, extra)
        return end_record.LOCAL.pack(end_record.LOCAL_SIGNATURE, *fields) + record.name + extra

    def _directory_entry(self, record: _Written) -> bytes:
        values = (record.size, record.compressed_size, record.offset)
        long = [value for value in values if value >= self._zip64_size]
        size, compressed_size, offset = (end_record.MAX32 if value >= self._zip64_size else value for value in values)
        extra = struct.pack(f"<2H{len(long)}Q", end_record.EXTRA_ZIP64, 8 * len(long), *long) if long else b""
        fields = _fields(record, _VERSION_ZIP64 if long else _VERSION, compressed_size, size, extra)
        entry = end_record.ENTRY.pack(end_record.ENTRY_SIGNATURE, _MADE_BY, *fields, 0, 0, 0, _ATTRIBUTES, offset)
        return entry + record.name + extra

    def _write_directory(self) -> None:
        offset = self._target.position
        for record in self._written:
            self._target.write(memoryview(self._directory_entry(record)))
        pos = self._target.position
        size, count = pos - offset, len(self._written)
        if max(size, offset) >= self._zip64_size or count >= self._zip64_count:
            places = (count, count, size, offset)
            end64 = end_record.END64.pack(
                end_record.END64_SIGNATURE, end_record.END64.size - 12, _MADE_BY, _VERSION_ZIP64, 0, 0, *places
            )
            self._target.write(memoryview(end64 + end_record.LOCATOR.pack(end_record.LOCATOR_SIGNATURE, 0, pos, 1)))
            size, offset, count = end_record.MAX32, end_record.MAX32, end_record.MAX16
        end = end_record.END.pack(end_record.END_SIGNATURE, 0, 0, count, count, size, offset, 0)
        self._target.write(memoryview(end))


class RecordFile:
    """A file object that writes one record, and cannot seek."""

    def __init__(self, write: Callable[[memoryview], Any], sums: Sums, report: Report) -> None:
        self.size = 0
        self._write = write
        self._sums = sums
        self._report = report

    def write(self, data: Any) -> int:
        """Write bytes at the end."""
        view = memoryview(data).cast("B")
        self._sums.add(view)
        self._write(view)
        self.size += view.nbytes
        self._report(view.nbytes)
        return view.nbytes

    def flush(self) -> None:
        """Do nothing: no bytes are buffered."""

    def seekable(self) -> bool:
        """Return False: it cannot seek."""
        return False


def _fields(record: _Written, version: int, compressed_size: int, size: int, extra: bytes) -> tuple[int, ...]:
    """Return the fields that a local header and a directory entry have in common, in their order."""
    lengths = (compressed_size, size, len(record.name), len(extra))
    return (version, end_record.FLAG_UTF8, record.method, 0, _DATE, record.crc32, *lengths)


def _spool() -> IO[bytes]:
    """Return a spool for a record: in memory, and on disk beyond 16 MiB."""
    from tempfile import SpooledTemporaryFile  # Costs more to import than the rest of this subpackage.

    return cast("IO[bytes]", SpooledTemporaryFile(_SPOOL))


def padding(start: int) -> bytes:
    """Return the extra field, if any, that makes data begin aligned if the header would otherwise end at `start`."""
    missing = -start % ALIGNMENT
    if 0 < missing < end_record.EXTRA_HEADER.size:
        missing += ALIGNMENT
    return end_record.EXTRA_HEADER.pack(end_record.EXTRA_PADDING, missing - 4) + bytes(missing - 4) if missing else b""


def as_bytes(data: Any) -> memoryview | None:
    """Return the bytes of anything with a C-contiguous buffer, without a copy; None for objects without a buffer."""
    try:
        view = memoryview(data)
    except TypeError:
        return None
    except ValueError as exc:  # numpy has element types that a buffer cannot describe: bfloat16, datetime64.
        raise TypeError(f"expected a buffer of plain items, got: {exc}; pass a view of its bytes") from exc
    if "O" in view.format:
        raise TypeError(f"expected a buffer of plain items, got Python objects (format {view.format!r})")
    if not view.c_contiguous:
        raise TypeError(f"expected a C-contiguous buffer, got strides {view.strides} for shape {view.shape}")
    return view.cast("B") if view.nbytes else memoryview(b"")


def _views(chunks: Iterable[Any], where: str) -> Iterator[memoryview]:
    for chunk in chunks:
        view = as_bytes(chunk)
        if view is None:
            raise TypeError(f"{where}: expected buffers, got {type(chunk).__name__}")
        yield view


def _pieces(view: memoryview) -> Iterator[memoryview]:
    for start in range(0, view.nbytes, PIECE):
        yield view[start : start + PIECE]


def _check_size(where: str, stated: int | None, got: int) -> None:
    if stated is not None and stated != got:
        more = " or more" if got > stated else ""
        raise ArchiveError(f"{where}: expected {stated} bytes as stated, got {got}{more}", rule="A27")


def _root(target: str | os.PathLike[str] | IO[bytes]) -> str:
    if not isinstance(target, (str, os.PathLike)):
        return DEFAULT_ROOT
    stem = os.path.splitext(os.path.basename(os.fspath(target)))[0]
    return DEFAULT_ROOT if name_problem(stem) else stem
