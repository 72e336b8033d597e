"""Storages: bytes on demand."""

from __future__ import annotations

import time

import pytest
from tests.threads import in_threads

from pt2kit.errors import IntegrityError, PayloadError
from pt2kit.tensors import Storage


def test_read_once_and_kept() -> None:
    """The loader is called when bytes are first asked for, and not again; `keep=False` leaves nothing behind."""
    calls = []

    def load() -> memoryview:
        calls.append(1)
        return memoryview(bytearray(8))

    under = Storage("r", 8, load)
    under.read(keep=False)
    under.read(keep=False)
    assert len(calls) == 2
    kept = under.read()
    assert under.read() is kept
    assert under.read(keep=False) is kept
    assert len(calls) == 3
    assert kept.readonly
    assert repr(under) == "Storage('r', 8 bytes)"


def test_loader_must_keep_its_word() -> None:
    """Bytes of another length than was checked against are not given out."""
    with pytest.raises(PayloadError, match=r"^r: expected 8 bytes, got 4 \[P9\]$"):
        Storage("r", 8, lambda: memoryview(b"1234")).read()


def test_errors_pass_through_and_are_not_kept() -> None:
    """Errors of the loader arrive, and the next call tries again."""
    outcomes: list[memoryview | Exception] = [IntegrityError("damaged"), memoryview(b"1")]

    def load() -> memoryview:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    under = Storage("r", 1, load)
    with pytest.raises(IntegrityError, match=r"^damaged$"):
        under.read()
    assert bytes(under.read()) == b"1"


def test_two_threads_load_once() -> None:
    """Threads that ask at the same time wait for one loading and get the same bytes."""
    calls = []

    def load() -> memoryview:
        calls.append(1)
        time.sleep(0.05)
        return memoryview(bytes(4))

    under = Storage("r", 4, load)
    got = in_threads(lambda _: under.read(), range(8))
    assert len(calls) == 1
    assert all(data is got[0] for data in got)
