"""The garbage collector is held by loads that overlap, and goes on after the last one."""

from __future__ import annotations

import contextlib
import gc
import os
import threading

import pytest
from tests.threads import in_threads

from pt2kit.collector import no_collection


def test_nested():
    """It is off inside, and on again after the outermost block."""
    with no_collection():
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_errors():
    """It is on again after an error."""
    with pytest.raises(ZeroDivisionError, match="division by zero"), no_collection():
        1 / 0  # noqa: B018
    assert gc.isenabled()


def test_off_stays_off():
    """If it was off before, it stays off."""
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_threads_that_overlap():
    """The first to begin may be the first to end: it stays off for the others."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    seen = []

    def first():
        with no_collection():
            first_in.set()
            second_in.wait(10)
        first_out.set()

    def second():
        first_in.wait(10)
        with no_collection():
            second_in.set()
            first_out.wait(10)
            seen.append(gc.isenabled())

    in_threads(lambda work: work(), (first, second))
    assert seen == [False]
    assert gc.isenabled()


def test_many_threads():
    """However they overlap, it is on at the end."""

    def work(_):
        for _ in range(200):
            with no_collection():
                assert not gc.isenabled()

    in_threads(work, range(8))
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("inside", [True, False])
def test_fork(inside: bool) -> None:
    """A child collects garbage again, whether a block of its own thread or of another one was open at the fork."""
    opened, done = threading.Event(), threading.Event()

    def hold() -> None:
        with no_collection():
            opened.set()
            done.wait()

    holder = threading.Thread(target=hold)
    if not inside:
        holder.start()
        opened.wait()
    with no_collection() if inside else contextlib.nullcontext():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    if not inside:
        holder.join()
    assert gc.isenabled()
