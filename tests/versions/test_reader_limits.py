"""Values of its schema that a release does not read are refused by name, or written in a readable form."""

from __future__ import annotations

from typing import Any

import pytest
from tests.versions.programs import golden

from pt2kit.versions.conversion_log import HARMLESS, ConversionLog
from pt2kit.versions.reader_limits import make_readable, narrow_ranges

X = {"as_tensor": {"name": "x"}}


def with_ends(version: str, inputs: list[Any], outputs: list[Any]):
    """A program of a version with other ends of its graph."""
    tree = golden(version)
    graph = {**tree["graph_module"]["graph"], "inputs": inputs, "outputs": outputs, "nodes": [], "tensor_values": {}}
    return {**tree, "graph_module": {**tree["graph_module"], "graph": graph}}


@pytest.mark.parametrize(
    ("version", "inputs", "outputs", "message", "since"),
    [
        ("2", [X, {"as_int": 3}], [X], "a graph with as_int as an input, which the release does not read", "5.1"),
        ("2", [{"as_none": []}], [X], "a graph with as_none as an input, which the release does not read", "5.1"),
        (
            "2",
            [X],
            [{"as_sym_int": {"as_name": "n"}}],
            "a graph with as_sym_int as an output, which the release does not read",
            "5.1",
        ),
        (
            "5.1",
            [{"as_sym_int": {"as_name": "n"}}],
            [X],
            "a graph with as_sym_int as an input, which the release does not read",
            "8.7",
        ),
        ("5.1", [X], [{"as_int": 3}], "a graph with as_int as an output, which the release does not read", "5.3"),
        ("5.3", [X], [{"as_float": 3.0}], "a graph with as_float as an output, which the release does not read", "8.2"),
        ("8.2", [X], [{"as_bool": True}], "a graph with as_bool as an output, which the release does not read", "8.7"),
        ("8.2", [X], [{"as_string": "s"}], "a graph with as_string as an output, which the release does not read", ""),
        ("8.17", [X], [{"as_string": "s"}], "a graph with as_string as an output, which the release does not read", ""),
        (
            "8.7",
            [{"as_sym_bool": {"as_name": "b"}}],
            [X],
            "a graph with as_sym_bool as an input, which the release does not read",
            "",
        ),
    ],
)
def test_ends_of_graphs_that_are_not_read(version, inputs, outputs, message, since):
    """They are named with the first version that reads them, and need permission."""
    tree = with_ends(version, inputs, outputs)
    log = ConversionLog("x")
    assert make_readable(tree, version, log) is tree or version == "1"
    assert [(note.kind, note.name, note.message, note.since) for note in log.notes] == [
        ("lost", "unreadable", message, since)
    ]
    assert "unreadable" not in HARMLESS


@pytest.mark.parametrize("version", ["5.3", "7.3", "8.2", "8.17", "8.20"])
def test_golden_programs_are_read(version):
    """Nothing is noted of tensors, sizes and constants at the places where they are read."""
    log = ConversionLog("x")
    tree = with_ends(version, [X, {"as_int": 3}], [X, {"as_sym_int": {"as_name": "n"}}])
    assert make_readable(tree, version, log) is tree
    assert log.notes == ()


def test_lists_of_texts_are_not_read_by_2_2():
    """Empty ones are."""
    tree = with_ends("2", [], [])
    node: Any = {"target": "f", "inputs": [{"name": "s", "arg": {"as_strings": ["a"]}}], "outputs": [], "metadata": {}}
    tree["graph_module"]["graph"]["nodes"] = [node]
    log = ConversionLog("x")
    make_readable(tree, "2", log)
    assert [note.message for note in log.notes] == ["a list of texts as an argument, which the release does not read"]
    node["inputs"][0]["arg"] = {"as_strings": []}
    make_readable(tree, "2", empty := ConversionLog("x"))
    assert empty.notes == ()


def test_module_calls_are_dropped_for_2_1():
    """It has a place for them that it does not read; the program computes the same without."""
    tree = with_ends("1", [X], [X])
    calls = tree["graph_module"]["module_call_graph"]
    assert any(entry["signature"] for entry in calls)
    log = ConversionLog("x")
    new = make_readable(tree, "1", log)
    assert [entry["signature"] for entry in new["graph_module"]["module_call_graph"]] == [None] * len(calls)
    assert "module_calls" in {note.name for note in log.notes} & HARMLESS


def test_gradients_in_a_signature_are_not_read_by_2_1():
    """There is no other place for them."""
    tree = with_ends("1", [X], [X])
    tree["graph_module"]["signature"]["backward_signature"] = {
        "gradients_to_parameters": {},
        "gradients_to_user_inputs": {},
        "loss_output": "x",
    }
    log = ConversionLog("x")
    make_readable(tree, "1", log)
    assert ("unreadable", "a signature with gradients, which torch 2.1 does not read") in {
        (note.name, note.message) for note in log.notes
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"min_val": 0, "max_val": 8}, {"min_val": 2, "max_val": 8}),
        ({"min_val": 1, "max_val": None}, {"min_val": 2, "max_val": None}),
        ({"min_val": None, "max_val": None}, {"min_val": 2, "max_val": None}),
        ({"min_val": 3, "max_val": 8}, {"min_val": 3, "max_val": 8}),
        ({"min_val": 0, "max_val": 1}, {"min_val": 0, "max_val": 1}),
    ],
)
def test_sizes_are_at_least_two(before, after):
    """Of symbols that are in a size; those of other values keep their range, and what would be empty stays."""
    tree = golden("5.3")
    meta = next(iter(tree["graph_module"]["graph"]["tensor_values"].values()))
    sized = {**meta, "sizes": [{"as_expr": {"expr_str": "2*s7 + 1", "hint": None}}]}
    tree["graph_module"]["graph"]["tensor_values"] = {"x": sized}
    tree["range_constraints"] = {"s7": before, "s70": before}
    log = ConversionLog("x")
    new = narrow_ranges(tree, "5.3", log, "5.3")
    assert new["range_constraints"] == {"s7": after, "s70": before}
    assert [note.name for note in log.notes] == (["small_sizes"] if before != after else [])


@pytest.mark.parametrize(("version", "least"), [("5.3", 0), ("5.1", 2)])
def test_sizes_that_are_counted_may_be_zero_in_2_3(version, least):
    """torch 2.3 writes a size of `nonzero` as u0 of at least 0, torch 2.1 and 2.2 as one of at least 2."""
    tree = golden(version)
    meta = next(iter(tree["graph_module"]["graph"]["tensor_values"].values()))
    counted = {**meta, "sizes": [{"as_expr": {"expr_str": "u0", "hint": None}}]}
    tree["graph_module"]["graph"]["tensor_values"] = {"x": counted}
    tree["range_constraints"] = {"u0": {"min_val": 0, "max_val": 8}}
    new = narrow_ranges(tree, version, ConversionLog("x"), "5.3")
    assert new["range_constraints"] == {"u0": {"min_val": least, "max_val": 8}}


def with_sizes(**values: list[str | int]):
    """A program of 2.2 whose tensors have these sizes."""
    tree = golden("2")
    metas = {
        name: {
            "sizes": [{"as_int": s} if isinstance(s, int) else {"as_expr": {"expr_str": s}} for s in sizes],
            "strides": [],
        }
        for name, sizes in values.items()
    }
    graph = {"inputs": [], "outputs": [], "nodes": [], "tensor_values": metas}
    ranges = {name: {"min_val": 2, "max_val": 9} for name in ("s0", "s1", "2*s0")}
    return {**tree, "graph_module": {**tree["graph_module"], "graph": graph}, "range_constraints": ranges}


@pytest.mark.parametrize(
    ("sizes", "order"),
    [
        ({"a": ["s0"], "b": ["2*s0", 3], "c": ["s1", "s0 + s1"]}, "abc"),
        ({"a": ["2*s0"], "b": [3], "c": ["s0", "s1 + 1"], "d": ["(s1//2)", "s1"]}, "bdca"),
    ],
)
def test_symbols_are_sizes_before_they_are_parts(sizes, order):
    """2.1 and 2.2 learn the range of a symbol from a size that is the symbol, in the order of the tensors."""
    log = ConversionLog("x")
    tree = with_sizes(**sizes)
    new = make_readable(tree, "2", log)
    assert "".join(new["graph_module"]["graph"]["tensor_values"]) == order
    assert (new is tree, log.notes) == (order == "abc", ())


def test_symbols_that_are_no_size():
    """2.1 and 2.2 do not read them."""
    tree = with_sizes(a=["2*s0"], b=["s1"])
    log = ConversionLog("x")
    assert make_readable(tree, "2", log) is tree
    (note,) = log.notes
    assert (note.name, note.places[0]) == ("unreadable", "$.graph_module.graph.tensor_values.a")


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("TruncToInt(1.5*s0)", "TruncToInt"),
        ("floor(ToFloat(s0))", "ToFloat"),
        ("Max(1, Mod(s0, 2), (s0//2), floor(s0/2))", None),
    ],
)
def test_functions_that_are_not_read(text, function):
    """2.1 to 2.4 know functions of sympy alone."""
    log = ConversionLog("x")
    make_readable(with_sizes(a=["s0", text]), "2", log)
    message = f"an expression with {function}, which the release does not read"
    expected = [] if function is None else [("lost", "unreadable", message, "7.3")]
    assert [(note.kind, note.name, note.message, note.since) for note in log.notes] == expected
