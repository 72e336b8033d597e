"""Calls of higher-order operators: counts of what goes into subgraphs and comes out of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests import samples
from tests.checks.mutations import COND, Mutation, graph, nodes, program

import pt2kit
from pt2kit.checks import check
from pt2kit.graph import walk

LOOP = samples.sample("2.13.0", "while_loop_hop")
MAP = samples.sample("2.13.0", "map_hop")
NO_GRAD = samples.sample("2.13.0", "no_grad_region")


def messages(mutation: Mutation) -> list[str]:
    """Return the messages of rule T7."""
    return [problem.message for problem in check(mutation.data) if problem.rule == "T7"]


def inner(node: Any, position: int) -> Any:
    """The subgraph that an argument of a node carries."""
    return node["inputs"][position]["arg"]["as_graph"]["graph"]


def first(found: list[Any]) -> Any:
    """The first node that carries a subgraph."""
    return next(node for node in found if any("as_graph" in named["arg"] for named in node["inputs"]))


def _one_branch_gives_more(found: list[Any]) -> None:
    outputs = inner(first(found), 2)["outputs"]
    outputs.append(copy.deepcopy(outputs[0]))


def _no_subgraph(found: list[Any]) -> None:
    first(found)["inputs"][1]["arg"] = {"as_int": 1}


def _short(found: list[Any]) -> None:
    del first(found)["inputs"][2:]


def _two_more_inputs(position: int) -> Any:
    def change(found: list[Any]) -> None:
        inputs = inner(first(found), position)["inputs"]
        inputs += [{"as_int": 1}, {"as_int": 2}]

    return change


def _number_for_a_tensor(found: list[Any]) -> None:
    operands = first(found)["inputs"][3]["arg"]
    operands["as_floats"] = [0.5] * len(operands.pop("as_tensors"))


def _format_to_choose_by(found: list[Any]) -> None:
    first(found)["inputs"][0]["arg"] = {"as_memory_format": 1}


CASES = [
    (COND, _number_for_a_tensor, "expected cond to pass a tensor as value 0, got as_floats"),
    (COND, _format_to_choose_by, "expected a tensor or a truth value for cond to choose by, got as_memory_format"),
    (COND, _one_branch_gives_more, "expected branches with equally many results, got 1 and 2"),
    (COND, _no_subgraph, "expected a subgraph as argument 1 of cond, got as_int"),
    (COND, _short, "expected at least 4 arguments of cond, got 2"),
    (COND, _two_more_inputs(1), "a subgraph that takes 1 value, as cond passes, got one that takes 3"),
    (LOOP, _two_more_inputs(0), "a subgraph that takes 2 values, as while_loop passes, got one that takes 4"),
    (MAP, _two_more_inputs(0), "a subgraph that takes 2 values, as map_impl passes, got one that takes 4"),
    (NO_GRAD, _two_more_inputs(1), "a subgraph that takes 1 value, as wrap_with_set_grad_enabled passes, got one"),
]


@pytest.mark.parametrize(("path", "change", "text"), CASES, ids=[case[2][-40:] for case in CASES])
def test_misfits(path: Any, change: Any, text: str) -> None:
    """Each mismatch is reported with both counts."""
    found = messages(nodes(path, change))
    assert len(found) == 1
    assert text in found[0]


def test_results() -> None:
    """A call has as many results as its subgraph gives."""

    def change(tree: Any) -> None:
        first(graph(tree)["nodes"])["outputs"].append({"as_none": True})

    assert messages(program(LOOP, change)) == ["expected 2 results of while_loop, as many as its subgraph gives, got 3"]


def test_real_calls() -> None:
    """Most operators of the table occur in real files, whose calls fit (`test_mutations` checks all of them)."""
    seen = set()
    for path in (COND, LOOP, MAP, NO_GRAD, samples.sample("2.13.0", "invoke_subgraph_hop")):
        with pt2kit.open(path) as package:
            seen |= {step.node.target.rpartition(".")[2] for step in walk(package.programs["model"])}
    assert {"cond", "while_loop", "map_impl", "wrap_with_set_grad_enabled"} <= seen
