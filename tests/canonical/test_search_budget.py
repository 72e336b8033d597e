"""The search for an order among nodes that lead to no output has one budget for all graphs of a program."""

from __future__ import annotations

import random

from tests.samples import sample

import pt2kit
from pt2kit import schema
from pt2kit.canonical.canonical_labeling import Search
from pt2kit.canonical.form import Keep, normal_form
from pt2kit.schema import Argument, Graph, GraphArgument, NamedArgument, Node, TensorArgument

META = schema.TensorMeta(
    schema.ScalarType.FLOAT,
    [schema.SymInt(as_int=4)],
    False,
    schema.Device("cpu"),
    [schema.SymInt(as_int=1)],
    schema.SymInt(as_int=0),
    schema.Layout.Strided,
)


def tensor(name: str) -> Argument:
    """A tensor of that name."""
    return Argument(as_tensor=TensorArgument(name))


def dead_regular(count: int, degree: int, seed: int) -> Graph:
    """A graph of nodes that nothing uses: two layers, between which each node has as many neighbors."""
    rows = [random.Random(seed + row).sample(range(count), count) for row in range(degree)]
    nodes = [
        Node("torch.ops.aten.relu.default", [NamedArgument("self", tensor("a"))], [tensor(f"s{n}")], {})
        for n in range(count)
    ]
    nodes += [
        Node(
            "torch.ops.aten.cat.default",
            [NamedArgument("tensors", Argument(as_tensors=[TensorArgument(f"s{row[n]}") for row in rows]))],
            [tensor(f"d{n}")],
            {},
        )
        for n in range(count)
    ]
    values = dict.fromkeys(("a", *(f"{kind}{n}" for kind in "sd" for n in range(count))), META)
    return Graph([tensor("a")], [tensor("a")], nodes, values, {}, {})


def branches(count: int) -> Graph:
    """A graph that calls so many conds, each with two such branches."""
    nodes = [
        Node(
            "torch.ops.higher_order.cond",
            [
                NamedArgument("", Argument(as_bool=True)),
                NamedArgument("", Argument(as_graph=GraphArgument(f"t{n}", dead_regular(20, 3, 9 * n)))),
                NamedArgument("", Argument(as_graph=GraphArgument(f"f{n}", dead_regular(20, 3, 9 * n + 4)))),
                NamedArgument("", Argument(as_tensors=[TensorArgument("a")])),
            ],
            [Argument(as_tensors=[TensorArgument(f"c{n}")])],
            {},
        )
        for n in range(count)
    ]
    return Graph([tensor("a")], [tensor("a")], nodes, {"a": META, **{f"c{n}": META for n in range(count)}}, {}, {})


def spent(graph: Graph, work: int) -> int:
    """Return how much of a budget the normal form of a graph takes."""
    search = Search(work)
    normal_form(graph, graph.inputs, graph.outputs, "$", Keep(search=search))
    return work - search.work


def test_branches_share_the_budget() -> None:
    """Twelve branches with searches take more than one, and all together no more than the budget and one last step."""
    one = spent(dead_regular(20, 3, 0), 10**9)
    assert one > 1000
    assert spent(branches(6), 10**9) > 6 * one
    assert spent(branches(6), one) < 3 * one


def test_a_program_without_dead_nodes_searches_nothing() -> None:
    """Ordinary programs take nothing of it."""
    graph = pt2kit.open(sample("2.13.0", "mlp")).programs["model"].graph_module.graph
    assert spent(graph, 10) == 0
