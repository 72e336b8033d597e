"""One record of an archive, or one storage of a torch.save payload: bytes on demand, shared by the tensors over it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from pt2kit.errors import PayloadError


class Storage:
    """The bytes under one or more tensors. Compares by identity: tied weights hold the same object.

    Args:
        record: full name of the record, or another name of the storage, for messages.
        nbytes: its length in bytes, known without reading.
        load: returns the bytes; called on first access.
        in_place: whether the result of `load` is part of a mapped file, or of existing memory, not a copy.
    """

    __slots__ = ("_data", "_load", "_lock", "in_place", "nbytes", "record")

    def __init__(self, record: str, nbytes: int, load: Callable[[], memoryview], *, in_place: bool = False) -> None:
        self.record = record
        self.nbytes = nbytes
        self.in_place = in_place
        self._load = load
        self._data: memoryview | None = None
        self._lock = Lock()

    def read(self, *, keep: bool = True) -> memoryview:
        """Return the bytes, read-only.

        Args:
            keep: remember them. Costs nothing if they are in place; if they were fetched or inflated, they
                remain in memory as long as this object. False for one pass over many tensors.

        Raises:
            PayloadError: the loader returned another number of bytes than `nbytes` (P9).
            Pt2Error: whatever the loader raises for a damaged or missing record.
        """
        with self._lock:  # Two threads must not fetch the same gigabyte.
            data = self._data
            if data is None:
                data = self._load().toreadonly()
                if data.nbytes != self.nbytes:
                    raise PayloadError(f"{self.record}: expected {self.nbytes} bytes, got {data.nbytes}", rule="P9")
                if keep:
                    self._data = data
        return data

    def __repr__(self) -> str:
        return f"Storage({self.record!r}, {self.nbytes} bytes)"
