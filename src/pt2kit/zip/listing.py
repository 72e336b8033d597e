"""List the files that paths, folders, glob patterns and URLs name, in a stable order. Opens none of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from typing import Final

from pt2kit.errors import ArchiveError
from pt2kit.zip.opening import is_url

SUFFIX: Final = ".pt2"
"""Ending of the files to list in a folder; files that are named may have any ending."""

_MAGIC: Final = frozenset("*?[")


def list_files(targets: Iterable[str], *, suffix: str = SUFFIX) -> list[str]:
    """Return the listed files, each once: those of one target in the order of their names.

    Args:
        targets: a file, or "-", unchanged, even if it does not exist; a folder for the files in it and below; a pattern
            ("models/**/*.pt2") for what matches; the same as URLs, where "s3://bucket/models/" is a folder.
        suffix: the ending of the names of files in folders; folders whose name begins with a dot are left out.

    Raises:
        ArchiveError: a folder without such files, or a pattern that matches none (A1).
        OSError: a folder cannot be read.
    """
    return list(dict.fromkeys(file for target in targets for file in _files(target, suffix)))


def is_many(target: str) -> bool:
    """Return whether a target may name several files, however many it names today: a folder or a pattern."""
    if is_url(target):
        return target.endswith("/") or _is_remote_pattern(target)
    return os.path.isdir(target) or _is_pattern(target)


def _files(target: str, suffix: str) -> list[str]:
    if not is_many(target):
        return [target]
    if is_url(target):
        files = list(_remote(target, suffix))
    elif os.path.isdir(target):
        files = list(_below(target, suffix))
    else:
        files = list(_matches(target, suffix))
    if not files:
        what = (
            "a folder with files" if os.path.isdir(target) or target.endswith("/") else "a pattern that matches files"
        )
        raise ArchiveError(f"{target}: expected {what} named *{suffix}, got none", rule="A1")
    return files


def _is_pattern(path: str) -> bool:
    """Return whether a path has to be expanded: a file may be called "a[1].pt2"."""
    return not _MAGIC.isdisjoint(path) and not os.path.exists(path)


def _is_remote_pattern(url: str) -> bool:
    """Return whether a URL has to be expanded; a question mark begins a query there."""
    return not {"*", "["}.isdisjoint(url.partition("://")[2].partition("?")[0])


def _below(folder: str, suffix: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise error

    for where, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(where, name) for name in sorted(files) if name.endswith(suffix))


def _matches(pattern: str, suffix: str) -> Iterator[str]:
    for path in sorted(glob.glob(pattern, recursive=True)):
        if not os.path.isdir(path):
            yield path
        elif not pattern.endswith("**"):  # which matches the folders below by itself
            yield from _below(path, suffix)


def _remote(url: str, suffix: str) -> Iterator[str]:
    from pt2kit.zip.remote import list_urls

    yield from list_urls(url, suffix)


def pair_files(sources: Iterable[str], target: str, *, suffix: str = SUFFIX) -> dict[str, str]:
    """Return the output path of each listed file: files of a folder keep their relative paths.

    Args:
        sources: as for `list_files`.
        target: a folder, existing or not, as a path or URL.
        suffix: as for `list_files`.

    Raises:
        ArchiveError: two files would go to one place (A1), or as `list_files`.
        OSError: a folder cannot be read.
    """
    pairs: dict[str, str] = {}
    for source in sources:
        for file in _files(source, suffix):
            below = os.path.relpath(file, source) if os.path.isdir(source) else os.path.basename(file)
            pairs[file] = f"{target.rstrip('/')}/{below}" if is_url(target) else os.path.join(target, below)
    places: dict[str, str] = {}
    for file, place in pairs.items():
        if places.setdefault(place, file) != file:
            raise ArchiveError(f"{place}: expected one file for it, got {places[place]} and {file}", rule="A1")
    return pairs
