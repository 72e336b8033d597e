"""Definitions and uses of values, and contradictions."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.graph.build import PLACE, arg, chain, dicts, meta, node, program, programs, subgraph
from tests.graph.build import graph as make
from tests.samples import CURRENT_LAYOUT, corpus, release_id, sample
from tests.strategies import structs

from pt2kit import graph, schema
from pt2kit.errors import GraphError, LimitError, Pt2Error
from pt2kit.graph import Definition, Use

OBJECT = schema.CustomObjArgument("c", "__torch__.C")
EXPR = schema.SymInt(as_expr=schema.SymExpr("s0"))


def only(source: schema.Graph) -> graph.GraphIndex:
    """The index of a graph, which its problems agree with."""
    assert [problem for problem in graph.problems(source) if problem.kind == "error"] == []
    return graph.index(source)


@pytest.mark.parametrize("path", corpus(*CURRENT_LAYOUT), ids=release_id)
def test_real_programs_do_not_contradict_themselves(path: Path) -> None:
    """Every graph of every real file is indexed, and nothing at all is found wrong with it."""
    for record, read in programs(path):
        assert list(graph.problems(read, f"{record}: {PLACE}")) == []
        for scope, found in graph.indexes(read):
            values = graph.tables(scope.graph).values()
            assert set(found.definitions) == set(found.uses) == {name for table in values for name in table}
            assert found.externals == ()


def test_definitions_of_a_real_program() -> None:
    """Inputs and nodes are where the file has them; lists of outputs count their items."""
    found = graph.index(program(sample("2.13.0", "multi_output")).graph_module.graph)
    assert list(found.definitions)[:5] == ["x", "getitem", "getitem_1", "getitem_2", "getitem_3"]
    assert found.definitions["x"] == Definition("x", "tensor", None, 0)
    assert found.definitions["getitem_2"] == Definition("getitem_2", "tensor", 0, 0, 2)
    assert found.definitions["getitem_4"] == Definition("getitem_4", "tensor", 1, 1)


def test_uses_of_a_real_program() -> None:
    """Uses are in execution order, graph outputs last; a use inside a subgraph is one of the subgraph's own input."""
    read = program(sample("2.13.0", "cond_closure"))
    found = graph.index(read.graph_module.graph)
    assert found.uses["p_b_bias"] == (Use(0, 3, 3),)
    assert found.uses["add"] == (Use(None, 0),)
    assert found.users("x") == (0,)
    assert found.users("add") == ()


def test_symbolic_values_are_indexed() -> None:
    """Symbolic integers are values like tensors, with what the tables say of them."""
    source = program(sample("2.13.0", "sym_ops")).graph_module.graph
    found = graph.index(source)
    assert found.definitions["floordiv"].kind == "sym_int"
    assert found.meta("floordiv") is source.sym_int_values["floordiv"]
    assert found.users("sym_size_int_2") == (2, 4, 6, 8, 9, 14)


def test_a_value_used_twice_has_two_uses_and_one_user() -> None:
    """Each time an argument names a value is a use; a node is a user once; an unused value has none."""
    source = make(
        [arg(as_tensor="x"), arg(as_tensor="unused")],
        [node([arg(as_tensor="y")], arg(as_tensors=["x", "x"]), arg(as_tensor="x"), name="y")],
        [arg(as_tensor="y"), arg(as_tensor="x")],
        tensor_values={name: meta(2) for name in ("x", "unused", "y")},
    )
    found = only(source)
    assert found.uses["x"] == (Use(0, 0), Use(0, 0, 1), Use(0, 1), Use(None, 1))
    assert found.users("x") == (0,)
    assert found.uses["unused"] == ()


def test_custom_objects_of_the_constants_are_externals() -> None:
    """A custom object that nothing defines is one of the archive's constants; one that is an input is a value."""
    source = make(
        [arg(as_custom_obj="c")],
        [node([arg(as_tensor="y")], arg(as_custom_obj="_custom_obj_0"), arg(as_custom_obj="c"))],
        [arg(as_tensor="y"), arg(as_custom_obj="_custom_obj_0")],
        tensor_values={"y": meta()},
        custom_obj_values={"c": OBJECT},
    )
    found = only(source)
    assert found.externals == ("_custom_obj_0",)
    assert found.definitions["c"].kind == "custom_obj"
    assert found.meta("c") == OBJECT


def test_lists_of_tensors_may_hold_other_values() -> None:
    """Torch writes operands of higher-order operators as a list of tensors even where one is a symbolic integer."""
    source = make(
        [arg(as_tensor="x"), arg(as_sym_int="n")],
        [node([arg(as_tensor="y")], arg(as_tensors=["x", "n"]))],
        [arg(as_tensor="y")],
        tensor_values={"x": meta(), "y": meta()},
        sym_int_values={"n": EXPR},
    )
    assert only(source).users("n") == (0,)


def test_constant_inputs_and_outputs_have_no_names() -> None:
    """Constants among the inputs and outputs take a position and define nothing."""
    source = make(
        [arg(as_none=True), arg(as_int=3), arg(as_string="s"), arg(as_tensor="x")],
        [],
        [arg(as_int=1), arg(as_tensor="x"), arg(as_none=True)],
        tensor_values={"x": meta()},
    )
    found = only(source)
    assert found.definitions == {"x": Definition("x", "tensor", None, 3)}
    assert found.uses == {"x": (Use(None, 1),)}


def test_an_index_cannot_be_changed() -> None:
    """An index cannot be changed."""
    found = graph.index(chain("x", "y"))
    with pytest.raises(TypeError, match="does not support item assignment"):
        found.uses["x"] = ()  # type: ignore[index]
    with pytest.raises(AttributeError, match="cannot assign to field 'externals'"):
        found.externals = ("z",)  # type: ignore[misc]


X, Y, Z = (arg(as_tensor=name) for name in "xyz")
GOOD = chain("x", "y", "z")
FIRST, SECOND = GOOD.nodes
EXPECTED = "expected the name of a graph input or of an earlier node's result"
TOO_DEEP = "expected dicts of arguments nested at most 32 levels deep, got more"
DEEP = dicts(33, arg(as_int=1))


def good(**changes: Any) -> schema.Graph:
    """The chain x -> y -> z, with fields replaced."""
    return replace(GOOD, **changes)


def with_table(**entries: schema.TensorMeta | None) -> schema.Graph:
    """The chain, with other entries for its tensors; None takes an entry away."""
    values = {**GOOD.tensor_values, **entries}
    return good(tensor_values={name: entry for name, entry in values.items() if entry is not None})


CONTRADICTIONS: list[tuple[str, schema.Graph, str, str]] = [
    (
        "G1",
        good(nodes=[FIRST, replace(SECOND, inputs=[schema.NamedArgument("self", arg(as_tensor="ghost"))])]),
        "$.nodes[1].inputs[0]",
        f"{EXPECTED}, got 'ghost', which nothing defines (argument 'self' of torch.ops.aten.op)",
    ),
    (
        "G1",
        good(nodes=[node([Y], X, Z, name="y"), SECOND]),
        "$.nodes[0].inputs[1]",
        f"{EXPECTED}, got 'z', which nodes[1] defines, which is not earlier (argument 'a1' of torch.ops.aten.op)",
    ),
    (
        "G1",
        good(nodes=[node([Y], Y, name="y"), SECOND]),
        "$.nodes[0].inputs[0]",
        f"{EXPECTED}, got 'y', which nodes[0] defines, which is not earlier (argument 'a0' of torch.ops.aten.op)",
    ),
    (
        "G1",
        good(nodes=[replace(FIRST, inputs=[schema.NamedArgument("", arg(as_tensors=["x", ""]))]), SECOND]),
        "$.nodes[0].inputs[0]",
        f"{EXPECTED}, got '', which nothing defines (argument 0 of torch.ops.aten.op)",
    ),
    ("G1", good(outputs=[Z, arg(as_tensor="out")]), "$.outputs[1]", f"{EXPECTED}, got 'out', which nothing defines"),
    (
        "G1",
        good(nodes=[FIRST, node([Z], Y, subgraph(chain("x", "y")), arg(as_custom_obj="z"), name="z")]),
        "$.nodes[1].inputs[2]",
        f"{EXPECTED}, got 'z', which nodes[1] defines, which is not earlier (argument 'a2' of torch.ops.aten.op)",
    ),
    ("G1", good(outputs=[arg(as_custom_obj="c")], custom_obj_values={"c": OBJECT}), "$.outputs[0]", EXPECTED),
    (
        "G2",
        good(nodes=[FIRST, node([Y], X, name="y2"), SECOND]),
        "$.nodes[1].outputs[0]",
        "expected a name that is not taken, got 'y', which nodes[0] defines",
    ),
    (
        "G2",
        good(nodes=[node([X], X, name="n")], outputs=[X]),
        "$.nodes[0].outputs[0]",
        "expected a name that is not taken, got 'x', which inputs[0] defines",
    ),
    ("G2", good(inputs=[X, X]), "$.inputs[1]", "got 'x', which inputs[0] defines"),
    ("G2", good(nodes=[node([arg(as_tensors=["y", "y"])], X), SECOND]), "$.nodes[0].outputs[0]", "got 'y', which"),
    (
        "G3",
        with_table(y=None),
        "$.nodes[0].outputs[0]",
        "expected an entry for 'y' in tensor_values, got none",
    ),
    ("G3", with_table(x=None), "$.inputs[0]", "expected an entry for 'x' in tensor_values, got none"),
    (
        "G3",
        replace(with_table(y=None), sym_int_values={"y": EXPR}),
        "$.nodes[0].outputs[0]",
        "expected an entry for 'y' in tensor_values, got one in sym_int_values",
    ),
    (
        "G4",
        good(sym_int_values={"y": EXPR}),
        "$.sym_int_values.y",
        "expected one entry for 'y', got a second one, after that in tensor_values",
    ),
    (
        "G6",
        with_table(y=meta(2, 3, strides=(3,))),
        "$.tensor_values.y",
        "expected as many sizes as strides, got 2 and 1",
    ),
    (
        "G6",
        with_table(y=meta(2, -3, strides=(3, 1))),
        "$.tensor_values.y",
        "expected sizes, strides and storage_offset of at least 0, got -3",
    ),
    ("G6", with_table(y=meta(2, strides=(-1,))), "$.tensor_values.y", "of at least 0, got -1"),
    ("G6", with_table(y=meta(2, offset=-8)), "$.tensor_values.y", "of at least 0, got -8"),
    (
        "G7",
        good(nodes=[FIRST, replace(SECOND, inputs=[schema.NamedArgument("dim", arg(as_sym_int="y"))])]),
        "$.nodes[1].inputs[0]",
        "expected the name of a sym_int value, got 'y', which is a tensor value",
    ),
    ("G7", good(outputs=[arg(as_custom_obj="z")]), "$.outputs[0]", "expected the name of a custom_obj value, got 'z'"),
    (
        "G8",
        chain("x", "y=open('f')", "z"),
        "$.nodes[0].outputs[0]",
        """expected an identifier as the name of a value, got "y=open('f')\"""",
    ),
    ("G8", chain("", "y"), "$.inputs[0]", "expected an identifier as the name of a value, got ''"),
    ("G9", good(inputs=[X, arg(as_tensors=[])]), "$.inputs[1]", "expected one value or constant, got as_tensors"),
    ("G9", good(inputs=[X, subgraph(GOOD)]), "$.inputs[1]", "expected one value or constant, got as_graph"),
    ("G10", good(nodes=[FIRST, node([Z, subgraph(GOOD)], Y)]), "$.nodes[1].outputs[1]", "got a subgraph"),
    (
        "G10",
        good(outputs=[Z, dicts(1, subgraph(GOOD))]),
        "$.outputs[1]",
        "expected values or constants, got a subgraph",
    ),
    ("G11", good(nodes=[FIRST, node([Z], Y, DEEP)]), "$.nodes[1].inputs[1]", TOO_DEEP),
    ("G11", good(nodes=[FIRST, node([Z, DEEP], Y)]), "$.nodes[1].outputs[1]", TOO_DEEP),
    ("G11", good(outputs=[Z, DEEP]), "$.outputs[1]", TOO_DEEP),
    (
        "G12",
        good(outputs=[Z, Y], is_single_tensor_return=True),
        "$.outputs",
        "expected one output that is a value, as is_single_tensor_return says, got 2 outputs",
    ),
    ("G12", good(outputs=[arg(as_int=1)], is_single_tensor_return=True), "$.outputs", "got as_int"),
    (
        "G13",
        good(nodes=[FIRST, replace(SECOND, outputs=[Z, arg(as_none=True)], is_hop_single_tensor_return=True)]),
        "$.nodes[1].outputs",
        "expected one output that is a tensor, as is_hop_single_tensor_return says, got 2 outputs",
    ),
    (
        "G13",
        good(nodes=[FIRST, replace(SECOND, outputs=[arg(as_tensors=["z"])], is_hop_single_tensor_return=True)]),
        "$.nodes[1].outputs",
        "got as_tensors",
    ),
    (
        "G16",
        good(nodes=[FIRST, node([Z], Y, subgraph(chain("a", "b")), subgraph(chain("a", "b", "c")), name="z")]),
        "$.nodes[1].inputs[2]",
        "expected a name of its own for a subgraph, got 'body', which another one has",
    ),
    (
        "G17",
        good(tensor_values={**GOOD.tensor_values, "y": replace(meta(1), dtype=schema.ScalarType.UNKNOWN)}),
        "$.tensor_values.y",
        "expected an element type that torch has, got 0 (UNKNOWN)",
    ),
]


@pytest.mark.parametrize(("rule", "source", "place", "text"), CONTRADICTIONS)
def test_contradictions_are_refused(rule: str, source: schema.Graph, place: str, text: str) -> None:
    """The first contradiction is raised with its place, what was expected, what was found, and its rule."""
    where = f"models/model.json: {PLACE}"
    with pytest.raises(LimitError if rule == "G11" else GraphError) as caught:
        graph.index(source, where)
    message = str(caught.value)
    assert message.startswith(place.replace("$", where, 1) + ": ")
    assert text in message
    assert message.endswith(f" [{rule}]")
    assert caught.value.rule == rule


@pytest.mark.parametrize(("rule", "source", "place", "text"), CONTRADICTIONS)
def test_problems_hold_what_index_raises(rule: str, source: schema.Graph, place: str, text: str) -> None:
    """The first error among the problems is the one that `index` raises."""
    first = next(problem for problem in graph.problems(source) if problem.kind == "error")
    with pytest.raises(Pt2Error) as caught:
        graph.index(source)
    assert str(first) == str(caught.value)


def test_a_single_return_may_be_symbolic() -> None:
    """A graph with a single return may return a symbolic value."""
    source = make([arg(as_sym_int="n")], [], [arg(as_sym_int="n")], sym_int_values={"n": EXPR})
    only(replace(source, is_single_tensor_return=True))


def test_all_contradictions_are_collected() -> None:
    """All problems of a program are listed in the order of the graph, subgraphs after their owner."""
    body = subgraph(replace(chain("a", "b"), outputs=[arg(as_tensor="c")]))
    nodes = [node([Y], arg(as_tensor="ghost"), body, name="y"), node([Y], X, name="z")]
    source = replace(with_table(x=meta(2, strides=())), nodes=nodes, outputs=[Z])
    found = [(problem.rule, problem.loc) for problem in graph.problems(source)]
    assert found == [
        ("G6", "$.tensor_values.x"),
        ("G1", "$.nodes[0].inputs[0]"),
        ("G2", "$.nodes[1].outputs[0]"),
        ("G1", "$.outputs[0]"),
        ("G5", "$.tensor_values.z"),
        ("G1", "$.nodes[0].inputs[1].arg.as_graph.graph.outputs[0]"),
    ]


def test_long_names_are_cut_in_messages() -> None:
    """A name of any length makes a message of one line."""
    with pytest.raises(GraphError) as caught:
        graph.index(good(outputs=[arg(as_tensor="g" * 10_000)]))
    assert len(str(caught.value)) < 300
    assert f"got '{'g' * 60}…' (10000 characters), which" in str(caught.value)
    long = {**GOOD.tensor_values, "é\n" * 5_000: meta(2, strides=())}
    assert all(len(str(problem)) < 1000 for problem in graph.problems(good(tensor_values=long)))


@st.composite
def dags(draw: st.DrawFn) -> schema.Graph:
    """A graph whose nodes use any values before them and define one value or a list of two."""
    names = [f"v{number}" for number in range(draw(st.integers(1, 3)))]
    inputs = [arg(as_tensor=name) for name in names]
    nodes = []
    for number in range(draw(st.integers(0, 8))):
        used = [draw(st.lists(st.sampled_from(names), max_size=3)) for _ in range(draw(st.integers(0, 3)))]
        made = [f"n{number}_{item}" for item in range(draw(st.integers(1, 2)))]
        output = arg(as_tensor=made[0]) if len(made) == 1 else arg(as_tensors=made)
        nodes.append(node([output], *[arg(as_tensors=group) for group in used], name=f"n{number}"))
        names += made
    outputs = [arg(as_tensor=name) for name in draw(st.lists(st.sampled_from(names), max_size=3))]
    return make(inputs, nodes, outputs, tensor_values={name: meta(1) for name in names})


def uses_by_search(source: schema.Graph, name: str) -> list[Use]:
    """The uses of a value, found by looking at every argument."""
    found = [
        Use(number, position, item)
        for number, owner in enumerate(source.nodes)
        for position, named in enumerate(owner.inputs)
        for item, used in enumerate(graph.arguments(named.arg))
        if used == name
    ]
    return found + [Use(None, position) for position, held in enumerate(source.outputs) if held.value.name == name]


@given(dags())
def test_an_index_is_what_a_search_finds(source: schema.Graph) -> None:
    """Uses are exactly those that a search through all arguments finds; definitions point at the name."""
    found = only(source)
    for name, definition in found.definitions.items():
        owner = source.inputs if definition.node is None else source.nodes[definition.node].outputs
        assert list(graph.defined(owner[definition.position]))[definition.item] == name == definition.name
        assert found.uses[name] == tuple(uses_by_search(source, name))


@given(dags(), st.randoms(use_true_random=False))
def test_another_order_is_refused_unless_it_is_topological(source: schema.Graph, rng: random.Random) -> None:
    """Shuffled nodes are accepted if and only if no node uses what a later one defines."""
    nodes = list(source.nodes)
    rng.shuffle(nodes)
    known = {name for held in source.inputs for name in graph.defined(held)}
    topological = True
    for owner in nodes:
        topological &= {name for named in owner.inputs for name in graph.arguments(named.arg)} <= known
        known |= set(graph.node_outputs(owner))
    shuffled = replace(source, nodes=nodes)
    if topological:
        only(shuffled)
    else:
        with pytest.raises(GraphError, match=r"\[G1\]"):
            graph.index(shuffled)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(structs(schema.Graph))
def test_any_graph_is_indexed_or_refused(source: schema.Graph) -> None:
    """Whatever the schema allows raises an error of ours or nothing, and the problems agree with it."""
    errors = [problem for problem in graph.problems(source) if problem.kind == "error"]
    try:
        for _ in graph.indexes(source):
            pass
    except (GraphError, LimitError) as error:
        assert str(error) in map(str, errors)
    else:
        assert errors == []
