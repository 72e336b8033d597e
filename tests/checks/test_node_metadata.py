"""Metadata of nodes that torch cannot read: what is said of it, where, and how often."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.mutations import MLP, program

from pt2kit.checks import check

SOUND = [
    ("nn_module_stack", ""),
    ("nn_module_stack", "L__self__,,m.MLP;L__self___a,a,torch.nn.modules.linear.Linear"),
    ("source_fn_stack", "linear,torch.nn.functional.linear"),
    ("from_node", "[]"),
    ("custom", '{"a": [1, null]}'),
    ("stack_trace", "any \x00 text, even {"),
    ("some_key_of_tomorrow", "{"),
]
BROKEN = [
    (
        "nn_module_stack",
        "L__self__,m.MLP",
        "entries of three parts (key, path and type of a module), got 'L__self__,m.MLP'",
    ),
    ("source_fn_stack", "linear", "entries of two parts (name of a node and its function), got 'linear'"),
    ("from_node", "[", "JSON of the nodes that this one comes from, got '['"),
    ("from_node", '[{"name": 1}]', "JSON of the nodes that this one comes from"),
    ("custom", "{", "JSON, got '{'"),
]


def said(change: Any) -> list[tuple[str, str]]:
    """Place and message of each piece of metadata that cannot be read."""

    def change_program(tree: Any) -> None:
        change(tree["graph_module"])

    found = [problem for problem in check(program(MLP, change_program).data) if problem.rule == "V5"]
    assert all(problem.severity == "error" for problem in found)
    return [(problem.loc, problem.message) for problem in found]


def of_nodes(key: str, text: str, *places: int) -> Any:
    """Give the nodes at some places a text."""

    def change(module: Any) -> None:
        for place in places:
            module["graph"]["nodes"][place]["metadata"][key] = text

    return change


@pytest.mark.parametrize(("key", "text"), SOUND)
def test_sound(key: str, text: str) -> None:
    """Empty texts, texts of the right form, stack traces of any text and unknown keys are nothing to be told."""
    assert said(of_nodes(key, text, 0)) == []


@pytest.mark.parametrize(("key", "text", "message"), BROKEN)
def test_broken(key: str, text: str, message: str) -> None:
    """The message says what form was expected and what stands there; the place is that of the node."""
    ((where, what),) = said(of_nodes(key, text, 1))
    assert where == f"models/model.json: $.graph_module.graph.nodes[1].metadata.{key}"
    assert what.startswith(f"expected {message}")


def test_once_for_one_text() -> None:
    """Nodes that share a text are one problem; another text is another."""
    assert len(said(of_nodes("custom", "{", 0, 1))) == 1

    def two(module: Any) -> None:
        of_nodes("custom", "{", 0)(module)
        of_nodes("custom", "[", 1)(module)

    assert [where.rpartition("nodes")[2] for where, _ in said(two)] == ["[0].metadata.custom", "[1].metadata.custom"]


def test_of_the_graph_module() -> None:
    """The graph module has a custom text of its own."""
    (problem,) = said(lambda module: module["metadata"].update(custom="{"))
    assert problem == ("models/model.json: $.graph_module.metadata.custom", "expected JSON, got '{'")
    assert said(lambda module: module["metadata"].update(custom='{"mine": 1}')) == []
