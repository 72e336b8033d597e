"""Named tuples by their fields: tables, placeholders, classes that changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.errors import GraphError, SchemaError
from pt2kit.treespec import LEAF, TreeSpec, adapt_values, flatten, stand_in

SPECS = json.loads(Path(__file__).with_name("specs.json").read_text(encoding="utf-8"))["specs"]


def named(name, *children):
    return TreeSpec("collections.namedtuple", json.dumps(name), children)


def test_stand_in_is_a_named_tuple():
    """A class that cannot be imported gets one with the stored fields, called by the last part of its name."""
    cls: Any = stand_in("models.heads.Output", ["logits", "été"])
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
    with pytest.raises(GraphError, match=r"x: expected a value for each of the fields \(a, b\), got 1"):
        adapt_values([1], ("a", "b"), ("a",), "x")


@given(st.permutations(["a", "b", "c", "d"]), st.integers(0, 4))
def test_reordered_classes_agree_with_flatten(order, count):
    """Adapting the values and flattening a value of the changed class give the same."""
    stored = tuple("abcd"[:count])
    cls: Any = stand_in("m.T", order)
    value = cls(*order)
    spec = named("m.T", *[LEAF] * count)
    adapted = adapt_values(list(value), order, stored, "x")
    assert list(adapted) == list(stored) == flatten(value, spec, fields={"m.T": stored})
