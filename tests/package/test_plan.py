"""Records as data: what is written of them, in which pieces, and what is said meanwhile."""

from __future__ import annotations

import io
from collections.abc import Callable

from pt2kit.package.plan import PlannedPickle, PlannedRecord, of_bytes, write_records
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import PickledTensor
from pt2kit.zip.reader import Storage, open_archive
from pt2kit.zip.writer import ArchiveWriter


def tensor(size: int, read: Callable[[], memoryview]) -> PickledTensor:
    """All bytes of a storage."""
    return PickledTensor(Storage("s", size, read), "uint8", (size,), (1,), 0)


def test_a_plan_is_written_in_order() -> None:
    """Bytes that are there, bytes on demand, and torch.save files; progress grows to the whole."""
    large = 20 << 20
    plan: list[PlannedRecord | PlannedPickle] = [
        of_bytes("a", b"bytes"),
        of_bytes("b", b"deflated" * 100, deflate=True),
        PlannedRecord("c", large, lambda: memoryview(bytes(large + 3))),
        PlannedPickle("d", {"t": tensor(1000, lambda: memoryview(bytes(1000)))}),
    ]
    steps: list[tuple[int, int]] = []
    buffer = io.BytesIO()
    with ArchiveWriter(buffer) as writer:
        write_records(writer, plan, lambda done, total: steps.append((done, total)))
    buffer.seek(0)
    with open_archive(buffer) as archive:
        assert [name.rpartition("/")[2] for name in archive.records] == ["a", "b", "c", "d"]
        assert archive.records["archive/c"].size == large
        assert not archive.records["archive/b"].is_stored
        state = read_payload(archive.read("archive/d"), "d")
        assert state["t"].storage.nbytes == 1000
    total = sum(record.size for record in plan)
    assert {total for _, total in steps} == {total}
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert steps[-1] == (total, total)


def test_nothing_is_read_before_it_is_written() -> None:
    """A plan costs nothing."""
    read: list[str] = []

    def reading() -> memoryview:
        read.append("read")
        return memoryview(bytes(3))

    PlannedRecord("a", 3, reading)
    assert PlannedPickle("b", {"t": tensor(3, reading)}).size == 3
    assert not read
