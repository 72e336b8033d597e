"""Targets of writing an archive: a path, URL or file object as a `Target`, and atomic replacement of files.

A target accepts bytes in order. A path is replaced when everything is written: it always has the complete old or the
complete new file.

While it is written, the name of a file is one of a few that belong to the path: `.pt2kit-<checksum of the file
name>-<number>.tmp`. Its writer holds a lock on it, which ends with the process; the next one that writes to the same
path removes those that nobody holds.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import shutil
import stat
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

from pt2kit.errors import ArchiveError
from pt2kit.zip.listing import is_url
from pt2kit.zip.source import Source, is_source

fcntl: Any
try:
    fcntl = importlib.import_module("fcntl")
except ImportError:  # Windows, which refuses to remove a file that is open.
    fcntl = None

_SLOTS = 16
"""Names that are looked through for abandoned files; more are used only by more processes at a time."""
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EBADF)


@contextlib.contextmanager
def _called(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make errors name the path that the caller passed, and not the temporary name of its file."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is None:
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _take_over(descriptor: int, name: str, old: os.stat_result) -> None:
    """Set the owners and permissions of a file to those of the one it replaces, as far as this process may."""
    if hasattr(os, "fchown"):
        for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
            with contextlib.suppress(OSError):
                os.fchown(descriptor, owner, group)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    else:
        os.chmod(name, stat.S_IMODE(old.st_mode))


def _open_named(path: str) -> tuple[str, int]:
    """Create and lock a file of one of the names that belong to a path."""
    number = -1
    while True:
        number += 1
        name = _name(path, number)
        try:
            # Not tempfile: its files are private, and the new file should have the permissions that a new file gets.
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        except FileExistsError:
            continue
        # Another process may have treated it as abandoned before the lock.
        if _lock(descriptor) and (fcntl is None or os.fstat(descriptor).st_nlink):
            return name, descriptor
        os.close(descriptor)


def _name(path: str, number: int) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".pt2kit-{zlib.crc32(os.fsencode(name)):08x}-{number}.tmp")


def _lock(descriptor: int) -> bool:
    """Lock a file to show that its writer is alive; return False if another process has the lock."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # A file system without locks: nothing there counts as abandoned.
        return True
    return True


def _remove_abandoned(path: str) -> None:
    """Remove the temporary files of killed writers to a path."""
    for number in range(_SLOTS):
        with contextlib.suppress(OSError):
            _remove_unlocked(_name(path, number))


def _remove_unlocked(name: str) -> None:
    if fcntl is None:
        os.unlink(name)
        return
    # Without O_NONBLOCK, opening would wait if the file of that name is a pipe.
    descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have removed that file meanwhile, and a third made a new one of the name.
        if os.path.samestat(os.fstat(descriptor), os.lstat(name)):
            os.unlink(name)
    finally:
        os.close(descriptor)


def _sync_folder(folder: str) -> None:
    """Wait until the disk has the names in a folder, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str],
    *,
    sibling: str = "",
    fsync: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Iterator[IO[bytes]]:
    """Yield an empty file, open for writing and reading, that replaces `path` unless an error occurs.

    It gets the permissions, and if the process may set them, the owners of the file that it replaces, or those of any
    new file. A link is followed.

    Args:
        path: a plain file, or a name that is free; or a URL that fsspec can write to.
        fsync: wait for the disk also if no file is replaced. Replacing a file always does: a crash leaves either.
        sibling: a relative path from the folder of `path`, to write there instead.
        storage_options: passed to fsspec for a URL.

    Raises:
        OSError: the folder does not exist or cannot be written to.
        ArchiveError: the URL cannot be written to.
    """
    if isinstance(path, str) and is_url(path):
        from pt2kit.zip.remote import create_url

        with create_url(path, sibling=sibling, storage_options=storage_options) as file:
            yield file
        return
    if sibling:
        path = os.path.join(os.path.dirname(os.path.realpath(os.fspath(path))), sibling)
    with _replacing_file(path, fsync) as file:
        yield file


@contextlib.contextmanager
def _replacing_file(path: str | os.PathLike[str], fsync: bool) -> Iterator[IO[bytes]]:
    final = os.path.realpath(path)
    _remove_abandoned(final)
    with _called(path):
        name, descriptor = _open_named(final)
    file = os.fdopen(descriptor, "w+b")
    try:
        yield file
        with _called(path):
            file.flush()
            old = _stat(final)
            durable = fsync or old is not None
            if old is not None:
                _take_over(descriptor, name, old)
            if durable:
                os.fsync(descriptor)
            elif fcntl is not None:
                os.close(os.dup(descriptor))  # Network file systems report only now that the disk is full.
            _move(file, name, final)
    except BaseException as error:
        with contextlib.suppress(OSError):  # The disk may be full: closing then fails once more.
            file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            error.filename = os.fspath(path)
        raise
    file.close()
    if durable:
        with _called(path):
            _sync_folder(os.path.dirname(final))


def _move(file: IO[bytes], name: str, path: str) -> None:
    """Give a file that is open the name of the path."""
    if fcntl is None:  # Windows does not rename open files; elsewhere the lock must hold until the end.
        file.close()
    try:
        os.replace(name, path)
    except PermissionError as error:
        if fcntl is not None:
            raise
        raise PermissionError(
            f"{path}: expected a file that can be replaced, got one that is open, here or in another process, "
            f"which this system keeps: close what reads it, or write to another name ({error})"
        ) from error


class Target:
    """Accepts bytes, and counts them.

    Args:
        file: the file to write to; from its present position on.
        name: what messages call it.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self.position = 0
        self._file = file
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

    def finish(self, fsync: bool) -> None:
        """Flush a file object and leave it at the beginning of the written bytes: from there on readers read it."""
        self._file.flush()
        if fsync:
            with contextlib.suppress(io.UnsupportedOperation, AttributeError):
                os.fsync(self._file.fileno())
        if self.can_seek:
            self._file.seek(self._start)


@contextlib.contextmanager
def open_target(target: str | os.PathLike[str] | IO[bytes], *, fsync: bool = False) -> Iterator[Target]:
    """Yield a path or URL, which gets its file at the end unless an error occurs, or a file object, as a target.

    Bytes that were written to a file object before an error remain in it.

    Args:
        target: a path or URL, as for `replacing`, or a binary file object.
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
        opened = Target(target, name if isinstance(name, str) else f"<{type(target).__name__}>")
        yield opened
        opened.finish(fsync)
        return
    name = os.fspath(target)
    shown = name
    if isinstance(name, str) and is_url(name):
        from pt2kit.zip.remote import public_url

        shown = public_url(name)
    elif (old := _stat(final := os.path.realpath(name))) is not None:
        if stat.S_ISDIR(old.st_mode):
            raise ArchiveError(f"{name}: expected a file to write, got a folder", rule="A1")
        if not stat.S_ISREG(old.st_mode):
            # A pipe or a device cannot be replaced by a file.
            with open(final, "wb") as file:
                opened = Target(file, name)
                yield opened
                opened.finish(fsync)
            return
    with replacing(name, fsync=fsync) as file:
        yield Target(file, shown)


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
