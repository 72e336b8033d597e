"""Where an archive is written to: a path or a file object -> `Target`, which takes bytes in order.

A path gets its bytes in a temporary file in the same folder, which takes its place when everything is written.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
from typing import IO

from pt2kit.errors import ArchiveError


class Target:
    """Takes bytes; finished by `commit` or `discard`.

    Args:
        file: where the bytes go; from its present position on.
        name: what messages call it.
        beside: path of the temporary file, if there is one.
        final: the path that it takes the place of.
        fsync: wait for the disk in `commit`.
    """

    def __init__(
        self, file: IO[bytes], name: str, *, beside: str | None = None, final: str | None = None, fsync: bool = False
    ) -> None:
        self.name = name
        self.position = 0
        self._file = file
        self._beside = beside
        self._final = final
        self._fsync = fsync
        self._owned = final is not None
        self._start = 0
        self.can_seek = False
        with contextlib.suppress(OSError, AttributeError):
            # In append mode every write goes to the end, wherever one seeks.
            if file.seekable() and "a" not in str(getattr(file, "mode", "")):
                self._start = file.tell()
                self.can_seek = True

    def write(self, data: memoryview) -> None:
        """Write all of `data` (bytes) at the end."""
        rest = data
        while rest.nbytes:
            count: int | None = self._file.write(rest)
            if count is None:
                break  # File objects that do not say how much they took are taken to have taken all.
            if count <= 0:
                raise ArchiveError(
                    f"{self.name}: expected to write {rest.nbytes} bytes, got {count} written", rule="A1"
                )
            rest = rest[count:]
        self.position += data.nbytes

    def patch(self, offset: int, data: bytes) -> None:
        """Overwrite bytes that were written before, `offset` bytes from the archive's beginning."""
        self._file.seek(self._start + offset)
        self._file.write(data)
        self._file.seek(self._start + self.position)

    def commit(self) -> None:
        """Put the file in its place."""
        self._file.flush()
        if self._fsync:
            with contextlib.suppress(io.UnsupportedOperation, AttributeError):
                os.fsync(self._file.fileno())
        if self._owned:
            self._file.close()
        if self._beside is not None and self._final is not None:
            os.replace(self._beside, self._final)

    def discard(self) -> None:
        """Remove the temporary file; what a file object got stays in it."""
        if self._owned:
            with contextlib.suppress(OSError):  # The disk may be full: closing then fails once more.
                self._file.close()
        if self._beside is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._beside)


def open_target(target: str | os.PathLike[str] | IO[bytes], *, fsync: bool = False) -> Target:
    """Open a path (written beside and renamed; a link is followed) or wrap a file object.

    The new file has the permissions of the one it replaces, or those of any new file.

    Raises:
        OSError: the folder does not exist or cannot be written to.
        ArchiveError: the path is a folder (A1).
        TypeError: neither a path nor a binary file object.
    """
    if not isinstance(target, (str, os.PathLike)):
        if not hasattr(target, "write") or issubclass(type(target), io.TextIOBase):
            raise TypeError(f"expected a path or a binary file object, got {type(target).__name__}")
        name = getattr(target, "name", None)
        return Target(target, name if isinstance(name, str) else f"<{type(target).__name__}>", fsync=fsync)
    name = os.fspath(target)
    final = os.path.realpath(name)
    try:
        mode: int | None = os.stat(final).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and stat.S_ISDIR(mode):
        raise ArchiveError(f"{name}: expected a file to write, got a folder", rule="A1")
    if mode is not None and not stat.S_ISREG(mode):
        # A pipe or a device cannot be replaced by a file.
        return Target(open(final, "wb"), name, final=final, fsync=fsync)
    beside = os.path.join(os.path.dirname(final), f".pt2kit-{os.urandom(8).hex()}.tmp")
    # Not tempfile: its files are private, and the new file should have the permissions that a new file gets.
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        if mode is not None:
            os.chmod(beside, stat.S_IMODE(mode))
        file = os.fdopen(descriptor, "w+b")
    except BaseException:
        os.close(descriptor)
        os.unlink(beside)
        raise
    return Target(file, name, beside=beside, final=final, fsync=fsync)
