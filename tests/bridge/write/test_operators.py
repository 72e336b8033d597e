"""What is read off an operator's schema."""

from __future__ import annotations

import torch

from pt2kit.bridge.write.scope import Parameter, describe_schema


def describe(text):
    return describe_schema("t", torch._C.parse_schema(text))


def test_parameters():
    """Names, keyword-only parameters, and what lists hold."""
    found = describe(
        "f(Tensor a, int[2] b, SymInt[]? c, float[][] d, Tensor?[] e, *, Scalar[] f, str? g=None, Tensor[][] h) -> ()"
    )
    assert found.target == "t"
    assert found.returns == ()
    assert found.parameters == (
        Parameter("a", False, None),
        Parameter("b", False, "int"),
        Parameter("c", False, "int"),
        Parameter("d", False, "float[]"),
        Parameter("e", False, "Tensor"),
        Parameter("f", True, "number"),
        Parameter("g", True, None),
        Parameter("h", True, "Tensor[]"),
    )


def test_returns():
    """The kinds of results."""
    assert describe("f(Tensor a) -> (Tensor, Tensor[], SymInt, float, Tensor?)").returns == (
        "Tensor",
        "Tensor[]",
        "int",
        "float",
        "Tensor",
    )
