"""Files next to an archive: a relative URL is resolved to a source, and never to one elsewhere (rules B2, B3).

    model.pt2, "weights.safetensors"         the file in the same folder
    model.pt2, "shards/a%20b.safetensors"    one below it; text that a URL cannot have is written as %xx
    model.pt2, "../w", "/w", "https://…/w"   refused, unless it is in the folder of `weights_root`

A URL may come from anybody. It is parsed before anything is opened: links are followed first and checked then.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote as percent_encoded
from urllib.parse import unquote, urljoin, urlsplit

from pt2kit.errors import ArchiveError, Pt2Error, UnsupportedError
from pt2kit.messages import quote
from pt2kit.zip.chosen_names import name_problem
from pt2kit.zip.listing import folder_of, is_url, local_path
from pt2kit.zip.source import Source, open_path

ARGUMENT: Final = "weights_root"
"""Argument that permits files elsewhere, as messages name it."""

_ASK: Final = f"pass {ARGUMENT}= with a folder that it lies in, if you trust the file"


@dataclass(frozen=True, slots=True)
class Adjacent:
    """Directory of the files next to an archive.

    Args:
        home: the folder of the archive, as a path, or the archive's own URL; None for bytes and the like.
        root: the folder (a path or URL) of the files instead of the archive's; None by default.
        storage_options: passed to fsspec for URLs.
    """

    home: str | None
    root: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Return whether files there are mapped, not fetched."""
        base = self.home if self.home is not None and self.root is None else self.root
        return base is not None and not is_url(base)

    def open(self, url: str, where: str) -> Source:
        """Open the file that a URL names.

        Args:
            url: as the archive has it.
            where: what messages call the place of the URL.

        Raises:
            UnsupportedError: it is no relative URL, or leaves the folder (B2).
            ArchiveError: there is no such file, or it cannot be read (B3).
        """
        if self.home is None and self.root is None:
            raise UnsupportedError(
                f"{where}: expected an archive that is a file in a folder, got one without, so that nothing is next to "
                f"it; pass {ARGUMENT}= with the folder of {quote(url)}",
                rule="B2",
            )
        path = _path_in(url, where, self.root is not None)
        base = self.home if self.home is not None and _fits(self.home, self.root) else self.root
        try:
            if base is not None and is_url(base):
                return self._open_remote(base, url, path, where)
            return self._open_local(str(base), path, where)
        except UnsupportedError:
            raise
        except (OSError, Pt2Error) as error:
            text = str(error) if isinstance(error, Pt2Error) else error.strerror or str(error)
            raise ArchiveError(
                f"{where}: expected the file {quote(url)} next to the archive, got none that can be read: {text}",
                rule="B3",
            ) from error

    def _open_local(self, folder: str, path: str, where: str) -> Source:
        root = os.path.realpath(self.root if self.root is not None else folder)
        full_path = self._resolved(root, os.path.join(folder, path), path, where)
        if not stat.S_ISREG(os.stat(full_path).st_mode):  # Opening a pipe would wait for its writer.
            raise ArchiveError(f"{where}: expected a file, got {quote(path)}, which is none", rule="B3")
        source = open_path(full_path, name=path)
        try:
            self._check_opened(source, root, full_path, path, where)
        except BaseException:
            source.close()
            raise
        return source

    def _resolved(self, root: str, full_path: str, path: str, where: str) -> str:
        """Resolve all links of a path, and refuse one that leads out of the root."""
        real_path = os.path.realpath(full_path)
        if not _is_below(root, real_path):
            what = "a link or path to" if self.root is None else "a path to"
            raise UnsupportedError(
                f"{where}: expected a file in the folder {root}, got {quote(path)}, {what} one outside it; {_ASK}",
                rule="B2",
            )
        return real_path

    def _check_opened(self, source: Source, root: str, full_path: str, path: str, where: str) -> None:
        """Refuse an open file that is another one than its path leads to now: a link was put there meanwhile."""
        descriptor = source.descriptor
        real_path = self._resolved(root, full_path, path, where)
        if descriptor is not None and not os.path.samestat(os.fstat(descriptor), os.stat(real_path)):
            raise UnsupportedError(
                f"{where}: expected a file in the folder {root}, got {quote(path)}, which was replaced while it was "
                "opened",
                rule="B2",
            )

    def _open_remote(self, base: str, url: str, path: str, where: str) -> Source:
        from pt2kit.zip.remote import open_beside, open_url

        if self.root is None:
            return open_beside(base, path, storage_options=self.storage_options)
        full_url = url if is_url(url) else urljoin(base, url)
        root = self.root.rstrip("/") + "/"
        if not full_url.startswith(root) or ".." in unquote(full_url).split("/"):
            raise UnsupportedError(
                f"{where}: expected a file below {root}, got {quote(url)}, which is none; {_ASK}", rule="B2"
            )
        return open_url(full_url, storage_options=self.storage_options)


def adjacent_files(
    file: Any, root: str | os.PathLike[str] | None, storage_options: Mapping[str, Any] | None
) -> Adjacent:
    """Return the directory of files next to an archive.

    Args:
        file: the argument that the archive was opened from.
        root: the caller's folder, path or URL, for them; None for the archive's own.
        storage_options: passed to fsspec for URLs.
    """
    place = local_path(file) if isinstance(file, str) else ""
    home = place if is_url(place) else folder_of(file)
    return Adjacent(home, None if root is None else local_path(os.fsdecode(root)), dict(storage_options or {}))


def _is_below(root: str, path: str) -> bool:
    """Return whether a resolved path is in a resolved folder; on Windows, one on another drive is not."""
    try:
        return os.path.normcase(os.path.commonpath((root, path))) == os.path.normcase(root)
    except ValueError:
        return False


def url_of(path: str) -> str:
    """Return a relative path of a file as a relative URL."""
    return percent_encoded(path.replace(os.sep, "/"))


def path_problem(path: str) -> str | None:
    """Return what makes a path unfit to name a file next to an archive; None if nothing does."""
    if any(ord(character) < 32 or character == "\x7f" for character in path):
        return "holds a control character"
    return name_problem(path)


def _path_in(url: str, where: str, is_free: bool) -> str:
    """Return the path that a URL names, relative to the archive's folder; any path if the caller passes its folder."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = None
    if is_free and is_url(url):
        return local_path(url)
    path = unquote(url if parts is None else parts.path)
    if parts is None or parts.scheme or parts.netloc:
        problem: str | None = "is on another host, or of another scheme"
    elif parts.query or parts.fragment or "?" in url or "#" in url:
        problem = "has a query or a fragment"
    else:
        problem = path_problem(path)
    if problem is None or (is_free and (problem == "is absolute" or "'..'" in problem)):
        return path
    ask = f"; {_ASK}" if problem.startswith("is ") or "'..'" in problem else ""
    raise UnsupportedError(
        f"{where}: expected a URL relative to the archive's folder and within it, got {quote(url)}, which "
        f"{problem}{ask}",
        rule="B2",
    )


def _fits(home: str, root: str | None) -> bool:
    """Return whether a path relative to the archive can be in a root: both are local folders, or neither is."""
    return root is None or is_url(home) is is_url(root)
