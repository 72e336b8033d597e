"""Batches follow what files take, large files go alone, and nothing is handed out twice."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.errors import Pt2Error
from pt2kit.fleet import running
from pt2kit.fleet.dataset import make_folder
from pt2kit.fleet.isolation import Limits
from pt2kit.fleet.listing import Found
from pt2kit.fleet.reading import Job
from pt2kit.fleet.running import BATCH_BYTES, MAX_BATCH, Batches, Progress
from pt2kit.fleet.targets import Seen, state_key


def files(count: int, size: int | None = 10) -> Iterator[Found]:
    """So many files."""
    return (Found(f"/m/{number}.pt2", f"{number}.pt2", size, "1") for number in range(count))


def take_all(batches: Batches, seconds: float = 0.001) -> list[list[str]]:
    """All batches, each of whose files takes so long."""
    taken = []
    while batch := batches.take():
        taken.append([item.url.decode() for item in batch])
        batches.learn(len(batch), seconds * len(batch))
    return taken


def test_batches_grow_to_half_a_second() -> None:
    """Small batches first; then what takes half a second, within the most that a batch may hold."""
    sizes = [len(batch) for batch in take_all(Batches(files(5000), Seen(), False, Progress()))]
    assert sizes[:4] == [4, 16, 64, 256]
    assert max(sizes) == MAX_BATCH
    slow = [len(batch) for batch in take_all(Batches(files(40), Seen(), False, Progress()), seconds=0.25)]
    assert slow[0] == 4
    assert set(slow[1:]) == {2}


def test_large_files_go_alone() -> None:
    """A batch never holds more bytes than it may, unless one file does."""
    stream = [Found(f"/m/{n}.pt2", "", size, "1") for n, size in enumerate([10, BATCH_BYTES + 1, 10, 10])]
    batches = Batches(iter(stream), Seen(), False, Progress())
    assert take_all(batches) == [["/m/0.pt2"], ["/m/1.pt2"], ["/m/2.pt2", "/m/3.pt2"]]


def test_a_slow_start_is_taken_back() -> None:
    """A batch that took long makes the next ones small, and quick ones make them grow again."""
    batches = Batches(files(2000), Seen(), False, Progress())
    batches.learn(4, 40.0)
    assert len(batches.take()) == 1
    for _ in range(40):
        batches.learn(1, 0.001)
    assert len(batches.take()) > 50


def test_what_was_seen_is_left_out() -> None:
    """A file in its state is handed out once; in another state, again; one without a state goes with those it had."""
    seen = Seen()
    seen.add("/m/0.pt2", state_key(10, "1"))
    seen.add("/m/1.pt2", state_key(10, "0"))
    seen.add("https://host/a.pt2", state_key(3, "x"))
    seen.add("https://host/crashed.pt2", state_key(None, ""))
    remote = [Found(f"https://host/{name}.pt2", "") for name in ("a", "a", "crashed")]
    stream = [*files(3), *files(3), *remote]
    state = Progress()
    batches = Batches(iter(stream), seen, False, state)
    items = [item for batch in iter(batches.take, []) for item in batch]
    assert [item.url.decode() for item in items] == ["/m/1.pt2", "/m/2.pt2", "https://host/a.pt2"]
    assert items[-1].known == (state_key(3, "x"),)
    assert state.skipped == 6


def test_the_end_is_known_without_losing_a_file() -> None:
    """Looking for the end keeps what was found on the way."""
    batches = Batches(files(1), Seen(), False, Progress())
    assert not batches.is_over()
    assert take_all(batches) == [["/m/0.pt2"]]
    assert batches.is_over()


def test_memory_does_not_grow_with_the_targets() -> None:
    """Ten times the files need no more memory in the process that hands them out."""
    peaks = []
    for count in (3_000, 30_000):
        tracemalloc.start()
        take_all(Batches(files(count), Seen(), False, Progress()))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The names of the batches are kept by this test alone: 60 bytes and some for each.
    assert peaks[1] - peaks[0] < 27_000 * 200


@given(st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.integers(0, 9)), st.text(max_size=3))))
def test_seen_is_a_set(pairs: list[tuple[str, int | None, str]]) -> None:
    """`Seen` says of each pair whether it is new, as a set would."""
    seen, known = Seen(), set()
    for name, size, state in pairs:
        key = (name, f"{size}:{state}")
        assert seen.add(name, state_key(size, state)) == (key not in known)
        known.add(key)
    for name, _, _ in pairs:
        assert len(seen.states(name)) == len([1 for other, _ in known if other == name])
    seen.close()


class NoWorkers:
    """A client of a cluster that has no workers, and takes no work."""

    def nthreads(self) -> dict[str, int]:
        """Return the threads of no worker."""
        return {}

    def submit(self, *args: object, **options: object) -> object:
        """Return a future that is never done."""
        return object()


@pytest.mark.parametrize(
    ("is_local", "seconds", "ends"), [(True, 10.0, False), (True, 200.0, True), (False, 200.0, False)]
)
def test_workers_that_do_not_come_back(
    is_local: bool, seconds: float, ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on this machine ends when Dask starts no workers for minutes; other clusters may get some later."""
    pytest.importorskip("distributed", reason="pt2kit[fleet] is not installed")
    now = 1000.0
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: now))
    from pt2kit.fleet.batches import Reading

    plugin, state = Reading(Job("show", {}, str(tmp_path), {}), Limits(60, 0)), Progress()
    batches = Batches(files(8), Seen(), False, state)
    run = running._Run(NoWorkers(), plugin, batches, make_folder(str(tmp_path)), state, None, is_local, staffed=now)
    run._fill()
    now += seconds
    with pytest.raises(Pt2Error, match="got none for minutes") if ends else nullcontext():
        run._fill()
