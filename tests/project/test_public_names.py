"""Public names, their parameters and attributes do not change unnoticed."""

from __future__ import annotations

import importlib.util
import itertools

import pytest
from tests.project.public_names import TABLE, lines

import pt2kit
from pt2kit.front_door import public_names

STORED = TABLE.read_text(encoding="utf-8").splitlines()
NEED_TORCH = {name for name, module in public_names("pt2kit").items() if module.startswith("pt2kit.bridge.")}


@pytest.mark.parametrize("name", sorted(set(pt2kit.__all__) - NEED_TORCH))
def test_the_public_names_are_those_of_the_table(name: str) -> None:
    """A name has the parameters and attributes of the table; `docs/stability.md` says what a change of them means."""
    assert list(lines([name])) == _stored(name)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="these names load with torch")
@pytest.mark.parametrize("name", sorted(NEED_TORCH))
def test_the_names_that_need_torch_are_those_of_the_table(name: str) -> None:
    """The same for names of the bridge."""
    assert list(lines([name])) == _stored(name)


def test_the_table_has_no_other_names() -> None:
    """A name that went is noticed, too."""
    stored = {line.removeprefix("class ").split("(")[0].split(":")[0] for line in STORED if not line.startswith(" ")}
    assert stored == set(pt2kit.__all__)


def _stored(name: str) -> list[str]:
    """The lines of a name: its own, and the indented ones below it."""
    heads = [number for number, line in enumerate(STORED) if not line.startswith(" ")] + [len(STORED)]
    for first, last in itertools.pairwise(heads):
        if STORED[first].removeprefix("class ").startswith((f"{name}(", f"{name}:")):
            return STORED[first:last]
    return []
