"""Regions that a graph opens and closes: what is left open, and what is closed that was not open."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, graph, program

from pt2kit.checks import check

GRAD = "torch._C._set_grad_enabled"
ENTER, EXIT = "torch.amp.autocast_mode._enter_autocast", "torch.amp.autocast_mode._exit_autocast"
VMAP = "torch._functorch.predispatch._vmap_{}_nesting"
OPEN, CLOSE = VMAP.format("increment"), VMAP.format("decrement")


def said(*calls: tuple[str, bool | None]) -> list[str]:
    """Return the messages about regions in a file with these calls and truth values."""

    def change(tree: Any) -> None:
        for target, value in calls:
            inputs = [] if value is None else [{"name": "", "arg": {"as_bool": value}, "kind": 1}]
            outputs = [{"as_none": True}]
            graph(tree)["nodes"].append({"target": target, "inputs": inputs, "outputs": outputs, "metadata": {}})

    return [problem.message for problem in check(program(MLP, change).data) if problem.rule == "X14"]


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [(GRAD, False), (GRAD, True)],
        [(GRAD, True), (GRAD, False), (GRAD, True), (GRAD, True)],
        [(ENTER, None), (OPEN, None), (CLOSE, None), (EXIT, None)],
        [(ENTER, None), (GRAD, False), (EXIT, None), (GRAD, True)],
    ],
)
def test_closed(calls: list[tuple[str, bool | None]]) -> None:
    """Regions that are closed in reverse order are fine."""
    assert said(*calls) == []


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([(GRAD, False)], "got 1 call, the last of which turns them off"),
        ([(GRAD, True), (GRAD, False)], "got 2 calls, the last of which turns them off"),
        (
            [(ENTER, None)],
            "expected a call in this graph that closes what torch.amp.autocast_mode._enter_autocast opens",
        ),
        ([(CLOSE, None)], "after none"),
        (
            [(ENTER, None), (OPEN, None), (EXIT, None), (CLOSE, None)],
            "expected to close the region that was opened last",
        ),
    ],
)
def test_left_open(calls: list[tuple[str, bool | None]], expected: str) -> None:
    """A region left open, or closed out of order, is a finding."""
    assert expected in said(*calls)[0]


DUAL, PLAIN = "torch._functorch.predispatch._enter_dual_level", "torch._functorch.predispatch._exit_dual_level"


def levels(*calls: tuple[str, list[Any]]) -> list[str]:
    """Return the messages about regions in a file with these calls and arguments."""

    def change(tree: Any) -> None:
        for target, inputs in calls:
            outputs = [{"as_none": True}]
            graph(tree)["nodes"].append({"target": target, "inputs": inputs, "outputs": outputs, "metadata": {}})

    return [problem.message for problem in check(program(MLP, change).data) if problem.rule == "X14"]


def level(number: int, name: str = "level") -> list[Any]:
    """The argument that says which level is meant."""
    return [{"name": name, "arg": {"as_int": number}, "kind": 2 if name else 1}]


def test_levels_of_dual_numbers() -> None:
    """One is open at a time, and closed as torch writes it: what fails in between leaves the level open."""
    assert levels((DUAL, []), (PLAIN, level(0)), (DUAL, []), (PLAIN, [])) == []
    (found,) = levels((DUAL, []), (DUAL, []), (PLAIN, level(0)), (PLAIN, level(0)))
    assert found == "expected one level of dual numbers at a time, got a second one, where torch fails"
    for odd in (level(5), level(0, "")):
        (found,) = levels((DUAL, []), (PLAIN, odd))
        assert found == "expected no argument but level=0, got others, where torch fails and closes nothing"
    (found,) = levels((OPEN, []), (CLOSE, level(1, "")))
    assert found.startswith("expected no argument but level=0")
