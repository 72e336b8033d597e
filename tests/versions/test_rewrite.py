"""Rewriting applies functions by type, and shares what they leave alone."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.versions.programs import copied, golden

from pt2kit.versions.rewrite import rewrite


def test_inner_values_come_before_outer_ones():
    """A function sees its value with the changes of what is inside, and the path of it."""
    seen = []

    def argument(value, path):
        seen.append(path)
        return {"as_int": 1} if "as_string" in value else value

    def node(value, path):
        assert not any("as_string" in named["arg"] for named in value["inputs"])
        seen.append(path)
        return value

    rewrite(golden("8.20"), "8.20", {"Argument": argument, "Node": node})
    first = ("graph_module", "graph", "nodes", 1)
    assert (*first, "inputs", 0, "arg") in seen
    assert seen.index((*first, "inputs", 0, "arg")) < seen.index(first)
    assert ("graph_module", "module_call_graph", 1, "signature", "inputs", 0) in seen


def _noted(paths: list[Any], value: Any, path: Any) -> Any:
    """A visitor that changes nothing and keeps where it was."""
    paths.append(path)
    return value


def test_subgraphs_and_dicts_of_arguments_are_visited():
    """Whatever the table lets a type hold is walked."""
    paths: dict[str, list[Any]] = {"Graph": [], "Argument": []}
    rewrite(golden("8.20"), "8.20", {name: partial(_noted, kept) for name, kept in paths.items()})
    graphs, numbers = paths.values()
    assert len(graphs) == 6  # the root, one in an argument, two for each of two conds
    assert any(path[-2:] == ("as_string_to_argument", "k") for path in numbers)


def test_nothing_changed_is_the_same_object():
    """Without a change there is no copy at all."""
    tree = golden("8.20")
    assert rewrite(tree, "8.20", {"Node": lambda value, _: value}) is tree


def test_the_input_stays_and_the_rest_is_shared():
    """A change copies the way to it and nothing else."""
    tree = golden("8.20")
    before = copied(tree)

    def node(value, path):
        return {**value, "target": "x"} if path[-1] == 0 else value

    new = rewrite(tree, "8.20", {"Node": node})
    assert tree == before
    old_graph, graph = tree["graph_module"]["graph"], new["graph_module"]["graph"]
    assert graph["nodes"][0]["target"] == "x"
    assert graph["nodes"][1] is old_graph["nodes"][1]
    assert graph["tensor_values"] is old_graph["tensor_values"]
    assert new["graph_module"]["signature"] is tree["graph_module"]["signature"]


def test_unknown_keys_are_kept():
    """A key that the table does not know stays with its object."""
    tree = golden("8.7")
    tree["graph_module"]["graph"]["nodes"][0]["colour"] = "red"
    new = rewrite(tree, "8.7", {"NamedArgument": lambda value, _: {**value}})
    assert new["graph_module"]["graph"]["nodes"][0]["colour"] == "red"


def test_only_what_holds_something_visited_is_entered():
    """Arguments without a graph are passed over, those next to them are not: every graph of every call is reached."""
    tree = golden("8.20")
    seen: list[Any] = []
    new = rewrite(tree, "8.20", {"Graph": lambda value, path: {**_noted(seen, value, path), "inputs": []}})
    assert any("as_graph" in path for path in seen)
    for path in seen:
        held = new
        for step in path:
            held = held[step]
        assert held["inputs"] == [], path


def test_what_is_of_another_type_is_left_alone():
    """A walk never fails for a tree that does not fit: what it cannot enter stays what it is."""
    tree = golden("8.20")
    nodes = tree["graph_module"]["graph"]["nodes"]
    nodes[0]["inputs"] = [3, None, {"name": "x"}, {"arg": 4}, {"arg": {"as_graph": "x"}}, "as_graph", ["as_graph"]]
    nodes[1]["inputs"] = "inputs"
    tree["graph_module"]["graph"]["tensor_values"] = {"x": 3}
    tree["graph_module"]["graph"]["sym_int_values"] = [3]
    for name in ("Node", "SymExpr", "TensorMeta"):
        assert rewrite(tree, "8.20", {name: lambda value, _: value}) is tree
