"""The folder for results, local or in a file system of fsspec: read, list, and write files completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pt2kit.zip.opening import is_url
from pt2kit.zip.remote import create_url, file_system, guarded, public_url
from pt2kit.zip.replacement import replacing


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, by path or URL.

    Args:
        place: a path or URL, without a slash at its end.
        storage_options: passed to fsspec for a URL.
    """

    place: str
    storage_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_remote(self) -> bool:
        """Return whether fsspec is needed."""
        return is_url(self.place)

    @property
    def shown(self) -> str:
        """Return its name in messages."""
        return public_url(self.place) if self.is_remote else self.place

    def path(self, name: str) -> str:
        """Return the path or URL of a file in it."""
        return f"{self.place}/{name}"

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None if it does not exist.

        Raises:
            OSError, ArchiveError: it cannot be read.
        """
        try:
            if not self.is_remote:
                with open(self.path(name), "rb") as file:
                    return file.read()
            fs, path = self._system()
            data: bytes = guarded(self.shown, lambda: fs.cat_file(f"{path}/{name}"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a file completely or not at all.

        Raises:
            OSError, ArchiveError: it cannot be written.
        """
        if self.is_remote:
            with create_url(self.path(name), storage_options=self.storage_options) as remote:
                remote.write(data)
            return
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with replacing(path) as file:
            file.write(data)

    def names(self, below: str = "") -> list[str]:
        """Return the names in it, or in a folder below it; none if that does not exist.

        Raises:
            OSError, ArchiveError: it cannot be listed.
        """
        place = self.path(below) if below else self.place
        try:
            if not self.is_remote:
                return sorted(os.listdir(place))
            fs, path = self._system()
            full = f"{path}/{below}" if below else path
            guarded(self.shown, fs.invalidate_cache)
            entries = guarded(self.shown, lambda: fs.ls(full, detail=False))
        except FileNotFoundError:
            return []
        names = (entry.rstrip("/").rpartition("/")[2] for entry in entries if entry.rstrip("/") != full.rstrip("/"))
        return sorted(names)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError):
            if not self.is_remote:
                os.unlink(self.path(name))
                return
            fs, path = self._system()
            guarded(self.shown, lambda: fs.rm_file(f"{path}/{name}"))

    def _system(self) -> tuple[Any, str]:
        fs, path = guarded(self.shown, lambda: file_system(self.place, self.storage_options))
        return fs, path.rstrip("/")


def make_folder(place: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Folder:
    """Return the folder of a path or URL; it is neither created nor read yet."""
    text = os.fspath(place)
    if text.lower().startswith("file://"):
        text = text[len("file://") :]
    return Folder(text.rstrip("/") if is_url(text) else os.path.abspath(text), storage_options or {})
