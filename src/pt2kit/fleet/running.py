"""Running of a command on targets: batches of files on a Dask cluster, and results written as they arrive.

    targets ──► Batches ──► a window of batches under way on Dask ──► rows ──► a part now and then

A batch is files of about half a second of work; how many that is shows as batches come back, and large files go alone.
No more batches are in progress than keep the workers busy.

Dask repeats the batches of a lost worker. A batch that loses workers again and again is divided, file by file.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pt2kit.errors import Pt2Error, UnsupportedError
from pt2kit.fleet import dataset
from pt2kit.fleet.cluster import check_workers, connect, need_packages
from pt2kit.fleet.dataset import Folder, make_folder, output_name
from pt2kit.fleet.isolation import Limits
from pt2kit.fleet.listing import Found
from pt2kit.fleet.reading import WRITING, Item, Job, checked_options, failure, shown_name
from pt2kit.fleet.targets import Seen, Targets, check_outside, state_key
from pt2kit.zip.listing import local_path

if TYPE_CHECKING:
    from pt2kit.fleet.batches import Reading

BATCH_SECONDS: Final = 0.5
BATCH_BYTES: Final = 64 << 20
MAX_BATCH: Final = 256
_FIRST_BATCH: Final = 4
_GROWTH: Final = 4
_WEIGHT: Final = 0.3
_STATELESS: Final = state_key(None, "")
_UNKNOWN: Final = b"?"
"""Stands for a state that only opening the file tells."""

SECONDS: Final = 600.0
MEMORY: Final = 4 << 30
"""Default limits of one file: seconds, and bytes."""

_PART_ROWS: Final = 20_000
_TICK_SECONDS: Final = 1.0
_WORKERS_SECONDS: Final = 5.0
_LEAVE_SECONDS: Final = 0.5
_LOST_SECONDS: Final = 180.0
"""How long a cluster of our own may be without a worker. Others may be waiting for machines."""

_AHEAD: Final = 2
"""Batches under way for each thread of the cluster: one that runs and one that waits."""


class Batches:
    """Batches of the files of a stream that were not processed before.

    Args:
        files: what is to be done.
        seen: what has a row; takes what is handed out.
        writes: whether a file is written for each.
        state: counts the files that are skipped.
    """

    def __init__(self, files: Iterator[Found], seen: Seen, writes: bool, state: Progress) -> None:
        self._files = files
        self._seen = seen
        self._writes = writes
        self._next: Item | None = None
        self._seconds_per_file: float | None = None
        self._count = _FIRST_BATCH
        self._state = state

    def learn(self, files: int, seconds: float) -> None:
        """Record how long a batch took."""
        if not files:
            return
        seconds_per_file = seconds / files
        before = self._seconds_per_file
        self._seconds_per_file = seconds_per_file if before is None else before + _WEIGHT * (seconds_per_file - before)
        wanted = int(BATCH_SECONDS / max(self._seconds_per_file, 1e-6))
        self._count = max(1, min(wanted, MAX_BATCH, self._count * _GROWTH))

    def is_over(self) -> bool:
        """Return whether no file is left.

        Raises: as `take`.
        """
        return self._peek() is None

    def take(self) -> list[Item]:
        """Return the next batch; empty at the end of the stream.

        Raises:
            OSError, Pt2Error: a target that had a file could not be listed to its end.
        """
        batch: list[Item] = []
        size = 0
        while len(batch) < self._count and (item := self._peek()):
            size += item.size or 0
            if batch and size > BATCH_BYTES:
                break
            batch.append(item)
            self._next = None
        return batch

    def _peek(self) -> Item | None:
        """Return the next file, which is not taken yet."""
        self._next = self._next or self._new()
        return self._next

    def _new(self) -> Item | None:
        """Return the next file that was not processed before."""
        for file in self._files:
            name = shown_name(file.url)
            self._seen.mark_listed(name)
            is_known = bool(file.state or file.error)
            key = state_key(file.size, file.state) if is_known else _UNKNOWN
            known = () if is_known else self._seen.states(name)
            # A row without a state is of a file that could not be opened, or ended what opened it.
            if _STATELESS in known or not self._seen.add(name, key):
                self._state.skipped += 1
                continue
            output = output_name(file.relative) if self._writes else ""
            return Item(os.fsencode(file.url), output, file.size, file.state, file.error, known)
        return None


@dataclass(slots=True)
class Progress:
    """How far a run is. Changes while it runs.

    Args:
        files, bytes: done; of files whose size is known.
        outcomes: outcome -> files.
        skipped: files that had a row already, or were named twice.
        gone: files that had a row and were removed since; with `resume`.
        total_files, total_bytes: counted so far; None if the targets can be iterated only once.
        counted: whether that has come to its end.
        started: `time.monotonic()` of the beginning.
        dashboard: the address of Dask's dashboard; "" where there is none.
    """

    files: int = 0
    bytes: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    gone: int = 0
    total_files: int | None = None
    total_bytes: int = 0
    counted: bool = False
    started: float = field(default_factory=time.monotonic)
    dashboard: str = ""

    @property
    def failures(self) -> int:
        """Return the number of files that failed: unreadable, too slow, too large, or a crash."""
        return sum(self.outcomes[outcome] for outcome in dataset.FAILURES)


def run(
    work: str,
    targets: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str],
    client: Any = None,
    scheduler: str | None = None,
    workers: int | None = None,
    resume: bool = False,
    again: Sequence[str] = (),
    seconds: float = SECONDS,
    memory: int = MEMORY,
    storage_options: Mapping[str, Any] | None = None,
    on_progress: Callable[[Progress], object] | None = None,
    **options: Any,
) -> Progress:
    """Run a task on many files, and write the results as a dataset (`docs/fleet.md`).

    Args:
        work: "show", "check", "digest", "convert" or "sanitize".
        targets: paths, patterns, folders, URLs, files that list these, "-" for a list on standard input; one or many.
            An iterator is gone through as the work goes on.
        out: a folder, by path or URL, for the dataset and for converted and sanitized files.
        client: of a Dask cluster, which stays open; by default one of `scheduler`, or of processes on this machine.
        scheduler: the address of a Dask scheduler.
        workers: processes on this machine; one for each core by default.
        resume: go on with the dataset in `out`: a file that has a row with its size and etag is left out.
        again: with `resume`, outcomes whose files are done once more all the same.
        seconds, memory: what one file may take: seconds, and bytes that are not those of mapped files.
        storage_options: passed to fsspec for URLs.
        on_progress: called about once a second, and at the end.
        options: those of the single work: `payloads`, `strict`; `only`, `model`; `target`, `allow`, `opset`,
            `namedtuples`; `drop`, `strip`, `scrub_paths`; `oldest`.

    Returns:
        what was done.

    Raises:
        UnsupportedError, VersionError, TypeError, OSError, ArchiveError: before any work starts: a work, an option, a
            target, a folder or a cluster that cannot be used.
        Pt2Error, OSError: the scheduler was lost, or results cannot be written; go on with `resume`.
        KeyboardInterrupt: what was done is written, what was under way is not.

    Cost: memory does not grow with the number of targets; names that were seen are on disk, about 60 bytes each.
    """
    chosen = checked_options(work, options)
    places = Targets(_texts(targets), dict(storage_options or {}))
    folder = make_folder(out, places.storage_options)
    limits = {"seconds": seconds, "memory": memory, "workers": 1 if workers is None else workers}
    _check(places, folder, limits, again, resume)
    need_packages()
    with closing(Seen()) as seen:
        files = places.start()
        if dataset.begin(folder, work, chosen, resume=resume):
            dataset.repair(folder)
            dataset.load_seen(folder, seen, again=tuple(again))
        state = Progress()
        batches = Batches(files, seen, work in WRITING, state)
        if not batches.is_over():  # A cluster takes seconds to start.
            from pt2kit.fleet.batches import Reading

            job = Job(work, chosen, folder.place, dict(places.storage_options or {}))
            plugin = Reading(job, Limits(seconds, memory))
            with nullcontext(client) if client is not None else connect(scheduler, workers) as dask_client:
                check_workers(dask_client)
                is_local = client is None and scheduler is None
                state.dashboard = str(getattr(dask_client, "dashboard_link", "") or "")
                if on_progress is not None and places.can_repeat:
                    state.total_files = 0
                    threading.Thread(target=_count, args=(places, state), daemon=True).start()
                with dask_client.as_current():  # Dask's `wait` asks for it.
                    _Run(dask_client, plugin, batches, folder, state, on_progress, is_local).go()
        if resume:
            _mark_gone(folder, seen, places, state)
    return state


def _mark_gone(folder: Folder, seen: Seen, places: Targets, state: Progress) -> None:
    """Add a row for each file of the dataset that was removed since; the next run takes it as new if it comes back."""
    rows = [
        {"url": url, "outcome": dataset.GONE, "ended": int(time.time() * 1e6), "etag": ""}
        for url in dataset.gone_files(folder, seen, dict(places.storage_options or {}))
    ]
    state.gone = len(rows)
    if rows:
        dataset.write_part(folder, part_name(), {"files": [dataset.make_table("files", rows)]})


def part_name() -> str:
    """Return the name of a new part; names are ordered by time."""
    return f"part-{datetime.now(timezone.utc).strftime('%Y%m%dT%H%M%S%f')}-{uuid4().hex[:6]}"


def _check(targets: Targets, folder: Folder, limits: Mapping[str, float], again: Sequence[str], resume: bool) -> None:
    """Refuse a folder inside the targets, a limit that is none, and outcomes that cannot be repeated."""
    if isinstance(targets.given, Sequence):
        check_outside(targets.given, folder.place)
    for name, value in limits.items():
        if not value > 0:
            raise UnsupportedError(f"{name}: expected more than 0, got {value}")
    for outcome in again:
        if outcome not in dataset.OUTCOMES:
            raise UnsupportedError(f"again: expected one of {', '.join(dataset.OUTCOMES)}, got {outcome[:80]!r}")
    if again and not resume:
        raise UnsupportedError("again: expected resume with it, got it alone")


def _texts(targets: Any) -> Any:
    """Targets as a list of texts, or what comes one by one as it is."""
    given = [targets] if isinstance(targets, str | os.PathLike) else targets
    texts = (local_path(os.fspath(target)) for target in given)
    return list(texts) if isinstance(given, Sequence) else texts


def _count(targets: Targets, state: Progress) -> None:
    """Count the targets while the run goes on, for the estimate of the time left."""
    with suppress(OSError, Pt2Error):
        for file in targets.files():
            state.total_files = (state.total_files or 0) + 1
            state.total_bytes += file.size or 0
        state.counted = True


@dataclass(slots=True)
class _Run:
    """One run. Changes while it runs.

    Args:
        client: of Dask.
        plugin: the processes of its workers.
        batches: what is to be done.
        folder: the dataset.
        state: how far the run is; for `on_progress`.
        on_progress: called about once a second, and at the end.
        is_local: whether the cluster is our own.
        under_way: batches that workers have, by their futures.
        apart: files of batches that lost their workers, to be sent one by one.
        suspects: those that lost theirs once more, to be sent when nothing else is under way.
        alone: whether such a file is under way.
        rows: table -> Arrow tables that came back and are not written yet.
        waiting: the number of their files.
        part, parts: the name of the parts, and how many were written.
        began, written, looked, staffed: times of the beginning, of the last part, and when workers were last counted
            and last there.
        width: how many batches may be under way.
    """

    client: Any
    plugin: Reading
    batches: Batches
    folder: Folder
    state: Progress
    on_progress: Callable[[Progress], object] | None
    is_local: bool
    under_way: dict[Any, list[Item]] = field(default_factory=dict)
    apart: deque[Item] = field(default_factory=deque)
    suspects: deque[Item] = field(default_factory=deque)
    alone: bool = False
    rows: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    waiting: int = 0
    part: str = field(default_factory=part_name)
    parts: int = 0
    began: float = field(default_factory=time.monotonic)
    written: float = field(default_factory=time.monotonic)
    looked: float = field(default_factory=time.monotonic)
    staffed: float = field(default_factory=time.monotonic)
    width: int = 0

    def go(self) -> None:
        """Run all batches; results are written even if an error ends the run."""
        self.client.register_plugin(self.plugin)
        try:
            self._fill()
            while self.under_way:
                self._collect()
                self._fill()
                self._tick()
        finally:
            self._write()
            self._cancel()
            if self.on_progress is not None:
                self.on_progress(self.state)

    def _fill(self) -> None:
        from pt2kit.fleet.batches import read_batch

        if not self.width or time.monotonic() - self.looked > _WORKERS_SECONDS:
            self.looked = time.monotonic()
            threads = sum(self.client.nthreads().values())
            self.width = max(_AHEAD, _AHEAD * threads)
            if threads:
                self.staffed = self.looked
            elif self.is_local and self.looked - self.staffed > _LOST_SECONDS:
                raise Pt2Error("workers: expected Dask to start them again, got none for minutes; go on with --resume")
        while len(self.under_way) < self.width:
            items = [self.apart.popleft()] if self.apart else self.batches.take()
            if not items and self.suspects and not self.under_way:
                items, self.alone = [self.suspects.popleft()], True  # Nothing else comes after these.
            if not items:
                return
            name = self.plugin.name
            key = f"{name}-{uuid4().hex}"
            self.under_way[self.client.submit(read_batch, name, items, key=key, pure=False)] = items

    def _collect(self) -> None:
        """Take what is done; wait a moment for it."""
        from concurrent.futures import CancelledError

        from distributed import wait

        try:
            ready = wait(list(self.under_way), timeout=_TICK_SECONDS, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            ready = set()
        except CancelledError:
            ready = set(self.under_way)
        for future in ready:
            self._take(future, self.under_way.pop(future))
        if self.client.status not in ("running", "newly-created") or (
            getattr(self.client, "scheduler_comm", None) is None
        ):
            raise Pt2Error("scheduler: expected it to be there to the end, got none; go on with --resume")

    def _take(self, future: Any, items: list[Item]) -> None:
        """Keep the rows of a batch, or see what ended it."""
        from concurrent.futures import CancelledError

        try:
            tables = future.result()
        except CancelledError as error:
            raise Pt2Error("scheduler: expected it to be there to the end, got none; go on with --resume") from error
        except Pt2Error:
            raise
        except Exception as error:  # noqa: BLE001 - KilledWorker, or what Dask makes of a batch that it cannot move
            # Dask blames all that a lost worker had, what waited there as well; so the last word is said alone.
            if len(items) > 1:
                self.apart.extend(items)
                return
            if not self.alone:
                self.suspects.extend(items)
                return
            rows = failure(items[0], "crashed", f"{type(error).__name__}: {error}")
            tables = {"files": dataset.make_table("files", [rows.files])}
        else:
            self.batches.learn(len(items), sum(tables["files"]["seconds"].to_pylist()))
        for table, arrow_rows in tables.items():
            self.rows[table].append(arrow_rows)
        done = tables["files"].select(["outcome", "size"]).to_pylist()
        self.waiting += len(done)
        self.state.files += len(done)
        self.state.bytes += sum(row["size"] or 0 for row in done)
        self.state.skipped += len(items) - len(done)
        self.state.outcomes.update(row["outcome"] for row in done)

    def _tick(self) -> None:
        now = time.monotonic()
        # A tenth of the time so far, and at most a minute of work, is what a command that is killed loses.
        due = self.written + min(60.0, max(2.0, (now - self.began) / 10))
        if self.waiting >= _PART_ROWS or (self.waiting and now > due):
            self._write()
        if self.on_progress is not None:
            self.on_progress(self.state)

    def _write(self) -> None:
        """Write a part of the results; the first one even if it is empty, so that the tables exist."""
        if not self.waiting and (self.parts or dataset.part_names(self.folder)):
            return
        dataset.write_part(self.folder, f"{self.part}-{self.parts:06}", self.rows)
        self.parts += 1
        self.rows.clear()
        self.waiting = 0
        self.written = time.monotonic()

    def _cancel(self) -> None:
        """Give up what is under way, and the processes of the workers; not waiting long for a cluster that is gone."""
        leaving = threading.Thread(target=self._leave, daemon=True)
        leaving.start()
        leaving.join(_LEAVE_SECONDS)

    def _leave(self) -> None:
        with suppress(Exception):
            if self.under_way:
                self.client.cancel(list(self.under_way), force=True)
            if self.client.status == "running":
                self.client.unregister_worker_plugin(self.plugin.name)
