"""What torch takes for a parameter of a type, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from pt2kit import codec, schema
from pt2kit.checks.parameter_kinds import misfit, parameter_arms, result_arms, takes_numbers_as_tensors

INT, FLOAT, TENSOR = {"as_int": 1}, {"as_float": 0.5}, {"as_tensor": {"name": "many"}}
ONE, NONE, INTS = {"as_tensor": {"name": "one"}}, {"as_none": True}, {"as_ints": [1, 2]}
TAKEN: list[tuple[dict[str, Any], str]] = [
    (INT, "int"), (INT, "float"), (INT, "Scalar"), (ONE, "int"), (NONE, "int?"), (INTS, "int[]"), (INTS, "float[]"),
    (INT, "int[2]"), (NONE, "Tensor?"), (TENSOR, "Tensor"), ({"as_strings": []}, "int[]"),
    (INTS, "Optional[List[int]]"),
    ({"as_int": (1 << 64) - 1}, "Scalar"), ({"as_optional_tensors": [{"as_tensor": {"name": "one"}}]}, "Tensor[]"),
    (TENSOR, "Dict(str, Tensor)"),
]  # fmt: skip
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (FLOAT, "int", "as_float"), (INTS, "int", "as_ints"), (NONE, "Tensor", "as_none"), (TENSOR, "int", "as_tensor"),
    (TENSOR, "Tensor[]", "as_tensor"), ({"as_strings": ["a"]}, "int[]", "as_strings"), (INT, "SymInt[2]", "as_int"),
    (INT, "Tensor", "as_int"), ({"as_int": 1 << 63}, "int", "9223372036854775808, which 63 bits cannot hold"),
    ({"as_ints": [0, -(1 << 70)]}, "int[]", "-1180591620717411303424, which 63 bits cannot hold"),
    ({"as_optional_tensors": [{"as_none": True}]}, "Tensor[]", "as_optional_tensors"),
    ({"as_scalar_type": 0}, "ScalarType", "as_scalar_type 0, which is none"),
]  # fmt: skip


def said(argument: dict[str, Any], kind: str, *, numbers_as_tensors: bool = False) -> str | None:
    """What is wrong with an argument; "one" is a tensor of one element."""
    read = codec.convert(argument, schema.Argument, "argument").value
    return misfit(read, kind, lambda name: name == "one", numbers_as_tensors=numbers_as_tensors)


@pytest.mark.parametrize(("argument", "kind"), TAKEN)
def test_taken(argument: dict[str, Any], kind: str) -> None:
    """torch converts numbers, takes single values for lists of a length, and elements for numbers."""
    assert said(dict(argument), kind) is None


@pytest.mark.parametrize(("argument", "kind", "got"), REFUSED)
def test_refused(argument: dict[str, Any], kind: str, got: str) -> None:
    """Everything else is told as what it is."""
    assert said(dict(argument), kind) == got


def test_numbers_as_tensors() -> None:
    """Some operators take a number for a tensor."""
    assert takes_numbers_as_tensors("aten.add.Tensor")
    assert takes_numbers_as_tensors("prims.mul.default")
    assert not takes_numbers_as_tensors("aten.relu.default")
    assert said(dict(INT), "Tensor", numbers_as_tensors=True) is None


def test_arms() -> None:
    """Which arms a type has at all; of classes nothing is known."""
    assert parameter_arms("str?") == frozenset(("as_string", "as_none"))
    assert parameter_arms("__torch__.torch.classes.mine.Class") is None
    assert result_arms("Tensor[]") == frozenset(("as_tensors", "as_optional_tensors", "as_none"))
    assert result_arms("Scalar") is None
