"""Deflated data gives exactly what was stated, or an error, in bounded memory."""

from __future__ import annotations

import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.zip.zip_forge import deflated

from pt2kit.errors import ArchiveError
from pt2kit.zip.reader import inflate

DATA = b"the same line again and again\n" * 20_000
PACKED = deflated(DATA)
SIZE = len(DATA)


@given(st.binary(max_size=5000), st.integers(1, 50))
def test_round_trip(data: bytes, times: int) -> None:
    """Deflated data is inflated."""
    assert inflate("here", memoryview(deflated(data * times)), len(data) * times) == data * times


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_block_edges(size: int) -> None:
    """Sizes around the blocks in which it works are no different."""
    for data in (bytes(size), zlib.compress(bytes(100))[:1] * size):
        view = inflate("here", memoryview(deflated(data)), size)
        assert view == data
        assert view.readonly


# name: (deflated bytes, stated size, text)
REFUSED = {
    "too long": (PACKED, SIZE - 1, f"expected {SIZE - 1} bytes once inflated, got more"),
    "far too long": (deflated(bytes(50_000_000)), 16, "expected 16 bytes once inflated, got more"),
    "too short": (PACKED, SIZE + 1, f"expected {SIZE + 1} bytes from {len(PACKED)} deflated ones, got {SIZE} with 0"),
    "cut": (PACKED[:-5], SIZE, "without an end"),
    "nothing": (b"", 0, "got 0 without an end"),
    "bytes after": (PACKED + b"xyz", SIZE, f"got {SIZE} with 3 bytes left over"),
    "many bytes after": (PACKED + bytes(200_000), SIZE, "with 200000 bytes left over"),
    "garbage": (b"\xff" * 50, 100, "expected deflated data, got: Error -3"),
    "zlib header": (zlib.compress(DATA), SIZE, "expected deflated data, got: Error -3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """Anything else is refused with the numbers that differ."""
    packed, size, text = REFUSED[case]
    with pytest.raises(ArchiveError) as caught:
        inflate("m/a", memoryview(packed), size)
    assert caught.value.rule == "A15"
    assert text in str(caught.value)
    assert str(caught.value).startswith("m/a: ")


def test_memory_is_bounded() -> None:
    """A bomb behind a small stated size costs no more than that size and some working space."""
    bomb = deflated(bytes(200_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError, match=r"^here: expected 1000 bytes once inflated, got more \[A15\]$"):
            inflate("here", memoryview(bomb), 1000)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
