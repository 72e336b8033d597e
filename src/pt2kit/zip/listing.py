"""Files that paths, folders, glob patterns and URLs name, listed in a stable order; opening of one as a `Source`.

Listing opens none of the files. `open_source` opens anything that holds an archive: a path, bytes, a file object, a
URL.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, Final, TypeAlias
from urllib.parse import unquote

from pt2kit.errors import ArchiveError
from pt2kit.zip.source import DEFAULT_LIMITS, Source, open_bytes, open_file_object, open_path

FileLike: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]"

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(?:://|::)")

_LOCAL: Final = ("file://", "local://")
_DRIVE: Final = re.compile(r"/[A-Za-z]:")

SUFFIX: Final = ".pt2"
"""Ending of the files to list in a folder; files that are named may have any ending."""

_MAGIC: Final = frozenset("*?[")


def is_url(path: str) -> bool:
    """Return whether a text is a URL ("s3://…", "zip://…::…") and no path."""
    return _URL.match(path) is not None


def open_source(
    file: FileLike | Source,
    *,
    name: str = "<bytes>",
    storage_options: Mapping[str, Any] | None = None,
    max_stream_bytes: int = DEFAULT_LIMITS.max_stream_bytes,
) -> Source:
    """Open anything that holds an archive's bytes.

    Args:
        file: a path (mapped into memory); any fsspec URL ("https://…", "s3://…", "memory://…"; read by byte ranges);
            bytes, bytearray or memoryview (shared, must not change); a binary file object, which is read from its
            position on, as torch does: mapped if it is a plain file on disk and at its beginning, by seeking
            otherwise (the position is restored after each read; nobody else may use it meanwhile), and to its end if
            it cannot seek. A `Source` is returned as it is.
        name: what messages call bytes.
        storage_options: passed to fsspec for a URL (credentials, headers, …).
        max_stream_bytes: limit of bytes read from inputs that can only be read whole: a stream, a server without
            ranges.

    Returns:
        the source; closing it does not close a file object that was passed in. A mapped file that is replaced by
        renaming remains readable; one that is truncated in place does not (the operating system then ends the process).

    Raises:
        OSError: the path cannot be opened; `FileNotFoundError` and `PermissionError` propagate unchanged.
        ArchiveError: the path is a folder, the URL cannot be read, or the file object returns no bytes (A1).
        LimitError: a stream is longer than `max_stream_bytes` (A18).
        TypeError: `file` is none of these.
    """
    if isinstance(file, (str, os.PathLike)):
        path = os.fspath(file)
        if isinstance(path, str) and is_url(path):
            from pt2kit.zip.remote import open_url  # Paths need nothing of it.

            return open_url(path, storage_options=storage_options, max_stream_bytes=max_stream_bytes)
        return open_path(path, max_stream_bytes=max_stream_bytes)
    if isinstance(file, (bytes, bytearray, memoryview)):
        return open_bytes(file, name=name)
    if isinstance(file, Source):
        return file
    if hasattr(file, "read"):
        return open_file_object(file, max_stream_bytes=max_stream_bytes)
    raise TypeError(f"expected a path, a URL, bytes or a binary file object, got {type(file).__name__}")


def local_path(place: str) -> str:
    """Return the path that a `file://` URL names, so that it is checked as a path is; anything else unchanged.

    On Windows `file:///C:/models` is `C:/models`.
    """
    if not place.lower().startswith(_LOCAL):
        return place
    path = unquote(place.partition("://")[2])
    return path[1:] if _DRIVE.match(path) else path


def folder_of(file: Any) -> str | None:
    """Return the folder of a local file, of one that a URL names, too; None if there is none."""
    path = file if isinstance(file, str | os.PathLike) else getattr(file, "name", None)
    path = local_path(path) if isinstance(path, str) else path
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        return None
    return os.path.dirname(os.path.abspath(os.fsdecode(path)))


def list_files(targets: Iterable[str]) -> list[str]:
    """Return the listed files, each once: those of one target in the order of their names.

    Args:
        targets: a file, or "-", unchanged, even if it does not exist; a folder for the files in it and below; a pattern
            ("models/**/*.pt2") for what matches; the same as URLs, where "s3://bucket/models/" is a folder.
            Folders below these whose names begin with a dot are left out.

    Raises:
        ArchiveError: a folder without such files, or a pattern that matches none (A1).
        OSError: a folder cannot be read.
    """
    return list(dict.fromkeys(file for target in targets for file in _files(target)))


def is_many(target: str) -> bool:
    """Return whether a target may name several files, however many it names today: a folder or a pattern."""
    if is_url(target):
        return target.endswith("/") or _is_remote_pattern(target)
    return os.path.isdir(target) or _is_pattern(target)


def _files(target: str) -> list[str]:
    if not is_many(target):
        return [target]
    if is_url(target):
        from pt2kit.zip.remote import list_urls

        files = list_urls(target, SUFFIX)
    elif os.path.isdir(target):
        files = list(_below(target))
    else:
        files = list(_matches(target))
    if not files:
        what = (
            "a folder with files" if os.path.isdir(target) or target.endswith("/") else "a pattern that matches files"
        )
        raise ArchiveError(f"{target}: expected {what} named *{SUFFIX}, got none", rule="A1")
    return files


def _is_pattern(path: str) -> bool:
    """Return whether a path has to be expanded: a file may be called "a[1].pt2"."""
    return not _MAGIC.isdisjoint(path) and not os.path.exists(path)


def _is_remote_pattern(url: str) -> bool:
    """Return whether a URL has to be expanded; a question mark begins a query there."""
    return not {"*", "["}.isdisjoint(url.partition("://")[2].partition("?")[0])


def _below(folder: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise error

    for where, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(where, name) for name in sorted(files) if name.endswith(SUFFIX))


def _matches(pattern: str) -> Iterator[str]:
    for path in sorted(glob.glob(pattern, recursive=True)):
        if not os.path.isdir(path):
            yield path
        elif not pattern.endswith("**"):  # which matches the folders below by itself
            yield from _below(path)


def pair_files(sources: Iterable[str], target: str) -> dict[str, str]:
    """Return the output path of each listed file: files of a folder keep their relative paths.

    Args:
        sources: as for `list_files`.
        target: a folder, existing or not, as a path or URL.

    Raises:
        ArchiveError: two files would go to one place (A1), or as `list_files`.
        OSError: a folder cannot be read.
    """
    pairs: dict[str, str] = {}
    for source in sources:
        for file in _files(source):
            below = os.path.relpath(file, source) if os.path.isdir(source) else os.path.basename(file)
            pairs[file] = f"{target.removesuffix('/')}/{below}" if is_url(target) else os.path.join(target, below)
    places: dict[str, str] = {}
    for file, place in pairs.items():
        if places.setdefault(place, file) != file:
            raise ArchiveError(f"{place}: expected one file for it, got {places[place]} and {file}", rule="A1")
    return pairs
