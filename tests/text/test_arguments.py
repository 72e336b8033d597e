"""Arguments as text: every arm of the union, and what nests."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from hypothesis import given
from tests.strategies import unions

from pt2kit import codec, schema
from pt2kit.text.values import MAX_DEPTH, argument_text, constant_text, named_text

T = {"name": "x"}
CASES: list[tuple[dict[str, Any], str]] = [
    ({"as_none": True}, "None"),
    ({"as_tensor": T}, "%x"),
    ({"as_tensors": [T, T]}, "[%x, %x]"),
    ({"as_int": -3}, "-3"),
    ({"as_ints": [1, 2]}, "[1, 2]"),
    ({"as_float": 0.5}, "0.5"),
    ({"as_float": "-Infinity"}, "-inf"),
    ({"as_floats": [1.0, "NaN"]}, "[1.0, nan]"),
    ({"as_string": "it's \x1b"}, '"it\'s \\x1b"'),
    ({"as_strings": ["a", "b"]}, "['a', 'b']"),
    ({"as_sym_int": {"as_name": "n"}}, "%n"),
    ({"as_sym_int": {"as_int": 4}}, "4"),
    ({"as_sym_ints": [{"as_name": "n"}, {"as_int": 4}]}, "[%n, 4]"),
    ({"as_scalar_type": 7}, "dtype.f32"),
    ({"as_memory_format": 1}, "memory_format.ContiguousFormat"),
    ({"as_layout": 7}, "layout.Strided"),
    ({"as_device": {"type": "cuda", "index": 0}}, "device(cuda:0)"),
    ({"as_bool": False}, "False"),
    ({"as_bools": [True, False]}, "[True, False]"),
    ({"as_sym_bool": {"as_bool": True}}, "True"),
    ({"as_sym_bools": [{"as_name": "b"}]}, "[%b]"),
    ({"as_optional_tensors": [{"as_tensor": T}, {"as_none": True}]}, "[%x, None]"),
    ({"as_custom_obj": {"name": "o", "class_fqn": "C"}}, "%o"),
    ({"as_operator": "torch.ops.aten.add"}, "operator(torch.ops.aten.add)"),
    ({"as_sym_float": {"as_float": 1.5}}, "1.5"),
    ({"as_sym_floats": [{"as_name": "f"}]}, "[%f]"),
    ({"as_optional_tensor": {"as_none": True}}, "None"),
    ({"as_complex": {"real": 1.0, "imag": "Infinity"}}, "(1+infj)"),
    ({"as_nested_tensors": [[T], []]}, "[[%x], []]"),
    ({"as_int_lists": [[1], [2, 3]]}, "[[1], [2, 3]]"),
    ({"as_string_to_argument": {"k": {"as_int": 1}, "q": {"as_tensor": T}}}, "{'k': 1, 'q': %x}"),
    ({"as_float_lists": [[1.0]]}, "[[1.0]]"),
]


def _argument(tree: dict[str, Any]) -> schema.Argument:
    return codec.convert(tree, schema.Argument, "argument").value


@pytest.mark.parametrize(("tree", "text"), CASES)
def test_text(tree: dict[str, Any], text: str) -> None:
    """Each kind of argument is shown as Python would write it, values with a percent sign."""
    assert argument_text(_argument(tree)) == text


def test_every_arm_has_a_case() -> None:
    """A new kind of argument needs a text; subgraphs are shown by the program that holds them."""
    arms = {arm for tree, _ in CASES for arm in tree} | {"as_graph"}
    assert arms == set(get_type_hints(schema.Argument))


@given(unions(schema.Argument))
def test_any_argument_prints(argument: schema.Argument) -> None:
    """Whatever an argument holds, its text is one printable line."""
    assert argument_text(argument).isprintable()


def test_deep_dicts_are_cut() -> None:
    """Dicts inside dicts end in an ellipsis."""
    argument = _argument({"as_int": 1})
    for _ in range(MAX_DEPTH + 10):
        argument = schema.Argument(as_string_to_argument={"k": argument})
    assert "…" in argument_text(argument)


def test_named_arguments() -> None:
    """A name that is no identifier is quoted; an argument without a name stands alone."""
    one = _argument({"as_int": 1})
    texts = [named_text(schema.NamedArgument(name, one)) for name in ("dim", "", "a=b")]
    assert texts == ["dim=1", "1", '"a=b"=1']


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"as_none": True}, "None"),
        ({"as_int": 3}, "int = 3"),
        ({"as_float": 0.5}, "float = 0.5"),
        ({"as_bool": True}, "bool = True"),
        ({"as_string": "a"}, "str = 'a'"),
    ],
)
def test_constants(tree: dict[str, Any], text: str) -> None:
    """A constant of the calling convention comes with its type."""
    assert constant_text(_argument(tree)) == text
    assert constant_text(codec.convert(dict(tree), schema.ConstantValue, "constant").value) == text
