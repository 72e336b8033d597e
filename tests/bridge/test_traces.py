"""Node metadata texts against torch's own writer and reader."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.node_metadata.texts import names, texts
from torch._export.serde.serialize import GraphModuleDeserializer, GraphModuleSerializer

from pt2kit.bridge.torch_names import writes_origins
from pt2kit.node_metadata.frames import (
    SourceFn,
    compact,
    dump_custom,
    dump_from_node,
    dump_source_fn_stack,
    dump_stack_trace,
    dump_torch_fn,
    expand_all,
    parse_from_node,
    parse_source_fn_stack,
    parse_stack_trace,
    parse_torch_fn,
)
from pt2kit.node_metadata.modules import ModuleEntry, dump_module_stack, module_fqn, module_tree, parse_module_stack


def torch_reads(key, text):
    """Read one metadata text with torch's reader."""
    reader = GraphModuleDeserializer.__new__(GraphModuleDeserializer)
    return reader.deserialize_metadata({key: text})[key]


def torch_writes(key, value):
    """The text torch's writer makes of one metadata value."""
    writer = GraphModuleSerializer.__new__(GraphModuleSerializer)
    return writer.serialize_metadata(SimpleNamespace(name="n", meta={key: value}))[key]


@pytest.mark.parametrize("text", [text for release, text in texts("nn_module_stack") if release != "2.1.2"])
def test_module_stacks_as_torch_reads_them(text):
    """For every text of torch 2.2 and later the entries are the ones torch finds."""
    assert torch_reads("nn_module_stack", text) == {e.key: (e.path, e.type) for e in parse_module_stack(text)}


entries = st.lists(
    st.builds(ModuleEntry, names.filter(bool), names, names), min_size=1, max_size=3, unique_by=lambda e: e.key
)


@settings(max_examples=300)
@given(entries)
def test_module_stacks_as_torch_writes_them(stack):
    """pt2kit writes torch's text if torch can read that back, otherwise a text that torch can read."""
    value = {e.key: (e.path, e.type) for e in stack}
    theirs = torch_writes("nn_module_stack", value)
    ours = dump_module_stack(stack)
    try:
        survives = torch_reads("nn_module_stack", theirs) == value
    except AssertionError:
        survives = False
    if survives and "%" not in theirs:
        assert ours == theirs
    assert len(torch_reads("nn_module_stack", ours)) <= len(stack)
    assert parse_module_stack(ours) == tuple(stack)


@given(names, names)
def test_source_functions_as_torch_writes_them(name, target):
    """Names without separators give torch's text; names with them can be read by torch too."""
    entry = SourceFn(name, target)
    ours = dump_source_fn_stack([entry])
    if not set(name + target) & set(",;%"):
        assert ours == torch_writes("source_fn_stack", [(name, target)])
    assert ours.count(",") == 1
    assert ";" not in ours
    assert parse_source_fn_stack(ours) == (entry,)


@given(st.lists(names, min_size=2, max_size=2))
def test_torch_fns_as_torch_writes_them(parts):
    """Names without separators give torch's text, and torch reads as many parts as were written."""
    ours = dump_torch_fn(parts)
    if not set("".join(parts)) & set(";%"):
        assert ours == torch_writes("torch_fn", tuple(parts))
    assert len(torch_reads("torch_fn", ours)) == 2
    assert parse_torch_fn(ours) == tuple(parts)


@pytest.mark.skipif(not writes_origins(), reason="torch neither reads nor writes origins up to 2.10")
@pytest.mark.parametrize("text", [text for _, text in texts("from_node")])
def test_origins_as_torch_reads_them(text):
    """torch's own objects for a text, written by torch again, give what pt2kit writes."""
    assert torch_writes("from_node", torch_reads("from_node", text)) == dump_from_node(parse_from_node(text))


def test_custom_as_torch_writes_it():
    """Custom metadata has torch's text."""
    value = {"a": [1, None, 2.5, "é"], "b": {"c": True}}
    assert dump_custom(value) == torch_writes("custom", value)


class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.d = torch.nn.ModuleDict({"a,b": torch.nn.Linear(2, 2), "c;d": torch.nn.ReLU(), "e(f": torch.nn.Sigmoid()})

    def forward(self, x):
        for module in self.d.values():
            x = module(x)
        return x


@pytest.fixture(scope="module")
def odd_nodes():
    program = torch.export.export(Odd(), (torch.ones(1, 2),), strict=False)
    return [node for node in program.graph.nodes if node.op == "call_function"]


def test_module_names_with_separators(odd_nodes):
    """Names that torch writes and cannot read back are read from its text, and kept by ours."""
    stacks = []
    for node in odd_nodes:
        value = node.meta["nn_module_stack"]
        stack = tuple(ModuleEntry(key, path, kind) for key, (path, kind) in value.items())
        stacks.append(stack)
        theirs = torch_writes("nn_module_stack", value)
        with pytest.raises((AssertionError, ValueError), match=r"metadata_split|unpack|^$"):
            torch_reads("nn_module_stack", theirs)
        assert parse_module_stack(theirs) == stack
        assert parse_module_stack(dump_module_stack(stack)) == stack
        assert len(torch_reads("nn_module_stack", dump_module_stack(stack))) == len(stack)
    tree = module_tree(stacks, ["", "d"])
    assert [child.name for child in tree.children[0].children] == ["a,b", "c;d", "e(f"]
    assert module_fqn(stacks[0][-1].path) == "d.a,b"


def test_traces_of_a_real_export(odd_nodes):
    """The traces of an exported program divide into frames, and compact to references that expand to them."""
    traces = [node.meta["stack_trace"] for node in odd_nodes]
    for text in traces:
        assert dump_stack_trace(parse_stack_trace(text)) == text
    assert parse_stack_trace(traces[0]).frames[0].function == "forward"
    table, references = compact(traces)
    assert expand_all(references, table) == traces
    assert max(map(len, references)) < 40
