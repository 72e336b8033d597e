"""Findings of `problems` beyond errors, and results for hostile files."""

from __future__ import annotations

import zipfile
from typing import Any

import pytest
from msgspec.structs import replace
from tests.graph.build import PLACE, arg, chain, meta, node, program, programs, subgraph
from tests.samples import DATA, hostile

from pt2kit import graph, schema
from pt2kit.errors import Pt2Error

X, Y, Z = (arg(as_tensor=name) for name in "xyz")
GOOD = chain("x", "y", "z")
FIRST, SECOND = GOOD.nodes


def named(name: str, held: schema.Argument) -> schema.Node:
    """The node z with a second argument of some name."""
    return replace(SECOND, inputs=[*SECOND.inputs, schema.NamedArgument(name, held, schema.ArgumentKind.KEYWORD)])


REMARKS: list[tuple[str, str, schema.Graph, str, str]] = [
    (
        "warning",
        "G5",
        replace(GOOD, tensor_values={**GOOD.tensor_values, "w.0": meta(1)}),
        '$.tensor_values["w.0"]',
        "expected entries for the values of the graph alone, got one for 'w.0'; drop it",
    ),
    (
        "warning",
        "G14",
        replace(GOOD, nodes=[FIRST, node([Z], Y, name="y")]),
        "$.nodes[1].name",
        "expected a name of its own, got 'y', which nodes[0] has",
    ),
    (
        "warning",
        "G14",
        replace(GOOD, nodes=[replace(FIRST, name="z"), replace(SECOND, name=None)]),
        "$.nodes[0].name",
        "expected a name of its own, got 'z', which a result of nodes[1] has",
    ),
    (
        "warning",
        "G14",
        replace(GOOD, nodes=[FIRST, replace(SECOND, name="x")]),
        "$.nodes[1].name",
        "expected a name of its own, got 'x', which a graph input has",
    ),
    (
        "safety",
        "G15",
        replace(GOOD, nodes=[FIRST, replace(SECOND, name="z; import os")]),
        "$.nodes[1].name",
        "expected an identifier, got 'z; import os'",
    ),
    (
        "safety",
        "G15",
        replace(GOOD, nodes=[FIRST, named("**{}", arg(as_int=1))]),
        "$.nodes[1].inputs[1].name",
        "expected an identifier, got '**{}'",
    ),
    (
        "safety",
        "G15",
        replace(GOOD, nodes=[FIRST, named("body", subgraph(chain("x", "y"), 'a"), open("f'))]),
        "$.nodes[1].inputs[1]",
        """expected identifiers with dots between them as the name of a subgraph, got 'a"), open("f'""",
    ),
]


@pytest.mark.parametrize(("kind", "rule", "source", "place", "text"), REMARKS)
def test_remarks(kind: str, rule: str, source: schema.Graph, place: str, text: str) -> None:
    """Warnings and safety findings name their place and rule, and keep nobody from reading the graph."""
    [problem] = graph.problems(source)
    assert (problem.kind, problem.rule, problem.loc, problem.message) == (kind, rule, place, text)
    graph.index(source)


@pytest.mark.parametrize("name", ["body", "repeated_subgraph0", "_x"])
def test_names_of_subgraphs_that_are_fine(name: str) -> None:
    """Identifiers are fine."""
    nodes = [FIRST, node([Z], Y, subgraph(chain("x", "y"), name), name="z")]
    assert list(graph.problems(replace(GOOD, nodes=nodes))) == []


@pytest.mark.parametrize("name", ["sub.0.body", "true_graph_0.inner", "for", "self", "1"])
def test_names_of_subgraphs_that_are_none(name: str) -> None:
    """torch makes a module of each subgraph: a dot or a keyword in its name ends the load."""
    nodes = [FIRST, node([Z], Y, subgraph(chain("x", "y"), name), name="z")]
    (problem,) = graph.problems(replace(GOOD, nodes=nodes))
    assert (problem.severity, problem.rule, problem.loc) == ("error", "G15", "$.nodes[1].inputs[1]")
    assert problem.message == f"expected an identifier that is no keyword as the name of a subgraph, got {name!r}"


def test_second_entries_are_reported_in_the_order_of_their_table() -> None:
    names = [f"value{number}" for number in range(20)]
    source = schema.Graph([], [], [], dict.fromkeys(names, meta(2)), dict.fromkeys(names, schema.SymInt(as_int=1)), {})
    found = [problem.loc.rpartition(".")[2] for problem in graph.problems(source) if problem.rule == "G4"]
    assert found == names


def test_names_that_are_keywords_are_fine() -> None:
    """A keyword is a name like others: the format takes names as text."""
    assert list(graph.problems(chain("for", "class"))) == []


def outcome(read: schema.ExportedProgram, record: str) -> Pt2Error | None:
    """The error that indexing a program raises."""
    try:
        for _ in graph.indexes(read, f"{record}: {PLACE}"):
            pass
    except Pt2Error as error:
        return error
    return None


# Hostile files that contradict themselves inside a graph: the rule and the place.
CONTRADICTORY = {
    "fx_placeholder_name": ("G8", "inputs[5]"),
    "json_deep_argument": ("G11", "nodes[1].inputs[1]"),
    "json_deep_graph": ("G11", ".".join(33 * ["nodes[0].inputs[0].arg.as_graph.graph"])),
    "tv_rank_mismatch": ("G6", "tensor_values.linear"),
    "tv_missing": ("G3", "nodes[0].outputs[0]"),
    "g_dangling": ("G1", "nodes[1].inputs[0]"),
    "g_dangling_output": ("G1", "outputs[0]"),
    "g_duplicate_def": ("G2", "nodes[1].outputs[0]"),
    "g_redefine_input": ("G2", "nodes[1].outputs[0]"),
    "g_cycle": ("G1", "nodes[0].inputs[0]"),
    "g_no_outputs": ("G1", "nodes[2].inputs[0]"),
}

# Hostile files with a name that torch would execute: the place.
EXECUTABLE_NAMES = {"fx_hop_kwarg_name": "nodes[1].inputs[2].name", "fx_subgraph_name": "nodes[1].inputs[0]"}


# Broken archives are not for this room: it gets programs.
PROGRAMS = [case for case in hostile() if not case["name"].startswith(("zip_", "flip_"))]


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case["name"])
def test_hostile_files(case: dict[str, Any]) -> None:
    """Contradictory graphs are refused as the manifest says, with rule and place; nothing else is refused."""
    try:
        read = list(programs(case["path"]))
    except (zipfile.BadZipFile, Pt2Error):
        assert case["name"] not in CONTRADICTORY
        return
    errors = [error for record, found in read if (error := outcome(found, record))]
    if case["name"] not in CONTRADICTORY:
        assert errors == []
        return
    rule, place = CONTRADICTORY[case["name"]]
    assert [error.rule for error in errors] == [rule]
    assert type(errors[0]).__name__ in case["safe_reader"]["error_kinds"]
    assert str(errors[0]).startswith(f"models/model.json: {PLACE}.{place}: expected ")


@pytest.mark.parametrize("name", EXECUTABLE_NAMES)
def test_names_that_torch_would_execute_are_findings(name: str) -> None:
    """Names that torch pastes into source are reported, with their place, although reading them harms nobody."""
    [path] = (DATA / "hostile").glob(f"*_{name}.pt2")
    found = [problem for problem in graph.problems(program(path)) if problem.kind == "safety"]
    assert [(problem.rule, problem.loc) for problem in found] == [("G15", f"{PLACE}.{EXECUTABLE_NAMES[name]}")]
