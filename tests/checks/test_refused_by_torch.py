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
COND_PARAMETERS = samples.sample("2.13.0", "cond_params")
INDICES = samples.sample("2.13.0", "int_list_and_optional_args__decomp")
SCAN = samples.sample("2.13.0", "associative_scan_hop")
CUSTOM = samples.sample("2.13.0", "custom_op_args")
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


def _exchanged_operands(tree: Any) -> None:
    """`cond` passes a matrix for the batch, and the batch for the matrix."""
    for node in m.graph(tree)["nodes"]:
        if node["target"].endswith("cond"):
            operands = node["inputs"][3]["arg"]["as_tensors"]
            operands[0], operands[2] = operands[2], operands[0]


def _no_indices(tree: Any) -> None:
    for node in m.graph(tree)["nodes"]:
        if node["target"] == "torch.ops.aten.index.Tensor":
            node["inputs"][1]["arg"] = {"as_optional_tensors": []}


def _other_randomness(tree: Any) -> None:
    for node in m.graph(tree)["nodes"]:
        if node["target"].endswith("_vmap_increment_nesting"):
            node["inputs"][1]["arg"] = {"as_string": "some"}


def _unnamed(tree: Any) -> None:
    m.graph(tree)["nodes"][0]["inputs"][1]["name"] = ""


def _sparse_range(tree: Any) -> None:
    for node in m.graph(tree)["nodes"]:
        if node["target"].startswith("torch.ops.aten.arange."):
            for named in node["inputs"]:
                if named["name"] == "layout":
                    named["arg"] = {"as_layout": 1}


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
        (COND_PARAMETERS, _exchanged_operands, "T8"),
        (INDICES, _no_indices, "T15"),
        (INDICES, _sparse_range, "T15"),
        (SCAN, _other_randomness, "T15"),
        (CUSTOM, _unnamed, "T3"),
    ],
)
def test_reported(path: Any, change: Callable[[Any], None], rule: str) -> None:
    assert not check(path).errors
    assert rule in {problem.rule for problem in check(m.program(path, change).data).errors}
