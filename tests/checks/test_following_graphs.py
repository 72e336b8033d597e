"""Calls of higher-order operators: what their subgraphs write, give and change, outside and inside."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.checks.memory import Call, ints, made, number, of, ones, said
from tests.checks.mutations import call, graph, tensor

Tree = dict[str, Any]
E: Call = made("e", 2)
R: Call = ones("r", 2)
HOP = "higher_order"


def subgraph(inputs: list[str], output: str, *calls: Call) -> Any:
    """An argument that is a graph over values of two numbers."""
    nodes = [call(f"torch.ops.{target}", result, **arguments) for target, result, arguments in calls]
    return {"nodes": nodes, "inputs": inputs, "output": output}


def hop(name: str, *arguments: Any, result: str = "f") -> Call:
    """A call whose arguments go by place: graphs, values, numbers."""
    return f"{HOP}.{name}", result, {f"@{place}": argument for place, argument in enumerate(arguments)}


def spelled(tree: Tree) -> None:
    """Turn the arguments that go by place into what the format has."""
    outer = graph(tree)
    for node in outer["nodes"]:
        if f".{HOP}." in node["target"]:
            for place, named in enumerate(node["inputs"]):
                value = named["arg"]
                named["name"] = ""
                if isinstance(value, str):
                    named["arg"] = tensor(value)
                elif isinstance(value, list):
                    named["arg"] = {"as_tensors": [{"name": name} for name in value]}
                elif "nodes" in value:
                    named["arg"] = {"as_graph": {"name": f"g{place}", "graph": _graph(outer, value)}}


def _graph(outer: Any, given: Any) -> Any:
    made = copy.deepcopy(outer)
    made["nodes"] = given["nodes"]
    made["inputs"] = [tensor(name) for name in given["inputs"]]
    made["outputs"] = [tensor(given["output"])]
    names = [*given["inputs"], *(node["name"] for node in given["nodes"])]
    made["tensor_values"] = {name: copy.deepcopy(outer["tensor_values"]["f"]) for name in names}
    return made


X, Y = of("relu.default", "y", "x"), of("zero_.default", "y", "x")
RELU, ZERO = subgraph(["x"], "y", X), subgraph(["x"], "y", Y)
SELF = subgraph(["x"], "x")
GIVES = subgraph(["x"], "y", made("y", 2))
TRUE = {"as_bool": True}
ADDED = subgraph(["x"], "x", of("add_.Scalar", "y", "x", other=number(1)))

WRITTEN: dict[str, tuple[list[Call], str]] = {
    "a graph that runs once writes": ([E, hop("wrap_with_set_grad_enabled", TRUE, ZERO, "e")], "e"),
    "its result is what it wrote": ([E, hop("wrap_with_set_grad_enabled", TRUE, ZERO, "e")], "f"),
    "a sound value goes through": ([E, R, hop("strict_mode", RELU, ["r"])], "f"),
    "both branches are sound": ([E, R, of("sum.default", "p", "r"), hop("cond", "p", RELU, SELF, ["r"])], "f"),
    "one branch writes, both are sound": (
        [E, R, of("sum.default", "p", "r"), hop("cond", "p", ZERO, SELF, ["r"])],
        "f",
    ),
}
UNWRITTEN: dict[str, tuple[list[Call], str]] = {
    "read inside": ([E, hop("wrap_with_set_grad_enabled", TRUE, RELU, "e")], "f"),
    "given back": ([E, hop("strict_mode", SELF, ["e"])], "f"),
    "made inside": ([R, hop("strict_mode", GIVES, ["r"])], "f"),
    "made in one branch": ([R, of("sum.default", "p", "r"), hop("cond", "p", RELU, GIVES, ["r"])], "f"),
    "written in one branch of two": ([E, R, of("sum.default", "p", "r"), hop("cond", "p", ZERO, SELF, ["e"])], "f"),
    "written in a branch, not outside": ([E, R, of("sum.default", "p", "r"), hop("cond", "p", ZERO, ZERO, ["e"])], "e"),
    "it decides which branch": ([E, of("sum.default", "p", "e"), R, hop("cond", "p", RELU, RELU, ["r"])], "f"),
    "again and again": ([E, hop("while_loop", RELU, RELU, ["e"])], "f"),
    "shown": ([E, R, hop("with_effects", "r", {"as_operator": "torch.ops.aten._print.default"}, "e")], "r"),
}


@pytest.mark.parametrize(("calls", "returned"), WRITTEN.values(), ids=WRITTEN)
def test_written(calls: list[Call], returned: str) -> None:
    """What runs once, as if it stood there, writes for good; results of sound values are sound."""
    assert said({"p": ()}, *calls, returned=returned, graphs=spelled) == []


@pytest.mark.parametrize(("calls", "returned"), UNWRITTEN.values(), ids=UNWRITTEN)
def test_unwritten(calls: list[Call], returned: str) -> None:
    """What may not run, or runs on copies, writes nothing outside; what it reads gets out."""
    messages = said({"p": ()}, *calls, returned=returned, graphs=spelled)
    assert len(messages) == 1
    assert "whose memory nothing was written to" in messages[0]


CHANGING: dict[str, list[Call]] = {
    "once": [hop("wrap_with_set_grad_enabled", TRUE, ADDED, "n", result="g")],
    "in a branch": [of("sum.default", "p", "r"), hop("cond", "p", ADDED, SELF, ["n"], result="g")],
    "in a loop": [hop("while_loop", ADDED, ADDED, ["n"], result="g")],
    "in what is not known": [hop("of_tomorrow", ADDED, "n", result="g")],
    "by an operator that is called": [
        hop("with_effects", "r", {"as_operator": "torch.ops.aten.zero_.default"}, "n", result="g")
    ],
}


@pytest.mark.parametrize("calls", CHANGING.values(), ids=CHANGING)
def test_numbers_that_a_graph_changes(calls: list[Call]) -> None:
    """A mask is not known any more when a subgraph, or what a call carries, may have written to its numbers."""
    half = [("aten.full.default", "w", {"size": ints(), "fill_value": number(1)})]
    half += [of("select_scatter.default", "s", "e", src=tensor("w"), dim=number(0), index=number(1))]
    numbers: Call = ("aten.arange.default", "n", {"end": number(2)})
    choice = [
        of("eq.Scalar", "c", "n", other=number(0)),
        ("aten.where.self", "f", {"condition": tensor("c"), "self": tensor("r"), "other": tensor("s")}),
    ]
    sizes: dict[str, tuple[int, ...]] = {"p": (), "w": ()}
    assert said(sizes, E, R, *half, numbers, *choice, returned="f", graphs=spelled) == []
    (message,) = said(sizes, E, R, *half, numbers, *calls, *choice, returned="f", graphs=spelled)
    assert "whose memory nothing was written to" in message
