"""A file that is no zip but one JSON text -> an `Archive` with that as its only record."""

from __future__ import annotations

import re
import zlib
from types import MappingProxyType
from typing import Final

from pt2kit.errors import LimitError
from pt2kit.zip import headers as h
from pt2kit.zip.directory import Record
from pt2kit.zip.limits import Limits
from pt2kit.zip.reader import Archive
from pt2kit.zip.source import Source

DEFAULT_NAME: Final = "program.json"
"""The record's name where the file has none."""

_OPENING: Final = re.compile(rb"[ \t\r\n]*\{")
_SNIFFED: Final = 64
_LAST: Final = re.compile(r"[^/\\]+\Z")


class JsonFileArchive(Archive):
    """A JSON file as an archive of one record. There is no checksum to compare it with.

    Args:
        source: the file; closed with the archive.
        limits: what reading may cost.

    Raises:
        LimitError: the file is larger than `Limits.max_inflated_bytes` (A18).
        ArchiveError: it cannot be read (A1).
    """

    def __init__(self, source: Source, limits: Limits) -> None:
        super().__init__(source, (), limits)
        size = source.size
        if size > limits.max_inflated_bytes:
            raise LimitError(
                f"{source.name}: expected at most {limits.max_inflated_bytes} bytes of JSON, got {size}; "
                "raise Limits.max_inflated_bytes if you trust the file",
                rule="A18",
            )
        self._content = source.read(0, size)
        match = _LAST.search(source.name)
        name = match[0] if match and match[0].endswith(".json") else DEFAULT_NAME
        record = Record(name, size, size, h.STORED, zlib.crc32(self._content), 0, 0, size)
        self._records = MappingProxyType({name: record})
        self._data_offsets = {name: 0}

    def read(self, name: str, *, verify: bool = True) -> memoryview:
        """Give the text.

        Raises:
            ArchiveError: another name than that of the one record (A17).
        """
        del verify
        self._record(name)
        return self._content


def is_bare(source: Source) -> bool:
    """Whether a file begins as a JSON object does, which no zip does."""
    return _OPENING.match(bytes(source.read(0, min(source.size, _SNIFFED)))) is not None
