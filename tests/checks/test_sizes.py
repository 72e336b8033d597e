"""Declared sizes against what calls say: creation, repetition, products, broadcasting, convolution."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, Mutation, call, graph, new_value, program, sizes_of, tensor

from pt2kit.checks import check

SYMBOL = {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": None}}


def mutation(target: str, result: tuple[Any, ...], values: dict[str, tuple[Any, ...]], **arguments: Any) -> Mutation:
    """A file with one more call over values of given sizes."""

    def change(tree: Any) -> None:
        for name, sizes in {**values, "extra": result}.items():
            new_value(tree, name, "relu")
            sizes_of(tree, name, *sizes)
            if name != "extra":
                node = call("torch.ops.mine.made.default", name, self=tensor("relu"))
                graph(tree)["nodes"].append(node)
        graph(tree)["nodes"].append(call(f"torch.ops.aten.{target}", "extra", **arguments))
        tree["range_constraints"]["s0"] = {"min_val": 2, "max_val": None}

    return program(MLP, change)


def said(found: Mutation) -> list[str]:
    """What is said of sizes."""
    return [problem.message for problem in check(found.data) if problem.rule in ("T8", "T9")]


A, B = tensor("a"), tensor("b")
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], dict[str, Any], str]] = [
    ("zeros.default", (2, 3), {}, {"size": {"as_ints": [2, 4]}}, "asked for, [2, 4], got [2, 3] declared"),
    ("zeros.default", (2, 3), {}, {"size": {"as_ints": [2, 3]}}, ""),
    ("zeros.default", (2, SYMBOL), {}, {"size": {"as_sym_ints": [{"as_int": 2}, {"as_name": "n"}]}}, ""),
    ("repeat.default", (4, 3), {"a": (2, 3)}, {"self": A, "repeats": {"as_ints": [3, 1]}}, "[6, 3], got [4, 3]"),
    ("repeat.default", (6, SYMBOL), {"a": (2, SYMBOL)}, {"self": A, "repeats": {"as_ints": [3, 1]}}, ""),
    ("mm.default", (2, 2), {"a": (2, 3), "b": (4, 2)}, {"self": A, "mat2": B}, "self and mat2 to meet in one size"),
    ("mm.default", (2, 2), {"a": (2, 3), "b": (3, 2)}, {"self": A, "mat2": B}, ""),
    ("matmul.default", (2,), {"a": (2, 3), "b": (3,)}, {"self": A, "other": B}, ""),
    ("add.Tensor", (2, 3), {"a": (2, 3), "b": (4, 3)}, {"self": A, "other": B}, "to broadcast, got [2, 3] and [4, 3]"),
    ("add.Tensor", (2, 3), {"a": (2, 3), "b": (1,)}, {"self": A, "other": B}, ""),
    ("add.Tensor", (2, 3), {"a": (2, SYMBOL), "b": (3,)}, {"self": A, "other": B}, ""),
    ("conv2d.default", (1, 8, 4, 4), {"a": (1, 3, 4, 4), "b": (8, 4, 1, 1)}, {"input": A, "weight": B}, "4 input chan"),
    ("conv2d.default", (1, 8, 4, 4), {"a": (1, 3, 4, 4), "b": (8, 3, 1, 1)}, {"input": A, "weight": B}, ""),
    ("zeros.default", (1 << 20, 1 << 20), {}, {"size": {"as_ints": [1 << 20, 1 << 20]}}, ""),
]


@pytest.mark.parametrize(("target", "result", "values", "arguments", "text"), CASES)
def test_sizes(target: str, result: Any, values: Any, arguments: Any, text: str) -> None:
    """What contradicts itself in plain numbers is said, with both; what symbols decide is not."""
    found = said(mutation(target, result, values, **arguments))
    assert len(found) == (1 if text else 0), found
    assert not text or text in found[0]


def test_what_is_made_out_of_numbers() -> None:
    """A call that creates more than 16 GiB is said so; strides of 0 create nothing."""

    def change(tree: Any) -> None:
        new_value(tree, "extra", "relu")
        size = {"as_ints": [1 << 20, 1 << 20]}
        graph(tree)["nodes"].append(call("torch.ops.aten.ones.default", "extra", size=size))
        sizes_of(tree, "extra", 1 << 20, 1 << 20)
        graph(tree)["tensor_values"]["extra"]["strides"] = [{"as_int": 1 << 20}, {"as_int": 1}]

    assert said(program(MLP, change)) == ["expected at most 17,179,869,184 bytes from one call, got 4,398,046,511,104"]
