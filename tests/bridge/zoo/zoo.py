"""The zoo: every program that saving and loading are tried on, by subject in the files next to this one."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest
from tests.bridge.zoo.program import Program, Recipe, exported

__all__ = ["Program", "cases", "exported", "programs"]

OPAQUE = importlib.util.find_spec("torch._opaque_base") is not None
"""True if torch has opaque objects."""
_SUBJECTS = (
    *("architectures", "calling", "control", "custom", "examples", "handmade", "joint", "shapes", "state"),
    *("transformers", "values", *(("opaque",) if OPAQUE else ())),
)
_FILES = [importlib.import_module(f"tests.bridge.zoo.programs_{subject}") for subject in _SUBJECTS]


def _of_file(file: ModuleType) -> list[Program]:
    """Variants of the recipes of a file, and the programs that it makes without one."""
    recipes: list[Recipe] = getattr(file, "recipes", list)()
    others: list[Program] = getattr(file, "programs", list)()
    return [program for recipe in recipes for program in recipe.programs()] + others


def programs(*, slow: bool = True) -> list[Program]:
    """All programs, by subject; without the slow ones if asked."""
    found = [program for file in _FILES for program in _of_file(file) if slow or not program.slow]
    names = [program.name for program in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"expected distinct names, got {sorted(twice)} more than once")
    return found


def cases(of: Sequence[Program]) -> list[Any]:
    """Parameters of a test of each program; of the variants of plain models, every third runs without `--all-samples`.

    All tests leave out the same ones: a variant costs more to export than to test.
    """
    names = [program.name for program in programs()]
    variants = [name for name in names if "__" in name and name.rpartition("__")[0] in names]
    left_out = {name for index, name in enumerate(variants) if index % 3}
    return [pytest.param(one, marks=pytest.mark.whole) if one.name in left_out else one for one in of]
