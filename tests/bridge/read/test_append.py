"""`append_call` leaves a graph as `Graph.create_node` does."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from pt2kit.bridge.torch_names import append_call

ADD = torch.ops.aten.add.Tensor


def build(append: Any) -> fx.Graph:
    """A small graph with names that collide, containers of nodes, and keywords."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    first = append(graph, ADD, (x, 1), {"alpha": 2}, "add")
    second = append(graph, ADD, (first, x), None, "add")
    third = append(graph, torch.ops.aten.cat.default, ([first, second], 0), None, "print")
    parts = append(graph, torch.ops.aten.split.Tensor, (third, 2), None, None)
    item = append(graph, operator.getitem, (parts, 0), None, None)
    graph.output((item, {"k": second}))
    return graph


def describe(graph: fx.Graph) -> list[Any]:
    """Everything that a graph keeps of its nodes."""
    return [
        (
            node.name,
            node.op,
            node.target,
            repr(node.args),
            repr(node.kwargs),
            type(node.args),
            type(node.kwargs),
            [user.name for user in node.users],
            [used.name for used in node.all_input_nodes],
            node._sort_key,
            node.meta,
        )
        for node in graph.nodes
    ]


def test_same_graph() -> None:
    """Nodes, names, uses, order, tables and later additions are the same."""
    ours = build(append_call)
    theirs = build(
        lambda graph, target, args, kwargs, name: graph.create_node("call_function", target, args, kwargs, name)
    )
    assert describe(ours) == describe(theirs)
    assert len(ours.nodes) == len(theirs.nodes)
    assert vars(ours._graph_namespace)["_used_names"] == vars(theirs._graph_namespace)["_used_names"]
    for graph in (ours, theirs):
        assert [node.name for node in graph.find_nodes(op="call_function", target=ADD)] == ["add", "add_1"]
        graph.lint()
        with graph.inserting_before(next(iter(graph.nodes))):
            assert graph.call_function(ADD, (1, 2)).name == "add_tensor"
    assert str(ours) == str(theirs)
    assert ours.python_code("self").src == theirs.python_code("self").src
