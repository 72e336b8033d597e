"""Calls that take each element from one argument or another: what was written of either is written of the result."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, call, graph, new_value, program, sizes_of, tensor

from pt2kit.checks import check

Call = tuple[str, str, dict[str, Any]]
INT: dict[str, Any] = {"as_int": 0}
EMPTY: Call = ("empty.memory_format", "e", {"size": {"as_ints": [2, 3]}})
FULL: Call = ("full.default", "r", {"size": {"as_ints": [2, 3]}, "fill_value": {"as_float": 1.0}})
ROW: Call = ("full.default", "w", {"size": {"as_ints": [3]}, "fill_value": {"as_float": 1.0}})
ROWS = {"w": (3,), "n": (2,), "c": (2,), "k": (2, 1)}
E, R, W = tensor("e"), tensor("r"), tensor("w")


def first(value: int) -> Call:
    """Put the row into a place of memory."""
    place = {"dim": INT, "index": {"as_int": value}}
    return "select_scatter.default", f"s{value}", {"self": E if value == 0 else tensor("s0"), "src": W, **place}


def said(*calls: Call, returned: str) -> list[str]:
    """What X11 says of a file that ends with some calls and returns the result of one."""

    def change(tree: Any) -> None:
        for target, result, arguments in calls:
            new_value(tree, result, "relu")
            sizes_of(tree, result, *ROWS.get(result, (2, 3)))
            strides = {1: [1], 2: [ROWS.get(result, (2, 3))[-1], 1]}[len(ROWS.get(result, (2, 3)))]
            graph(tree)["tensor_values"][result]["strides"] = [{"as_int": step} for step in strides]
            graph(tree)["nodes"].append(call(f"torch.ops.aten.{target}", result, **arguments))
        graph(tree)["outputs"][0] = tensor(returned)

    return [problem.message for problem in check(program(MLP, change).data) if problem.rule == "X11"]


RANGE: Call = ("arange.default", "n", {"end": {"as_int": 2}})
FIRST: Call = ("eq.Scalar", "c", {"self": tensor("n"), "other": INT})
COLUMN: Call = ("unsqueeze.default", "k", {"self": tensor("c"), "dim": {"as_int": 1}})
MASK = [RANGE, FIRST, COLUMN]
WRITTEN: dict[str, tuple[list[Call], str]] = {
    "each row": ([EMPTY, ROW, first(0), first(1)], "s1"),
    "nothing is taken of it": ([FULL, ("copy.default", "f", {"self": E, "src": R})], "f"),
}
UNWRITTEN: dict[str, tuple[list[Call], str]] = {
    "one row of two": ([EMPTY, ROW, first(0)], "s0"),
    "what is copied": ([EMPTY, FULL, ("copy.default", "f", {"self": R, "src": E})], "f"),
    "chosen": ([EMPTY, FULL, *MASK, ("where.self", "f", {"condition": tensor("k"), "self": R, "other": E})], "f"),
    "masked": (
        [EMPTY, *MASK, ("masked_fill.Scalar", "f", {"self": E, "mask": tensor("k"), "value": INT})],
        "f",
    ),
}
WRITTEN["nothing is taken of it"][0].insert(0, EMPTY)


@pytest.mark.parametrize(("calls", "returned"), WRITTEN.values(), ids=WRITTEN)
def test_written(calls: list[Call], returned: str) -> None:
    """All elements of the result were written, in one argument or the other."""
    assert said(*calls, returned=returned) == []


@pytest.mark.parametrize(("calls", "returned"), UNWRITTEN.values(), ids=UNWRITTEN)
def test_unwritten(calls: list[Call], returned: str) -> None:
    """Some elements come from memory that nothing was written to."""
    (message,) = said(*calls, returned=returned)
    assert "whose memory nothing was written to" in message
