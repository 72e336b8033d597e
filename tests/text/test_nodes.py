"""Finding a node or an input by a name, and what is printed of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests import samples
from tests.packages import edited

import pt2kit
from pt2kit.text.program import entries, find, found_lines, users_of
from pt2kit.text.values import ValueTexts

COND = samples.sample("2.13.0", "cond_params")


def _program(path: Any):
    with pt2kit.open(path) as package:
        return package.programs["model"]


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("add", ["add"]),
        ("getitem_1", ["cond"]),
        ("x", ["x"]),
        ("linear", ["cond/true_graph_0/linear", "cond/false_graph_0/linear"]),
        ("cond/false_graph_0/linear", ["cond/false_graph_0/linear"]),
        ("sum_1", ["sum_1"]),
        ("nope", []),
        ("", []),
    ],
)
def test_find(name: str, paths: list[str]) -> None:
    """A path means one thing; a bare name the one in the root graph, or else all that have it."""
    assert [entry.path for entry in find(_program(COND), name)] == paths


def test_nodes_without_names() -> None:
    """Before torch 2.11 nodes have no names: values and places find them."""
    program = _program(samples.sample("2.9.1", "mlp"))
    assert [entry.path for entry in find(program, "relu")] == ["nodes[1]"]
    assert [entry.path for entry in find(program, "nodes[1]")] == ["nodes[1]"]


def test_lines() -> None:
    """A node is printed with its arguments and their types, its results, users and metadata."""
    program = _program(samples.sample("2.13.0", "dynamic_batch"))
    [found] = find(program, "relu")
    lines = list(found_lines(found, ValueTexts(program)))
    assert lines[: lines.index("metadata stack_trace")] == [
        "%relu: torch.ops.aten.relu.default, in the graph",
        "inputs",
        "  self=%linear  : f32[s77, 16]",
        "outputs",
        "  %relu  : f32[s77, 16]",
        "used by",
        "  linear_1  aten.linear.default",
    ]
    assert lines[lines.index("metadata torch_fn") + 1] == "  relu_1;builtin_function_or_method.relu"


def test_users() -> None:
    """Users are nodes of the same graph, and its outputs; unused values are marked."""
    program = _program(COND)
    assert list(users_of(program.graph_module.graph, ("getitem",))) == ["add  aten.add.Tensor"]
    assert list(users_of(program.graph_module.graph, ("getitem_1",))) == ["the graph's outputs"]
    program = _program(samples.sample("2.13.0", "unused_input"))
    [unused] = find(program, "unused")
    lines = list(found_lines(unused, ValueTexts(program)))
    assert lines == ["%unused: f32[7], an input of the graph", "used by", "  nothing"]


def test_hostile_metadata() -> None:
    """Metadata is printed line by line, escaped and cut."""

    def change(tree: Any) -> None:
        node = tree["graph_module"]["graph"]["nodes"][1]
        node["metadata"] = {"k\x1b": "one\ntwo\x1b[31m\r" + "x" * 5000}

    program = _program(edited(samples.sample("2.13.0", "mlp"), change))
    [found] = find(program, "relu")
    lines = list(found_lines(found, ValueTexts(program)))
    assert all(line.isprintable() and len(line) < 2100 for line in lines)
    assert 'metadata "k\\x1b"' in lines


def test_entries_are_all_inputs_and_nodes() -> None:
    """Every graph input and node is an entry, with paths of their own."""
    found = [entry.path for entry in entries(_program(COND))]
    assert len(found) == len(set(found)) == 6 + 4 + 6 + 2 + 6 + 3
