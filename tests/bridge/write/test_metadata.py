"""Metadata of nodes."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._export.serde import serialize as torch_serde
from torch.fx import Graph
from torch.fx.traceback import NodeSource, NodeSourceAction

from pt2kit.bridge.write.scope import Metadata, of_graph_module
from pt2kit.errors import SchemaError
from pt2kit.node_metadata.frames import parse_source_fn_stack, parse_torch_fn
from pt2kit.node_metadata.modules import parse_module_stack
from pt2kit.node_metadata.redaction import AddressNumbers

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=",;()[]%"), min_size=1)
ANY = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def node(**meta):
    made = Graph().placeholder("x")
    made.meta.update(meta)
    return made


def ours(**meta):
    return Metadata().of_node(node(**meta))


def theirs(**meta):
    return torch_serde.GraphModuleSerializer(None, None).serialize_metadata(node(**meta))


@given(
    st.dictionaries(WORDS, st.tuples(WORDS, WORDS), max_size=3),
    st.lists(st.tuples(WORDS, WORDS), max_size=3),
    st.tuples(WORDS, WORDS),
)
@settings(max_examples=50, deadline=None)
def test_same_as_torch(modules, functions, function):
    """Names without separators are written as torch writes them."""
    meta = {"stack_trace": "File", "nn_module_stack": modules, "source_fn_stack": functions, "torch_fn": function}
    assert ours(**meta) == theirs(**meta)


@given(
    st.dictionaries(ANY, st.tuples(ANY, ANY), min_size=1, max_size=3),
    st.lists(st.tuples(ANY, ANY), min_size=1, max_size=3),
    st.tuples(ANY, ANY),
)
@settings(max_examples=200, deadline=None)
def test_separators_survive(modules, functions, function):
    """Any names come back as they were."""
    texts = ours(nn_module_stack=modules, source_fn_stack=functions, torch_fn=function)
    stack = parse_module_stack(texts["nn_module_stack"])
    assert {entry.key: (entry.path, entry.type) for entry in stack} == modules
    assert [(entry.name, entry.target) for entry in parse_source_fn_stack(texts["source_fn_stack"])] == functions
    assert parse_torch_fn(texts["torch_fn"]) == function


def source(name, depth=0):
    """A node's origin, with origins of its own."""
    origin = node()
    origin.name = name
    if depth:
        origin.meta["from_node"] = [source(f"{name}é", depth - 1), source("b", depth - 1)]
    return NodeSource(origin, 'a "pass"', [NodeSourceAction.CREATE, NodeSourceAction.REPLACE][: depth + 1])


@pytest.mark.parametrize("value", [None, [], [source("a")], [source("a", 2), NodeSource(None)], [3, source("x")]])
def test_origins(value):
    """Origins are the JSON text that torch writes, with numbers for its addresses (T10)."""
    assert ours(from_node=value) == AddressNumbers().numbered(theirs(from_node=value))


def test_custom():
    """Custom metadata is JSON; what is empty is left out."""
    assert ours(custom={"a": [1, "é"]}) == theirs(custom={"a": [1, "é"]}) == {"custom": json.dumps({"a": [1, "é"]})}
    assert ours(custom={}, stack_trace="", nn_module_stack={}, source_fn_stack=[], torch_fn=()) == {}
    assert of_graph_module({"custom": [1]}) == {"custom": "[1]"}
    assert of_graph_module({"custom": {}, "other": 1}) == {}


def test_nameless():
    """A function without a name is described by its type, and a type in place of its name is named."""
    texts = ours(source_fn_stack=[("a", 3), ("b", torch.Tensor.add)], nn_module_stack={"k": ("p", torch.nn.Linear)})
    assert texts["source_fn_stack"] == "a,builtins.int;b,torch._C.TensorBase.add"
    assert texts["nn_module_stack"] == "k,p,torch.nn.modules.linear.Linear"


def test_unhashable_functions():
    """A function without a hash is described all the same."""
    assert ours(source_fn_stack=[("a", [])]) == {"source_fn_stack": "a,builtins.list"}


def test_surrogates():
    """Bytes of a path that are no UTF-8 are spelled out; other text stays."""
    assert ours(stack_trace='File "\udc80é.py"') == {"stack_trace": 'File "\\udc80é.py"'}


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"custom": object()}, "metadata 'custom': expected a value that JSON can hold"),
        ({"custom": {(1, 2): 3}}, "metadata 'custom': expected a value that JSON can hold"),
        ({"stack_trace": 3}, "metadata 'stack_trace': expected text, got int"),
        ({"torch_fn": ("a", None)}, "metadata 'torch_fn': expected text, got NoneType"),
        ({"nn_module_stack": {"k": "p"}}, "metadata 'nn_module_stack': expected a path and a type for 'k', got 'p'"),
        ({"nn_module_stack": {"k": (1, "t")}}, "metadata 'nn_module_stack': expected text, got int"),
    ],
)
def test_refused(meta, message):
    """A value that does not fit its key is refused, and named."""
    with pytest.raises(SchemaError, match=message):
        ours(**meta)


def test_graph_metadata_refused():
    """The same for the graph module's own."""
    with pytest.raises(SchemaError, match="graph metadata 'custom': expected a value that JSON can hold"):
        of_graph_module({"custom": object()})
