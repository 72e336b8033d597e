"""Pytree specs, against torch's own text."""

from __future__ import annotations

import collections
import warnings
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bridge.zoo.programs_calling import Color, Layer, Pair, Point, Words

from pt2kit import treespec
from pt2kit.bridge.write.program import TreeSpecs
from pt2kit.errors import GraphError, LimitError, UnsupportedError

KEYS = st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False))
TREES = st.recursive(
    st.just(1),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(), inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=1),
        st.dictionaries(st.sampled_from(Color), inner, max_size=1),
        st.dictionaries(st.text(), inner, max_size=3).map(collections.OrderedDict),
        st.dictionaries(st.text(), inner, max_size=3).map(lambda d: collections.defaultdict(list, d)),
        st.lists(inner, max_size=3).map(lambda items: collections.deque(items, maxlen=4)),
        st.lists(inner, max_size=3).map(torch.fx.immutable_collections.immutable_list),
        st.tuples(inner, inner).map(lambda pair: Point(*pair)),
        st.tuples(inner, inner).map(lambda pair: Pair(*pair)),
        st.lists(inner, max_size=2).map(lambda items: Words(items, 'é "title" \\')),
    ),
    max_leaves=12,
)


@given(TREES)
@settings(max_examples=300, deadline=None)
def test_same_text(tree):
    """The text of any spec is what torch writes, letter for letter."""
    spec = pytree.tree_structure(tree)
    assert TreeSpecs().text(spec) == pytree.treespec_dumps(spec)


def test_fields():
    """The fields of every named tuple are noted, once."""
    specs = TreeSpecs()
    specs.text(pytree.tree_structure([Point(1, [Point(2, 3)])]))
    assert {name: known.field_names for name, known in specs.fields.items()} == {"zoo.Point": ["x", "y"]}


def named_tuple(name: str, fields: list[str]) -> Any:
    """A named tuple class."""
    return collections.namedtuple(name, fields)


def test_fields_that_differ(monkeypatch):
    """Two classes of one registered name with other fields contradict each other."""
    other = named_tuple("Point", ["x", "z"])
    entry = pytree.SUPPORTED_SERIALIZED_TYPES[Point]
    monkeypatch.setitem(pytree.SUPPORTED_SERIALIZED_TYPES, other, entry)
    with pytest.raises(
        GraphError, match=r"named tuple 'zoo.Point': expected one set of fields, got \(x, y\) and \(x, z\)"
    ):
        TreeSpecs().text(pytree.tree_structure([Point(1, 2), other(1, 2)]))


def test_module_as_input():
    """A module that is an input is written as torch writes it while it has the class registered."""
    from torch._export.non_strict_utils import _enable_graph_inputs_of_type_nn_module

    example: Any = ((Layer(),), {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with _enable_graph_inputs_of_type_nn_module(example):
            spec = pytree.tree_structure(example)
            text = pytree.treespec_dumps(spec)
    assert TreeSpecs().text(spec) == text


class Loose:
    def __init__(self, item):
        self.item = item


def _register(kind, context, name):
    pytree.register_pytree_node(
        kind,
        lambda value: ([value.item], context),
        lambda items, _: kind(items[0]),
        **({} if name is None else {"serialized_type_name": name}),
    )


def test_unregistered_name():
    """A container without a registered name is refused, by its type."""
    _register(Loose, None, None)
    with pytest.raises(UnsupportedError, match=r"registered with a serialized_type_name, got .*\.Loose"):
        TreeSpecs().text(pytree.tree_structure(Loose(1)))


def test_unnamed_tuple():
    """A named tuple without one too."""
    plain = named_tuple("Plain", ["a"])
    with pytest.raises(UnsupportedError, match=r"expected named tuples that are registered .*, got .*Plain"):
        TreeSpecs().text(pytree.tree_structure(plain(1)))


def test_result_of_torch():
    """Torch's own named tuples are refused if torch has no serialized name for them."""
    known = pytree.SUPPORTED_SERIALIZED_TYPES.get(torch.return_types.max)
    if known is not None and known.serialized_type_name != pytree.NO_SERIALIZED_TYPE_NAME_FOUND:
        assert known.serialized_type_name in TreeSpecs().text(pytree.tree_structure(torch.max(torch.ones(2, 2), 0)))
        return
    with pytest.raises(UnsupportedError, match=r"got torch\.return_types\.max"):
        TreeSpecs().text(pytree.tree_structure(torch.max(torch.ones(2, 2), 0)))


def test_bad_context():
    """A context that JSON cannot hold is refused."""
    kind = type("Holder", (Loose,), {})
    _register(kind, {"a": object()}, "zoo.Holder")
    with pytest.raises(
        UnsupportedError, match=r"expected a context of .*Holder that JSON can hold, got a value of type"
    ):
        TreeSpecs().text(pytree.tree_structure(kind(1)))
    with pytest.raises(UnsupportedError, match=r"expected a context of collections\.defaultdict that JSON can hold"):
        TreeSpecs().text(pytree.tree_structure(collections.defaultdict(None, a=1)))


def test_deep():
    """Containers inside containers, up to the limit of readers."""
    tree: Any = 1
    for _ in range(treespec.MAX_DEPTH):
        tree = [tree]
    text = TreeSpecs().text(pytree.tree_structure(tree))
    assert treespec.depth(treespec.parse(text)) == treespec.MAX_DEPTH
    with pytest.raises(LimitError, match="expected at most 200 containers inside each other"):
        TreeSpecs().text(pytree.tree_structure([tree]))
