"""Run a function in several threads that start together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_threads(work: Callable[[T], R], arguments: Iterable[T]) -> list[R]:
    """Call a function with each argument, each in a thread of its own; return the results, or raise the first error."""
    given = list(arguments)
    together = Barrier(len(given))

    def run(argument: T) -> R:
        together.wait()
        return work(argument)

    with ThreadPoolExecutor(len(given)) as pool:
        return list(pool.map(run, given))
