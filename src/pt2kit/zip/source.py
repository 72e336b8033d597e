"""Sources of an archive's bytes: a path, bytes or a file object as a `Source`, which reads byte ranges; limits of that.

A `Source` is independent of zip. Local ones hand out views of one mapping or buffer and copy nothing. URLs are in
`remote.py`; `listing.py` chooses the source for a caller's argument.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import stat
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Final, NoReturn, TypeAlias

from pt2kit.errors import ArchiveError, LimitError, Pt2Error
from pt2kit.messages import count_text

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an archive's demands; exceeding one is a `LimitError` that names it.

    Args:
        max_entries: entries in the directory. The largest programs seen have some thousands of records; each entry
            costs about half a kilobyte here.
        max_directory_bytes: size of the directory in bytes. 250,000 names of ordinary length need about 30 MiB.
        max_stream_bytes: bytes read from a file object that cannot seek (a pipe), which must be held in memory.
        max_inflated_bytes: size of one deflated record once inflated, in bytes. torch stores weights; what is deflated
            is JSON (a program of 100,000 nodes has about 300 MiB of it) or an archive that was packed again.
        free_inflated_bytes: limit of the inflated bytes of all deflated records together, however small the file is:
            this many do no harm.
        max_ratio: inflated bytes allowed beyond that, per byte of the whole file. A program's JSON deflates about 40
            times; buffers that are all zero 1000 times, but they do not come without a program.
    """

    max_entries: int = 250_000
    max_directory_bytes: int = 64 * MIB
    max_stream_bytes: int = 4 * GIB
    max_inflated_bytes: int = 4 * GIB
    free_inflated_bytes: int = 64 * MIB
    max_ratio: int = 200


DEFAULT_LIMITS = Limits()
"""Default limits."""


_CHUNK: Final = MIB

Progress: TypeAlias = Callable[[int, int], object]
"""Called with the bytes done and the bytes in all; the last call has them equal."""


def no_progress(done: int, total: int) -> None:
    """Ignore progress."""


class Source:
    """Bytes that can be read by ranges, from several threads in parallel; a subclass reads a range by `_range`.

    Args:
        name: what messages call it.

    Attributes:
        size: its length in bytes.
        is_local: whether reading a range costs no transfer and no copy.
        file: the file object that the bytes are from, if there is one.
        descriptor: that of the file that is mapped, open as long as the source; None if none is.
    """

    is_local = False  # The cost of a read is unknown: it may be a remote file.
    size: int
    file: IO[bytes] | None = None
    descriptor: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self._closed = False

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"{self.name}: expected an object that can be pickled or copied, got one that reads an open file: pass the "
            "path on and open it there"
        )

    def read(self, offset: int, length: int) -> memoryview:
        """Return exactly `length` bytes from `offset` on, read-only.

        Views remain valid after `close`.

        Raises:
            ArchiveError: the range is outside the source, or could not be fetched (A1).
        """
        check_range(self, offset, length)
        self.require_open()
        return self._range(offset, length)

    def peek(self, offset: int, length: int) -> bytes:
        """Copy a few bytes from `offset` on; cheaper than `read` where the bytes around them are not needed.

        Raises:
            ArchiveError: as `read`.
        """
        return bytes(self.read(offset, length))

    def close(self) -> None:
        """Stop reading; may be called twice. A file object, or the connection to a server, remains open."""
        self._closed = True

    def _range(self, offset: int, length: int) -> memoryview:
        raise NotImplementedError

    def require_open(self) -> None:
        """Raise ArchiveError if the source is closed (A27)."""
        if self._closed:
            raise self._is_closed()

    def _is_closed(self) -> ArchiveError:
        return ArchiveError(f"{self.name}: expected an open archive, got one that is closed", rule="A27")


class MemorySource(Source):
    """Bytes in memory, or a file mapped into memory: reading hands out views of it.

    Args:
        data: the bytes.
        name: what messages call them.
        mapping: the mapping of a file that holds the bytes.
        descriptor: that of the file; closed with this object. Copying some bytes of it costs a fraction of touching a
            mapped page.
        file: the file object that the bytes are from, if there is one.
    """

    is_local = True

    def __init__(
        self,
        data: memoryview,
        name: str,
        mapping: mmap.mmap | None = None,
        descriptor: int | None = None,
        file: IO[bytes] | None = None,
    ) -> None:
        super().__init__(name)
        self.file = file
        self.size = data.nbytes
        self.descriptor = descriptor
        self._data: memoryview | None = data
        self._mapping = mapping
        self._close = weakref.finalize(self, os.close, descriptor) if descriptor is not None else lambda: None

    def _range(self, offset: int, length: int) -> memoryview:
        data = self._data
        if data is None:  # closed meanwhile
            raise self._is_closed()
        return data[offset : offset + length]

    def peek(self, offset: int, length: int) -> bytes:
        """Copy a few bytes from `offset` on, without touching the mapping."""
        descriptor = self.descriptor
        if descriptor is None or not hasattr(os, "pread"):
            return super().peek(offset, length)
        check_range(self, offset, length)
        data = os.pread(descriptor, length, offset)
        if len(data) != length:  # Looking into the mapping there would end the process.
            raise _cut_short(self, offset, length, len(data))
        return data

    def close(self) -> None:
        """Drop the mapping; the views that are out keep it alive until they are gone."""
        super().close()
        self._data = None
        self.descriptor = None
        self._close()
        if self._mapping is not None:
            # If views are in use, the mapping is freed with the last of them.
            with contextlib.suppress(BufferError):
                self._mapping.close()
            self._mapping = None


class FileSource(Source):
    """Seekable file object, from its position on: each read seeks, reads, and restores the position."""

    file: IO[bytes]

    def __init__(self, file: IO[bytes], name: str) -> None:
        super().__init__(name)
        self.file = file
        self._lock = threading.Lock()
        with self._lock:
            self._start = file.tell()
            file.seek(0, io.SEEK_END)  # Not every file object returns its position: mmap's do from Python 3.13 on.
            self.size = max(0, file.tell() - self._start)
            file.seek(self._start)

    def _range(self, offset: int, length: int) -> memoryview:
        try:
            with self._lock:
                before = self.file.tell()
                try:
                    self.file.seek(self._start + offset)
                    return memoryview(_read_exactly(self.file, length, offset, self.name)).toreadonly()
                finally:
                    self.file.seek(before)
        except Pt2Error:
            raise
        except Exception as exc:
            raise ArchiveError(
                f"{self.name}: expected {length} bytes at offset {offset}, got: {exc}", rule="A1"
            ) from exc


def open_path(
    path: str | os.PathLike[str], *, name: str | None = None, max_stream_bytes: int = DEFAULT_LIMITS.max_stream_bytes
) -> Source:
    """Map a file into memory; files that cannot be mapped (a pipe, a terminal) are read to their end."""
    shown = name or str(path)
    if os.path.isdir(path):
        raise ArchiveError(f"{shown}: expected a file, got a folder{_hint(path)}", rule="A1")
    try:
        with open(path, "rb") as file:
            return _map(file, shown) or MemorySource(read_stream(file, shown, max_stream_bytes), shown)
    except ValueError as exc:
        raise ArchiveError(f"{shown!r}: expected a path, got text that cannot be one: {exc}", rule="A1") from exc


def map_privately(source: Source) -> mmap.mmap | None:
    """Map a source's file so that changes remain in this process; None if there is no file to map."""
    try:
        return None if source.descriptor is None else mmap.mmap(source.descriptor, 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):
        return None  # Some file systems cannot map, and an empty file has nothing to map; reading still works.


def read_into(source: Source, offset: int, buffer: memoryview) -> None:
    """Fill a buffer with the bytes from `offset` on; of a mapped file without touching the mapping.

    Raises:
        ArchiveError: as `Source.read`.
    """
    descriptor = source.descriptor
    if descriptor is None or not hasattr(os, "preadv"):
        buffer[:] = source.read(offset, buffer.nbytes)
        return
    check_range(source, offset, buffer.nbytes)
    done = 0
    while done < buffer.nbytes:
        count = os.preadv(descriptor, [buffer[done:]], offset + done)
        if count == 0:
            raise _cut_short(source, offset, buffer.nbytes, done)
        done += count


def _cut_short(source: Source, offset: int, length: int, got: int) -> ArchiveError:
    return ArchiveError(
        f"{source.name}: expected {length} bytes at offset {offset}, got {got}: the file was cut short while it was "
        "open",
        rule="A1",
    )


def _hint(folder: str | os.PathLike[str]) -> str:
    """Return a hint for a folder that was passed as a file."""
    try:
        there = set(map(str, os.listdir(folder)))
    except OSError:
        return ""
    if {"archive_format", "models"} & there or "data.pkl" in there:
        return ", which looks like an archive that was unpacked; zip it again, with the folder itself in it"
    if "saved_model.pb" in there:
        return ", which is a TensorFlow SavedModel; tf.saved_model.load reads it"
    if "config.json" in there and any(name.endswith((".safetensors", ".bin")) for name in there):
        return ", which is a Hugging Face model; transformers reads it"
    if "MLmodel" in there:
        return ", which is an MLflow model; mlflow reads it, and its .pt2 is in data/"
    files = sorted(name for name in there if name.endswith(".pt2"))
    return f" with {count_text(len(files), '.pt2 file')}; name one" if files else ""


def is_source(source: Source, file: IO[bytes]) -> bool:
    """Return whether an open file is the one that a source reads, under whatever name or number."""
    if source.file is file:
        return True
    try:
        origin = source.file.fileno() if isinstance(source, FileSource) else source.descriptor
        return origin is not None and os.path.samestat(os.fstat(origin), os.fstat(file.fileno()))
    except (OSError, AttributeError, ValueError):  # A file object without a file, or a closed one.
        return False


def check_range(source: Source, offset: int, length: int) -> None:
    """Refuse a range that is not inside the source (A1)."""
    if offset < 0 or length < 0 or offset + length > source.size:
        raise ArchiveError(
            f"{source.name}: expected a range inside the {source.size} bytes of the file, "
            f"got {length} bytes at offset {offset}",
            rule="A1",
        )


def open_bytes(data: bytes | bytearray | memoryview, *, name: str = "<bytes>") -> Source:
    """Share bytes that are in memory; they must not change while they are read."""
    view = memoryview(data)
    return MemorySource(view.cast("B").toreadonly() if view.nbytes else memoryview(b""), name)


def open_file_object(file: IO[bytes], *, max_stream_bytes: int = DEFAULT_LIMITS.max_stream_bytes) -> Source:
    """Read a binary file object from its position on: mapped, by seeking, or whole."""
    name = _file_name(file)
    try:
        if type(file) is io.BytesIO:
            # A snapshot that shares memory: a view of the live buffer would keep its owner from writing to it.
            return MemorySource(memoryview(file.getvalue())[file.tell() :], name, file=file)
        if isinstance(file, (io.FileIO, io.BufferedReader, io.BufferedRandom)):
            raw = getattr(file, "raw", file)
            mapped = _map(file, name) if isinstance(raw, io.FileIO) and not _stands_within(file) else None
            if mapped is not None:
                return mapped
        if file.seekable() if hasattr(file, "seekable") else hasattr(file, "seek"):
            if not isinstance(none := file.read(0), bytes):
                raise _not_binary(name, none)
            return FileSource(file, name)
        return MemorySource(read_stream(file, name, max_stream_bytes), name)
    except Pt2Error:
        raise
    except Exception as exc:  # File objects that decompress have errors of their own: EOFError, zlib.error, BadZipFile.
        raise ArchiveError(f"{name}: expected a file object open for reading bytes: {exc}", rule="A1") from exc


def _stands_within(file: IO[bytes]) -> bool:
    """Return whether a file object has a position that is not its beginning; pipes have none."""
    return file.seekable() and file.tell() > 0


def _map(file: io.FileIO | io.BufferedReader | io.BufferedRandom, name: str) -> MemorySource | None:
    """Map a plain file; None for anything else."""
    if file.writable():
        file.flush()
    info = os.fstat(file.fileno())
    if not stat.S_ISREG(info.st_mode):
        return None
    if info.st_size == 0:
        return MemorySource(memoryview(b""), name)
    try:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None  # Some file systems cannot map; reading still works.
    # Also if there is no `pread` to read by it (Windows), it identifies the file.
    descriptor = os.dup(file.fileno())
    return MemorySource(memoryview(mapping), name, mapping, descriptor, file)


def read_stream(file: IO[bytes], name: str, limit: int) -> memoryview:
    """Read a file object to its end.

    Raises:
        LimitError: it returns more than `limit` bytes (A18).
    """
    parts: list[bytes] = []
    total = 0
    while (part := file.read(_CHUNK)) != b"":
        if not isinstance(part, bytes):
            raise _not_binary(name, part)
        total += len(part)
        if total > limit:
            raise stream_too_long(name, limit)
        parts.append(part)
    return memoryview(b"".join(parts))


def stream_too_long(name: str, limit: int) -> LimitError:
    """Return the error for a file that has to be read whole, and has more bytes than the limit (A18)."""
    return LimitError(
        f"{name}: expected at most {limit} bytes from a stream that cannot be read in parts, got more; save it to a "
        "file first, or raise Limits.max_stream_bytes",
        rule="A18",
    )


def _read_exactly(file: IO[bytes], length: int, offset: int, name: str) -> bytes | bytearray:
    data: bytes | bytearray = file.read(length)
    if len(data) < length:  # Raw files may return less than was requested; a truncated file returns nothing.
        rest = bytearray(data)
        while len(rest) < length and (part := file.read(length - len(rest))):
            rest += part
        data = rest
    if len(data) != length:
        raise ArchiveError(f"{name}: expected {length} bytes at offset {offset}, got {len(data)}", rule="A1")
    return data


def _not_binary(name: str, data: object) -> ArchiveError:
    got = type(data).__name__
    return ArchiveError(f"{name}: expected bytes of a file object (open in binary mode), got {got}", rule="A1")


def _file_name(file: IO[bytes]) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else f"<{type(file).__name__}>"
