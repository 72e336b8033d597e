"""JSON text inside strings of the format: what is read, what is refused with which words, and how paths are written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.errors import JsonError, LimitError
from pt2kit.jsontext import children, depth, load_json, path_text

TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def levels(tree):
    """Levels of nesting, counted on the tree."""
    return 1 + max((levels(child) for _, child in children(tree)), default=0) if isinstance(tree, dict | list) else 0


@given(TREES, st.booleans())
def test_what_python_writes_is_read(tree, spaced):
    """Text comes back as the tree that it was written from, and its levels are those of the tree."""
    text = json.dumps(tree, indent=1 if spaced else None)
    assert load_json(text, "spec", 20) == tree
    assert depth(text.encode()) == levels(tree)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "spec: expected JSON, got 'Expecting value' at character 0"),
        ("[1, 2", "spec: expected JSON, got \"Expecting ',' delimiter\" at character 5"),
        ("[1] 2", "spec: expected JSON, got 'Extra data' at character 4"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "spec: expected every key of an object once, got 'c' 2 times"),
        ("9" * 5000, "spec: expected JSON with numbers of ordinary size, got Exceeds the limit"),
    ],
)
def test_what_is_no_json(text, message):
    """Each has its place and its cause."""
    with pytest.raises(JsonError) as caught:
        load_json(text, "spec", 20)
    assert str(caught.value).startswith(message)


def test_nesting_is_bounded_before_anything_is_parsed():
    """Both numbers are said; brackets inside strings are no levels."""
    with pytest.raises(LimitError, match=r"^spec: expected JSON nested at most 20 levels deep, got 100000$"):
        load_json("[" * 100_000, "spec", 20)
    assert load_json(json.dumps("[" * 100_000), "spec", 20) == "[" * 100_000
    assert load_json('"\\\\"', "spec", 0) == "\\"


def test_bare_words_of_python_pass():
    """Python writes them into contexts."""
    assert load_json("[Infinity, -Infinity]", "spec", 3) == [float("inf"), float("-inf")]


def test_paths():
    """Plain keys follow a dot, others are quoted."""
    assert path_text(("graph", "nodes", 3, "a b", "")) == '$.graph.nodes[3]["a b"][""]'
    assert path_text(()) == "$"
