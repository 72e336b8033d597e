"""Guards against the inputs of a program: they name some, and some input passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.checks import mutations as m

from pt2kit.checks import check


def problems(*guards: str, base: Path = m.DYNAMIC) -> list[tuple[str, str]]:
    """Return the problems of a file with these guards."""

    def change(tree: Any) -> None:
        tree["guards_code"] = list(guards)

    found = m.program(base, change)
    return [(problem.rule, problem.loc) for problem in check(found.data) if problem.rule in ("E6", "E7")]


def test_sound() -> None:
    """The guards of a file that torch wrote pass, and so does what says nothing new."""
    assert problems() == []
    assert problems("L['x'].size()[0] >= 2", "L['x'].size()[1] == 8", "L['x'].stride()[1] == 1") == []


def test_arguments_of_args() -> None:
    """An entry of `*args` is an argument of its own; one of another number is none."""

    def change(tree: Any) -> None:
        tree["guards_code"] = ["L['x'][0].size()[0] >= 2", "L['x'][1].size()[0] >= 2"]
        tree["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"] = ["x_0"]

    found = [problem for problem in check(m.program(m.DYNAMIC, change).data) if problem.rule in ("E6", "E7")]
    assert [(problem.rule, problem.loc) for problem in found] == [("E6", "models/model.json: $.guards_code[1]")]


@pytest.mark.parametrize("text", ["L['y'].size()[0] >= 2", "L['x1'].size()[0] == L['x'].size()[0]"])
def test_names(text: str) -> None:
    """A guard of a name that is no input is an error at the guard's place."""
    assert problems("L['x'].size()[0] >= 2", text) == [("E6", "models/model.json: $.guards_code[1]")]


@pytest.mark.parametrize("text", ["L['x'].ndim == 2", "L['x'].dtype == 5", "L['x'].requires_grad", "L['x']['y'] == 5"])
def test_other_parts_of_a_tensor(text: str) -> None:
    """Guards read sizes, strides, offsets and numbers: torch writes nothing else, `load_module` has nothing else."""
    assert problems(text) == [("E6", "models/model.json: $.guards_code[0]")]


@pytest.mark.parametrize(
    "text", ["L['x'].size()[1] == 9", "L['x'].size()[0] < 0", "L['x'].size()[0] != L['x'].size()[0]"]
)
def test_never(text: str) -> None:
    """A guard that no input of the declared sizes meets is an error."""
    assert problems(text) == [("E7", "models/model.json: $.guards_code[0]")]


def test_what_is_no_condition() -> None:
    """It is left to the rule about code (X4)."""
    assert problems("__import__('os')") == []


@pytest.mark.parametrize(("text", "holds"), [("L['i'] == 3", True), ("L['i'] == 4", False), ("L['i'] >= 4", False)])
def test_numbers_among_inputs(text: str, holds: bool) -> None:
    """An integer that the program was exported with is an input of this value."""
    expected = [] if holds else [("E7", "models/model.json: $.guards_code[0]")]
    assert problems(text, base=samples.sample("2.13.0", "scalar_inputs")) == expected
