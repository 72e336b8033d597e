"""Functions over numbers: those that give what the graph declares, and those that do not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import OPERATORS, graph, program

from pt2kit.checks import check


def said(target: str, change: Any) -> list[str]:
    """What is said of the numbers of a file, one of whose calls is changed."""

    def apply(tree: Any) -> None:
        node = next(node for node in graph(tree)["nodes"] if node["target"] == target)
        change(node, graph(tree))

    return [problem.message for problem in check(program(OPERATORS, apply).data) if problem.rule == "T13"]


def _operand(node: Any, value: Any) -> None:
    if value is not None:
        node["inputs"][1]["arg"] = value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        ({"as_int": 999}, "declared (_operator.add)"),
        ({"as_float": 1.5}, "expected a float as the result of _operator.add"),
    ],
)
def test_operands(value: Any, expected: str) -> None:
    """Another operand gives another result than is declared."""
    found = said("_operator.add", lambda node, _: _operand(node, value))
    assert (expected in found[0]) if expected else not found
