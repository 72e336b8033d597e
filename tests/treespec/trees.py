"""Hypothesis strategies for nested values and tree specs; the spec of a value, made without the code under test."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple

from hypothesis import strategies as st

from pt2kit.treespec import LEAF, TreeSpec

Point = namedtuple("Point", ["x", "y"])
Single = namedtuple("Single", ["only"])
FIELDS = {"shapes.Point": ("x", "y"), "shapes.Single": ("only",)}
REGISTERED = {Point: "shapes.Point", Single: "shapes.Single"}

keys = st.one_of(st.text(max_size=8), st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False))


def mappings(kind, children):
    return st.dictionaries(keys, children, max_size=4).map(kind)


def containers(children):
    """One container of any builtin kind around some children."""
    lists = st.lists(children, max_size=4)
    return st.one_of(
        lists,
        lists.map(tuple),
        lists.map(deque),
        lists.map(lambda items: deque(items, maxlen=7)),
        mappings(dict, children),
        mappings(OrderedDict, children),
        mappings(lambda items: defaultdict(list, items), children),
        st.builds(Point, children, children),
        st.builds(Single, children),
    )


values = st.recursive(st.integers(), containers, max_leaves=12)


def text(value):
    """A context as torch writes it for builtin containers: JSON inside a JSON string."""
    return json.dumps(json.dumps(value))


MAPPINGS: dict[type, str] = {dict: "builtins.dict", OrderedDict: "collections.OrderedDict"}
SEQUENCES: dict[type, str] = {list: "builtins.list", tuple: "builtins.tuple", deque: "collections.deque"}


def spec_of(value):
    """The spec of a nested value; integers are leaves."""
    if isinstance(value, int):
        return LEAF
    if type(value) in REGISTERED:
        return TreeSpec("collections.namedtuple", json.dumps(REGISTERED[type(value)]), tuple(map(spec_of, value)))
    if isinstance(value, dict):
        children = tuple(map(spec_of, value.values()))
        if type(value) in MAPPINGS:
            return TreeSpec(MAPPINGS[type(value)], text(list(value)), children)
        factory = {"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": list(value)}
        return TreeSpec("collections.defaultdict", json.dumps(factory), children)
    maxlen = value.maxlen if isinstance(value, deque) else None
    return TreeSpec(SEQUENCES[type(value)], text(maxlen), tuple(map(spec_of, value)))


def leaves_of(value):
    """The leaves of a nested value, left to right."""
    if isinstance(value, int):
        return [value]
    return [leaf for item in (value.values() if isinstance(value, dict) else value) for leaf in leaves_of(item)]


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=5,
)
any_specs = st.recursive(
    st.just(LEAF),
    lambda children: st.builds(
        TreeSpec, st.text(max_size=12), json_values.map(json.dumps), st.lists(children, max_size=4).map(tuple)
    ),
    max_leaves=10,
)
