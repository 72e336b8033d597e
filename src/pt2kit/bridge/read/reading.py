"""Weights read into memory in parallel, or mapped (mmap); refusals for safety, and the entry of `trust=` for each.

Each piece is compared with its checksum as it is read. Records that are stored in the file are read in pieces by
several threads, straight into the memory of the tensors; what is deflated, part of a torch.save payload, or small and
fetched is copied as a whole, one thread for each.

Storages on an accelerator are copied through two pinned buffers (`Staging`). While one is copied to the device, the
other is filled from the file: reading and copying overlap, and however large the file is, the host holds two pieces of
it. Devices without pinned memory get the same pieces one by one.

A mapping (`map_file`) shows the current contents of the file: a process that writes to the file in place, as
`torch.export.save` does, changes the weights of a running module, and one that truncates it ends the process. Such
changes are detected. If the file is replaced by another one, as all writers of this package do, existing mappings keep
the old contents.

Sound files that `load` rejects for safety are refused by a rule ("X11"); the refusal of an operator or a class also has
a name ("aten.set_"). Either can be passed in `trust=`, and each message ends with the narrower one.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import torch

from pt2kit.errors import IntegrityError, Pt2Error
from pt2kit.operators.requirements import name_of
from pt2kit.schema.names import OPS, plain_target
from pt2kit.zip.checksums import PIECE
from pt2kit.zip.reader import Archive, Storage, Sum
from pt2kit.zip.source import Source, map_privately

BUFFER: Final = 64 << 20
"""Bytes of one buffer: enough that starting a copy costs nothing, and two of them are far below 256 MB."""
_ALONE: Final = 4 * PIECE
"""Bytes that one thread reads before several are finished being started."""

Fill: TypeAlias = "Callable[[int, memoryview], None]"
"""(start, buffer) -> fills the buffer with the bytes from there on."""

_Error = TypeVar("_Error", bound=Pt2Error)
_Result = TypeVar("_Result")


def read_storages(archive: Archive, buffers: Mapping[Storage, memoryview]) -> None:
    """Fill the memory of several storages with their bytes, and compare those with their checksums.

    Args:
        archive: the archive whose records the storages are; storages of torch.save payloads are not.
        buffers: storage -> writable bytes of its length.

    Raises:
        IntegrityError: a record is damaged.
        Pt2Error: one cannot be read.
    """
    jobs: list[Callable[[], Any]] = []
    sums: list[tuple[Sum, int, dict[int, memoryview]]] = []
    for stored, buffer in buffers.items():
        _ask_for_large_pages(buffer)
        if not is_in_pieces(archive, stored):
            jobs.append(partial(_copy, stored, buffer))
        elif not (total := archive.sum_of(stored.record)).is_parallel:
            jobs.append(partial(_read_in_order, archive, stored.record, buffer, total))
        else:
            pieces = _pieces(buffer)
            sums.append((total, len(jobs), pieces))
            jobs += [partial(_read_piece, archive, stored.record, at, piece, total) for at, piece in pieces.items()]
    found = _run(jobs, sum(buffer.nbytes for buffer in buffers.values()))
    for total, first, pieces in sums:
        for number, piece in enumerate(pieces.values(), first):
            total.join(found[number], piece.nbytes)
        total.check()


def read_range(archive: Archive, record: str, start: int, buffer: memoryview, total: Sum) -> None:
    """Fill a buffer with the bytes of a stored record from `start` on, and add them to its sum.

    Ranges of one record are read in order; each is read by several threads if its sum can be joined.
    """
    if not total.is_parallel or buffer.nbytes <= PIECE:
        archive.read_into(record, start, buffer)
        total.add(buffer)
        return
    pieces = _pieces(buffer)
    jobs = [partial(_read_piece, archive, record, start + at, piece, total) for at, piece in pieces.items()]
    for piece, found in zip(pieces.values(), _run(jobs, buffer.nbytes), strict=True):
        total.join(found, piece.nbytes)


def is_in_pieces(archive: Archive, stored: Storage) -> bool:
    """Return whether a storage is one stored record, to be read by ranges; small ones are fetched in one request."""
    record = archive.records.get(stored.record)
    if record is None or not record.is_stored or record.size != stored.nbytes:
        return False
    return stored.nbytes > BUFFER or archive.is_in_place(record.name)


def _pieces(buffer: memoryview) -> dict[int, memoryview]:
    """Return the pieces of a buffer that are read and summed one by one, by where they begin."""
    return {start: buffer[start : start + PIECE] for start in range(0, buffer.nbytes, PIECE)}


def _ask_for_large_pages(buffer: memoryview) -> None:
    """Ask the kernel for pages of 2 MiB below a large buffer; clearing pages of 4 KiB costs more than reading does."""
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None or buffer.nbytes < PIECE:
        return
    start = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    skipped = -start % mmap.PAGESIZE
    # A kernel without such pages refuses, which changes nothing.
    _library(None).madvise(ctypes.c_void_p(start + skipped), ctypes.c_size_t(buffer.nbytes - skipped), advice)


_library: Final = functools.cache(ctypes.CDLL)


def in_threads(jobs: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """Return the results of all jobs, run by as many threads as there are processors; the first error is raised."""
    pool = ThreadPoolExecutor(max(1, min(len(jobs), os.cpu_count() or 1)))
    try:
        return list(pool.map(lambda job: job(), jobs))
    finally:
        pool.shutdown(cancel_futures=True)


def _run(jobs: Sequence[Callable[[], Any]], nbytes: int) -> list[Any]:
    if len(jobs) < 2 or nbytes < _ALONE:
        return [job() for job in jobs]
    return in_threads(jobs)


def _copy(stored: Storage, buffer: memoryview) -> None:
    buffer[:] = stored.read(keep=False)


def _read_piece(archive: Archive, record: str, start: int, buffer: memoryview, total: Sum) -> int:
    archive.read_into(record, start, buffer)
    return total.of_piece(buffer)


def _read_in_order(archive: Archive, record: str, buffer: memoryview, total: Sum) -> None:
    for start, piece in _pieces(buffer).items():
        read_range(archive, record, start, piece, total)
    total.check()


class Staging:
    """Copies storages to one device, other than the CPU and meta.

    Args:
        device: where they go.
        piece: bytes of a buffer.
    """

    def __init__(self, device: torch.device, piece: int = BUFFER) -> None:
        self.device = device
        self._is_cuda = device.type == "cuda"
        self._piece = piece
        self._buffers: dict[int, torch.Tensor] = {}
        self._stream: Any = torch.cuda.Stream(device) if self._is_cuda else None
        self._copied: list[Any] = [torch.cuda.Event(), torch.cuda.Event()] if self._is_cuda else []

    def upload(self, nbytes: int, fill: Fill) -> torch.UntypedStorage:
        """Make a storage on the device.

        Args:
            nbytes: its length.
            fill: called once for each piece, in order.

        Returns:
            the storage. Its last copies may be under way; the device's current stream waits for them.

        Raises:
            RuntimeError: torch cannot use the device, or has no memory there.
        """
        whole = torch.empty(nbytes, dtype=torch.uint8, device=self.device)
        if self._is_cuda:
            # The memory may have had another use on the current stream.
            self._stream.wait_stream(torch.cuda.current_stream(self.device))
            whole.record_stream(self._stream)
        for number, start in enumerate(range(0, nbytes, self._piece)):
            self._copy(number % 2, whole[start : start + self._piece], start, fill)
        if self._is_cuda:
            torch.cuda.current_stream(self.device).wait_stream(self._stream)
        return whole.untyped_storage()

    def _copy(self, which: int, part: torch.Tensor, start: int, fill: Fill) -> None:
        if self._is_cuda:
            self._copied[which].synchronize()  # The earlier contents of this buffer are on the device.
        buffer = self._buffer(which, part.numel())
        fill(start, memoryview(buffer.numpy()))
        if not self._is_cuda:
            part.copy_(buffer)
            return
        with torch.cuda.stream(self._stream):
            part.copy_(buffer, non_blocking=True)
            self._copied[which].record(self._stream)

    def _buffer(self, which: int, nbytes: int) -> torch.Tensor:
        """Return one of the two buffers, of `nbytes` bytes; nothing is being copied from it."""
        size = min(self._piece, 1 << max(nbytes - 1, 0).bit_length())
        if which not in self._buffers or self._buffers[which].numel() < nbytes:
            self._buffers[which] = torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=self._is_cuda)
        return self._buffers[which][:nbytes]


def map_file(source: Source) -> tuple[Any, MappedFile | None]:
    """Return an open file mapped copy-on-write, and the object that watches it; None for one that cannot be mapped."""
    descriptor = source.descriptor
    mapping = None if descriptor is None else map_privately(source)
    if descriptor is None or mapping is None:
        return None, None
    return mapping, MappedFile(source.name, descriptor, mapping)


class MappedFile:
    """A file that weights are mapped from, watched as long as something uses the mapping, which this does not keep.

    Args:
        name: for messages.
        descriptor: of the file; it is duplicated.
        mapping: the mapping.
    """

    __slots__ = ("_descriptor", "_mapping", "_name", "_stamp")

    def __init__(self, name: str, descriptor: int, mapping: Any) -> None:
        self._name = name
        self._mapping = weakref.ref(mapping)
        self._descriptor = os.dup(descriptor)
        self._stamp = _stamp(self._descriptor)
        weakref.finalize(mapping, os.close, self._descriptor)

    def check(self) -> None:
        """Compare the file's inode, size and time of modification; about a microsecond.

        Raises:
            IntegrityError: it was changed.
        """
        if self._mapping() is None:  # All tensors over it were replaced or moved, and the descriptor is closed.
            return
        try:
            now = _stamp(self._descriptor)
        except OSError as error:
            raise self._changed(f"{error.strerror or error} when it was looked at") from error
        if now != self._stamp:
            what = ("another file", "another size", "another time of modification")
            differs = next(text for text, old, new in zip(what, self._stamp, now, strict=True) if old != new)
            raise self._changed(differs)

    def _changed(self, got: str) -> IntegrityError:
        return IntegrityError(
            f"{self._name}: expected the file that weights are mapped from to be as it was when it was loaded, got "
            f"{got}; load it again, or pass mmap=False to keep weights in memory whatever is written to the file"
        )


def _stamp(descriptor: int) -> tuple[int, int, int]:
    status = os.fstat(descriptor)
    return status.st_ino, status.st_size, status.st_mtime_ns


def trusted(trust: Sequence[str] | Set[str]) -> frozenset[str]:
    """Return the entries of `trust=` as a set.

    Raises:
        TypeError: anything but a collection of texts.
    """
    if isinstance(trust, str):
        raise TypeError(f"trust: expected a list of names, got a text: pass trust=({trust!r},)")
    if not isinstance(trust, Iterable):
        raise TypeError(f"trust: expected a list of names, got {trust!r}")
    entries = frozenset(trust)
    if wrong := [entry for entry in entries if not isinstance(entry, str)]:
        raise TypeError(f"trust: expected a list of names, got one with {wrong[0]!r}")
    return entries


def refused(kind: type[_Error], message: str, rule: str, entries: Sequence[str] = ()) -> _Error:
    """Return the error for a refusal.

    Args:
        kind: its class.
        message: place, what was expected, actual value.
        rule: of the refusal.
        entries: what to pass as `trust=` instead of the rule.
    """
    listed = ", ".join(repr(entry) for entry in (entries or (rule,)))
    return kind(f"{message}; if you trust the file, pass trust=({listed},)", rule=rule)


def trusts_operator(trust: Set[str], target: str, rule: str) -> bool:
    """Return whether the caller trusts an operator: by the rule, or by its name with or without overload.

    Args:
        trust: the entries.
        target: "torch.ops.aten.set_.source_Tensor", or the name of a function.
        rule: the rule that refuses it.
    """
    if rule in trust or target in trust:
        return True
    name = target.removeprefix(OPS)
    return name in trust or operator_entry(target) in trust


def operator_entry(target: str) -> str:
    """Return the entry of `trust=` for an operator: "aten.set_"; other targets are their own entries."""
    target = plain_target(target)
    return name_of(target) if target.startswith(OPS) else target
