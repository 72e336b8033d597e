"""Programs whose expressions or guards would take minutes to read (rule A18)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests import samples
from tests.checks import mutations as m

from pt2kit.checks import check
from pt2kit.checks.expressions import MAX_EXPRESSIONS, MAX_GUARDS

DYNAMIC = samples.sample("2.13.0", "dynamic_batch")


def _guards(tree: Any) -> None:
    guard = "L['x'].size()[0] != "
    tree["guards_code"] = [f"{guard}{number + 1000}" for number in range(MAX_GUARDS // len(guard))]


def _expressions(tree: Any) -> None:
    values = m.graph(tree)["tensor_values"]
    symbol = values["x"]["sizes"][0]["as_expr"]["expr_str"]
    for number in range(MAX_EXPRESSIONS // 40_000):
        terms = ", ".join(f"FloorDiv({symbol}, Integer({number * 1000 + place + 2}))" for place in range(600))
        meta = values[f"v{number}"] = copy.deepcopy(values["x"])
        meta["sizes"][0] = {"as_expr": {"expr_str": f"Max({terms})", "hint": None}}


@pytest.mark.parametrize(("change", "text"), [(_guards, "of guards"), (_expressions, "of expressions")])
def test_limits(change: Callable[[Any], None], text: str) -> None:
    problems = [problem for problem in check(m.program(DYNAMIC, change).data) if problem.severity == "error"]
    assert [problem.rule for problem in problems] == ["A18"]
    assert text in problems[0].message
