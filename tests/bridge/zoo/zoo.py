"""The zoo: every program that saving and loading are tried on, by subject in the files next to this one."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import pytest
from tests.bridge.zoo import (
    programs_architectures,
    programs_calling,
    programs_control,
    programs_custom,
    programs_examples,
    programs_handmade,
    programs_joint,
    programs_shapes,
    programs_state,
    programs_transformers,
    programs_values,
)
from tests.bridge.zoo.program import Program, exported

__all__ = ["Program", "cases", "exported", "programs"]

OPAQUE = importlib.util.find_spec("torch._opaque_base") is not None
"""True if torch has opaque objects."""
_FILES = [
    programs_architectures,
    programs_calling,
    programs_control,
    programs_custom,
    programs_examples,
    programs_handmade,
    programs_joint,
    programs_shapes,
    programs_state,
    programs_transformers,
    programs_values,
]
if OPAQUE:
    from tests.bridge.zoo import programs_opaque

    _FILES.append(programs_opaque)


def programs(*, slow: bool = True) -> list[Program]:
    """All programs, by subject; without the slow ones if asked."""
    found = [program for file in _FILES for program in file.programs() if slow or not program.slow]
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
