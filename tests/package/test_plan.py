"""Records as data: what is written of them, in which pieces, and what is said meanwhile."""

from __future__ import annotations

import io

from pt2kit.package.plan import PlannedPickle, PlannedRecord, of_bytes, write_records
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import PickledStorage, PickledTensor
from pt2kit.zip.reader import open_archive
from pt2kit.zip.writer import ArchiveWriter


def storage(size: int) -> PickledStorage:
    """A storage of zeros."""
    return PickledStorage("s", "uint8", size, "cpu", lambda: memoryview(bytes(size)))


def test_a_plan_is_written_in_order() -> None:
    """Bytes that are there, bytes on demand, and torch.save files; progress grows to the whole."""
    large = 20 << 20
    kept = storage(1000)
    plan: list[PlannedRecord | PlannedPickle] = [
        of_bytes("a", b"bytes"),
        of_bytes("b", b"deflated" * 100, deflate=True),
        PlannedRecord("c", large, lambda: memoryview(bytes(large + 3))),
        PlannedPickle("d", {"t": PickledTensor(kept, "uint8", (1000,), (1,), 0)}, (kept,)),
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
    PlannedPickle("b", {}, (PickledStorage("s", "uint8", 3, "cpu", reading),))
    assert not read
