"""External payloads: an `Archive` that includes records stored in files next to the archive.

Readers of packages need not distinguish them: a record in another file has a size and returns its bytes like any
other. A file is opened when the first of its records is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from threading import RLock
from types import MappingProxyType
from typing import Final

from pt2kit.errors import IntegrityError, LimitError, PayloadError
from pt2kit.package.external_list import RECORD, Reference, decode
from pt2kit.package.programs import read_json
from pt2kit.tensors.safetensors_header import Row, read_header
from pt2kit.zip.adjacent import Adjacent
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.directory import unzipped
from pt2kit.zip.reader import Archive, Sum
from pt2kit.zip.source import Source

MAX_FILES: Final = 10_000
"""Files that one archive may name; the largest models have some hundred shards."""


class ExternalArchive(Archive):
    """Records of an archive, and external ones.

    Args:
        inner: the archive; closed with this one.
        references: full name of each external record -> its location.
        listed: full name of the record that lists them, which is not among the records.
        adjacent: where files may be.

    Attributes:
        references: as above.

    Raises:
        LimitError: more than `MAX_FILES` files (B1).
    """

    def __init__(self, inner: Archive, references: Mapping[str, Reference], listed: str, adjacent: Adjacent) -> None:
        super().__init__(inner.source, (), inner.limits)
        self.references = MappingProxyType(dict(references))
        self._data_offsets, self._verified = inner._data_offsets, inner._verified
        self._adjacent = adjacent
        self._files: dict[str, tuple[Source, dict[str, Row]]] = {}
        self._lock = RLock()
        count = len({row.url for row in references.values()})
        if count > MAX_FILES:
            raise LimitError(f"{listed}: expected at most {MAX_FILES} files, got {count}", rule="B1")
        records = {name: record for name, record in inner.records.items() if name != listed}
        for name, row in references.items():
            records[name] = unzipped(name, row.nbytes)
        self.records = MappingProxyType(records)

    def sum_of(self, name: str) -> Sum:
        """Return a sum to which the bytes of a record can be added as they are read; as `Archive.sum_of`.

        That of an external one refuses other bytes than those that were there when the archive was written (B6).
        """
        reference = self.references.get(name)
        if reference is None:
            return super().sum_of(name)
        total = hashlib.sha256()

        def add(piece: memoryview, _: int) -> int:
            total.update(piece)
            return 0

        return Sum(add, lambda _: self._compare(name, reference, total.hexdigest()))

    def place_of(self, name: str) -> tuple[Source, int]:
        """Return the file of a record, and the offset of its data there.

        Raises:
            UnsupportedError: its URL leaves the folder (B2).
            ArchiveError: there is no such file (B3), or as `Archive.place_of`.
            PayloadError: the file is no sound safetensors file (B4), or lacks the named tensor (B5).
        """
        reference = self.references.get(name)
        if reference is None:
            return super().place_of(name)
        source, rows = self._file(reference)
        row = rows.get(reference.tensor)
        where = self._described(reference)
        if row is None:
            raise PayloadError(f"{where}: expected a tensor of that name in the file, got none", rule="B5")
        if (row.dtype, row.shape) != (reference.dtype, reference.shape):
            raise PayloadError(
                f"{where}: expected {reference.dtype} {list(reference.shape)}, as the archive says, got {row.dtype} "
                f"{list(row.shape)}",
                rule="B5",
            )
        return source, row.start

    def is_in_place(self, name: str) -> bool:
        """Return whether reading a record copies nothing."""
        return self._adjacent.is_local if name in self.references else super().is_in_place(name)

    def close(self) -> None:
        """Close all files. Views that were handed out remain valid; may be called twice."""
        with self._lock:
            for source, _ in self._files.values():
                source.close()
        super().close()

    def _compare(self, name: str, reference: Reference, got: str) -> None:
        if got != reference.sha256:
            raise IntegrityError(
                f"{self._described(reference)}: expected the bytes that the archive was written with, SHA-256 "
                f"{reference.sha256}, got {got}: the file was changed; put the old one back, or take these numbers "
                "for new weights (pt2 weights FILE --from)",
                rule="B6",
            )
        self._verified.add(name)

    def _file(self, reference: Reference) -> tuple[Source, dict[str, Row]]:
        """Return an open file and its header."""
        with self._lock:
            opened = self._files.get(reference.url)
            if opened is None:
                source = self._adjacent.open(reference.url, f"{RECORD}: url")
                try:
                    opened = source, read_header(source)
                except BaseException:
                    source.close()
                    raise
                self._files[reference.url] = opened
        return opened

    def _described(self, reference: Reference) -> str:
        return f"{show_name(reference.url)}: {show_name(reference.tensor)!r}"


def with_external(archive: Archive, root: str, adjacent: Adjacent) -> ExternalArchive:
    """Return an archive with the payloads next to it, which a record of it lists.

    Args:
        archive: an open archive of the current layout that has such a list.
        root: its root folder, with its slash.
        adjacent: where files may be.

    Raises:
        JsonError, PayloadError, LimitError: the list cannot be read (B1).
    """
    listed = root + RECORD
    rows = decode(read_json(archive, listed, RECORD), archive.records, root)
    return ExternalArchive(archive, {root + record: row for record, row in rows.items()}, listed, adjacent)
