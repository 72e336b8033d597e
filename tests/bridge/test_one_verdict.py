"""`check`, `load` and `load_module` give one verdict of a file: refused or not, under which rule, and where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import samples

import pt2kit
from pt2kit.checks.refusals import refuses
from pt2kit.errors import Problem, Pt2Error

BAD = sorted((Path(__file__).parents[2] / "conformance" / "bad").glob("*.pt2"))
HOSTILE = [case["path"] for case in samples.hostile()]
TO_REGISTER = frozenset(("K7", "T2", "X9", "X13"))
"""Notes and warnings about what has to be registered before loading; without it, loading says what is missing."""


def place(text: str, file: Path) -> str:
    """The place at the beginning of a message, below the root folder, without the name of the file."""
    text = text.removeprefix("archive: ").removeprefix(f"{file}: ")
    first, slash, rest = text.partition("/")
    if (
        slash
        and ":" not in first
        and rest.startswith(("data/", "models/", "extra/", ".data/", "archive_", "byteorder"))
    ):
        text = rest
    return text.partition("expected")[0]


def refused(problem: Problem) -> bool:
    """Return whether a caller who trusts nothing may not load the file."""
    return refuses(problem) and problem.severity == "error"


@pytest.mark.parametrize("file", [*BAD, *HOSTILE], ids=lambda file: file.stem)
def test_three_entry_points_agree(file: Path) -> None:
    """The first problem of `check` that refuses is the error of `load` and `load_module`; without one, both load."""
    problems = pt2kit.check(file, payloads=True)
    if any(problem.rule in TO_REGISTER for problem in problems):
        return
    expected = next(filter(refused, _of_the_program(file, problems)), None)
    entries: tuple[Callable[[Any], Any], ...] = (pt2kit.load, pt2kit.load_module)
    for load in entries:
        if expected is None:
            load(file)
            continue
        with pytest.raises(Pt2Error) as raised:
            load(file)
        rules = {problem.rule for problem in problems if refused(problem)}
        assert raised.value.rule in rules, str(raised.value)
        if expected.kind != "safety":
            assert raised.value.rule == expected.rule, str(raised.value)
            assert place(str(raised.value), file) == place(str(expected), file)


def _of_the_program(file: Path, problems: list[Problem]) -> list[Problem]:
    """The problems of the program that is loaded, of a package that has several."""
    try:
        with pt2kit.open(file) as package:
            several = len(package.layout.models) > 1
    except Pt2Error:
        return problems
    return list(pt2kit.check(file, payloads=True, model="model")) if several else problems


@pytest.mark.parametrize("name", ["K1_root", "K2_keys", "K3_context", "K4_leaves", "K5_names_count", "K8_no_keywords"])
def test_refused_whatever_is_trusted(name: str) -> None:
    """A call signature that does not fit is refused, also if the caller names its rule: no entry of `trust=` is it."""
    file, rule = next(file for file in BAD if file.stem == name), name.partition("_")[0]
    for load in (pt2kit.load, pt2kit.load_module):
        with pytest.raises(Pt2Error) as raised:
            load(file, trust=(rule,))
        assert raised.value.rule == rule
