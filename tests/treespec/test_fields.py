"""Named tuples by their fields: tables, stand-ins, classes that changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.treespec.trees import FIELDS, leaves_of, spec_of, text, values

from pt2kit.errors import GraphError, SchemaError
from pt2kit.treespec import LEAF, TreeSpec, adapt_leaves, adapt_values, collect_fields, flatten, parse, stand_in

SPECS = json.loads(Path(__file__).with_name("specs.json").read_text(encoding="utf-8"))["specs"]


def named(name, *children):
    return TreeSpec("collections.namedtuple", json.dumps(name), children)


def test_fields_of_real_specs():
    """Up to 2.3 the names stand in the spec, from 2.7 in the table, in between nowhere."""
    old = [parse(case["text"]) for case in SPECS if "class_name" in case["text"]]
    new = [parse(case["text"]) for case in SPECS if "corpus.NT" in case["text"]]
    assert collect_fields(old) == {"NT": ("a", "b")}
    assert collect_fields(new, fields={"corpus.NT": ["a", "b"]}) == {"corpus.NT": ("a", "b")}
    assert collect_fields(new) == {"corpus.NT": None}
    assert collect_fields([LEAF]) == {}


def test_one_type_with_two_sets_of_fields_is_refused():
    """Specs of one program agree about a class."""
    one = TreeSpec("collections.namedtuple", '{"class_name": "NT", "fields": ["a"]}', (LEAF,))
    two = TreeSpec("collections.namedtuple", '{"class_name": "NT", "fields": ["b"]}', (LEAF,))
    with pytest.raises(
        SchemaError, match=r"spec: expected one set of fields for the named tuple NT, got \(a\) and \(b\)"
    ):
        collect_fields([one, two], "spec")


def test_stand_in_is_a_named_tuple():
    """A class that cannot be imported gets one with the stored fields, called by the last part of its name."""
    cls = stand_in("models.heads.Output", ["logits", "été"])
    value = cls(1, 2)
    assert value == (1, 2)
    assert value._fields == ("logits", "été")
    assert repr(value) == "Output(logits=1, été=2)"
    assert stand_in("a.b-c", []).__name__ == "NamedTuple"
    assert stand_in("a.class", ["x"]).__name__ == "NamedTuple"


@pytest.mark.parametrize(
    "field", ["", "a b", "1a", "class", "_private", "x=open('f')", "a,b", "a\n", "__class__", "a)", "\u202ea"]
)
def test_stand_in_refuses_what_is_no_field_name(field):
    """Names that a file could smuggle into generated source never reach it."""
    with pytest.raises(SchemaError, match=r"field_table: expected field names of evil\.T that are identifiers"):
        stand_in("evil.T", ["ok", field], "field_table")


def test_stand_in_refuses_names_that_python_takes_for_one():
    """Two spellings of one identifier are one field."""
    with pytest.raises(SchemaError, match=r"expected distinct field names of T, got \(ﬁ, fi\)"):
        stand_in("T", ["ﬁ", "fi"])


ADAPTED = [
    (("a", "b"), ("b", "a"), {}, (2, 1)),
    (("a", "b", "c"), ("c", "a"), {}, (3, 1)),
    (("a",), ("a", "new"), {"new": 9}, (1, 9)),
    (("a",), ("a",), {"a": 9}, (1,)),
    ((), (), {}, ()),
]


@pytest.mark.parametrize(("source", "target", "defaults", "expected"), ADAPTED)
def test_values_follow_their_names(source, target, defaults, expected):
    """Reordered, lost and gained fields: values go by name, extra ones are dropped, defaults fill what is missing."""
    assert adapt_values(range(1, len(source) + 1), source, target, "x", defaults) == expected


def test_missing_fields_are_all_listed():
    """A field that the program needs and the class lost is an error that names every such field."""
    with pytest.raises(GraphError) as caught:
        adapt_values([1, 2], ("a", "extra"), ("a", "b", "c"), "inputs[0]")
    assert str(caught.value) == (
        "inputs[0]: expected a named tuple with the fields (a, b, c), got one with (a, extra): "
        "missing (b, c); pass a value that has them"
    )
    with pytest.raises(GraphError, match=r"x: expected 2 values for the fields \(a, b\), got 1"):
        adapt_values([1], ("a", "b"), ("a",), "x")


def test_leaves_of_a_class_that_changed():
    """Leaves flattened by today's class come out in the stored order, nested structures and all."""
    stored = TreeSpec(
        "builtins.tuple", text(None), (named("m.T", LEAF, TreeSpec("builtins.list", text(None), (LEAF,) * 2)), LEAF)
    )
    today = TreeSpec(
        "builtins.tuple",
        text(None),
        (
            named(
                "m.T",
                TreeSpec("builtins.list", text(None), (LEAF,) * 2),
                TreeSpec("builtins.tuple", text(None), (LEAF,) * 3),
                LEAF,
            ),
            LEAF,
        ),
    )
    leaves = ["list0", "list1", "n0", "n1", "n2", "x", "last"]
    got = adapt_leaves(
        leaves,
        today,
        stored,
        "inputs",
        received_fields={"m.T": ("items", "new", "x")},
        expected_fields={"m.T": ("x", "items")},
    )
    assert got == ["x", "list0", "list1", "last"]


def test_dict_keys_may_come_in_another_order():
    """Keyword arguments in another order are the same call."""
    want = TreeSpec("builtins.dict", text(["a", "b"]), (LEAF, TreeSpec("builtins.list", text(None), (LEAF, LEAF))))
    have = TreeSpec("builtins.dict", text(["b", "a"]), tuple(reversed(want.children)))
    assert adapt_leaves([1, 2, 3], have, want, "kwargs") == [3, 1, 2]


MISMATCHES = [
    (LEAF, named("m.T", LEAF), [1], "inputs: expected collections.namedtuple m.T, got a leaf"),
    (named("m.T", LEAF), LEAF, [1], "inputs: expected a leaf, got collections.namedtuple m.T"),
    (
        named("m.U", LEAF),
        named("m.T", LEAF),
        [1],
        "inputs: expected collections.namedtuple m.T, got collections.namedtuple m.U",
    ),
    (
        named("m.T", LEAF, LEAF),
        named("m.T", LEAF),
        [1, 2],
        "inputs: expected 1 children of collections.namedtuple m.T, got 2",
    ),
    (LEAF, LEAF, [1, 2], "inputs: expected 1 leaves, got 2"),
    (
        TreeSpec("builtins.dict", text(["a"]), (LEAF,)),
        TreeSpec("builtins.dict", text(["b"]), (LEAF,)),
        [1],
        "inputs: expected the keys (b), got (a)",
    ),
    (
        TreeSpec("builtins.list", text(None), (LEAF,)),
        TreeSpec("builtins.list", text(None), (TreeSpec("builtins.tuple", text(None)),)),
        [1],
        "inputs: child 0: expected builtins.tuple, got a leaf",
    ),
]


@pytest.mark.parametrize(("have", "want", "leaves", "message"), MISMATCHES, ids=range(len(MISMATCHES)))
def test_structures_that_do_not_match(have, want, leaves, message):
    """Another structure is refused with the place and both sides."""
    with pytest.raises(GraphError) as caught:
        adapt_leaves(leaves, have, want, "inputs")
    assert str(caught.value) == message


@given(values)
def test_adapting_to_the_same_structure_changes_nothing(value):
    """Without differences the leaves stay as they are."""
    spec = spec_of(value)
    leaves = leaves_of(value)
    assert adapt_leaves(leaves, spec, spec, "x", received_fields=FIELDS, expected_fields=FIELDS) == leaves


@given(st.permutations(["a", "b", "c", "d"]), st.integers(0, 4))
def test_reordered_classes_agree_with_flatten(order, count):
    """Adapting leaves and flattening a value of the changed class give the same."""
    stored = tuple("abcd"[:count])
    cls = stand_in("m.T", order)
    value = cls(*order)
    spec = named("m.T", *[LEAF] * count)
    adapted = adapt_leaves(
        list(value),
        named("m.T", *[LEAF] * 4),
        spec,
        "x",
        received_fields={"m.T": order},
        expected_fields={"m.T": stored},
    )
    assert adapted == list(stored) == flatten(value, spec, fields={"m.T": stored})
