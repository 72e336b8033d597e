"""Files that match a glob pattern, listed one by one: on this machine, in S3, or in any file system of fsspec.

Nothing is kept of what was listed: a million files need no more memory than one folder's page.

Glob patterns with `*`, `?`, `[…]` and `**` are divided into the fixed prefix, and a matcher that follows names one by
one. Following names, instead of matching whole paths, lets a listing leave out folders that contain no match, and tells
whether anything below a folder could match at all.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from pt2kit.errors import Pt2Error
from pt2kit.zip.listing import is_url
from pt2kit.zip.remote import file_system, guarded, protocols, public_url, state_of

States: TypeAlias = frozenset[int]
"""The parts of a pattern that may come next; its length stands for a match."""

ANY_DEPTH: Final = "**"
_WILD: Final = re.compile(r"[*?\[]")
_WEB: Final = re.compile(r"https?://", re.IGNORECASE)

_S3: Final = frozenset(("s3", "s3a"))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern for the part after the fixed prefix.

    Args:
        parts: an expression for each name; None for any number of folders.
    """

    parts: tuple[re.Pattern[str] | None, ...]

    def start(self) -> States:
        """Return the states before the first name."""
        return self._reached((0,))

    def step(self, states: States, name: str) -> States:
        """Return the states after one more name; none if the name does not fit."""
        after = []
        for state in states - {len(self.parts)}:
            part = self.parts[state]
            if part is None or part.fullmatch(name):
                after.append(state if part is None else state + 1)
        return self._reached(after)

    def follow(self, names: Iterable[str]) -> States:
        """Return the states after several names."""
        states = self.start()
        for name in names:
            states = self.step(states, name)
        return states

    def is_match(self, states: States) -> bool:
        """Return whether the names so far match."""
        return len(self.parts) in states

    def goes_on(self, states: States) -> bool:
        """Return whether something in a folder of these names may match."""
        return any(state < len(self.parts) for state in states)

    def is_any_depth(self, states: States) -> bool:
        """Return whether folders of any names may follow, where links could lead in circles."""
        return any(state < len(self.parts) and self.parts[state] is None for state in states)

    def _reached(self, states: Iterable[int]) -> States:
        reached = set()
        for state in states:
            reached.add(state)
            while state < len(self.parts) and self.parts[state] is None:
                state += 1
                reached.add(state)
        return frozenset(reached)


def make_pattern(text: str) -> Pattern:
    """Compile a pattern such as "**/*.pt2", its parts separated by slashes."""
    names = [name for name in text.split("/") if name]
    return Pattern(tuple(None if name == ANY_DEPTH else re.compile(fnmatch.translate(name)) for name in names))


def has_wildcard(target: str) -> bool:
    """Return whether a path or URL is a pattern; in addresses of the web only `*` in the path counts."""
    if _WEB.match(target):
        return "*" in target.partition("?")[0]
    return bool(_WILD.search(target))


def split_pattern(target: str) -> tuple[str, str]:
    """Split a pattern into its fixed prefix and the rest: "s3://b/x/**/*.pt2" -> "s3://b/x", "**/*.pt2".

    The beginning of a relative path may be "", that of an absolute one "/".
    """
    scheme, mark, path = target.rpartition("://")
    names = path.split("/")
    wild = next(number for number, name in enumerate(names) if has_wildcard(f"{scheme}{mark}{name}"))
    root = "/".join(names[:wild])
    if not root and wild and not mark:
        root = "/"
    return f"{scheme}{mark}{root}", "/".join(names[wild:])


@dataclass(frozen=True, slots=True)
class Found:
    """A file that is to be worked on.

    Args:
        url: a path or URL that opens it.
        relative: its path below the target that named it; of a whole path where there were several targets.
        size: in bytes; None where only opening tells.
        state: its etag, or the time of its last change; "" where only opening tells.
        error: what kept a folder from being listed; `url` is that folder.
    """

    url: str
    relative: str
    size: int | None = None
    state: str = ""
    error: str = ""


def local_state(stat: os.stat_result) -> str:
    """Return the state of a local file: the nanosecond of its last change."""
    return str(stat.st_mtime_ns)


def is_gone(name: str, storage_options: Mapping[str, Any] | None) -> bool:
    """Return whether a file that a dataset names was removed; False if that is not certain.

    A name in a dataset may be escaped or cut, and web servers answer alike for removed and for refused files.
    """
    if is_url(name):
        if any(mark in name for mark in "?#") or name.lower().startswith("http"):
            return False
        try:
            fs, path = file_system(name, storage_options)
            fs.info(path)
        except FileNotFoundError:
            return True
        except Exception:  # noqa: BLE001 - whatever a file system raises, the file may be there
            return False
        return False
    return not (name.endswith("…") or (os.sep == "/" and "\\" in name) or os.path.lexists(name))


def list_local(folder: str, pattern: Pattern, below: str = "", states: States | None = None) -> Iterator[Found]:
    """List files of this machine. Links to folders are followed where a name of the pattern, and not `**`, leads there.

    Args:
        folder: the root, or a folder below it.
        pattern: what files match.
        below: the path from the root to the folder, with its slash.
        states: those of the pattern after that path; by default its first ones.

    Raises:
        OSError: the folder cannot be listed. A folder below it that cannot is given with its error.
    """
    states = pattern.start() if states is None else states
    with os.scandir(folder) as entries:
        for entry in entries:
            after = pattern.step(states, entry.name)
            if not after:
                continue
            relative = below + entry.name
            if entry.is_dir(follow_symlinks=not pattern.is_any_depth(after)):
                if pattern.goes_on(after):
                    yield from _below(entry.path, relative, pattern, after)
            elif pattern.is_match(after) and (file := _local_file(entry, relative)):
                yield file


def _below(folder: str, relative: str, pattern: Pattern, states: States) -> Iterator[Found]:
    try:
        yield from list_local(folder, pattern, f"{relative}/", states)
    except OSError as error:
        yield Found(folder, relative, error=f"expected to list the folder, got: {error.strerror or error}")


def _local_file(entry: os.DirEntry[str], relative: str) -> Found | None:
    """A file, or a link that leads nowhere; None for pipes, devices and links to folders."""
    try:
        if not entry.is_file():
            return Found(entry.path, relative) if entry.is_symlink() and not os.path.exists(entry.path) else None
        stat = entry.stat()
    except OSError:
        return Found(entry.path, relative)  # Opening it says what is wrong.
    return Found(entry.path, relative, stat.st_size, local_state(stat))


def list_remote(root: str, pattern: Pattern, storage_options: Mapping[str, Any] | None) -> Iterator[Found]:
    """Files of any file system that fsspec knows.

    Raises:
        ArchiveError: the root cannot be listed (A1). A folder below it that cannot is given with its error.
    """
    shown = public_url(root)
    fs, path = guarded(shown, lambda: file_system(root, storage_options))
    if _S3 & set(protocols(fs)) and hasattr(fs, "call_s3"):
        yield from _list_s3(fs, path, shown, pattern)
    else:
        yield from _list_folder(fs, path, shown, "", pattern, pattern.start())


def _list_s3(fs: Any, path: str, shown: str, pattern: Pattern) -> Iterator[Found]:
    """Keys of a bucket, page by page; a bucket has no folders, and may hold millions of keys under one prefix."""
    bucket, key, _ = fs.split_path(path)
    prefix = f"{key.rstrip('/')}/" if key else ""
    token = None
    while True:
        page = guarded(shown, partial(_page, fs, bucket, prefix, token))
        for item in page.get("Contents", ()):
            relative = item["Key"][len(prefix) :]
            if not relative.endswith("/") and pattern.is_match(pattern.follow(relative.split("/"))):
                yield Found(f"s3://{bucket}/{item['Key']}", relative, item["Size"], state_of(item))
        token = page.get("NextContinuationToken")
        if not token:
            return


def _page(fs: Any, bucket: str, prefix: str, token: str | None) -> Any:
    more = {"ContinuationToken": token} if token else {}
    return fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, **more)


def _list_folder(fs: Any, path: str, shown: str, below: str, pattern: Pattern, states: States) -> Iterator[Found]:
    entries = guarded(shown, lambda: fs.ls(path, detail=True))
    fs.invalidate_cache()  # A listing is used once.
    for entry in entries:
        name = entry["name"].rstrip("/").rpartition("/")[2]
        after = pattern.step(states, name)
        if entry["name"].rstrip("/") == path.rstrip("/") or not after:
            continue
        relative, url = below + name, fs.unstrip_protocol(entry["name"])
        if entry.get("type") != "directory":
            if pattern.is_match(after):
                yield Found(url, relative, entry.get("size"), state_of(entry))
        elif pattern.goes_on(after):
            try:
                yield from _list_folder(fs, entry["name"], public_url(url), f"{relative}/", pattern, after)
            except (OSError, Pt2Error) as error:
                yield Found(url, relative, error=str(error))
