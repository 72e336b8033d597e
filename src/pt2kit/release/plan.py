"""The records of a new file, as data: what each is called and what gives its bytes. Nothing is written here.

A plan is whole before the target is touched, so that what can be refused has been refused by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final, cast

from pt2kit.pickles import writer as torch_save
from pt2kit.pickles.values import PickledStorage
from pt2kit.zip.writer import ArchiveWriter

Progress = Callable[[int, int], None]
"""Called with (done, total) bytes."""

_PIECE: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Held:
    """A record whose bytes lie somewhere already.

    Args:
        name: below the root folder.
        size: in bytes.
        read: gives them; called when the record is written.
        deflate: whether it is deflated.
    """

    name: str
    size: int
    read: Callable[[], Any]
    deflate: bool = False

    def write(self, writer: ArchiveWriter, report: Callable[[int], None]) -> None:
        """Write the record."""
        data = memoryview(self.read())
        if self.deflate or self.size <= _PIECE:
            writer.write(self.name, data[: self.size], deflate=self.deflate)
            report(self.size)
            return
        writer.write(self.name, _pieces(data[: self.size], report), size=self.size)


@dataclass(frozen=True, slots=True)
class Saved:
    """A record that is a torch.save file, made while it is written.

    Args:
        name: below the root folder.
        value: plain containers with descriptions of tensors in them.
        storages: those that the tensors lie in.
    """

    name: str
    value: Any
    storages: Sequence[PickledStorage]

    @property
    def size(self) -> int:
        """About how many bytes it has."""
        return sum(storage.nbytes for storage in self.storages)

    def write(self, writer: ArchiveWriter, report: Callable[[int], None]) -> None:
        """Write the record."""
        with writer.stream(self.name, size_hint=self.size) as file:
            torch_save.dump(self.value, cast("IO[bytes]", _Reporting(file, report)), self.name)


Planned = Held | Saved


def held(name: str, data: bytes, *, deflate: bool = False) -> Held:
    """A record of bytes that are there."""
    return Held(name, len(data), lambda: data, deflate)


def write_plan(writer: ArchiveWriter, plan: Sequence[Planned], progress: Progress | None) -> None:
    """Write the records of a plan, in order."""
    total = sum(record.size for record in plan)
    done = 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(min(done, total), total)

    for record in plan:
        record.write(writer, report)


class _Reporting:
    """A file object that says how much it was given."""

    def __init__(self, file: Any, report: Callable[[int], None]) -> None:
        self._file = file
        self._report = report

    def write(self, data: Any) -> int:
        count = int(self._file.write(data))
        self._report(count)
        return count

    def flush(self) -> None:
        """Nothing is held back."""

    def seekable(self) -> bool:
        return False


def _pieces(data: memoryview, report: Callable[[int], None]) -> Iterator[memoryview]:
    for start in range(0, data.nbytes, _PIECE):
        piece = data[start : start + _PIECE]
        yield piece
        report(piece.nbytes)
