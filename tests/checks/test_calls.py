"""The module call graph and its tree specs: what contradicts the signature, and what is only not known."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests import samples
from tests.checks.mutations import KEPT, MLP, Mutation, program, root_call, tree_spec

from pt2kit.checks import check
from pt2kit.errors import Problem

LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
ENTRIES = "models/model.json: $.graph_module.module_call_graph"


def said(mutation: Mutation) -> list[Problem]:
    """Return call problems."""
    return [problem for problem in check(mutation.data) if problem.rule[0] == "K"]


def entry(change: Callable[[list[Any]], Any], path: Any = MLP) -> Mutation:
    """A file with another module call graph."""
    return program(path, lambda tree: change(tree["graph_module"]["module_call_graph"]))


@pytest.mark.parametrize(
    ("change", "place", "got"),
    [
        (lambda found: found.clear(), ENTRIES, "got nothing"),
        (lambda found: found.pop(0), f"{ENTRIES}[0]", "got '0' without one"),
        (lambda found: found[0].update(signature=None), f"{ENTRIES}[0]", "got '' without one"),
    ],
)
def test_root(change: Any, place: str, got: str) -> None:
    """The root with its signature comes first."""
    [problem] = said(entry(change))
    assert (problem.rule, problem.loc) == ("K1", place)
    assert problem.message.endswith(got)


def test_tree_specs() -> None:
    """A tree spec that cannot be read, one that contradicts itself and one of another size are told at their place."""
    place = f"{ENTRIES}[0].signature"
    [problem] = said(program(MLP, lambda tree: root_call(tree).update(in_spec="nope")))
    assert problem == Problem(f"{place}.in_spec", "K2", "expected JSON, got 'Expecting value' at character 0")
    [problem] = said(tree_spec(lambda spec: [1, {**spec[1], "context": '"odd"'}]))
    assert (problem.rule, problem.loc) == ("K3", f"{place}.in_spec: $[1]")
    [problem] = said(tree_spec(lambda spec: [1, LEAF]))
    assert (problem.rule, problem.loc) == ("K3", f"{place}.in_spec")
    [problem] = said(
        tree_spec(lambda spec: [1, {"type": "builtins.list", "context": "null", "children_spec": []}], "out_spec")
    )
    assert problem == Problem(f"{place}.out_spec", "K4", "expected 1 leaf, one for each of the outputs, got 0")


def test_names_of_arguments() -> None:
    """Names are identifiers, and as many as the tree spec has arguments; keywords are names too."""
    [problem] = said(program(MLP, lambda tree: root_call(tree).update(forward_arg_names=["a", "b"])))
    assert (problem.rule, problem.loc) == ("K5", f"{ENTRIES}[0].signature.forward_arg_names")

    def keyword(spec: Any) -> Any:
        args, kwargs = spec[1]["children_spec"]
        kwargs.update(context='["not a name"]', children_spec=args["children_spec"])
        args["children_spec"] = []
        return spec

    found = said(tree_spec(keyword))
    assert {problem.rule for problem in found} == {"K5"}
    assert "expected an identifier as the name of a keyword argument, got 'not a name'" in [p.message for p in found]


def test_kept_signatures() -> None:
    """A signature that was kept for a module lists values of the graph, as many as its tree specs have leaves."""

    def fewer(found: list[Any]) -> None:
        found[1]["signature"]["inputs"].pop()

    [problem] = said(entry(fewer, KEPT))
    assert (problem.rule, problem.loc) == ("K4", f"{ENTRIES}[1].signature.in_spec")

    def none(found: list[Any]) -> None:
        found[1]["signature"].update(inputs=[], outputs=[])

    assert said(entry(none, KEPT)) == []
    assert said(Mutation(None, samples.sample("2.13.0", "preserve_module_sig__strict").read_bytes())) == []


def test_containers_of_others() -> None:
    """A container that has to be registered is noted once, and is no error."""

    def change(tree: Any) -> None:
        mine = {"type": "mine.Pair", "context": "null", "children_spec": [LEAF]}
        call = root_call(tree)
        call["out_spec"] = json.dumps([1, mine])

    [problem] = said(program(MLP, change))
    assert (problem.rule, problem.kind, problem.loc) == ("K7", "note", f"{ENTRIES}[0].signature.out_spec")
    assert "'mine.Pair'" in problem.message


def test_named_tuples() -> None:
    """A named tuple has as many children as the file says that it has fields."""
    path = samples.sample("2.13.0", "namedtuple_io")

    def change(tree: Any) -> None:
        for row in tree["graph_module"]["treespec_namedtuple_fields"].values():
            row["field_names"].append("more")

    assert {problem.rule for problem in said(program(path, change))} == {"K3"}


@pytest.mark.parametrize("fqn", ["a..b", ".", "a."])
def test_a_module_without_a_name(fqn: str) -> None:
    """torch makes modules of the entries when it unflattens a program, and none has an empty name."""

    def change(tree: Any) -> None:
        tree["graph_module"]["module_call_graph"].append({"fqn": fqn, "signature": None})

    (found,) = [problem for problem in check(program(MLP, change).data) if problem.rule == "K1"]
    assert found.message == f"expected names with dots between them, got {fqn!r}, of which torch makes no module"
    assert found.loc.endswith("].fqn")
