"""Graphs and nodes in order, with their places."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.graph.build import arg, chain, dicts, nested, node, program, subgraph
from tests.samples import sample

from pt2kit import graph, schema
from pt2kit.errors import LimitError

COND = "$.graph_module.graph.nodes[{}].inputs[{}].arg.as_graph.graph"


def test_walk_enters_subgraphs_where_they_stand() -> None:
    """A node comes before the nodes of its subgraphs, and these before the next node."""
    read = program(sample("2.13.0", "cond_closure"))
    steps = [(step.path, step.where) for step in graph.walk(read, "r: $.g")]
    assert [path for path, _ in steps] == [
        "cond",
        "cond/true_graph_0/linear",
        "cond/false_graph_0/linear",
        "cond/false_graph_0/mul",
        "add",
    ]
    assert steps[3][1] == "r: $.g.nodes[0].inputs[2].arg.as_graph.graph.nodes[1]"
    assert steps[4][1] == "r: $.g.nodes[1]"


def test_graphs_of_a_program() -> None:
    """Graphs come in execution order, the root first; `subgraphs` leaves it out; the objects are the program's own."""
    read = program(sample("2.13.0", "cond"))
    found = list(graph.graphs(read))
    assert [(scope.path, scope.where, scope.depth) for scope in found] == [
        ("", "$.graph_module.graph", 0),
        ("cond/true_graph_0", COND.format(0, 1), 1),
        ("cond/false_graph_0", COND.format(0, 2), 1),
    ]
    assert found[0].graph is read.graph_module.graph
    assert list(graph.subgraphs(read)) == found[1:]


@pytest.mark.parametrize(
    ("part", "place"),
    [
        (lambda read: read, "$.graph_module.graph"),
        (lambda read: read.graph_module, "$.graph"),
        (lambda read: read.graph_module.graph, "$"),
    ],
)
def test_parts_of_a_program_can_be_walked(part: Callable[[schema.ExportedProgram], Any], place: str) -> None:
    """A program, its graph module and its graph give the same nodes; places start at what was passed."""
    read = program(sample("2.13.0", "mlp"))
    assert graph.root(part(read)).where == place
    assert [step.node for step in graph.walk(part(read))] == read.graph_module.graph.nodes


def test_a_node_without_a_name_goes_by_its_number() -> None:
    """Files from before torch 2.11 name no nodes."""
    body = subgraph(chain("x", "y"))
    outer = chain("x", "y")
    outer = schema.Graph(outer.inputs, outer.outputs, [node([arg(as_tensor="y")], body)], outer.tensor_values, {}, {})
    assert [step.path for step in graph.walk(outer)] == ["nodes[0]", "nodes[0]/body/y"]


def test_a_place_names_the_keys_of_dicts() -> None:
    """A subgraph inside a dict of arguments has the dict's keys in its place, quoted where they have to be."""
    odd = schema.Argument(as_string_to_argument={"a b": dicts(1, subgraph(chain("x", "y")))})
    holder = node([arg(as_tensor="y")], odd, name="y")
    outer = schema.Graph([], [], [holder], {}, {}, {})
    assert [scope.where for scope in graph.subgraphs(outer)] == [
        '$.nodes[0].inputs[0].arg.as_string_to_argument["a b"].as_string_to_argument.k.as_graph.graph'
    ]


WALKS: list[Callable[[schema.Graph], Iterable[object]]] = [
    graph.walk,
    graph.graphs,
    graph.subgraphs,
    graph.indexes,
    graph.operator_counts,
]


@pytest.mark.parametrize("visit", WALKS)
def test_subgraphs_may_nest_as_deep_as_the_limit(visit: Callable[[schema.Graph], Iterable[object]]) -> None:
    """The last level that is allowed is visited, the next one is refused with its place, and so is any after it."""
    limit = graph.MAX_SUBGRAPH_DEPTH
    list(visit(nested(limit)))
    for depth in (limit + 1, 40 * limit):
        with pytest.raises(LimitError) as caught:
            list(visit(nested(depth)))
        place = "$" + ".nodes[0].inputs[0].arg.as_graph.graph" * (limit + 1)
        assert str(caught.value) == f"{place}: expected subgraphs nested at most {limit} levels deep, got more [G11]"


def test_problems_report_the_limit_and_go_on() -> None:
    """A graph that is too deep is a finding; what is next to it is still looked at."""
    outer = chain("x", "y", "z")
    holders = [
        node([arg(as_tensor="y")], subgraph(nested(40)), arg(as_tensor="x"), name="y"),
        node([arg(as_tensor="z")], arg(as_tensor="ghost"), name="z"),
    ]
    source = schema.Graph(outer.inputs, outer.outputs, holders, outer.tensor_values, {}, {})
    assert [problem.rule for problem in graph.problems(source)] == ["G1", "G11"]
