"""Differences between two programs: edits are named, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.canonical.programs import A, B, graphs, node, program, rewritten, tensor_graph
from tests.canonical.test_program import regular
from tests.diffs.edits import (
    ADD,
    GELU,
    RELU,
    changes,
    layers,
    stack,
    told,
    with_input,
    with_nodes,
    with_parameters,
)
from tests.digests.packing import records
from tests.digests.test_compute import changed, converted, leaves
from tests.graph import build
from tests.graph.build import arg, subgraph
from tests.samples import CURRENT_LAYOUT, corpus, release_id, sample

import pt2kit
from pt2kit import codec, schema
from pt2kit.digests import digest_program
from pt2kit.errors import GraphError, LimitError

LATEST = CURRENT_LAYOUT[-3]


@settings(max_examples=200, deadline=None)
@given(graphs(), st.integers(0, 2**32))
def test_names_and_order_make_no_difference(graph: schema.Graph, seed: int) -> None:
    """A program written down in another way is the same program."""
    assert changes(program(graph), rewritten(program(graph), seed)) == []


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 3), st.booleans(), st.integers(0, 2**32))
def test_symmetry_makes_no_difference(seed: int, vertices: int, degree: int, cycles: bool, other: int) -> None:
    """Nor where nodes are alike in every way: then normal forms decide."""
    found = program(regular(seed, vertices, degree, cycles=cycles))
    assert changes(found, rewritten(found, other)) == []


@settings(max_examples=150, deadline=None)
@given(graphs(), graphs())
def test_any_two_graphs_can_be_compared(one: schema.Graph, two: schema.Graph) -> None:
    """Whatever differs: each node is there once at most, and there is a difference if the digests differ."""
    old, new = program(one), program(two)
    found = changes(old, new)
    places = [[(change.graph, change.new) for change in found if change.area == "node" and change.new is not None]]
    places.append([(change.graph, change.old) for change in found if change.area == "node" and change.old is not None])
    assert all(len(set(listed)) == len(listed) for listed in places)
    before, after = digest_program(old), digest_program(new)
    del before["metadata"], after["metadata"]
    assert (found == []) == (before == after)


@pytest.mark.parametrize("path", corpus(LATEST), ids=release_id)
def test_sample_files_written_down_in_another_way_are_the_same(path: Path) -> None:
    """Real programs, under other names and in another order, but around nodes that write."""
    for _, found in build.programs(path):
        details = {change.what for one in changes(found, rewritten(found, 3)) for change in one.details}
        assert details <= {"write order"}


PROGRAMS = ["kwargs_and_nested_inputs", "cond", "dynamic_batch", "none_input", "preserve_module_sig", "while_loop_hop"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_whatever_changes_a_digest_is_a_difference(name: str) -> None:
    """Any field of a program that is changed is reported, if it means anything; else nothing is."""
    stored = codec.decode(records(sample(LATEST, name))["models/model.json"], schema.ExportedProgram, "p").value
    tree, before = codec.to_tree(stored), digest_program(stored)
    places = leaves(tree)
    for path in places[:: max(1, len(places) // 400)]:
        try:
            other = converted(changed(tree, path))
            after = digest_program(other)
        except pt2kit.Pt2Error:
            continue
        assert (before == after) == (changes(stored, other, metadata=True) == []), path


def test_an_operator_that_was_replaced_is_one_modified_node() -> None:
    """Its module is named; everything around it is as it was."""
    graph = layers()
    edited = with_nodes(
        graph, lambda nodes: [replace(one, target=GELU) if one.name == "relu_1" else one for one in nodes]
    )
    [found] = changes(with_parameters(graph), with_parameters(edited))
    assert (found.kind, found.name, found.module) == ("modified", "relu_1", "layers.1")
    assert [(one.what, one.old, one.new) for one in found.details] == [("target", RELU, GELU)]


def test_a_node_that_was_put_in_is_added_and_its_user_modified() -> None:
    """Nodes after it correspond to those that were there."""
    graph = layers()

    def edit(nodes: list[schema.Node]) -> list[schema.Node]:
        new = replace(node(GELU, ["gelu"], arg(as_tensor="relu_1")), metadata=stack("layers.1"))
        after = [with_input(one, 1, arg(as_tensor="gelu")) if one.name == "add_1" else one for one in nodes]
        return [*after[:5], new, *after[5:]]

    edited = with_nodes(graph, edit)
    put_in = changes(with_parameters(graph), with_parameters(edited))
    assert told(put_in) == [("added", "node", "gelu"), ("modified", "node", "add_1", "argument a1")]
    taken_out = changes(with_parameters(edited), with_parameters(graph))
    assert told(taken_out) == [("removed", "node", "gelu"), ("modified", "node", "add_1", "argument a1")]


def test_a_layer_more_is_added_as_a_whole() -> None:
    """With its parameter; the output is another one."""
    found = told(changes(with_parameters(layers(3)), with_parameters(layers(4))))
    assert found == [
        ("added", "input", "layers.3.w"),
        ("modified", "output", "user_output 0", "argument"),
        ("added", "node", "linear_3"),
        ("added", "node", "relu_3"),
        ("added", "node", "add_3"),
    ]


def test_arguments_are_compared_by_name_and_value() -> None:
    """Constants, values that are swapped, arguments that come and go."""
    old = tensor_graph(
        ["x", "y"], [node(ADD, ["z"], arg(as_tensor="x"), arg(as_tensor="y"), schema.Argument(as_int=1))], ["z"]
    )
    one = old.nodes[0]
    cases = {
        ("argument a2",): with_input(one, 2, schema.Argument(as_int=2)),
        ("argument a0", "argument a1"): with_input(with_input(one, 0, arg(as_tensor="y")), 1, arg(as_tensor="x")),
        ("argument a2", ""): replace(one, inputs=one.inputs[:2]),
    }
    for expected, edited in cases.items():
        [found] = changes(program(old), program(replace(old, nodes=[edited])))
        assert [detail.what for detail in found.details] == [what for what in expected if what]


def test_results_are_compared_by_what_is_known_of_them() -> None:
    """Sizes, types and so on, field by field; such a node is described differently, no more."""
    old = layers(1)
    metas = dict(old.tensor_values)
    metas["relu_0"] = replace(build.meta(4, 3), dtype=schema.ScalarType.HALF)
    [found] = changes(program(old), program(replace(old, tensor_values=metas)))
    assert told([found]) == [("modified", "node", "relu_0", "result dtype", "result sizes")]
    assert found.is_described_only


def test_inputs_are_compared_by_what_the_module_calls_them() -> None:
    """Parameters by name; user inputs by position, and by name where one came or went."""
    old = with_parameters(layers(2))
    less = with_nodes(replace(layers(2), inputs=[*layers(2).inputs, arg(as_tensor="mask")]), lambda nodes: nodes)
    assert told(changes(old, with_parameters(less))) == [("added", "input", "mask")]
    assert told(changes(with_parameters(less), old)) == [("removed", "input", "mask")]
    renamed = replace(
        old,
        graph_module=replace(
            old.graph_module,
            signature=replace(
                old.graph_module.signature,
                input_specs=[
                    schema.InputSpec(parameter=replace(spec.value, parameter_name=f"model.{spec.value.parameter_name}"))
                    if spec.type == "parameter"
                    else spec
                    for spec in old.graph_module.signature.input_specs
                ],
            ),
        ),
    )
    assert told(changes(old, renamed)) == [
        ("modified", "input", "model.layers.0.w", "name"),
        ("modified", "input", "model.layers.1.w", "name"),
    ]


def test_names_and_order_are_compared_where_asked() -> None:
    """Names of nodes and values, and the fewest nodes that moved."""
    graph = layers(2)
    nodes = graph.nodes
    wide = tensor_graph(["x"], [node(A, ["p"], arg(as_tensor="x")), node(B, ["q"], arg(as_tensor="x"))], ["p", "q"])
    moved = replace(wide, nodes=wide.nodes[::-1])
    assert changes(program(wide), program(moved)) == []
    assert told(changes(program(wide), program(moved), order=True)) in (
        [("modified", "node", "q", "place")],
        [("modified", "node", "p", "place")],
    )
    other = replace(graph, nodes=[replace(nodes[0], name="renamed"), *nodes[1:]])
    assert changes(program(graph), program(other)) == []
    assert told(changes(program(graph), program(other), names=True)) == [("modified", "node", "renamed", "name")]


def test_the_order_around_writes_is_compared() -> None:
    """A value that is read before it is written, not after, is another value."""
    write = node("torch.ops.aten.add_.Tensor", ["w"], arg(as_tensor="x"))
    read = node(A, ["y"], arg(as_tensor="x"))
    one, two = (program(tensor_graph(["x"], order, ["y"])) for order in ([write, read], [read, write]))
    assert {detail.what for change in changes(one, two) for detail in change.details} == {"write order"}


def test_subgraphs_are_compared_in_place() -> None:
    """Their nodes are named with the path that leads to them; their inputs and results, too."""
    body = tensor_graph(["b"], [node(A, ["c"], arg(as_tensor="b")), node(B, ["d"], arg(as_tensor="c"))], ["d"])

    def holder(inner: schema.Graph) -> schema.ExportedProgram:
        return program(tensor_graph(["x"], [node(A, ["y"], arg(as_tensor="x"), subgraph(inner))], ["y"]))

    other = replace(body, nodes=[body.nodes[0], replace(body.nodes[1], target=A)])
    assert told(changes(holder(body), holder(other))) == [("modified", "node", "y/body/d", "target")]
    shorter = replace(body, outputs=[arg(as_tensor="c")])
    assert told(changes(holder(body), holder(shorter))) == [("modified", "output", "y/body/0", "argument")]
    more = tensor_graph(["b", "e"], body.nodes, ["d", "c"])
    assert told(changes(holder(body), holder(more))) == [
        ("modified", "input", "y/body", "inputs"),
        ("modified", "output", "y/body", "outputs"),
    ]
    flagged = replace(body, is_single_tensor_return=True)
    assert told(changes(holder(body), holder(flagged))) == [("modified", "output", "y/body", "single tensor return")]


def _symbolic(symbol: str) -> schema.ExportedProgram:
    graph = layers(1)
    size = schema.SymInt(as_expr=schema.SymExpr(f"Symbol('{symbol}', positive=True, integer=True)"))
    metas = {name: replace(meta, sizes=[size, *meta.sizes[1:]]) for name, meta in graph.tensor_values.items()}
    found = program(replace(graph, tensor_values=metas))
    return replace(found, range_constraints={symbol: schema.RangeConstraint(2, 8)}, guards_code=[f"{symbol} > 1"])


def test_names_of_symbols_make_no_difference() -> None:
    """Sizes, ranges and guards follow; another kind of symbol is another thing, and names are told where asked."""
    assert changes(_symbolic("s0"), _symbolic("s77")) == []
    assert told(changes(_symbolic("s0"), _symbolic("s77"), names=True)) == [("modified", "constraint", "s77", "name")]
    assert told(changes(_symbolic("s0"), _symbolic("u0"))) == [("modified", "constraint", "u0", "name")]
    assert changes(_symbolic("s0"), _symbolic("s0"), names=True) == []


def test_constraints_guards_calls_and_the_rest_are_compared() -> None:
    """Everything around the graph."""
    old = _symbolic("s0")
    module = old.graph_module
    call = schema.ModuleCallSignature([], [], "i", "o")
    cases = {
        ("modified", "constraint", "s0", "range"): replace(old, range_constraints={"s0": schema.RangeConstraint(2, 9)}),
        ("removed", "constraint", "s0", "range"): replace(old, range_constraints={}),
        ("removed", "guard", "s0 > 1"): replace(old, guards_code=[]),
        ("added", "guard", "s0 > 2"): replace(old, guards_code=["s0 > 1", "s0 > 2"]),
        ("modified", "program", "opset_version", "opset_version"): replace(old, opset_version={"aten": 11}),
        ("modified", "program", "verifiers", "verifiers"): replace(old, verifiers=["ATEN"]),
        ("added", "module call", "sub"): replace(
            old, graph_module=replace(module, module_call_graph=[schema.ModuleCallEntry("sub")])
        ),
        ("modified", "module call", "T", "fields of T"): replace(
            old, graph_module=replace(module, treespec_namedtuple_fields={"T": schema.NamedTupleDef(["a"])})
        ),
    }
    for expected, new in cases.items():
        assert told(changes(old, new)) == [expected]
    before, after = (
        replace(old, graph_module=replace(module, module_call_graph=[schema.ModuleCallEntry("", one)]))
        for one in (call, replace(call, in_spec="j", forward_arg_names=["x"]))
    )
    assert told(changes(before, after)) == [("modified", "module call", "", "in_spec", "forward_arg_names")]
    other = replace(old, torch_version="9.9", graph_module=replace(module, metadata={"k": "v"}))
    assert told(changes(old, other, metadata=True)) == [
        ("modified", "metadata", "torch_version", "torch_version"),
        ("modified", "metadata", "k", "k"),
    ]
    assert changes(old, other) == []


def test_metadata_of_nodes_is_compared_where_asked() -> None:
    """Key by key; it changes nothing else."""
    graph = layers(1)
    other = with_nodes(graph, lambda nodes: [replace(nodes[0], metadata={**nodes[0].metadata, "k": "v"}), *nodes[1:]])
    [found] = changes(program(graph), program(other), metadata=True)
    assert told([found]) == [("modified", "node", "linear_0", "metadata k")]
    assert found.is_described_only


def test_how_arguments_are_passed_is_no_change() -> None:
    """Older files do not say it, and torch binds the arguments of an operator by name."""
    graph = layers(1)
    untold = with_nodes(
        graph,
        lambda nodes: [replace(one, inputs=[replace(named, kind=None) for named in one.inputs]) for one in nodes],
    )
    assert changes(program(untold), program(graph)) == []


def test_programs_without_traces_name_the_module_of_the_parameter() -> None:
    """A node belongs to the module whose parameter was used last."""
    graph = with_nodes(layers(), lambda nodes: [replace(one, metadata={}) for one in nodes])
    edited = with_nodes(
        graph, lambda nodes: [replace(one, target=GELU) if one.name == "relu_1" else one for one in nodes]
    )
    [found] = changes(with_parameters(graph), with_parameters(edited))
    assert found.module == "layers.1"


def test_contradictions_are_refused() -> None:
    """With the side on which they are."""
    good = program(layers(1))
    bad = program(tensor_graph(["x"], [node(A, ["y"], arg(as_tensor="nobody"))], ["y"]))
    with pytest.raises(GraphError, match=r"^new \$\.graph_module\.graph\.nodes\[0\]\.inputs\[0\]: .*'nobody'.*\[G1\]"):
        changes(good, bad)
    short = replace(good, graph_module=replace(good.graph_module, signature=schema.GraphSignature([], [])))
    with pytest.raises(GraphError, match=r"^old \$\.graph_module\.signature\.input_specs: expected \d+ input_specs"):
        changes(short, good)
    with pytest.raises(LimitError, match="G11"):
        changes(program(build.nested(33)), program(build.nested(33)))


@pytest.mark.parametrize("names", [[], ["y", "y"]])
def test_lists_are_no_outputs(names: list[str]) -> None:
    """Of a graph, each output is one value."""
    graph = tensor_graph(["x"], [node(A, ["y"], arg(as_tensor="x"))], ["y"])
    listed = replace(graph, outputs=[arg(as_tensors=names)])
    with pytest.raises(GraphError, match=r"^new \$\.graph_module\.graph\.outputs\[0\]: .* got as_tensors \[G9\]"):
        changes(program(graph), program(listed))


def test_graphs_that_have_nothing_in_common_take_no_longer() -> None:
    """Thousands of nodes in one module, all of another operator order: no quadratic search."""
    x = arg(as_tensor="x")
    one = tensor_graph(["x"], [node(A if n % 2 else B, [f"v{n}"], x) for n in range(3000)], [])
    two = tensor_graph(["x"], [node(A if n % 3 else B, [f"v{n}"], x, x) for n in range(3000)], [])
    found = changes(program(one), program(two))
    assert len([change for change in found if change.kind == "modified"]) > 2000
