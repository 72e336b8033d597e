"""Memory-mapped weight files (mmap), and detection of changes to them.

A mapping shows the current contents of the file: a process that writes to the file in place, as `torch.export.save`
does, changes the weights of a running module, and one that truncates it ends the process. If the file is replaced by
another one, as all writers of this package do, existing mappings keep the old contents.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Sequence
from typing import Any

from pt2kit.errors import IntegrityError
from pt2kit.zip.source import Source, descriptor_of, map_privately


class MappedFile:
    """A file that is mapped copy-on-write. It is watched as long as something uses the mapping.

    Args:
        source: the file, open.
    """

    def __init__(self, source: Source) -> None:
        descriptor = descriptor_of(source)
        self.name = source.name
        self.mapping = None if descriptor is None else map_privately(source)
        self._descriptor: int | None = None
        if descriptor is not None and self.mapping is not None:
            self._descriptor = os.dup(descriptor)
            self._stamp = _stamp(self._descriptor)
            weakref.finalize(self.mapping, os.close, self._descriptor)

    def watch(self) -> _Watched | None:
        """Return the recorded state to compare the file with; None if nothing is mapped."""
        if self.mapping is None or self._descriptor is None:
            return None
        return _Watched(weakref.ref(self.mapping), self.name, self._descriptor, self._stamp)


class _Watched:
    __slots__ = ("_descriptor", "_mapping", "_name", "_stamp")

    def __init__(
        self, mapping: weakref.ref[mmap.mmap], name: str, descriptor: int, stamp: tuple[int, int, int]
    ) -> None:
        self._mapping = mapping
        self._name = name
        self._descriptor = descriptor
        self._stamp = stamp

    def check(self) -> None:
        mapping = self._mapping()
        if mapping is None:  # All tensors over it were replaced or moved, and the descriptor is closed.
            return
        try:
            now = _stamp(self._descriptor)
        except OSError as error:
            raise self._changed(f"{error.strerror or error} when it was looked at") from error
        if now != self._stamp:
            what = ("another file", "another size", "another time of modification")
            differs = next(text for text, old, new in zip(what, self._stamp, now, strict=True) if old != new)
            raise self._changed(differs)

    def _changed(self, got: str) -> IntegrityError:
        return IntegrityError(
            f"{self._name}: expected the file that weights are mapped from to be as it was when it was loaded, got "
            f"{got}; load it again, or pass mmap=False to keep weights in memory whatever is written to the file"
        )


class MappedFiles:
    """The files that the weights of a module are mapped from.

    Args:
        files: which; those whose weights are all read into memory do not count.
    """

    def __init__(self, files: Sequence[MappedFile] = ()) -> None:
        self._watched = [watched for file in files if (watched := file.watch()) is not None]

    def __bool__(self) -> bool:
        return bool(self._watched)

    def check(self) -> None:
        """Compare inode, size and time of modification of each; about a microsecond for one.

        Raises:
            IntegrityError: one was changed.
        """
        for watched in self._watched:
            watched.check()

    def __deepcopy__(self, memo: dict[int, Any]) -> MappedFiles:
        return self  # A copy of a module may share constants with it.


def _stamp(descriptor: int) -> tuple[int, int, int]:
    status = os.fstat(descriptor)
    return status.st_ino, status.st_size, status.st_mtime_ns
