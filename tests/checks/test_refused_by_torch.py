"""Programs that torch refuses to load, run or decompose, and that earlier versions of `check` called sound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests import samples
from tests.checks import mutations as m

from pt2kit.checks import check

BUFFERS = m.BUFFERS
COND = samples.sample("2.13.0", "cond")
ITEM = samples.sample("2.13.0", "item_symint")


def _twice(tree: Any) -> None:
    for side in (tree["graph_module"]["signature"]["output_specs"], m.graph(tree)["outputs"]):
        side.insert(0, side[0])


def _stack(tree: Any) -> None:
    m.graph(tree)["nodes"][0]["metadata"]["nn_module_stack"] = "L__self__,a(b,c"


def _root_twice(tree: Any) -> None:
    entries = tree["graph_module"]["module_call_graph"]
    entries.append(entries[0])


def _branch_dtype(tree: Any) -> None:
    for node in m.graph(tree)["nodes"]:
        for named in node["inputs"]:
            if "as_graph" in named["arg"]:
                branch = named["arg"]["as_graph"]["graph"]
                branch["tensor_values"][branch["inputs"][0]["as_tensor"]["name"]]["dtype"] = 8


def _known_size(tree: Any) -> None:
    for meta in m.graph(tree)["tensor_values"].values():
        for position, size in enumerate(meta["sizes"]):
            if "'u" in size.get("as_expr", {}).get("expr_str", ""):
                meta["sizes"][position] = {"as_int": 3}
                return
    raise AssertionError("expected a size that only running the program determines")


@pytest.mark.parametrize(
    ("path", "change", "rule"),
    [
        (BUFFERS, _twice, "S7"),
        (m.MLP, _stack, "V5"),
        (m.MLP, _root_twice, "K1"),
        (COND, _branch_dtype, "T11"),
        (ITEM, _known_size, "T8"),
    ],
)
def test_reported(path: Any, change: Callable[[Any], None], rule: str) -> None:
    assert not check(path).errors
    assert rule in {problem.rule for problem in check(m.program(path, change).data).errors}
