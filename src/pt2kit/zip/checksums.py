"""CRC-32 checksums of large records, by two threads.

Pieces of a record are summed in any order and combined. A CRC-32 is linear: the sum of two parts is the first one's
sum, moved over as many zero bytes as the second part has, plus the second one's. Moving is one matrix of 32 x 32 bits
for each bit of that length, computed once.

Writers of a record add its pieces here while they write them. A second thread sums them; if it is not done with the
last one, the writing thread sums the next itself. Both zlib and the kernel's writing release the interpreter lock, so
gigabytes take half of what summing and writing take together.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

PIECE: Final = 4 << 20
"""Bytes of a piece: few enough to stay in a processor's cache while they are summed and written. A power of two."""

_POLYNOMIAL: Final = 0xEDB88320  # of zip's CRC-32, its lowest power in the highest bit


def combine(first: int, second: int, nbytes: int) -> int:
    """Return the CRC-32 of two parts from the sums of each.

    Args:
        first: the sum of the first part, which has any length.
        second: the sum of the second part.
        nbytes: length of the second part.
    """
    power = 0
    while nbytes:
        if nbytes & 1:
            first = _times(_columns(power), first)
        nbytes >>= 1
        power += 1
    return first ^ second


class Sums:
    """Sums pieces in the order in which they are added. Closed by `summing`.

    Args:
        pool: has one thread; None to sum everything in the calling one.
    """

    def __init__(self, pool: Executor | None) -> None:
        self._pool = pool
        self._crc32 = 0
        self._sums: list[tuple[int | Future[int], int]] = []  # of pieces, and how long they are
        self._last: Future[int] | None = None

    def add(self, view: memoryview) -> None:
        """Begin to sum bytes, which must not change before `total` is called."""
        if self._pool is None:
            self._crc32 = zlib.crc32(view, self._crc32)
            return
        for start in range(0, view.nbytes, PIECE):
            piece = view[start : start + PIECE]
            if self._last is None or self._last.done():
                self._last = self._pool.submit(zlib.crc32, piece)
                self._sums.append((self._last, piece.nbytes))
            else:
                self._sums.append((zlib.crc32(piece), piece.nbytes))

    def total(self) -> int:
        """Return the CRC-32 of everything that was added so far."""
        for crc32, nbytes in self._sums:
            self._crc32 = combine(self._crc32, crc32 if isinstance(crc32, int) else crc32.result(), nbytes)
        self._sums.clear()
        return self._crc32


@contextmanager
def summing(size: int) -> Iterator[Sums]:
    """Yield a sum for a record of `size` bytes: in two threads if the size is worth one."""
    if size < PIECE:
        yield Sums(None)
        return
    from concurrent.futures import ThreadPoolExecutor  # Costs more to import than the rest of this subpackage.

    with ThreadPoolExecutor(1) as pool:
        yield Sums(pool)


@functools.cache
def _columns(power: int) -> tuple[int, ...]:
    """Return the matrix that moves a sum over 2**power zero bytes: the image of each of its bits, lowest first."""
    if power > 0:
        half = _columns(power - 1)
        return tuple(_times(half, column) for column in half)
    columns = [_POLYNOMIAL, *(1 << bit for bit in range(31))]  # one zero bit
    for _ in range(3):
        columns = [_times(columns, column) for column in columns]
    return tuple(columns)


def _times(columns: Sequence[int], vector: int) -> int:
    """Return the product of a matrix of bits and a vector of bits."""
    result = 0
    for column in columns:
        if vector & 1:
            result ^= column
        vector >>= 1
    return result
