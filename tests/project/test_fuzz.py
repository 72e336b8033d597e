"""Fuzzing: every harness accepts its sound inputs and all inputs that once caused errors."""

from __future__ import annotations

import contextlib
import importlib.util

import pytest
from tools.fuzz import read_outcome
from tools.fuzz_targets import HARNESSES, stored_inputs

from pt2kit.errors import Pt2Error

TORCHLESS = [name for name in HARNESSES if name != "load" or importlib.util.find_spec("torch")]


@pytest.mark.parametrize("name", TORCHLESS)
def test_sound_inputs_are_read(name: str) -> None:
    """At least one of the first few is read to its end: so the harness gets further than its first check."""
    read = 0
    for seed in list(HARNESSES[name].seeds())[:5]:
        with contextlib.suppress(Pt2Error):
            HARNESSES[name].run(seed)
            read += 1
    assert read


@pytest.mark.parametrize("name", TORCHLESS)
def test_stored_inputs(name: str) -> None:
    """Inputs that fuzzing found are read, or refused by a Pt2Error."""
    for data in stored_inputs(name):
        with contextlib.suppress(Pt2Error):
            HARNESSES[name].run(data)


def test_the_log_is_understood() -> None:
    """The last line of a run to its end, and the last sign of life of another."""
    whole = read_outcome("#2\tINITED cov: 10 ft: 11\n#64\tNEW cov: 12 ft: 15\nDone 100 runs in 4 second(s)\n", 0, ())
    assert (whole.runs, whole.seconds, whole.covered, whole.trouble) == (100, 4, 12, "")
    cut = read_outcome("#64\tNEW cov: 12 ft: 15\n==1== ERROR: libFuzzer: out-of-memory\n", 71, ())
    assert cut.trouble == "ended with 71: ==1== ERROR: libFuzzer: out-of-memory"
