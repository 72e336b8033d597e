"""Random scripts of edits end in a program that torch loads and runs as it is stated, or in an error that names one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.bridge.edited_runs import script_problems, usable_files

import pt2kit


@pytest.fixture(scope="module")
def files() -> list[Path]:
    """The sample files of one release that torch runs."""
    return list(usable_files("2.13.0"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("hundred", range(4))
def test_edited_programs_load_and_run(files: list[Path], hundred: int) -> None:
    """A hundred scripts: whatever was refused names its edit, what comes out is sound, and torch runs it as stated."""
    for number in range(100 * hundred, 100 * hundred + 100):
        dice, log = Random(number), list[str]()
        path = dice.choice(files)
        with pt2kit.open(path) as package:
            assert list(script_problems(package, dice, log)) == [], (number, path.stem, log)
