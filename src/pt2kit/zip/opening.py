"""Open anything that holds an archive (a path, bytes, a file object, a URL) as a `Source`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import IO, Any, Final, TypeAlias

from pt2kit.zip.limits import DEFAULT_LIMITS
from pt2kit.zip.source import Source, open_bytes, open_file_object, open_path

FileLike: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]"

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(?:://|::)")


def is_url(path: str) -> bool:
    """Return whether a text is a URL ("s3://…", "zip://…::…") and no path."""
    return _URL.match(path) is not None


def open_source(
    file: FileLike | Source,
    *,
    name: str | None = None,
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
        name: what messages call it; derived from `file` if not given.
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

            return open_url(path, name=name, storage_options=storage_options, max_stream_bytes=max_stream_bytes)
        return open_path(path, name=name, max_stream_bytes=max_stream_bytes)
    if isinstance(file, (bytes, bytearray, memoryview)):
        return open_bytes(file, name=name or "<bytes>")
    if isinstance(file, Source):
        return file
    if hasattr(file, "read"):
        return open_file_object(file, name=name, max_stream_bytes=max_stream_bytes)
    raise TypeError(f"expected a path, a URL, bytes or a binary file object, got {type(file).__name__}")
