"""Read records of an archive into memory: several threads, each piece compared with its checksum as it is read.

Records that are stored in the file are read in pieces, straight into the memory of the tensors; what is deflated,
fetched or part of a torch.save payload is copied as a whole, one thread for each.

Storages on an accelerator are copied through two pinned buffers (`Staging`). While one is copied to the device, the
other is filled from the file: reading and copying overlap, and however large the file is, the host holds two pieces of
it. Devices without pinned memory get the same pieces one by one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeAlias

import torch

from pt2kit.tensors.storage import Storage
from pt2kit.zip.checksums import PIECE
from pt2kit.zip.reader import Archive, Sum

BUFFER: Final = 64 << 20
"""Bytes of one buffer: enough that starting a copy costs nothing, and two of them are far below 256 MB."""
_ALONE: Final = 4 * PIECE
"""Bytes that one thread reads before several are finished being started."""

Fill: TypeAlias = "Callable[[int, memoryview], None]"
"""(start, buffer) -> fills the buffer with the bytes from there on."""


def read_storages(archive: Archive, buffers: Mapping[Storage, memoryview]) -> None:
    """Fill the memory of several storages with their bytes, and compare those with their checksums.

    Args:
        archive: the archive whose records the storages are; storages of torch.save payloads are not.
        buffers: storage -> writable bytes of its length.

    Raises:
        IntegrityError: a record is damaged.
        Pt2Error: one cannot be read.
    """
    jobs: list[Callable[[], int]] = []
    sums: list[tuple[Sum, Sequence[int], int]] = []
    for stored, buffer in buffers.items():
        if not is_in_pieces(archive, stored):
            jobs.append(partial(_copy, stored, buffer))
            continue
        total = archive.sum_of(stored.record)
        if not total.is_parallel:
            jobs.append(partial(_read_in_order, archive, stored.record, buffer, total))
            continue
        starts = range(0, stored.nbytes, PIECE)
        sums.append((total, range(len(jobs), len(jobs) + len(starts)), stored.nbytes))
        jobs += [
            partial(_read_piece, archive, stored.record, start, buffer[start : start + PIECE], total)
            for start in starts
        ]
    found = _run(jobs, sum(buffer.nbytes for buffer in buffers.values()))
    for total, numbers, nbytes in sums:
        for number, start in zip(numbers, range(0, nbytes, PIECE), strict=True):
            total.join(found[number], min(PIECE, nbytes - start))
        total.check()


def read_range(archive: Archive, record: str, start: int, buffer: memoryview, total: Sum | None) -> None:
    """Fill a buffer with the bytes of a stored record from `start` on, and add them to its sum.

    Ranges of one record are read in order; each is read by several threads if its sum can be joined.
    """
    if total is None:
        archive.read_into(record, start, buffer)
        return
    if not total.is_parallel or buffer.nbytes <= PIECE:
        archive.read_into(record, start, buffer)
        total.add(buffer)
        return
    starts = range(0, buffer.nbytes, PIECE)
    pieces = [buffer[at : at + PIECE] for at in starts]
    jobs = [
        partial(_read_piece, archive, record, start + at, piece, total)
        for at, piece in zip(starts, pieces, strict=True)
    ]
    for piece, found in zip(pieces, _run(jobs, buffer.nbytes), strict=True):
        total.join(found, piece.nbytes)


def is_in_pieces(archive: Archive, stored: Storage) -> bool:
    """Return whether a storage is one stored record of a local file, which can be read by ranges."""
    record = archive.records.get(stored.record)
    return record is not None and record.size == stored.nbytes and archive.is_in_place(record.name)


def in_threads(jobs: Sequence[Callable[[], int]]) -> list[int]:
    """Return the results of all jobs, run by as many threads as there are processors; the first error is raised."""
    pool = ThreadPoolExecutor(max(1, min(len(jobs), os.cpu_count() or 1)))
    try:
        return list(pool.map(lambda job: job(), jobs))
    finally:
        pool.shutdown(cancel_futures=True)


def _run(jobs: Sequence[Callable[[], int]], nbytes: int) -> list[int]:
    if len(jobs) < 2 or nbytes < _ALONE:
        return [job() for job in jobs]
    return in_threads(jobs)


def _copy(stored: Storage, buffer: memoryview) -> int:
    buffer[:] = stored.read(keep=False)
    return 0


def _read_piece(archive: Archive, record: str, start: int, buffer: memoryview, total: Sum) -> int:
    archive.read_into(record, start, buffer)
    return total.of_piece(buffer)


def _read_in_order(archive: Archive, record: str, buffer: memoryview, total: Sum) -> int:
    for start in range(0, buffer.nbytes, PIECE):
        piece = buffer[start : start + PIECE]
        archive.read_into(record, start, piece)
        total.add(piece)
    total.check()
    return 0


class Staging:
    """Copies storages to one device.

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
        if self.device.type == "meta":
            return whole.untyped_storage()
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
        if self.device.type == "cpu":
            fill(start, memoryview(part.numpy()))
            return
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
