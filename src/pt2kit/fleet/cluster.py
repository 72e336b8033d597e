"""Dask clients: of a scheduler at an address, or of worker processes on this machine."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from pt2kit.errors import UnsupportedError
from pt2kit.fleet.reading import installed

ALLOWED_FAILURES: Final = 1
"""Workers that may die of a batch before it is taken apart; a second one is the last."""
_CONNECT_SECONDS: Final = 10
_CLOSE_SECONDS: Final = 30
_HURRY_SECONDS: Final = 0.3


@contextmanager
def connect(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """Yield a client of a scheduler, or of a cluster of worker processes with one thread each that ends with the block.

    Args:
        scheduler: an address such as "tcp://10.0.0.1:8786"; None for a cluster on this machine.
        workers: processes of a cluster on this machine; None for one for each core that may be used.

    Raises:
        UnsupportedError: the scheduler does not answer.
    """
    from dask.system import CPU_COUNT
    from distributed import Client

    from pt2kit.fleet.batches import Uninterrupted

    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError, ImportError) as error:
            raise UnsupportedError(
                f"scheduler {scheduler}: expected a Dask scheduler that answers, got: {error or type(error).__name__}"
            ) from error
        try:
            yield client
        finally:
            _close(client, _HURRY_SECONDS)
        return
    with _without_main(), _local(workers or CPU_COUNT) as cluster:
        client = Client(cluster, set_as_default=False)
        try:
            with _starting(workers or CPU_COUNT):
                client.register_plugin(Uninterrupted())
            yield client
        finally:
            _close(client, _HURRY_SECONDS)


def need_packages() -> None:
    """Raise an error if the packages of the extra `fleet` are missing.

    Raises:
        UnsupportedError: a package is missing.
    """
    try:
        import distributed  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(
            f"fleet: expected the package {error.name}, which is not installed: pip install 'pt2kit[fleet]'"
        ) from error


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    import dask
    from distributed import LocalCluster

    with dask.config.set({"distributed.scheduler.allowed-failures": ALLOWED_FAILURES}), _starting(workers):
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=None,  # Limits are enforced in the process that reads a file.
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    try:
        yield cluster
    except BaseException:
        # Nobody waits long for the end of what goes wrong or is interrupted.
        cluster.shutdown_on_close = False
        processes = [getattr(worker, "pid", None) for worker in cluster.workers.values()]
        _close(cluster, _HURRY_SECONDS)
        for process in filter(None, processes):
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        raise
    _close(cluster, _CLOSE_SECONDS)


@contextmanager
def _starting(workers: int) -> Iterator[None]:
    """Turn what Dask raises when a worker process does not start, or ends while it starts, into one error.

    Raises:
        UnsupportedError: that error.
    """
    try:
        yield
    except (RuntimeError, OSError, TimeoutError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise UnsupportedError(
            f"cluster: expected {workers} worker processes to start, got: {cause or type(cause).__name__}; "
            "if memory is short, pass fewer --workers"
        ) from error


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep new worker processes from running the caller's script again, which would start clusters without end.

    `multiprocessing` runs it in each process, as a function may be defined there; none that workers get is.
    """
    main = sys.modules["__main__"]
    names = ("__file__", "__spec__")
    before = {name: getattr(main, name) for name in names if hasattr(main, name)}
    main.__spec__ = None
    with suppress(AttributeError):
        del main.__file__
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(main, name, value)


def _close(closable: Any, seconds: float) -> None:
    with suppress(Exception):
        closable.close(timeout=seconds)


def check_workers(client: Any) -> None:
    """Refuse workers that would not understand what they get.

    Raises:
        UnsupportedError: a worker without pt2kit, or with another release of it.
    """
    for worker, release in client.run(installed, on_error="return").items():
        if release != installed():
            raise UnsupportedError(
                f"worker {worker}: expected pt2kit {installed()}, got {release}; install the same on all workers"
            )
