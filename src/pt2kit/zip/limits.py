"""Limits of reading an archive, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

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
