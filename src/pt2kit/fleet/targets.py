"""Targets of a run: globs, folders, files and lists of them, as a stream of files, without those processed before.

models/**/*.pt2  s3://bucket/**     what matches
models/                             the .pt2 files in a folder and those below it
model.pt2  https://host/model.pt2   a file
names.txt  -                        a list of all these, one per line; `#` begins a comment

Wrong targets are reported first. Files that were processed before are recorded by name and state (`Seen`), on disk, so
that memory does not grow.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any, Final

from pt2kit.errors import ArchiveError, Pt2Error, UnsupportedError
from pt2kit.fleet.listing import Found, has_wildcard, list_local, list_remote, local_state, make_pattern, split_pattern
from pt2kit.zip.listing import is_url, local_path
from pt2kit.zip.remote import file_system, guarded, public_url

STDIN: Final = "-"
_IN_FOLDERS: Final = "**/*.pt2"
_PROGRAMS: Final = (".pt2", ".pt", ".ep", ".json", ".zip", ".gz")
_SNIFFED: Final = 1024

_DIGEST_BYTES: Final = 12
_CACHE_KIB: Final = 16_384


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of a run.

    Args:
        given: paths (`local_path`) and URLs, or any iterable of such texts, which is gone through once.
        storage_options: passed to fsspec for URLs.
    """

    given: Sequence[str] | Iterable[str]
    storage_options: Mapping[str, Any] | None = None

    @property
    def can_repeat(self) -> bool:
        """Return whether they can be iterated a second time, to count them."""
        return isinstance(self.given, Sequence) and STDIN not in self.given

    def files(self) -> Iterator[Found]:
        """Yield the files; a folder that cannot be listed is yielded with its error."""
        for target in self.given:
            yield from self._files(target)

    def start(self) -> Iterator[Found]:
        """Return these targets, after each that was named has yielded a file.

        Raises:
            UnsupportedError: no target; one that matches nothing; an empty list; a folder that holds no `.pt2`.
            FileNotFoundError, ArchiveError, OSError: a target that is not there, or cannot be listed.
        """
        if not isinstance(self.given, Sequence):
            return _first_of(self.files(), "targets")
        if not self.given:
            raise UnsupportedError("targets: expected a file, a pattern or a list, got nothing")
        return chain.from_iterable([self._checked(target) for target in self.given])

    def _files(self, target: str) -> Iterator[Found]:
        """Yield the files of a target; their relative paths are whole ones unless it is the only target and no list."""
        files = _files(target, self.storage_options)
        if isinstance(self.given, Sequence) and len(self.given) == 1 and target != STDIN and not _is_list(target):
            return files
        return (replace(file, relative=_whole(file.url)) for file in files)

    def _checked(self, target: str) -> Iterator[Found]:
        """Return the files of one target; the first is searched immediately."""
        if target == STDIN or _search_of(target) or _is_list(target):
            return _first_of(self._files(target), public_url(target), self.storage_options)
        _check_file(target, self.storage_options)
        return self._files(target)


def check_outside(targets: Iterable[str], out: str) -> None:
    """Refuse a folder for results that is inside the targets.

    Raises:
        UnsupportedError: a pattern or folder that could match something in `out`, or `out` that is a target.
    """
    names = _names(out)
    for target in targets:
        if target == STDIN or _is_list(target):
            continue
        if (search := _search_of(target)) is None:
            if names == _names(target):
                raise UnsupportedError(f"out: expected a folder for the results, got a target: {public_url(out)}")
            continue
        root, pattern = search
        inside = _names(root)
        compiled = make_pattern(pattern)
        if names[: len(inside)] == inside and compiled.goes_on(compiled.follow(names[len(inside) :])):
            raise UnsupportedError(
                f"out: expected a folder outside of the targets, got {public_url(out)}, in which {public_url(target)} "
                "would look for files; pass another --output"
            )


def _first_of(files: Iterator[Found], target: str, storage_options: Mapping[str, Any] | None = None) -> Iterator[Found]:
    first = next(files, None)
    if first is None:
        raise UnsupportedError(f"{target}: expected files that match, got none")
    if is_url(first.url) and first.size is None and not first.error and not first.url.lower().startswith("http"):
        with suppress(FileNotFoundError):  # One file of many that is not there is a row like others.
            _check_file(first.url, storage_options)
    return chain((first,), files)


def _check_file(target: str, storage_options: Mapping[str, Any] | None) -> None:
    if not is_url(target):
        os.stat(target)
        return
    shown = public_url(target)
    try:
        fs, path = guarded(shown, lambda: file_system(target, storage_options))
        guarded(shown, lambda: fs.info(path))
    except ArchiveError as error:
        raise ArchiveError(f"{error}; are the address, the network and the credentials right?") from error


def _files(target: str, storage_options: Mapping[str, Any] | None) -> Iterator[Found]:
    if target == STDIN:
        yield from _of_lines(sys.stdin, storage_options)
    elif _is_list(target):
        with open(target, encoding="utf-8", errors="surrogateescape") as lines:
            yield from _of_lines(lines, storage_options)
    else:
        yield from _named(target, storage_options)


def _named(target: str, storage_options: Mapping[str, Any] | None) -> Iterator[Found]:
    """Yield the files of one target that is not a list of names."""
    if search := _search_of(target):
        yield from _matching(*search, storage_options)
    else:
        yield _file(target)


def _of_lines(lines: Iterable[str], storage_options: Mapping[str, Any] | None) -> Iterator[Found]:
    for line in lines:
        target = local_path(line.strip())
        if not target or target.startswith("#"):
            continue
        try:
            yield from _named(target, storage_options)
        except (OSError, Pt2Error) as error:
            yield Found(target if is_url(target) else os.path.abspath(target), "", error=str(error))


def _matching(root: str, pattern: str, storage_options: Mapping[str, Any] | None) -> Iterator[Found]:
    compiled = make_pattern(pattern)
    if is_url(root):
        return list_remote(root, compiled, storage_options)
    return list_local(os.path.abspath(root), compiled)


def _file(target: str) -> Found:
    if is_url(target):
        return Found(target, _whole(target).rpartition("/")[2])
    path = os.path.abspath(target)
    relative = os.path.basename(path)
    try:
        stat = os.stat(path)
    except OSError:
        return Found(path, relative)  # Opening it says what is wrong.
    return Found(path, relative, stat.st_size, local_state(stat))


def _whole(target: str) -> str:
    """Return the path of a file, relative to this folder, or to the root or host."""
    if is_url(target):
        host, _, path = public_url(target).partition("://")[2].partition("/")
        return f"{host}/{path.lstrip('/')}"
    path = os.path.abspath(target)
    below = os.path.relpath(path)
    return path.lstrip("/") if below.startswith("..") else below


def _names(place: str) -> list[str]:
    """Return a location as names that can be compared; links of local paths are resolved."""
    if is_url(place):
        return [name for name in public_url(place).split("/") if name]
    return ["", *(name for name in os.path.realpath(place).split(os.sep) if name)]


def _search_of(target: str) -> tuple[str, str] | None:
    """Return the folder that a pattern or a folder searches, and the pattern of files there; None for a file."""
    if has_wildcard(target) and (is_url(target) or not os.path.lexists(target)):
        return split_pattern(target)
    is_folder = target.endswith("/") if is_url(target) else os.path.isdir(target)
    return (target.rstrip("/") or "/", _IN_FOLDERS) if is_folder else None


def _is_list(target: str) -> bool:
    """Return whether a local file is a list of names: text that is neither an archive nor the JSON of a program."""
    if is_url(target) or target.lower().endswith(_PROGRAMS) or not os.path.isfile(target):
        return False
    with open(target, "rb") as file:
        head = file.read(_SNIFFED)
    if not head or head.startswith(b"PK") or b"\0" in head:
        return not head
    return not head.lstrip().startswith((b"{", b"["))


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
