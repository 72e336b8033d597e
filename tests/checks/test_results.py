"""Calls against the results that the graph declares: sizes, element types, layouts, formats, numbers that are read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, call, graph, new_value, program, sizes_of, tensor

from pt2kit.checks import check

RELU = {"self": tensor("relu")}


def said(target: str, sizes: tuple[int, ...], dtype: int = 7, **arguments: Any) -> list[str]:
    """What is said of a file with one more call, whose result is declared so; `relu` has 3 by 16 floats."""

    def change(tree: Any) -> None:
        new_value(tree, "extra", "relu")
        sizes_of(tree, "extra", *sizes)
        graph(tree)["tensor_values"]["extra"]["dtype"] = dtype
        graph(tree)["nodes"].append(call(f"torch.ops.aten.{target}", "extra", **arguments))

    found = check(program(MLP, change).data)
    return [problem.message for problem in found if problem.rule in ("T8", "T11", "T12")]


@pytest.mark.parametrize(
    ("target", "sizes", "dtype", "arguments", "expected"),
    [
        ("t.default", (16, 3), 7, RELU, ""),
        ("t.default", (3, 16), 7, RELU, "a result of the sizes [16, 3], as aten.t.default makes them"),
        ("t.default", (16, 3), 8, RELU, "a result of the type FLOAT, as t.default gives it"),
        ("argmax.default", (), 5, RELU, ""),
        ("argmax.default", (), 7, RELU, "a result of the type LONG"),
        ("eq.Scalar", (3, 16), 7, {**RELU, "other": {"as_int": 1}}, "a result of the type BOOL"),
        ("clone.default", (3, 16), 7, {**RELU, "memory_format": {"as_memory_format": 3}}, "a tensor of 5 dimensions"),
        ("select.int", (16,), 7, {**RELU, "dim": {"as_int": 0}, "index": {"as_int": 3}}, "from -3 to 2"),
        ("zeros_like.default", (3, 16), 7, {**RELU, "layout": {"as_layout": 1}}, "a result of the layout SparseCoo"),
        ("cat.default", (6, 16), 7, {"tensors": {"as_tensors": [{"name": "relu"}] * 2}}, ""),
        (
            "index.Tensor",
            (3, 16),
            7,
            {**RELU, "indices": {"as_optional_tensors": [{"as_tensor": {"name": "relu"}}]}},
            "expected whole numbers or truth values as indices, got FLOAT",
        ),
    ],
)
def test_results(target: str, sizes: Any, dtype: int, arguments: Any, expected: str) -> None:
    """What the operator gives otherwise than it is declared is said, and nothing else."""
    found = said(target, sizes, dtype, **arguments)
    assert len(found) == (1 if expected else 0), found
    assert not expected or expected in found[0]
