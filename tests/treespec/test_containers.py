"""Children of each container type."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from tests.treespec.trees import FIELDS, any_specs, spec_of, text, values

from pt2kit.errors import Pt2Error, SchemaError
from pt2kit.treespec import (
    LEAF,
    EnumKey,
    Key,
    TreeSpec,
    child_keys,
    find_problems,
    key_paths,
    leaf_count,
    mapping_keys,
    namedtuple_fields,
    namedtuple_name,
)


def node(name, context, count):
    return TreeSpec(name, context, (LEAF,) * count)


DEFAULTDICT = {"default_factory_module": "this", "default_factory_name": "s", "dict_context": ["a"]}
ENUM = {"__enum__": True, "fqn": "mailcap:Color", "name": "RED"}
OLD_NT = json.dumps({"class_name": "NT", "fields": ["a", "b"]})

ACCEPTED = [
    (node("builtins.tuple", text(None), 0), []),
    (node("builtins.list", text(None), 2), ["[0]", "[1]"]),
    (node("torch.Size", text(None), 1), ["[0]"]),
    (node("torch.fx.immutable_collections.immutable_list", text(None), 1), ["[0]"]),
    (node("torch.fx.immutable_collections.immutable_dict", text(["k"]), 1), ["['k']"]),
    (node("builtins.dict", text(["a", 1, None, 2.5, True and "t"]), 5), ["['a']", "[1]", "[None]", "[2.5]", "['t']"]),
    (node("builtins.dict", text([ENUM]), 1), ["[<Color.RED>]"]),
    (node("builtins.dict", text([["x", 1]]), 1), ["[('x', 1)]"]),
    (node("builtins.dict", text(["\x1b[31m\u202e"]), 1), ["['\\x1b[31m\\u202e']"]),
    (node("collections.OrderedDict", text(["b", "a"]), 2), ["['b']", "['a']"]),
    (node("collections.defaultdict", json.dumps(DEFAULTDICT), 1), ["['a']"]),
    (node("collections.deque", text(3), 3), ["[0]", "[1]", "[2]"]),
    (node("collections.deque", text(None), 1), ["[0]"]),
    (node("collections.namedtuple", OLD_NT, 2), [".a", ".b"]),
    (node("collections.namedtuple", '"shapes.Point"', 2), [".x", ".y"]),
    (node("collections.namedtuple", '"unknown.NT"', 2), ["[0]", "[1]"]),
    (node("corpus.DC", text([["x", "y"], ["z"]]), 2), [".x", ".y"]),
    (node("models.Output", text(["logits", "loss"]), 2), ["['logits']", "['loss']"]),
    (node("models.Output", text(["logits"]), 2), ["[0]", "[1]"]),
    (node("models.Odd", text([["x", "x"], []]), 2), ["[0]", "[1]"]),
    (node("models.Odd", text({"a": 1}), 1), ["[0]"]),
    (node("models.Odd", "[1, 2]", 1), ["[0]"]),
    (node("models.Odd", '"no json"', 1), ["[0]"]),
    (node("os.system", text(None), 0), []),
    (LEAF, []),
]


@pytest.mark.parametrize(("spec", "keys"), ACCEPTED, ids=range(len(ACCEPTED)))
def test_children_and_their_keys(spec, keys):
    """Every container type names its children as torch's key paths do; nothing is imported for that."""
    assert [str(key) for key in child_keys(spec, fields=FIELDS)] == keys
    assert list(find_problems(spec, fields=FIELDS)) == []


REFUSED = [
    (
        node("builtins.dict", text([]), 1),
        "expected 0 children of builtins.dict, one child per key of the context, got 1",
    ),
    (node("builtins.dict", text(["a", "b"]), 1), "expected 2 children"),
    (node("builtins.dict", text(["a", "a"]), 2), "expected distinct keys, got 1 distinct ones among 2"),
    (node("builtins.dict", text([1, True]), 2), "expected distinct keys, got 1 distinct ones among 2"),
    (
        node("builtins.dict", text("a"), 1),
        "as the context of builtins.dict, got the string 'a'",
    ),
    (node("builtins.dict", text(ENUM), 0), "expected a list of keys"),
    (node("builtins.dict", text([{"a": 1}]), 1), "expected a scalar, a list or an enum member as a key"),
    (node("builtins.dict", text([{**ENUM, "name": 3}]), 1), "expected a scalar, a list or an enum member as a key"),
    (node("builtins.dict", '["a"]', 1), "expected a context string that holds JSON, got a list of 1"),
    (node("builtins.dict", '"["', 1), "context: expected JSON"),
    (node("builtins.dict", json.dumps("[" * 50), 1), "expected JSON nested at most 32 levels deep"),
    (node("builtins.tuple", text(3), 1), "expected the context null for builtins.tuple, got the integer 3"),
    (node("builtins.list", "null", 1), "expected a context string that holds JSON, got None"),
    (node("collections.deque", text(1), 2), "expected at most maxlen = 1 children of a deque, got 2"),
    (node("collections.deque", text(-1), 0), "expected a maxlen or null as the context of a deque, got the integer -1"),
    (node("collections.deque", text(True), 1), "expected a maxlen or null as the context of a deque, got True"),
    (node("collections.defaultdict", text(["a"]), 1), "expected a context with the keys default_factory_module"),
    (node("collections.defaultdict", json.dumps({**DEFAULTDICT, "default_factory_name": 1}), 1), "expected two names"),
    (node("collections.defaultdict", json.dumps(DEFAULTDICT), 2), "expected 1 child of collections.defaultdict"),
    (
        node("collections.namedtuple", OLD_NT, 3),
        "expected 2 children of collections.namedtuple, one child per field (a, b)",
    ),
    (node("collections.namedtuple", '"shapes.Point"', 1), "expected 2 children"),
    (node("collections.namedtuple", "null", 1), "expected a type name as the context of a named tuple, got None"),
    (node("collections.namedtuple", '{"class_name": "NT"}', 1), "expected a context with the keys class_name, fields"),
    (node("collections.namedtuple", '{"class_name": 1, "fields": []}', 0), "expected a type name as the context"),
    (
        node("collections.namedtuple", '{"class_name": "NT", "fields": "ab"}', 2),
        "expected a list of field names for 'NT'",
    ),
    (
        node("collections.namedtuple", '{"class_name": "NT", "fields": [1]}', 1),
        "expected a list of field names for 'NT'",
    ),
    (node("collections.namedtuple", '{"class_name": "NT", "fields": ["a", "a"]}', 2), "expected distinct field names"),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED, ids=range(len(REFUSED)))
def test_contexts_that_contradict_their_type(spec, message):
    """A context that does not fit type or children is one error with its place, and one finding as data."""
    tree = TreeSpec("builtins.tuple", text(None), (LEAF, spec))
    place = "out_spec: $[1].children_spec[1]"
    with pytest.raises(Pt2Error) as caught:
        child_keys(spec, place, FIELDS)
    assert str(caught.value).startswith(f"{place}: ")
    assert message in str(caught.value)
    (problem,) = find_problems(tree, "out_spec", FIELDS)
    assert problem.loc == place
    assert message in problem.message


@given(values)
def test_specs_of_values_are_valid(value):
    """The spec of any value is valid and has one path per leaf, all different."""
    spec = spec_of(value)
    assert list(find_problems(spec, fields=FIELDS)) == []
    paths = key_paths(spec, fields=FIELDS)
    assert len(paths) == leaf_count(spec)


@given(any_specs)
def test_any_spec_raises_only_our_errors(spec):
    """Any types with any contexts are described or refused."""
    problems = list(find_problems(spec))
    try:
        key_paths(spec)
        assert problems == []
    except Pt2Error:
        assert problems


def test_paths_of_a_call():
    """A path reads like the expression that reaches the leaf."""
    point = node("collections.namedtuple", '"shapes.Point"', 2)
    inner = TreeSpec("builtins.dict", text(["p", "q"]), (LEAF, TreeSpec("builtins.list", text(None), (LEAF, point))))
    spec = TreeSpec("builtins.tuple", text(None), (inner, LEAF))
    assert key_paths(spec, fields=FIELDS) == ("[0]['p']", "[0]['q'][0]", "[0]['q'][1].x", "[0]['q'][1].y", "[1]")
    assert key_paths(LEAF) == ("",)
    with pytest.raises(SchemaError, match=r"in_spec: tree\[0\]: expected 0 children"):
        key_paths(TreeSpec("builtins.list", text(None), (node("builtins.dict", text([]), 1),)), "in_spec")


def test_wide_specs_stay_cheap():
    """A long key is cut in paths, so that one key and many leaves do not multiply."""
    spec = TreeSpec("builtins.dict", text(["k" * 100_000]), (node("builtins.list", text(None), 1000),))
    assert max(map(len, key_paths(spec))) < 300


def test_enum_keys_and_named_tuples_are_descriptions():
    """Enum members and named tuple types are told by their names."""
    assert mapping_keys(node("builtins.dict", text([ENUM]), 1)) == (EnumKey("mailcap:Color", "RED"),)
    assert str(Key("item", EnumKey("bad\x1b", "n\n"))) == "[<bad\\x1b.n\\n>]"
    assert namedtuple_name(node("collections.namedtuple", OLD_NT, 2)) == "NT"
    assert namedtuple_name(LEAF) is None
    assert namedtuple_fields(node("collections.namedtuple", '"a.B"', 2)) is None
    assert namedtuple_fields(node("collections.namedtuple", '"a.B"', 2), fields={"a.B": ["p", "q"]}) == ("p", "q")
