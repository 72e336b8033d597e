"""Names of files with their states -> whether they were seen before; on disk, so memory does not grow."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b
from typing import Final

_DIGEST_BYTES: Final = 12
_CACHE_KIB: Final = 16_384


def state_key(size: int | None, state: str) -> bytes:
    """What stands for a size and an etag or time of change."""
    return _key(f"{'' if size is None else size}:{state}")


class Seen:
    """Pairs of a name and a state, in a temporary database that goes with the process."""

    def __init__(self) -> None:
        self._pairs = sqlite3.connect("", isolation_level=None)  # An empty name is a file without a name.
        for setting in (f"cache_size=-{_CACHE_KIB}", "journal_mode=OFF", "synchronous=OFF"):
            self._pairs.execute(f"PRAGMA {setting}")
        self._pairs.execute("CREATE TABLE seen (name BLOB, state BLOB, PRIMARY KEY (name, state)) WITHOUT ROWID")

    def add(self, name: str, state: bytes) -> bool:
        """Keep a pair; whether it is new. O(log n)."""
        cursor = self._pairs.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (_key(name), state))
        return cursor.rowcount > 0

    def states(self, name: str) -> tuple[bytes, ...]:
        """The states that a name was kept with."""
        return tuple(state for (state,) in self._pairs.execute("SELECT state FROM seen WHERE name = ?", (_key(name),)))

    def close(self) -> None:
        """Let go of the database."""
        self._pairs.close()


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
