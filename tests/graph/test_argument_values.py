"""Names in one argument, arm by arm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from tests.graph.build import arg, chain, dicts, subgraph
from tests.strategies import unions

from pt2kit import codec, graph, schema
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph.argument_values import ARMS as ROWS
from pt2kit.graph.argument_values import ONE_CONSTANT, ONE_VALUE, graph_arguments

DEVICE = {"type": "cpu", "index": None}
TENSOR = {"name": "x"}

# Each arm of the schema: what the arm holds, as JSON, and the values it names.
ARMS: dict[str, list[tuple[Any, list[tuple[str, str, bool]]]]] = {
    "as_none": [(True, [])],
    "as_tensor": [(TENSOR, [("x", "tensor", True)])],
    "as_tensors": [([TENSOR, {"name": "y"}, TENSOR], [(name, "tensor", False) for name in "xyx"]), ([], [])],
    "as_int": [(3, [])],
    "as_ints": [([3, 4], [])],
    "as_float": [(0.5, [])],
    "as_floats": [([0.5, "NaN"], [])],
    "as_string": [("x", [])],
    "as_strings": [(["x"], [])],
    "as_sym_int": [({"as_name": "n"}, [("n", "sym_int", True)]), ({"as_int": 3}, [])],
    "as_sym_ints": [([{"as_name": "n"}, {"as_int": 3}, {"as_name": "m"}], [(n, "sym_int", True) for n in "nm"])],
    "as_scalar_type": [(7, [])],
    "as_memory_format": [(1, [])],
    "as_layout": [(7, [])],
    "as_device": [(DEVICE, [])],
    "as_bool": [(True, [])],
    "as_bools": [([True], [])],
    "as_sym_bool": [({"as_name": "b"}, [("b", "sym_bool", True)]), ({"as_bool": True}, [])],
    "as_sym_bools": [([{"as_bool": False}, {"as_name": "b"}], [("b", "sym_bool", True)])],
    "as_graph": [({"name": "body", "graph": codec.to_tree(chain("x", "y"))}, [])],
    "as_optional_tensors": [([{"as_none": True}, {"as_tensor": TENSOR}], [("x", "tensor", False)])],
    "as_custom_obj": [({"name": "c", "class_fqn": "C"}, [("c", "custom_obj", True)])],
    "as_operator": [("torch.ops.aten.add.Tensor", [])],
    "as_sym_float": [({"as_name": "f"}, [("f", "sym_float", True)]), ({"as_float": 0.5}, [])],
    "as_sym_floats": [([{"as_name": "f"}, {"as_float": 0.5}], [("f", "sym_float", True)])],
    "as_optional_tensor": [({"as_tensor": TENSOR}, [("x", "tensor", True)]), ({"as_none": True}, [])],
    "as_complex": [({"real": 0.5, "imag": 1.0}, [])],
    "as_nested_tensors": [([[TENSOR, {"name": "y"}], [], [TENSOR]], [(name, "tensor", False) for name in "xyx"])],
    "as_int_lists": [([[1], [2]], [])],
    "as_string_to_argument": [
        (
            {"a": {"as_tensor": TENSOR}, "b": {"as_string_to_argument": {"c": {"as_sym_int": {"as_name": "n"}}}}},
            [("x", "tensor", True), ("n", "sym_int", True)],
        ),
        ({}, []),
    ],
    "as_float_lists": [([[0.5]], [])],
}


def test_every_arm_is_handled() -> None:
    """A new arm of the schema is a failure here until somebody says which values it names, and shows it."""
    assert set(schema.Argument.__struct_fields__) == set(ROWS) == set(ARMS)


@pytest.mark.parametrize(("arm", "held", "expected"), [(arm, *case) for arm, cases in ARMS.items() for case in cases])
def test_values_of_each_arm(arm: str, held: Any, expected: list[tuple[str, str, bool]]) -> None:
    """The values come in the order they are written, repeated ones again, each with its kind."""
    argument = codec.convert({arm: held}, schema.Argument, "argument").value
    assert graph.references(argument) == expected
    assert list(graph.arguments(argument)) == [name for name, _, _ in expected]


def test_arms_of_one_value() -> None:
    """The arms that hold one value or one constant, always, are arms of the schema."""
    assert set(ROWS) >= ONE_VALUE | ONE_CONSTANT
    assert {arm for arm in ONE_VALUE if any(graph.references(arg(**{arm: "x"})))} == ONE_VALUE


def names_in(tree: Any) -> list[str]:
    """The names in the JSON of an argument, found without knowing the arms; subgraphs are left out."""
    if isinstance(tree, list):
        return [name for entry in tree for name in names_in(entry)]
    if not isinstance(tree, dict):
        return []
    if "name" in tree or "as_name" in tree:
        return [tree["name"] if "name" in tree else tree["as_name"]]
    if "as_string_to_argument" in tree:
        return [name for entry in tree["as_string_to_argument"].values() for name in names_in(entry)]
    return [name for arm, entry in tree.items() if arm != "as_graph" for name in names_in(entry)]


@given(unions(schema.Argument))
def test_names_are_those_in_the_json(argument: schema.Argument) -> None:
    """Whatever the argument, its names are the ones its JSON holds, in the same order."""
    assert list(graph.arguments(argument)) == names_in(codec.to_tree(argument))


def test_leaves_say_by_which_keys_they_are_reached() -> None:
    """A dict of arguments is its leaves; any other argument is its own leaf."""
    inner, outer = arg(as_int=1), arg(as_tensor="x")
    argument = schema.Argument(as_string_to_argument={"a": dicts(2, inner), "b": outer})
    assert list(graph.leaves(argument)) == [(("a", "k", "k"), inner), (("b",), outer)]
    assert list(graph.leaves(outer)) == [((), outer)]


def test_subgraphs_inside_dicts_are_found() -> None:
    """A subgraph is found wherever an argument holds it."""
    body = subgraph(chain("x", "y"))
    assert graph_arguments(body) == [((), body.as_graph)]
    assert graph_arguments(dicts(2, body)) == [(("k", "k"), body.as_graph)]
    assert graph_arguments(arg(as_int=1)) == graph_arguments(dicts(1, arg(as_int=1))) == []


def test_defined_names() -> None:
    """An output defines what it names; None and constants define nothing."""
    assert list(graph.defined(arg(as_tensors=["a", "b"]))) == ["a", "b"]
    assert list(graph.defined(arg(as_none=True))) == []


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_subgraph_is_no_result(depth: int) -> None:
    """A subgraph among results is refused, also inside a dict."""
    with pytest.raises(GraphError, match=r"argument: expected values or constants, got a subgraph \[G10\]"):
        graph.defined(dicts(depth, subgraph(chain("x", "y"))))


def test_dicts_may_nest_as_deep_as_the_limit() -> None:
    """The last level that is allowed is read, the next one is refused, and so is any depth after it."""
    limit = graph.MAX_ARGUMENT_DEPTH
    assert list(graph.arguments(dicts(limit, arg(as_tensor="x")))) == ["x"]
    for depth in (limit + 1, 50 * limit):
        with pytest.raises(LimitError, match=rf"nested at most {limit} levels deep, got more \[G11\]"):
            graph.references(dicts(depth, arg(as_tensor="x")))
