"""Inflate deflated bytes to content of exactly the stated size, in bounded memory (rule A15)."""

from __future__ import annotations

import zlib
from typing import Final

from pt2kit.errors import ArchiveError
from pt2kit.zip.limits import KIB, MIB

_IN: Final = 64 * KIB
_OUT: Final = MIB


def inflate(where: str, data: memoryview, size: int) -> memoryview:
    """Inflate raw deflate data.

    Args:
        where: what messages call the record.
        data: the deflated bytes.
        size: bytes that must come out.

    Returns:
        the content, read-only. Takes `size` bytes and a little over 1 MiB, whatever the data claims.

    Raises:
        ArchiveError: broken data, or more or fewer bytes in or out than stated (A15).
    """
    out = bytearray(size)
    done = taken = 0
    engine = zlib.decompressobj(-zlib.MAX_WBITS)
    pending: bytes | memoryview = b""
    try:
        while not engine.eof:
            if not pending and taken < data.nbytes:
                pending = data[taken : taken + _IN]
                taken += len(pending)
            # One byte more than fits, so that too long a content shows itself.
            part = engine.decompress(pending, min(_OUT, size - done + 1))
            pending = engine.unconsumed_tail
            if done + len(part) > size:
                raise ArchiveError(f"{where}: expected {size} bytes once inflated, got more", rule="A15")
            out[done : done + len(part)] = part
            done += len(part)
            if not part and not pending and taken >= data.nbytes and not engine.eof:
                break
    except zlib.error as exc:
        raise ArchiveError(f"{where}: expected deflated data, got: {exc}", rule="A15") from exc
    unused = len(engine.unused_data) + data.nbytes - taken
    if not engine.eof or done != size or unused:
        end = f"with {unused} bytes left over" if engine.eof else "without an end"
        raise ArchiveError(
            f"{where}: expected {size} bytes from {data.nbytes} deflated ones, got {done} {end}", rule="A15"
        )
    return memoryview(out).toreadonly()
