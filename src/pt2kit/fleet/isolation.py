"""Isolation: each file is read in a child process; a crash, timeout or lack of memory becomes a row.

    time      the process is ended when a file takes longer than it may
    memory    it is looked at while a file is read, and ended when it holds more than it may
    crash     it ends by itself

A file that ends its process by memory or a crash is tried once more in a fresh one, for what went before it may be to
blame; the second time counts. A process is kept from file to file: starting one takes a good part of a second.

`python -m pt2kit.fleet.isolation`: read items from the socket that is standard input, answer with rows, until the
parent process ends.

The process that reads files is apart from Dask's worker, so that a file that ends it, takes too long or too much memory
costs one process and no more: the worker goes on with the next file.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final

import msgspec

from pt2kit.errors import LimitError
from pt2kit.fleet.reading import Item, Job, Rows, failure, read_file

START_SECONDS: Final = 120
_LOOK_SECONDS: Final = 0.05
_TRIES: Final = 2


def main() -> None:
    """Serve a worker."""
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    pipe: Connection[bytes, bytes] = Connection(os.dup(0))
    job = msgspec.msgpack.decode(pipe.recv_bytes(), type=Job)
    pipe.send_bytes(b"ready")
    threading.Thread(target=_listen, args=(pipe, requests), daemon=True).start()
    decoder, encoder = msgspec.msgpack.Decoder(Item), msgspec.msgpack.Encoder()
    while True:
        item = decoder.decode(requests.get())
        try:
            answer = encoder.encode(read_file(job, item))
        except MemoryError:
            answer = encoder.encode(Rows({"outcome": "memory"}))
        pipe.send_bytes(answer)


def _listen(pipe: Connection[bytes, bytes], requests: queue.SimpleQueue[bytes]) -> None:
    """Receive requests while others are processed: that is how the end of the worker is noticed immediately."""
    with suppress(EOFError, OSError):
        while True:
            requests.put(pipe.recv_bytes())
    os._exit(0)


if __name__ == "__main__":
    main()


class Limits(msgspec.Struct, frozen=True):
    """Limits of one file: seconds, and bytes of memory other than mapped files."""

    seconds: float
    bytes: int


class Ended(Exception):
    """A process that is no more: `outcome` as in the table of files, and what is known of its end."""

    def __init__(self, outcome: str, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class Process:
    """A child process that does a job, file by file.

    Raises:
        LimitError: it does not start.
    """

    def __init__(self, job: Job) -> None:
        # A session of its own: Ctrl-C is for the command, which ends everything in order.
        self._pipe, theirs = Pipe()
        with theirs:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "pt2kit.fleet.isolation"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._memory: Any = None
        try:
            self._ask(msgspec.msgpack.encode(job), Limits(START_SECONDS, 0))
        except Ended as error:
            self.end()
            raise LimitError(f"worker: expected a process that reads files, got none: {error}") from error

    def read(self, item: Item, limits: Limits) -> Rows:
        """Read one file in the worker process.

        Raises:
            Ended: the process is no more.
        """
        rows = msgspec.msgpack.decode(self._ask(msgspec.msgpack.encode(item), limits), type=Rows)
        if rows.files and "url" not in rows.files:
            raise Ended("memory", "expected enough memory, got none")
        return rows

    def end(self) -> None:
        """End the process, whatever it does."""
        with suppress(OSError):
            self._popen.kill()
        self._pipe.close()
        with suppress(subprocess.TimeoutExpired):  # A process may hang in a file system.
            self._popen.wait(1)

    def _ask(self, request: bytes, limits: Limits) -> bytes:
        last = time.monotonic() + limits.seconds
        try:
            self._pipe.send_bytes(request)
            while not self._pipe.poll(_LOOK_SECONDS):
                if time.monotonic() >= last:
                    raise Ended("timeout", f"expected at most {limits.seconds:g} seconds, got more")
                self._look_at_memory(limits)
            return self._pipe.recv_bytes()
        except (OSError, EOFError):
            raise Ended("crashed", self._last_words()) from None

    def _look_at_memory(self, limits: Limits) -> None:
        import psutil

        if not limits.bytes:
            return
        with suppress(psutil.Error):
            if self._memory is None:
                self._memory = psutil.Process(self._popen.pid)
            used = self._memory.memory_info()
            unshared = used.rss - getattr(used, "shared", 0)
            if unshared > limits.bytes:
                raise Ended("memory", f"expected at most {limits.bytes:,} bytes of memory, got {unshared:,}")

    def _last_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            code = self._popen.wait(1)
            if code >= 0:
                return f"expected rows, got the end of the process: exit code {code}"
            return f"expected rows, got the end of the process by {signal.strsignal(-code) or 'a signal'} ({-code})"
        return "expected rows, got the end of the pipe"


class Processes:
    """The child processes of one worker: as many as it has threads that read at a time."""

    def __init__(self, job: Job, limits: Limits) -> None:
        self._job = job
        self._limits = limits
        self._idle: queue.SimpleQueue[Process] = queue.SimpleQueue()

    def read(self, item: Item) -> Rows:
        """Read one file in the child process, and return its rows in any case.

        Raises:
            LimitError: no process can be started.
        """
        started = time.perf_counter()
        for tried in range(1, _TRIES + 1):
            process = self._take() if tried == 1 else Process(self._job)
            try:
                rows = process.read(item, self._limits)
            except Ended as error:
                process.end()
                if error.outcome == "timeout" or tried == _TRIES:
                    return failure(item, error.outcome, str(error), time.perf_counter() - started)
            except BaseException:
                process.end()
                raise
            else:
                self._idle.put(process)
                return rows
        raise AssertionError("the last try returns")

    def _take(self) -> Process:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return Process(self._job)

    def end(self) -> None:
        """End those that wait."""
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().end()
