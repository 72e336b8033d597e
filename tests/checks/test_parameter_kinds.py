"""Kinds of arguments that torch accepts for a parameter's type."""

from __future__ import annotations

from typing import Any

import pytest

from pt2kit import codec
from pt2kit.checks.operators import misfit, parameter_arms, result_arms
from pt2kit.operators.promotion import takes_numbers_as_tensors
from pt2kit.schema import Argument
from pt2kit.schema.operators import parse_type


def argument(**one: Any) -> Argument:
    """An argument from its JSON."""
    return codec.decode(codec.encode(one), Argument, "argument").value


TENSOR = {"as_tensor": {"name": "x"}}
FITS: list[tuple[str, dict[str, Any]]] = [
    ("Tensor", TENSOR),
    ("Tensor?", {"as_none": True}),
    ("Tensor[]", {"as_tensors": [{"name": "x"}]}),
    ("Tensor[]", {"as_ints": []}),
    ("Tensor?[]", {"as_optional_tensors": [{"as_none": True}]}),
    ("int", {"as_int": 1}),
    ("int", {"as_bool": True}),
    ("int", {"as_scalar_type": 7}),
    ("SymInt?", {"as_sym_int": {"as_name": "u0"}}),
    ("int[]", {"as_ints": [1, 2]}),
    ("SymInt[]", {"as_sym_ints": [{"as_int": 1}, {"as_name": "s"}]}),
    ("int[2]", {"as_int": 1}),
    ("int[1]?", {"as_none": True}),
    ("float", {"as_int": 1 << 70}),
    ("Scalar", {"as_int": (1 << 64) - 1}),
    ("bool", {"as_none": True}),
    ("Device?", {"as_string": "cpu"}),
    ("ScalarType", {"as_scalar_type": 1}),
    ("str[]", {"as_strings": ["a"]}),
    ("Generator?", {"as_none": True}),
    ("Optional[List[int]]", {"as_int": 1}),
    ("Optional[List[int]]", {"as_ints": [1, 2]}),
    ("int[]", {"as_strings": []}),
    ("float[]", {"as_ints": [1, 2]}),
    ("Tensor[]", {"as_optional_tensors": [{"as_tensor": {"name": "x"}}]}),
]
"""Arguments that torch accepts: measured with an operator whose parameter has the type."""

MISFITS: list[tuple[str, dict[str, Any], str]] = [
    ("Tensor", {"as_none": True}, "as_none"),
    ("Tensor", {"as_int": 1}, "as_int"),
    ("Tensor", {"as_tensors": [{"name": "x"}]}, "as_tensors"),
    ("Tensor[]", TENSOR, "as_tensor"),
    ("Tensor[]", {"as_optional_tensors": [{"as_none": True}]}, "as_optional_tensors"),
    ("Tensor?[]", TENSOR, "as_tensor"),
    ("int", {"as_ints": [1]}, "as_ints"),
    ("int", {"as_float": 1.0}, "as_float"),
    ("int", {"as_none": True}, "as_none"),
    ("SymInt", {"as_scalar_type": 1}, "as_scalar_type"),
    ("int[]", {"as_int": 1}, "as_int"),
    ("int[]", {"as_strings": ["a"]}, "as_strings"),
    ("int[]", {"as_floats": [1.5]}, "as_floats"),
    ("SymInt[2]", {"as_int": 1}, "as_int"),
    ("int", {"as_int": 1 << 63}, "the integer 9223372036854775808, which 63 bits cannot hold"),
    ("int[]", {"as_ints": [1, -(1 << 63) - 1]}, "the integer -9223372036854775809, which 63 bits cannot hold"),
    ("SymInt", {"as_sym_int": {"as_int": 1 << 63}}, "the integer 9223372036854775808, which 63 bits cannot hold"),
    ("Scalar", {"as_int": 1 << 64}, "the integer 18446744073709551616, which 64 bits cannot hold"),
    ("float", {"as_string": "1"}, "as_string"),
    ("bool", {"as_bools": [True]}, "as_bools"),
    ("str", {"as_int": 1}, "as_int"),
    ("Device", {"as_none": True}, "as_none"),
    ("ScalarType", {"as_scalar_type": 0}, "as_scalar_type 0, which is none"),
    ("MemoryFormat?", {"as_memory_format": 0}, "as_memory_format 0, which is none"),
    ("Generator?", {"as_int": 1}, "as_int"),
]


@pytest.mark.parametrize(("kind", "given"), FITS)
def test_arguments_that_fit(kind: str, given: dict[str, Any]) -> None:
    """Arguments that torch accepts fit."""
    one = argument(**given)
    assert misfit(one, parse_type(kind), lambda name: False, numbers_as_tensors=False) is None
    arms = parameter_arms(parse_type(kind))
    assert arms is not None
    assert one.type in arms


@pytest.mark.parametrize(("kind", "given", "got"), MISFITS)
def test_arguments_that_do_not_fit(kind: str, given: dict[str, Any], got: str) -> None:
    """Arguments that torch refuses or misreads do not fit."""
    assert misfit(argument(**given), parse_type(kind), lambda name: False, numbers_as_tensors=False) == got


def test_what_torch_makes_of_one_another() -> None:
    """A tensor of one element is a number, and some operators take a number for a tensor."""
    one = argument(**TENSOR)
    for kind in ("int", "SymInt?", "float", "bool"):
        assert misfit(one, parse_type(kind), lambda name: True, numbers_as_tensors=False) is None
        assert misfit(one, parse_type(kind), lambda name: False, numbers_as_tensors=False) == "as_tensor"
    assert misfit(one, parse_type("Scalar"), lambda name: True, numbers_as_tensors=False) == "as_tensor"
    assert misfit(argument(as_float=1.5), parse_type("Tensor"), lambda name: False, numbers_as_tensors=True) is None
    assert takes_numbers_as_tensors("aten.add.Tensor")
    assert takes_numbers_as_tensors("prims.mul.default")
    assert not takes_numbers_as_tensors("aten.atan2.default")


def test_types_that_say_nothing() -> None:
    """Classes and dictionaries leave every kind of argument."""
    for kind in ("Any", "t", "__torch__.torch.classes.quantized.LinearPackedParamsBase", "Dict(str, t)"):
        assert parameter_arms(parse_type(kind)) is None
        assert result_arms(parse_type(kind)) is None
        assert misfit(argument(as_int=1), parse_type(kind), lambda name: False, numbers_as_tensors=False) is None
    assert result_arms(parse_type("Tensor[]")) == frozenset({"as_tensors", "as_optional_tensors", "as_none"})
    numbers = frozenset(f"as_{sym}{kind}" for sym in ("", "sym_") for kind in ("int", "float", "bool"))
    assert result_arms(parse_type("Scalar")) == numbers | {"as_none"}
    assert parameter_arms(parse_type("str?")) == frozenset(("as_string", "as_none"))
