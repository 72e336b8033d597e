"""The normal form of programs: the same for every way to write one down, itself again, and what it keeps and drops."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.canonical.programs import A, B, graphs, node, program, rewritten, tensor_graph
from tests.graph import build
from tests.graph.build import arg
from tests.narrow import present
from tests.samples import CURRENT_LAYOUT, corpus, release_id

from pt2kit import codec, schema
from pt2kit.canonical import canonicalize
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph import arguments, indexes

FILES = corpus(*CURRENT_LAYOUT)


def terms(graph: schema.Graph) -> tuple[list[object], Counter[object]]:
    """Return the outputs of a graph as terms over its inputs, and how often each call is made."""
    known: dict[str, object] = {
        name: ("input", place) for place, name in enumerate(name for held in graph.inputs for name in arguments(held))
    }
    calls: Counter[object] = Counter()
    for one in graph.nodes:
        held = tuple(
            (named.name, named.arg.type, tuple(known[name] for name in arguments(named.arg)), _constant(named.arg))
            for named in one.inputs
        )
        term = hash((one.target, held))
        calls[term] += 1
        names = [name for output in one.outputs for name in arguments(output)]
        known |= {name: (term, place) for place, name in enumerate(names)}
    return [known[name] for output in graph.outputs for name in arguments(output)], calls


def _constant(held: schema.Argument) -> object:
    if held.type == "as_graph":
        found, calls = terms(present(held.as_graph).graph)
        return tuple(found), frozenset(calls.items())
    return held.value if held.type == "as_int" else None


@settings(max_examples=300, deadline=None)
@given(graphs(), st.integers(0, 2**32))
def test_the_normal_form_is_one_for_all_ways_to_write_a_program(graph: schema.Graph, seed: int) -> None:
    """Other topological orders, names, orders of maps and metadata: the same bytes; and it is a fixed point."""
    one = canonicalize(program(graph))
    assert codec.encode(canonicalize(rewritten(program(graph), seed))) == codec.encode(one)
    assert codec.encode(canonicalize(one)) == codec.encode(one)
    ordered = canonicalize(program(graph), keep_write_order=True)
    assert ordered == one  # These operators write nothing.
    list(indexes(one))
    assert terms(one.graph_module.graph) == terms(graph)


@pytest.mark.parametrize("path", FILES, ids=release_id)
def test_sample_files_have_one_normal_form(path: Path) -> None:
    """The programs of real files, too, however they are written down; nothing of the input changes."""
    for _, found in build.programs(path):
        before = codec.encode(found)
        one = codec.encode(canonicalize(found))
        assert codec.encode(canonicalize(rewritten(found, 1))) == one
        assert codec.encode(canonicalize(rewritten(found, 2))) == one
        assert codec.encode(canonicalize(codec.decode(one, schema.ExportedProgram, "one").value)) == one
        assert codec.encode(found) == before


def regular(seed: int, vertices: int, degree: int, *, cycles: bool) -> schema.Graph:
    """A graph that leads nowhere and looks the same from everywhere: a node per vertex, a node per edge.

    Args:
        cycles: a union of cycles of several lengths, which refinement can't tell apart; else random and regular.
    """
    rng = random.Random(seed)
    edges = []
    if cycles:
        lengths = [3, 3, 6, 4, 5][: vertices // 3]
        base = 0
        for length in lengths:
            edges += [(base + i, base + (i + 1) % length) for i in range(length)]
            base += length
        vertices = base
    else:
        for _ in range(degree):
            targets = rng.sample(range(vertices), vertices)
            edges += list(zip(range(vertices), targets, strict=True))
    nodes = [node(A, [f"r{i}"]) for i in range(vertices)]
    nodes += [node(B, [], arg(as_tensor=f"r{i}"), arg(as_tensor=f"r{j}")) for i, j in edges]
    return tensor_graph([], nodes, [])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 3), st.booleans(), st.integers(0, 2**32))
def test_symmetric_graphs_have_one_normal_form(seed: int, vertices: int, degree: int, cycles: bool, other: int) -> None:
    """Nodes that no argument, result or use tells apart come in an order that changes nothing."""
    found = program(regular(seed, vertices, degree, cycles=cycles))
    assert canonicalize(rewritten(found, other)) == canonicalize(found)


def test_equal_nodes_come_in_the_order_in_which_outputs_reach_them() -> None:
    """Two draws of random numbers are told apart by where they go, not by which was written first."""
    rand = [node(A, ["r"]), node(A, ["s"])]
    one = tensor_graph([], [*rand, node(B, ["t"], arg(as_tensor="r"), arg(as_tensor="s"))], ["t", "s"])
    two = tensor_graph([], [*rand, node(B, ["t"], arg(as_tensor="s"), arg(as_tensor="r"))], ["t", "r"])
    three = tensor_graph([], [*rand, node(B, ["t"], arg(as_tensor="s"), arg(as_tensor="r"))], ["t", "s"])
    assert canonicalize(program(one)) == canonicalize(program(two))
    assert canonicalize(program(one)) != canonicalize(program(three))


def test_ready_nodes_come_by_target_then_arguments() -> None:
    """The order among ready nodes: the target, then names of arguments and ranks of values, then constants."""
    nodes = [
        node(B, ["e"], arg(as_tensor="x")),
        node(A, ["d"], arg(as_tensor="y")),
        node(A, ["c"], arg(as_tensor="x"), schema.Argument(as_int=7)),
        node(A, ["b"], arg(as_tensor="x"), schema.Argument(as_int=3)),
        node(A, ["a"], schema.Argument(as_int=3), arg(as_tensor="y")),
    ]
    found = canonicalize(program(tensor_graph(["x", "y"], nodes, ["a", "b", "c", "d", "e"]))).graph_module.graph
    order = [int(output.as_tensor.name[1:]) - 2 for output in found.outputs]
    assert order == [0, 1, 2, 3, 4]  # a: constant first (-1); b, c: x, then the constant; d: y; e: the other target.


def _state_program() -> schema.ExportedProgram:
    names = ["u", "k", "b2", "b1", "p", "t"]
    nodes = [node(A, ["m"], arg(as_tensor="u")), node(B, ["n"], arg(as_tensor="b1"))]
    held = replace(
        tensor_graph(names, nodes, ["m", "n", "m"]),
        inputs=[*(arg(as_tensor=name) for name in names), schema.Argument(as_int=4)],
    )
    tensor = schema.TensorArgument
    inputs = [
        schema.InputSpec(user_input=schema.UserInputSpec(arg(as_tensor="u"))),
        schema.InputSpec(tensor_constant=schema.InputToTensorConstantSpec(tensor("k"), "lifted")),
        schema.InputSpec(buffer=schema.InputToBufferSpec(tensor("b2"), "z", True)),
        schema.InputSpec(buffer=schema.InputToBufferSpec(tensor("b1"), "a", False)),
        schema.InputSpec(parameter=schema.InputToParameterSpec(tensor("p"), "w")),
        schema.InputSpec(token=schema.InputTokenSpec(schema.TokenArgument("t"))),
        schema.InputSpec(constant_input=schema.InputToConstantInputSpec("c", schema.ConstantValue(as_int=4))),
    ]
    outputs = [
        schema.OutputSpec(user_output=schema.UserOutputSpec(arg(as_tensor="m"))),
        schema.OutputSpec(buffer_mutation=schema.BufferMutationSpec(tensor("n"), "a")),
        schema.OutputSpec(user_input_mutation=schema.UserInputMutationSpec(tensor("m"), "u")),
    ]
    module = schema.GraphModule(held, schema.GraphSignature(inputs, outputs), [])
    return replace(program(held), graph_module=module)


def test_inputs_and_outputs_are_sorted_by_kind_and_name() -> None:
    """Tokens, parameters, buffers by name, constants, user inputs, constant inputs; mutations before user outputs."""
    found = canonicalize(_state_program()).graph_module
    assert [spec.type for spec in found.signature.input_specs] == [
        *("token", "parameter", "buffer", "buffer", "tensor_constant", "user_input", "constant_input")
    ]
    assert [spec.value.buffer_name for spec in found.signature.input_specs[2:4]] == ["a", "z"]
    assert [spec.type for spec in found.signature.output_specs] == [
        *("buffer_mutation", "user_input_mutation", "user_output")
    ]
    assert found.signature.output_specs[1].value.user_input_name == "_5"
    assert [held.value for held in found.graph.inputs[:-1]] == [schema.TensorArgument(f"_{i}") for i in range(6)]


def test_module_calls_named_tuples_and_sets_are_kept_and_sorted() -> None:
    """Calls of modules follow the new names; what says how the program is called stays; node names and metadata go."""
    held = tensor_graph(["x"], [replace(node(A, ["y"], arg(as_tensor="x")), metadata={"k": "v"})], ["y"])
    call = schema.ModuleCallSignature([arg(as_tensor="x")], [arg(as_tensor="y")], "i", "o")
    found = program(held, guards_code=["b", "a"])
    module = replace(
        found.graph_module,
        module_call_graph=[schema.ModuleCallEntry("sub", call), schema.ModuleCallEntry("")],
        treespec_namedtuple_fields={"T": schema.NamedTupleDef(["a"])},
        metadata={"made": "today"},
    )
    one = canonicalize(replace(found, graph_module=module))
    assert [entry.fqn for entry in one.graph_module.module_call_graph] == ["", "sub"]
    assert one.graph_module.module_call_graph[1].signature == replace(
        call, inputs=[arg(as_tensor="_0")], outputs=[arg(as_tensor="_1")]
    )
    assert one.graph_module.treespec_namedtuple_fields == module.treespec_namedtuple_fields
    assert one.graph_module.metadata == {}
    assert (one.graph_module.graph.nodes[0].name, one.graph_module.graph.nodes[0].metadata) == (None, {})
    assert one.guards_code == ["a", "b"]
    kept = canonicalize(replace(found, graph_module=module), keep_metadata=True)
    assert kept.graph_module.graph.nodes[0].metadata == {"k": "v"}


def _writer(first: str, second: str) -> schema.ExportedProgram:
    nodes = {
        "write": node("torch.ops.aten.add_.Tensor", ["w"], arg(as_tensor="x"), schema.Argument(as_int=1)),
        "read": node(A, ["y"], arg(as_tensor="x")),
    }
    return program(tensor_graph(["x"], [nodes[first], nodes[second]], ["y"]))


def test_the_order_around_writes_is_kept_where_asked() -> None:
    """Arguments do not show whether a value is read before or after it is written; only the stored order does."""
    before, after = _writer("write", "read"), _writer("read", "write")
    assert canonicalize(before) == canonicalize(after)
    kept = canonicalize(before, keep_write_order=True), canonicalize(after, keep_write_order=True)
    assert kept[0] != kept[1]
    assert [one.target for one in kept[0].graph_module.graph.nodes] == ["torch.ops.aten.add_.Tensor", A]
    assert canonicalize(kept[0], keep_write_order=True) == kept[0]


def test_a_write_inside_a_subgraph_counts_for_its_node() -> None:
    """A node that carries a subgraph with a write in it writes."""
    body = tensor_graph(["b"], [node("torch.ops.aten.add_.Tensor", ["c"], arg(as_tensor="b"))], ["c"])
    call = node(B, ["w"], arg(as_tensor="x"), build.subgraph(body))
    read = node(A, ["y"], arg(as_tensor="x"))
    one, two = (
        canonicalize(program(tensor_graph(["x"], nodes, ["y", "w"])), keep_write_order=True)
        for nodes in ([call, read], [read, call])
    )
    assert one != two


BAD = {
    "undefined": (
        tensor_graph(["x"], [node(A, ["y"], arg(as_tensor="z"))], ["y"]),
        "G1",
        "$.graph_module.graph.nodes[0].inputs[0]: expected the name of a graph input or of a node's result, got 'z', "
        "which nothing defines [G1]",
    ),
    "undefined output": (
        tensor_graph(["x"], [], ["y"]),
        "G1",
        "$.graph_module.graph.outputs[0]: expected the name of a graph input or of a node's result, got 'y', "
        "which nothing defines [G1]",
    ),
    "cycle": (
        tensor_graph([], [node(A, ["y"], arg(as_tensor="z")), node(A, ["z"], arg(as_tensor="y"))], ["y"]),
        "G1",
        "$.graph_module.graph.nodes[0].inputs[0]: expected the name of a graph input or of an earlier node's result, "
        "got 'z', which depends on this node or on a write after it [G1]",
    ),
    "twice": (
        tensor_graph(["x"], [node(A, ["x"])], ["x"]),
        "G2",
        "$.graph_module.graph.nodes[0].outputs[0]: expected a name that is not taken, got 'x' again [G2]",
    ),
    "no entry": (
        replace(tensor_graph(["x"], [], ["x"]), tensor_values={}),
        "G3",
        "$.graph_module.graph.inputs[0]: expected an entry for 'x' in tensor_values, got none [G3]",
    ),
    "subgraph as output": (
        replace(tensor_graph(["x"], [], ["x"]), outputs=[build.subgraph(tensor_graph(["x"], [], ["x"]))]),
        "G10",
        "$.graph_module.graph.outputs[0]: expected values or constants, got a subgraph [G10]",
    ),
    "taken name": (
        tensor_graph(["x"], [node(A, [], arg(as_custom_obj="_0"))], ["x"]),
        "G2",
        "$.graph_module.graph: custom object: expected a name other than _0, _1, …, which values have in normal form, "
        "got '_0' [G2]",
    ),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_contradictions_are_refused_with_their_place(case: str) -> None:
    """A graph without a normal form is refused by name and place."""
    held, rule, text = BAD[case]
    with pytest.raises(GraphError) as caught:
        canonicalize(program(held))
    assert (str(caught.value), caught.value.rule) == (text, rule)


def test_only_names_that_values_get_are_taken() -> None:
    """`_0` to `_1` where there are two values; not `_2`, `_01`, nor anything else that begins alike."""
    for name, is_taken in {
        "_0": True,
        "_1": True,
        "_2": False,
        "_01": False,
        "_": False,
        "_x": False,
        "_" + "9" * 5000: False,
    }.items():
        held = program(tensor_graph(["x"], [node(A, ["y"], arg(as_custom_obj=name))], ["y"]))
        if is_taken:
            with pytest.raises(GraphError, match="G2"):
                canonicalize(held)
        else:
            canonicalize(held)


def test_specs_that_do_not_fit_the_graph_are_refused() -> None:
    """More or fewer specs than inputs or outputs, a spec with a subgraph, a name that would become that of a value."""
    found = program(tensor_graph(["x"], [], ["x"]))
    module, signature = found.graph_module, found.graph_module.signature
    user = schema.UserOutputSpec(build.subgraph(module.graph))
    cases = [
        (replace(signature, input_specs=[]), "S1", "expected 1 input_specs, one for each input of the graph, got 0"),
        (replace(signature, output_specs=[]), "S2", "expected 1 output_specs, one for each output of the graph, got 0"),
        (replace(signature, output_specs=[schema.OutputSpec(user_output=user)]), "G10", "got a subgraph"),
        (
            replace(
                signature, output_specs=[schema.OutputSpec(user_output=schema.UserOutputSpec(arg(as_tensor="_0")))]
            ),
            "G2",
            "$.graph_module.signature: user_output: expected a name other than _0",
        ),
    ]
    for changed, rule, text in cases:
        with pytest.raises(GraphError, match=rule) as caught:
            canonicalize(replace(found, graph_module=replace(module, signature=changed)))
        assert text in str(caught.value)


def test_nesting_has_limits() -> None:
    """Subgraphs and dicts of arguments nest as deep as elsewhere, and no deeper."""
    canonicalize(program(build.nested(32)))
    with pytest.raises(LimitError, match=r"expected subgraphs nested at most 32 levels deep, got more \[G11\]"):
        canonicalize(program(build.nested(33)))
    deep = tensor_graph(["x"], [node(A, ["y"], build.dicts(33, arg(as_tensor="x")))], ["y"])
    with pytest.raises(LimitError, match="G11"):
        canonicalize(program(deep))


def test_deep_and_wide_programs_take_no_recursion() -> None:
    """Thousands of nodes in a row, and thousands alike: nothing recurses over them."""
    row = [node(A, [f"v{i + 1}"], arg(as_tensor=f"v{i}")) for i in range(5000)]
    assert len(canonicalize(program(tensor_graph(["v0"], row, ["v5000"]))).graph_module.graph.nodes) == 5000
    assert len(canonicalize(program(tensor_graph(["v0"], row, ["v0"]))).graph_module.graph.nodes) == 5000
    alike = [node(A, [f"r{i}"]) for i in range(3000)] + [node(B, [], arg(as_tensor=f"r{i}")) for i in range(3000)]
    assert len(canonicalize(program(tensor_graph([], alike, []))).graph_module.graph.nodes) == 6000
