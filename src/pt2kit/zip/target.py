"""Targets of writing an archive: a path or a file object as a `Target`, which accepts bytes in order.

A path is replaced when everything is written.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
from collections.abc import Iterator
from typing import IO

from pt2kit.errors import ArchiveError
from pt2kit.zip.opening import is_url
from pt2kit.zip.replacement import Replacement
from pt2kit.zip.source import Source, is_source


class Target:
    """Accepts bytes; finished by `commit` or `discard`.

    A file object is left at the beginning of the written bytes, so that it can be read: from there on, as readers do.

    Args:
        file: the file to write to; from its present position on.
        name: what messages call it.
        new: the owner of that file, if it replaces a path.
        owned: whether to close it.
        fsync: wait for the disk in `commit`.
    """

    def __init__(
        self,
        file: IO[bytes],
        name: str,
        *,
        new: Replacement | _Remote | None = None,
        owned: bool = False,
        fsync: bool = False,
    ) -> None:
        self.name = name
        self.position = 0
        self._file = file
        self._new = new
        self._owned = owned
        self._fsync = fsync
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
                break  # File objects that do not report how much they accepted are assumed to have accepted all.
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
        if self._new is not None:
            self._new.commit()
            return
        self._file.flush()
        if self._fsync:
            with contextlib.suppress(io.UnsupportedOperation, AttributeError):
                os.fsync(self._file.fileno())
        if self._owned:
            self._file.close()
        elif self.can_seek:
            self._file.seek(self._start)

    def discard(self) -> None:
        """Remove the temporary file; bytes written to a file object remain in it."""
        if self._new is not None:
            self._new.discard()
        elif self._owned:
            with contextlib.suppress(OSError):  # The disk may be full: closing then fails once more.
                self._file.close()


class _Remote:
    """Target for a URL, which appears when it is complete; ended by `commit` or `discard` like a `Replacement`."""

    def __init__(self, url: str) -> None:
        from pt2kit.zip.remote import create_url, public_url

        self.shown = public_url(url)
        self._block = create_url(url)
        self.file = self._block.__enter__()

    def commit(self) -> None:
        """Send the file."""
        self._block.__exit__(None, None, None)

    def discard(self) -> None:
        """Forget it."""
        error = InterruptedError()
        with contextlib.suppress(InterruptedError):
            self._block.__exit__(InterruptedError, error, None)


def open_target(target: str | os.PathLike[str] | IO[bytes], *, fsync: bool = False) -> Target:
    """Open a path or URL, which gets its file at the end, or wrap a file object.

    Args:
        target: a path (`Replacement`), any URL that fsspec can write to, or a binary file object.
        fsync: wait for the disk also where no file is replaced.

    Raises:
        OSError: the folder does not exist or cannot be written to.
        ArchiveError: the path is a folder, or the URL cannot be written to (A1).
        TypeError: neither a path nor a binary file object.
    """
    if not isinstance(target, (str, os.PathLike)):
        if not hasattr(target, "write") or issubclass(type(target), io.TextIOBase):
            raise TypeError(f"expected a path or a binary file object, got {type(target).__name__}")
        name = getattr(target, "name", None)
        return Target(target, name if isinstance(name, str) else f"<{type(target).__name__}>", fsync=fsync)
    name = os.fspath(target)
    if isinstance(name, str) and is_url(name):
        return Target((remote := _Remote(name)).file, remote.shown, new=remote)
    final = os.path.realpath(name)
    try:
        mode: int | None = os.stat(final).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and stat.S_ISDIR(mode):
        raise ArchiveError(f"{name}: expected a file to write, got a folder", rule="A1")
    if mode is not None and not stat.S_ISREG(mode):
        # A pipe or a device cannot be replaced by a file.
        return Target(open(final, "wb"), name, owned=True, fsync=fsync)
    new = Replacement(name, fsync=fsync)
    return Target(new.file, name, new=new)


@contextlib.contextmanager
def not_while_reading(
    source: Source, target: str | os.PathLike[str] | IO[bytes]
) -> Iterator[str | os.PathLike[str] | IO[bytes]]:
    """Yield a target to write to, so that a source is not overwritten while it is read.

    If the target is an open handle of the source's own file, that is a temporary file. At the end, unless an error
    occurs, its content is copied to the handle, from its position on, and the file is truncated after it.
    """
    if isinstance(target, str | os.PathLike) or not is_source(source, target):
        yield target
        return
    with spooled(target) as spool:
        yield spool
    target.truncate()


@contextlib.contextmanager
def spooled(target: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a temporary file, whose content is copied to `target` at the end, unless an error occurs."""
    from tempfile import TemporaryFile  # Costs more to import than the rest of this subpackage.

    with TemporaryFile() as spool:
        yield spool
        spool.seek(0)
        shutil.copyfileobj(spool, target)
        target.flush()
