"""Files that were processed before, by name and state; on disk, so that memory does not grow."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b
from typing import Final

_DIGEST_BYTES: Final = 12
_CACHE_KIB: Final = 16_384


def state_key(size: int | None, state: str) -> bytes:
    """Return the key of a size and an etag or time of change."""
    return _key(f"{'' if size is None else size}:{state}")


class Seen:
    """Pairs of a name and a state, in a temporary database of this process."""

    def __init__(self) -> None:
        self._pairs = sqlite3.connect("", isolation_level=None)  # An empty name is a file without a name.
        for setting in (f"cache_size=-{_CACHE_KIB}", "journal_mode=OFF", "synchronous=OFF"):
            self._pairs.execute(f"PRAGMA {setting}")
        self._pairs.execute("CREATE TABLE seen (name BLOB, state BLOB, PRIMARY KEY (name, state)) WITHOUT ROWID")
        self._pairs.execute("CREATE TABLE listed (name BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, name: str, state: bytes) -> bool:
        """Add a pair; return whether it is new. O(log n)."""
        cursor = self._pairs.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (_key(name), state))
        return cursor.rowcount > 0

    def states(self, name: str) -> tuple[bytes, ...]:
        """Return the states that are stored for a name."""
        return tuple(state for (state,) in self._pairs.execute("SELECT state FROM seen WHERE name = ?", (_key(name),)))

    def forget(self, name: str) -> None:
        """Drop all states of a name."""
        self._pairs.execute("DELETE FROM seen WHERE name = ?", (_key(name),))

    def mark_listed(self, name: str) -> None:
        """Note that a name is among the targets."""
        self._pairs.execute("INSERT OR IGNORE INTO listed VALUES (?)", (_key(name),))

    def is_listed(self, name: str) -> bool:
        """Return whether a name is among the targets."""
        return bool(self._pairs.execute("SELECT 1 FROM listed WHERE name = ?", (_key(name),)).fetchone())

    def close(self) -> None:
        """Close the database, which removes it."""
        self._pairs.close()


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
