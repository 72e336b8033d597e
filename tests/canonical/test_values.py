"""The values that arguments name, arm by arm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from tests.graph.build import arg
from tests.strategies import unions

from pt2kit import codec, schema
from pt2kit.canonical.facts import rename, slots
from pt2kit.graph import MAX_ARGUMENT_DEPTH, references

T, OPTIONAL = schema.TensorArgument, schema.OptionalTensorArgument
SLOTS: dict[str, tuple[Any, tuple[str | None, ...]]] = {
    "as_none": (True, (None,)),
    "as_tensor": (T("x"), ("x",)),
    "as_tensors": ([T("x"), T("y")], ("x", "y")),
    "as_int": (1, (None,)),
    "as_ints": ([1, 2], (None,)),
    "as_strings": (["x"], (None,)),
    "as_sym_int": (schema.SymIntArgument(as_name="n"), ("n",)),
    "as_sym_ints": ([schema.SymIntArgument(as_int=1), schema.SymIntArgument(as_name="n")], (None, "n")),
    "as_sym_float": (schema.SymFloatArgument(as_float=1.0), (None,)),
    "as_sym_bools": ([schema.SymBoolArgument(as_name="b")], ("b",)),
    "as_optional_tensor": (OPTIONAL(as_none=True), (None,)),
    "as_optional_tensors": ([OPTIONAL(as_tensor=T("x")), OPTIONAL(as_none=True)], ("x", None)),
    "as_nested_tensors": ([[T("x")], [], [T("y"), T("z")]], ("x", "y", "z")),
    "as_custom_obj": (schema.CustomObjArgument("o", "C"), ("o",)),
    "as_string_to_argument": ({"b": arg(as_tensor="x"), "a": arg(as_tensors=["y", "z"])}, ("y", "z", "x")),
}


@pytest.mark.parametrize("arm", SLOTS)
def test_slots_are_read_in_order(arm: str) -> None:
    """One slot per value, None where a constant stands, None alone where there is no place for a value."""
    value, expected = SLOTS[arm]
    assert slots(schema.Argument(**{arm: value})) == expected


def test_empty_lists_have_no_slots_and_constant_dicts_one() -> None:
    """As torch has it, so that nodes come in its order."""
    assert slots(arg(as_tensors=[])) == ()
    assert slots(schema.Argument(as_string_to_argument={"k": schema.Argument(as_int=1)})) == (None,)


class Prefixed(dict[str, str]):
    """Every name with a letter before it."""

    def get(self, name: str, default: Any = None) -> Any:
        return f"n{name}"


@settings(max_examples=300)
@given(unions(schema.Argument, depth=4))
def test_all_values_and_nothing_else_are_renamed(argument: schema.Argument) -> None:
    """For any argument: the same values under the new names, the rest as it was, and nothing changed in place."""
    before = codec.encode(argument)
    graphs = [schema.GraphArgument("g", schema.Graph([], [], [], {}, {}, {}))] * 8
    renamed = rename(argument, Prefixed(), iter(graphs))
    assert [ref.name for ref in references(renamed)] == [f"n{name}" for name in slots_of(argument)]
    assert {name for name in slots(argument) if name is not None} == set(slots_of(argument))
    assert rename(argument, {}, iter(graphs)).type == argument.type
    assert codec.encode(argument) == before


def slots_of(argument: schema.Argument) -> list[str]:
    """The names in an argument, dicts read in the order of their keys."""
    if argument.type != "as_string_to_argument":
        return [ref.name for ref in references(argument)]
    return [name for key in sorted(argument.value) for name in slots_of(argument.value[key])]


def test_subgraphs_are_replaced_in_the_order_of_keys() -> None:
    """The order of the keys of a dict of arguments does not count."""
    graph = schema.Graph([], [], [], {}, {}, {})
    carried = {key: schema.Argument(as_graph=schema.GraphArgument(key, graph)) for key in ("b", "a")}
    new = iter([schema.GraphArgument("first", graph), schema.GraphArgument("second", graph)])
    renamed = rename(schema.Argument(as_string_to_argument=carried), {}, new)
    assert [(key, held.value.name) for key, held in renamed.value.items()] == [("a", "first"), ("b", "second")]


def test_deep_dicts_are_renamed() -> None:
    """As deep as they may nest."""
    deep = arg(as_tensor="x")
    for _ in range(MAX_ARGUMENT_DEPTH):
        deep = schema.Argument(as_string_to_argument={"k": deep})
    assert [ref.name for ref in references(rename(deep, {"x": "y"}, iter(())))] == ["y"]
