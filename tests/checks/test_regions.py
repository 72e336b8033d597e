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
    """What is said of regions in a file with these calls, each with its truth value."""

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
    """What stays open, or is closed out of order, is a finding."""
    assert expected in said(*calls)[0]
