"""The normal form against torch's own, on every program of the samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from tests.bridge import recorded
from tests.graph.build import programs
from tests.samples import CURRENT_LAYOUT, corpus, release_id
from torch._export.serde import schema as torch_schema
from torch._export.serde import serialize as torch_serialize

from pt2kit import codec, schema
from pt2kit.canonical import canonicalize
from pt2kit.canonical.facts import usual_graph

FILES = recorded.readable(corpus(*CURRENT_LAYOUT))
TIES = {
    *("associative_scan_hop", "dtypes", "inf_nan_floats", "inf_nan_floats__decomp", "sdpa__decomp", "sym_ops__decomp"),
    "training_loss_joint",
}
"""Programs with nodes that have one target and use the same values: torch takes the stored order there."""


def by_torch(program: schema.ExportedProgram) -> schema.ExportedProgram:
    """Canonicalize a program with torch."""
    read = torch_serialize._bytes_to_dataclass(torch_schema.ExportedProgram, codec.encode(program))
    tree = torch_serialize._dataclass_to_dict(torch_serialize.canonicalize(read))
    text = json.dumps(tree, cls=torch_serialize.EnumEncoder, allow_nan=False)
    return codec.decode(text.encode(), schema.ExportedProgram, "torch").value


def comparable(program: schema.ExportedProgram) -> schema.ExportedProgram:
    """A normal form without what torch drops (fields of named tuples) and what it leaves under old names (calls)."""
    module = replace(program.graph_module, treespec_namedtuple_fields={}, module_call_graph=[])
    return replace(program, graph_module=module)


def usual(graph: schema.Graph) -> schema.Graph:
    """A graph with its calls, and those of its subgraphs, as the normal form writes them, which torch leaves."""
    graph = usual_graph(graph)
    inputs = [[replace(named, arg=inside(named.arg)) for named in node.inputs] for node in graph.nodes]
    return replace(graph, nodes=[replace(node, inputs=new) for node, new in zip(graph.nodes, inputs, strict=True)])


def inside(argument: schema.Argument) -> schema.Argument:
    """An argument with its subgraph so."""
    held = argument.as_graph
    return argument if held is UNSET else replace(argument, as_graph=replace(held, graph=usual(held.graph)))


def nameless(tree: Any) -> Any:
    """A tree without the names of nodes, which torch leaves."""
    if isinstance(tree, dict):
        return {key: None if key == "name" and "target" in tree else nameless(value) for key, value in tree.items()}
    return [nameless(item) for item in tree] if isinstance(tree, list) else tree


@pytest.mark.parametrize("path", FILES, ids=release_id)
def test_torch_agrees_with_the_normal_form(path: Path) -> None:
    """Torch leaves our normal form as it is; ours of torch's is ours; without ties they are equal at once."""
    for _, program in programs(path):
        ours = canonicalize(program, keep_symbols=True)
        theirs = by_torch(program)
        expected = codec.encode(comparable(ours))
        assert codec.encode(comparable(by_torch(ours))) == expected
        assert codec.encode(comparable(canonicalize(comparable(theirs), keep_symbols=True))) == expected
        if path.stem not in TIES:
            module = replace(program.graph_module, graph=usual(program.graph_module.graph))
            theirs = by_torch(replace(program, graph_module=module))
            assert nameless(codec.to_tree(comparable(theirs))) == codec.to_tree(comparable(ours))
