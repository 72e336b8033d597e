"""Batches of files: about half a second of work each, and no more in progress than keep the workers busy.

How many files that is shows as batches come back; large files go alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from pt2kit.fleet.dataset import output_name
from pt2kit.fleet.listing import Found
from pt2kit.fleet.reading import Item, shown_name
from pt2kit.fleet.seen import Seen, state_key

BATCH_SECONDS: Final = 0.5
BATCH_BYTES: Final = 64 << 20
MAX_BATCH: Final = 256
_FIRST_BATCH: Final = 4
_GROWTH: Final = 4
_WEIGHT: Final = 0.3
_STATELESS: Final = state_key(None, "")
_UNKNOWN: Final = b"?"
"""Stands for a state that only opening the file tells."""


class Batches:
    """Batches of the files of a stream that were not processed before.

    Args:
        files: what is to be done.
        seen: what has a row; takes what is handed out.
        writes: whether a file is written for each.
    """

    def __init__(self, files: Iterator[Found], seen: Seen, writes: bool) -> None:
        self._files = files
        self._seen = seen
        self._writes = writes
        self._next: Item | None = None
        self._seconds_per_file: float | None = None
        self._count = _FIRST_BATCH
        self.skipped = 0

    def learn(self, files: int, seconds: float) -> None:
        """Record how long a batch took."""
        if not files:
            return
        seconds_per_file = seconds / files
        before = self._seconds_per_file
        self._seconds_per_file = seconds_per_file if before is None else before + _WEIGHT * (seconds_per_file - before)
        wanted = int(BATCH_SECONDS / max(self._seconds_per_file, 1e-6))
        self._count = max(1, min(wanted, MAX_BATCH, self._count * _GROWTH))

    def is_over(self) -> bool:
        """Return whether no file is left.

        Raises: as `take`.
        """
        self._next = self._next or self._new()
        return self._next is None

    def take(self) -> list[Item]:
        """Return the next batch; empty at the end of the stream.

        Raises:
            OSError, Pt2Error: a target that had a file could not be listed to its end.
        """
        batch: list[Item] = []
        size = 0
        while len(batch) < self._count:
            item = self._next or self._new()
            self._next = None
            if item is None:
                break
            if batch and size + (item.size or 0) > BATCH_BYTES:
                self._next = item
                break
            batch.append(item)
            size += item.size or 0
        return batch

    def _new(self) -> Item | None:
        """Return the next file that was not processed before."""
        for file in self._files:
            name = shown_name(file.url)
            self._seen.mark_listed(name)
            is_known = bool(file.state or file.error)
            key = state_key(file.size, file.state) if is_known else _UNKNOWN
            known = () if is_known else self._seen.states(name)
            # A row without a state is of a file that could not be opened, or ended what opened it.
            if _STATELESS in known or not self._seen.add(name, key):
                self.skipped += 1
                continue
            output = output_name(file.relative) if self._writes else ""
            return Item(os.fsencode(file.url), output, file.size, file.state, file.error, known)
        return None
