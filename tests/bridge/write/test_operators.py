"""Operators read from their schemas."""

from __future__ import annotations

import pytest
import torch

from pt2kit.bridge.operators import Operator, with_schema
from pt2kit.bridge.write.arguments import element_of


def describe(text: str) -> Operator:
    """A schema as an operator."""
    return with_schema("t", torch.sin, torch._C.parse_schema(text))


def test_parameters() -> None:
    """Names, keyword-only parameters, and what lists hold."""
    found = describe(
        "f(Tensor a, int[2] b, SymInt[]? c, float[][] d, Tensor?[] e, *, Scalar[] f, str? g=None, Tensor[][] h) -> ()"
    )
    assert found.text == "t"
    assert found.result_arms == ()
    assert [(one.name, one.is_keyword_only, element_of(one.type)) for one in found.parameters.values()] == [
        ("a", False, None),
        ("b", False, "int"),
        ("c", False, "int"),
        ("d", False, "float[]"),
        ("e", False, "Tensor"),
        ("f", True, "number"),
        ("g", True, None),
        ("h", True, "Tensor[]"),
    ]


@pytest.mark.parametrize(
    "kind", ["Dict(str, Tensor)", "Any", "Future(int)", "Device?", "complex[]", "Stream", "int?[]"]
)
def test_odd_types(kind: str) -> None:
    """Types that are rare are read, too."""
    assert list(describe(f"f({kind} a) -> Tensor").parameters) == ["a"]
