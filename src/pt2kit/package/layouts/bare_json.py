"""The layout of a file that is no zip but one JSON text: a program alone, a container of schema 8.6, or a draft."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from pt2kit.errors import LimitError, PayloadError, UnsupportedError
from pt2kit.package.layouts.base import PLAIN_MODEL, Layout
from pt2kit.package.legacy_programs import list_programs
from pt2kit.package.programs import read_json
from pt2kit.versions.conversion_log import path_below
from pt2kit.zip import end_record
from pt2kit.zip.directory import Record
from pt2kit.zip.reader import Archive, Storage
from pt2kit.zip.source import Source, open_path

if TYPE_CHECKING:
    from pt2kit.package.stored import Kind, StoredPayloads, StoredProgram
    from pt2kit.zip.source import Limits

DEFAULT_NAME: Final = "program.json"
"""The record's name if the file has none."""

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
        record = Record(name, size, size, end_record.STORED, zlib.crc32(self._content), 0, 0, size)
        self.records = MappingProxyType({name: record})
        self._data_offsets, self._verified = {name: 0}, {name}

    def _packed(self, record: Record) -> memoryview:
        return self._content


class BareJson(Layout):
    """One JSON text, whose payloads are inside it, in files that it names, or nowhere."""

    __slots__ = ()
    kind: ClassVar[str] = "json"
    is_archive: ClassVar[bool] = False
    is_text: ClassVar[bool] = True

    def program_record(self, model: str) -> str:
        """Return the name of the one record."""
        return next(iter(self.archive.records))

    def read_payloads(self, model: str, kind: Kind, stored: Callable[[], StoredProgram]) -> StoredPayloads:
        """Describe the weights or constants of a program.

        Raises: as `Layout.read_payloads`.
        """
        from pt2kit.package.layouts.container import read_from_program

        return read_from_program(self, model, kind, stored())

    def payload_at(self, path: str, name: str) -> Storage:
        """Return the bytes of a file next to the JSON file.

        Raises: as `Layout.payload_at`.
        """
        if self.context.folder is None:
            raise UnsupportedError(
                f"{name!a}: expected the folder of the program, which has its bytes in {path[:200]!a}, got none; "
                "open the program by its path"
            )
        try:
            source = open_path(path_below(Path(self.context.folder), path, repr(name)))
        except OSError as error:
            raise PayloadError(f"{name!a}: {path[:200]!a}: expected a readable file, got {error.strerror}") from None
        content = source.read(0, source.size)
        source.close()
        return Storage(path, content.nbytes, lambda: content, in_place=True)

    def producer(self, releases: tuple[str, ...]) -> str:
        """Return which releases write a program's schema version."""
        return f"torch {' or '.join(releases)}"


def open_json(source: Source, limits: Limits) -> BareJson:
    """Return the layout of a JSON file: one program, or the methods of a container.

    Raises:
        LimitError, JsonError, SchemaError, VersionError: it is no program.
    """
    archive = JsonFileArchive(source, limits)
    [record] = archive.records
    method_by_program = list_programs(read_json(archive, record, record), record, PLAIN_MODEL)
    methods = {name: (PLAIN_MODEL, method) for name, method in method_by_program.items() if method is not None}
    return BareJson(archive, "", tuple(method_by_program), "a JSON file without an archive", methods)
