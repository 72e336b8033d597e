"""Plan of a new archive: its records as data, and writing them. Nothing is written while they are planned.

A plan is complete before the target is touched, so that everything refusable has been refused by then. All writers
of archives of the current layout use one: `save`, `convert`, `sanitize` and the editor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import IO, Any, Final, TypeAlias, cast

from pt2kit.package import record_names as names
from pt2kit.package.layouts.detection import FORMAT, VERSION
from pt2kit.package.open import Package
from pt2kit.pickles import writer as torch_save
from pt2kit.zip.reader import Archive, Storage
from pt2kit.zip.source import Progress, no_progress
from pt2kit.zip.writer import ArchiveWriter, as_bytes

DATA_VERSION: Final = b"6\n"
"""Version of torch's zip conventions that it writes for every `.pt2`."""


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    """A record whose bytes are stored somewhere already.

    Args:
        name: below the root folder.
        size: in bytes.
        read: returns them, in one buffer or as pieces in order; called when the record is written.
        deflate: whether it is deflated.
        origin: the archive and the full name of the record that it is a copy of, if it is one.
        raised: the archive of an older release that it was converted from, and its name, if it was.
    """

    name: str
    size: int
    read: Callable[[], Any]
    deflate: bool = False
    origin: tuple[Archive, str] | None = None
    raised: tuple[Archive, str] | None = None

    def is_same(self, other: PlannedRecord) -> bool:
        """Return whether two records are copies of one."""
        if self.raised is not None and self.raised == other.raised:
            return True
        return self is other or (self.origin is not None and self.origin == other.origin)

    def write(self, writer: ArchiveWriter, report: Callable[[int], None]) -> None:
        """Write the record."""
        content = self.read()
        data = as_bytes(content)
        content = content if data is None else data[: self.size]
        writer.write(self.name, content, deflate=self.deflate, size=self.size, report=report)


@dataclass(frozen=True, slots=True)
class PlannedPickle:
    """A record that is a torch.save file, made while it is written.

    Args:
        name: below the root folder.
        value: plain containers with descriptions of tensors in them.
    """

    name: str
    value: Any

    @property
    def size(self) -> int:
        """Return about how many bytes it has."""
        return torch_save.size_of(self.value)

    def write(self, writer: ArchiveWriter, report: Callable[[int], None]) -> None:
        """Write the record."""
        with writer.stream(self.name, size_hint=self.size, report=report) as file:
            torch_save.dump(self.value, cast("IO[bytes]", file), self.name)


Planned: TypeAlias = PlannedRecord | PlannedPickle


def of_bytes(name: str, data: bytes | memoryview, *, deflate: bool = False) -> PlannedRecord:
    """Return a record of bytes in memory."""
    return PlannedRecord(name, memoryview(data).nbytes, lambda: data, deflate)


def of_storage(name: str, storage: Storage, itemsize: int) -> PlannedRecord:
    """Return a record of a tensor's storage: the bytes of it that are whole elements. They are not kept when read."""
    size = storage.nbytes - storage.nbytes % itemsize
    return PlannedRecord(name, size, lambda: storage.read(keep=False)[:size])


def copied(package: Package, record: str, name: str, *, deflate: bool = False) -> PlannedRecord:
    """Return a record that is copied unchanged.

    Args:
        package: its source.
        record: its full name there.
        name: below the root folder of the new file.
        deflate: whether it is deflated there.
    """
    return PlannedRecord(name, package.records[record].size, lambda: package.archive.read(record), deflate)


def header(byteorder: str = "little") -> tuple[PlannedRecord, ...]:
    """Return the records that identify an archive, in torch's order."""
    return (
        of_bytes(names.ARCHIVE_FORMAT, FORMAT),
        of_bytes(names.ARCHIVE_VERSION, VERSION),
        of_bytes(names.DATA_VERSION, DATA_VERSION),
        of_bytes(names.BYTEORDER, byteorder.encode()),
    )


class Numbering:
    """Assigns the payload records of one archive their names, which have numbers.

    Args:
        start: function of `record_names` that makes a name of a number -> the first free number; 0 if it is not there.
    """

    def __init__(self, start: Mapping[Callable[[int], str], int] | None = None) -> None:
        self._numbers = defaultdict(count, {name_of: count(first) for name_of, first in (start or {}).items()})

    def take(self, name_of: Callable[[int], str]) -> str:
        """Return the next free name of a kind, such as `record_names.weight`."""
        return name_of(next(self._numbers[name_of]))


def write_records(writer: ArchiveWriter, plan: Iterable[Planned], progress: Progress = no_progress) -> None:
    """Write the records of a plan, in order.

    Args:
        writer: of the new archive.
        plan: its records.
        progress: called with the bytes done and in all.
    """
    records = list(plan)
    total = sum(record.size for record in records)
    done = 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        progress(min(done, total), total)

    for record in records:
        record.write(writer, report)
