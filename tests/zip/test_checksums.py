"""CRC-32 in pieces: whatever is added, in whatever lengths, the sum is zlib's."""

from __future__ import annotations

import random
import threading
import zlib
from concurrent.futures import Future

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt2kit.zip import checksums
from pt2kit.zip.checksums import PIECE, Sums, combine, summing


def data(size: int, seed: int = 0) -> bytes:
    """Bytes that differ."""
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("size", [0, 1, 5, PIECE, PIECE + 17])
def test_combine(size: int) -> None:
    """The sum of two parts, the second a piece, from those of each."""
    first, second = data(size), data(PIECE, 1)
    assert combine(zlib.crc32(first), zlib.crc32(second), PIECE) == zlib.crc32(first + second)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_combine_is_linear(a: int, b: int) -> None:
    """Sums add up bit by bit."""
    assert combine(a ^ b, 0, PIECE) == combine(a, 0, PIECE) ^ combine(b, 0, PIECE)
    assert combine(0, b, PIECE) == b


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [0],
        [5],
        [PIECE],
        [PIECE * 20],
        [PIECE] * 25,
        [PIECE * 3 + 5, 7, PIECE * 12, 9],
        [PIECE - 1] * 4,
        [1] * 5,
        [3, PIECE, PIECE, 4],
    ],
)
@pytest.mark.parametrize("threads", [True, False])
def test_sums(sizes: list[int], threads: bool) -> None:
    """Pieces and other lengths, in one thread or two."""
    parts = [data(size, seed) for seed, size in enumerate(sizes)]
    with summing(PIECE if threads else 0) as sums:
        for part in parts:
            sums.add(memoryview(part))
        assert sums.total() == zlib.crc32(b"".join(parts))
        sums.add(memoryview(b"more"))
        assert sums.total() == zlib.crc32(b"".join([*parts, b"more"]))


class Slow:
    """A pool whose thread begins with the oldest call when asked, and not before."""

    def __init__(self) -> None:
        self.calls: list[tuple[Future[int], memoryview, int]] = []

    def submit(self, function: object, view: memoryview, start: int = 0) -> Future[int]:
        future: Future[int] = Future()
        self.calls.append((future, view, start))
        return future

    def work(self) -> None:
        """Do the oldest call."""
        future, view, start = self.calls.pop(0)
        if future.set_running_or_notify_cancel():
            future.set_result(zlib.crc32(view, start))


def test_a_thread_that_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are summed by the first thread while the second one has something to do."""
    monkeypatch.setattr(checksums, "PIECE", 4)
    pool = Slow()
    sums = Sums(pool)  # type: ignore[arg-type]
    parts = [b"%04d" % number for number in range(40)]
    for number, part in enumerate(parts):
        if number % 10 == 9:
            pool.work()
        sums.add(memoryview(part))
    pool.work()
    assert pool.calls == []
    assert sums.total() == zlib.crc32(b"".join(parts))


def test_a_thread_in_the_middle() -> None:
    """A part that it has begun is waited for, and precedes those summed here."""
    pool = Slow()
    sums = Sums(pool)  # type: ignore[arg-type]
    parts = [data(PIECE, seed) for seed in range(5)]
    for part in parts:
        sums.add(memoryview(part))
    begun = pool.calls[0][0]
    assert begun.set_running_or_notify_cancel()
    timer = threading.Timer(0.05, lambda: begun.set_result(zlib.crc32(parts[0])))
    timer.start()
    assert sums.total() == zlib.crc32(b"".join(parts))
    timer.join()
