"""Plain values <-> leaves."""

from __future__ import annotations

import copy
import enum
import json
import pickle
import sys
from collections import Counter, OrderedDict, defaultdict, deque

import pytest
from hypothesis import given
from tests.narrow import instance
from tests.treespec.trees import FIELDS, Point, any_specs, leaves_of, spec_of, text, values

from pt2kit.errors import GraphError, Pt2Error, SchemaError
from pt2kit.treespec import LEAF, Node, TreeSpec, flatten, leaf_count, unflatten


class Color(enum.Enum):
    RED = 1


class Size(enum.IntEnum):
    BIG = 7


@given(values)
def test_values_survive_flattening(value):
    """flatten gives the leaves left to right, unflatten the same value with the same container types."""
    spec = spec_of(value)
    leaves = flatten(value, spec, fields=FIELDS)
    assert leaves == leaves_of(value)
    again = unflatten(leaves, spec, fields=FIELDS)
    assert again == value
    assert type(again) is type(value) or type(value).__name__ in ("Point", "Single")
    assert repr(again) == repr(value)


@given(any_specs)
def test_any_spec_raises_only_our_errors(spec):
    """Whatever types and contexts a file names, the result is a value, a description or an error of ours."""
    leaves = list(range(leaf_count(spec)))
    try:
        value = unflatten(leaves, spec)
    except Pt2Error:
        return
    assert flatten(value, spec) == leaves


def test_dict_order_is_the_specs():
    """A caller's dict may be in any order, also of another mapping type."""
    spec = TreeSpec("builtins.dict", text(["a", "b"]), (LEAF, LEAF))
    assert flatten({"b": 2, "a": 1}, spec) == [1, 2]
    assert flatten(OrderedDict(b=2, a=1), spec) == [1, 2]


def test_named_tuples_by_name_or_position():
    """A class with other fields is matched by name; a plain tuple by position."""
    spec = TreeSpec("collections.namedtuple", '"shapes.Point"', (LEAF, LEAF))
    assert flatten(Point(y=2, x=1), spec, fields=FIELDS) == [1, 2]
    assert flatten(Point(y=2, x=1), spec, fields={"shapes.Point": ("y", "x")}) == [2, 1]
    assert flatten((1, 2), spec, fields=FIELDS) == [1, 2]
    with pytest.raises(GraphError, match=r"args: expected a named tuple of length 2, got 3"):
        flatten((1, 2, 3), spec, "args", fields=FIELDS)


def test_named_tuples_without_a_table_are_nodes():
    """torch 2.4 to 2.6 do not say the fields: the value is a description and flattens again."""
    spec = TreeSpec("collections.namedtuple", '"a.B"', (LEAF, LEAF))
    value = unflatten([1, 2], spec)
    assert value == Node("a.B", '"a.B"', (1, 2))
    assert flatten(value, spec) == [1, 2]


def test_nodes_have_the_fields_of_their_context():
    """A node is a mapping of the names that its context lists, which are attributes, too; else of indices."""
    value = instance(Node, unflatten([1, 2], TreeSpec("models.Output", text(["logits", "type"]), (LEAF, LEAF))))
    assert dict(value) == {"logits": 1, "type": 2}
    assert (value.logits, value["type"], value.type, len(value)) == (1, 2, "models.Output", 2)
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
    with pytest.raises(AttributeError, match=r"models\.Output: expected one of logits, type, got loss"):
        getattr(value, "loss")  # noqa: B009
    with pytest.raises(KeyError, match="loss"):
        value["loss"]
    fields = instance(Node, unflatten([1], TreeSpec("models.Part", text([["x"], ["y"]]), (LEAF,))))
    assert (fields.x, repr(fields)) == (1, "<placeholder of models.Part: {'x': 1}>")
    other = instance(Node, unflatten([1, 2], TreeSpec("models.Other", "null", (LEAF, LEAF))))
    assert dict(other) == {0: 1, 1: 2}


def test_unknown_types_are_nodes():
    """A user's type is described, not resolved; a caller can open its own values."""
    spec = TreeSpec("os.system", text("rm"), (LEAF, LEAF))
    assert unflatten([1, 2], spec) == Node("os.system", text("rm"), (1, 2))
    opened = flatten("ab", spec, expand=lambda name, value: list(instance(str, value)) if name == "os.system" else None)
    assert opened == ["a", "b"]
    with pytest.raises(GraphError, match=r"inputs: expected os\.system, got str"):
        flatten("ab", spec, "inputs")


def test_dicts_take_the_place_of_a_librarys_containers() -> None:
    """A caller without the class passes a dict with the names of the context, in any order."""
    spec = TreeSpec("lib.Cache", json.dumps('[["key", "value"], [null, null]]'), (LEAF, LEAF))
    assert flatten({"value": 2, "key": 1}, spec, expand=lambda name, value: None) == [1, 2]
    with pytest.raises(GraphError, match="missing 'value'"):
        flatten({"key": 1}, spec, expand=lambda name, value: None)
    with pytest.raises(GraphError, match=r"expected lib\.Cache, got dict"):
        flatten({"value": 2, "key": 1}, spec)


def test_factories_and_enums_import_nothing():
    """A defaultdict's factory and an enum's class are names: only containers and numbers of Python become a factory."""
    context = {"default_factory_module": "this", "default_factory_name": "s", "dict_context": ["a"]}
    value = unflatten([1], TreeSpec("collections.defaultdict", json.dumps(context), (LEAF,)))
    assert value == {"a": 1}
    assert isinstance(value, defaultdict)
    assert value.default_factory is None
    assert "this" not in sys.modules
    context = {"default_factory_module": "builtins", "default_factory_name": "eval", "dict_context": []}
    again = unflatten([], TreeSpec("collections.defaultdict", json.dumps(context)))
    assert instance(defaultdict, again).default_factory is None
    context = {"default_factory_module": "collections", "default_factory_name": "Counter", "dict_context": []}
    again = unflatten([], TreeSpec("collections.defaultdict", json.dumps(context)))
    assert instance(defaultdict, again).default_factory is Counter


def test_enum_keys_match_live_members():
    """A dict with enum keys matches the context's description of them; number-like enums are numbers there."""
    fqn = f"{Color.__module__}:{Color.__qualname__}"
    spec = TreeSpec("builtins.dict", text([{"__enum__": True, "fqn": fqn, "name": "RED"}, 7]), (LEAF, LEAF))
    assert flatten({Color.RED: "r", Size.BIG: "b"}, spec) == ["r", "b"]


LIST = TreeSpec("builtins.list", text(None), (LEAF, LEAF))
DICT = TreeSpec("builtins.dict", text(["a", "b"]), (LEAF, LIST))
MISMATCHES = [
    ((1, 2), LIST, "inputs: expected builtins.list, got tuple"),
    ([1], LIST, "inputs: expected builtins.list of length 2, got 1"),
    (Point(1, 2), TreeSpec("builtins.tuple", text(None), (LEAF, LEAF)), "inputs: expected builtins.tuple, got Point"),
    ({"a": 1}, DICT, "inputs: expected a mapping with 2 keys, got one with 1: missing 'b', unexpected none"),
    ({"a": 1, "b": 2, "\x1b": 3}, DICT, "got one with 3: missing none, unexpected '\\x1b'"),
    ({"a": 1, "b": [1]}, DICT, "inputs['b']: expected builtins.list of length 2, got 1"),
    ([], DICT, "inputs: expected builtins.dict, got list"),
    (deque(), LIST, "inputs: expected builtins.list, got deque"),
    (Node("x.Y", "null", ()), LIST, "inputs: expected builtins.list, got Node"),
]


@pytest.mark.parametrize(("value", "spec", "message"), MISMATCHES, ids=range(len(MISMATCHES)))
def test_values_of_another_structure(value, spec, message):
    """A value that does not fit is refused with its path, both sides and both numbers."""
    with pytest.raises(GraphError) as caught:
        flatten(value, spec, "inputs")
    assert message in str(caught.value)


def test_leaf_count_must_match():
    """Too few or too many leaves are refused with both numbers."""
    with pytest.raises(GraphError, match="outputs: expected 2 leaves, got 3"):
        unflatten([1, 2, 3], LIST, "outputs")


def test_contradicting_specs_are_refused():
    """A spec that does not agree with itself makes no value."""
    with pytest.raises(SchemaError, match="expected 0 children"):
        unflatten([1], TreeSpec("builtins.dict", text([]), (LEAF,)))
    bad = TreeSpec("collections.namedtuple", '{"class_name": "T", "fields": ["x y"]}', (LEAF,))
    with pytest.raises(SchemaError, match="field names"):
        unflatten([1], bad)
