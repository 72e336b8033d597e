"""Graphs that can be changed: def-use both ways, insertion, replacement, erasure, subgraphs, and what is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.samples import corpus, sample

import pt2kit
from pt2kit import schema, symbols
from pt2kit.editing import sizes
from pt2kit.editing.metas import scalar_type
from pt2kit.errors import GraphError
from pt2kit.schema import Argument, ScalarType, SymFloat


def graph(name: str = "mlp") -> pt2kit.editing.Graph:
    return pt2kit.edit(pt2kit.open(sample("2.13.0", name)).programs["model"]).graph


@pytest.mark.parametrize("path", corpus("2.13.0", "2.4.1"), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_both_ends_of_every_edge_agree(path: Path) -> None:
    """A node is a user of each of its inputs and the producer of each of its outputs, as `graph.def_use` says."""
    with pt2kit.open(path) as package:
        for program in package.programs.values():
            editor = pt2kit.edit(program)
            for inner in editor.graph.walk():
                for node in inner.nodes:
                    assert all(node in value.users for value in node.inputs)
                    assert all(value.producer is node for value in node.outputs)
                for value in inner.values.values():
                    assert all(value in user.inputs for user in value.users)
            index = pt2kit.graph.index(program.graph_module.graph)
            nodes = list(editor.graph.nodes)
            for name, value in editor.graph.values.items():
                assert tuple(nodes.index(user) for user in value.users) == index.users(name)


def test_nodes_are_inserted_in_order() -> None:
    """Before, after, at the end and at the front; names that are taken get a number."""
    found = graph()
    relu = found.nodes["relu"]
    relu.insert_before("aten.neg", relu.inputs[0])
    relu.insert_after("aten.relu", relu.output)
    found.append("aten.sum", relu.output)
    found.prepend("aten.neg", found.inputs[-1], name="neg")
    names = [node.name for node in found.nodes]
    assert names == ["neg_1", "linear", "neg", "relu", "relu_1", "linear_1", "sum_1"]


def test_many_insertions_at_one_place_keep_the_order() -> None:
    """Order numbers run out after sixty insertions, and are spread again."""
    found = graph()
    relu = found.nodes["relu"]
    for _ in range(500):
        relu.insert_before("aten.neg", relu.inputs[0])
    assert len(found.nodes) == 503
    orders = [node.order for node in found.nodes]
    assert orders == sorted(orders)
    assert len(set(orders)) == 503


def test_uses_are_replaced_but_for_the_node_that_makes_the_new_value() -> None:
    """The node behind the old value keeps it; outputs are replaced as well, unless nodes are chosen."""
    found = graph()
    last = found.nodes["linear_1"]
    doubled = last.insert_after("aten.mul.Tensor", last.output, 2)
    assert found.replace_uses(last.output, doubled.output) == 1
    assert doubled.inputs == (last.output,)
    assert found.outputs == (doubled.output,)
    assert last.output.users == (doubled,)


def test_arguments_are_set_by_plain_values() -> None:
    """Texts are what the parameter's type makes of them; values and numbers are taken as they are."""
    found = graph()
    cast = found.append("aten.to.dtype", found.inputs[-1], "float16")
    assert cast.arguments["dtype"] == Argument(as_scalar_type=ScalarType.HALF)
    cast.set_argument("dtype", "bf16")
    assert cast.arguments["dtype"] == Argument(as_scalar_type=ScalarType.BFLOAT16)
    assert cast.argument("self") is found.inputs[-1]
    index = found.append("aten.index.Tensor", found.inputs[-1], [None, found.inputs[0]], meta=found.inputs[0])
    assert index.arguments["indices"].type == "as_optional_tensors"
    whole = found.append("aten.index.Tensor", found.inputs[-1], [found.inputs[0]], meta=found.inputs[0])
    assert whole.arguments["indices"].type == "as_optional_tensors"  # as torch writes a list that may hold None
    joined = found.append("aten.cat", [cast.output, cast.output], dim=1)
    assert joined.output.shape == (3, 16)


def test_a_negative_zero_is_another_argument_than_zero() -> None:
    """The two are equal numbers that are written differently, so the edit is not lost."""
    editor = pt2kit.edit(pt2kit.open(sample("2.13.0", "embedding_lstm")).programs["model"])
    node = next(node for node in editor.graph.nodes if node.target == "torch.ops.aten.lstm.input")
    assert node.argument("dropout") == Argument(as_float=0.0)
    node.set_argument("dropout", -0.0)
    assert b"-0.0" in pt2kit.codec.encode(editor.finish())
    assert b"-0.0" not in pt2kit.codec.encode(editor.program)


def test_lists_mix_values_with_constants_of_their_kind() -> None:
    """Whole numbers go with a sym_float, as its floats; a fraction or a bool does not go with a sym_int."""
    found = graph("dynamic_batch")
    [rows] = found.append("aten.sym_size.int", found.inputs[-1], 0).outputs
    part = found.append("_operator.truediv", rows, 2, meta=SymFloat(as_float=1.0)).output
    tile = found.append("mine.op", sizes=[rows, 2], meta=found.inputs[-1])
    assert [one.type for one in tile.arguments["sizes"].value] == ["as_name", "as_int"]
    tile.set_argument("sizes", [part, 2, 0.5])
    assert [one.as_float for one in tile.arguments["sizes"].value[1:]] == [2.0, 0.5]
    for mixed in ([rows, 1.5], [rows, True], [part, "a"], [part, rows]):
        with pytest.raises(GraphError, match="expected a list of values of one kind, got"):
            tile.set_argument("sizes", mixed)


def test_rows_and_lists_of_ints_hold_no_enums_or_truth_values() -> None:
    """Only whole numbers are written as ints; rows may be empty."""
    found = graph("dynamic_batch")
    tile = found.append("mine.op", rows=[[1], []], meta=found.inputs[-1])
    assert tile.arguments["rows"].as_int_lists == [[1], []]
    tile.set_argument("rows", [[found.inputs[-1]], []])
    assert tile.arguments["rows"].type == "as_nested_tensors"
    for mixed in ([[True]], [1, [2]], [ScalarType.FLOAT]):
        with pytest.raises(GraphError, match=r"expected rows of|expected a list of one kind"):
            tile.set_argument("rows", mixed)


def test_subgraphs_are_edited_like_graphs() -> None:
    """The graph that a node carries has nodes and values of its own, written back with it."""
    editor = pt2kit.edit(pt2kit.open(sample("2.13.0", "cond")).programs["model"])
    [node] = [node for node in editor.graph.nodes if node.subgraphs]
    inner = node.subgraphs["true_graph_0"]
    inner.nodes["sin"].retarget("aten.cos")
    counts = pt2kit.graph.operator_counts(editor.finish())
    assert counts["torch.ops.aten.cos.default"] == 2


def _erased(found: pt2kit.editing.Graph) -> pt2kit.editing.Node:
    node = found.append("aten.relu", found.outputs[0])
    node.erase()
    return node


REFUSED = {
    "one meta for a list of results": (
        lambda g: g.append("aten.split.Tensor", g.inputs[-1], 2, meta=g.inputs[-1]),
        r"expected a list of metas for Tensor\[\], got one meta",
    ),
    "unknown operator": (
        lambda g: g.append("aten.rellu", g.outputs[0]),
        r"append\('aten.rellu'\): no operator aten.rellu",
    ),
    "unknown overload": (
        lambda g: g.append("aten.add.Tensr", g.outputs[0], 1),
        r"there is aten\.add\.default, aten\.add\.Scalar",
    ),
    "missing argument": (lambda g: g.append("aten.relu"), r"expected the argument self of aten.relu.default, got none"),
    "unknown argument": (
        lambda g: g.append("aten.relu", g.outputs[0], x=1),
        r"expected an argument of aten.relu.default",
    ),
    "wrong argument": (
        lambda g: g.append("aten.neg", "a"),
        r"expected Tensor as the argument self of aten.neg.default",
    ),
    "too many": (
        lambda g: g.append("aten.neg", g.outputs[0], 1),
        r"expected arguments at most 1 without a name, got 2",
    ),
    "cannot infer": (
        lambda g: g.append("aten.nonzero", g.outputs[0]),
        r"expected meta= for the result of aten.nonzero",
    ),
    "no element type": (
        lambda g: g.append("aten.softmax.int", g.outputs[0], 0, 0.5),
        r"append\('aten.softmax.int'\): dtype: expected an element type such as 'float32', got '0.5'",
    ),
    "an element type as torch's number": (
        lambda g: g.append("aten.softmax.int", g.outputs[0], 0, 6),
        r"expected meta= for the result of .*dtype is not known",
    ),
    "an element type in a tensor": (
        lambda g: g.append("aten.softmax.int", g.outputs[0], 0, g.outputs[0]),
        r"expected meta= for the result of .*dtype is not known",
    ),
    "sizes differ": (
        lambda g: g.append("aten.add.Tensor", *g.inputs[:2]),
        r"expected sizes that broadcast, got \[16, 8\] and \[16\]",
    ),
    "used": (lambda g: g.nodes["relu"].erase(), r"erase\(node 'relu'\): expected a node whose results nobody uses"),
    "too late": (lambda g: g.replace_uses("linear", "linear_1"), r"defined before node 'relu', which is to use it"),
    "before": (
        lambda g: g.nodes["linear"].insert_before("aten.neg", g.outputs[0]),
        r"expected a value that is defined",
    ),
    "other graph": (
        lambda g: g.append("aten.neg", graph().outputs[0]),
        r"got <Value %linear_1: tensor> of another graph",
    ),
    "gone": (lambda g: g.append("aten.neg", _erased(g)), r"expected something that is in the graph, got"),
    "another kind": (
        lambda g: setattr(g.outputs[0], "meta", pt2kit.schema.SymInt(as_int=1)),
        r"expected the meta of a tensor",
    ),
    "retarget": (
        lambda g: g.nodes["relu"].retarget("aten.mul.Tensor"),
        r"expected the argument other of aten.mul.Tensor",
    ),
    "by name alone": (
        lambda g: g.append("mine.op", g.outputs[0]),
        r"expected arguments by name, as no signature of it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_and_not_begun(case: str) -> None:
    """The error names the edit; the graph is as it was."""
    edit, text = REFUSED[case]
    found = graph()
    before = found.written()
    with pytest.raises(GraphError, match=text):
        edit(found)
    assert found.written() == before


def test_subgraphs_are_walked_in_the_order_of_the_arguments() -> None:
    """Also those that one argument holds, as a dict of arguments may."""
    names = ["a", "b", "c"]
    empty = schema.Graph([], [], [], {}, {}, {})
    held = {name: Argument(as_graph=schema.GraphArgument(name, msgspec.structs.replace(empty))) for name in names}
    inputs = [schema.NamedArgument("", Argument(as_string_to_argument=held))]
    node = schema.Node("torch.ops.higher_order.mine", inputs, [], {}, None, "mine")
    found = pt2kit.editing.Graph(schema.Graph([], [], [node], {}, {}, {}))
    assert list(found.walk()) == [found, *(found.nodes[0].subgraphs[name] for name in names)]


def test_errors_in_subgraphs_name_the_edit() -> None:
    """Errors of an edit inside a subgraph name the edit, its node and the path of the place."""
    editor = pt2kit.edit(sample("2.13.0", "cond"))
    inner = list(editor.graph.walk())[1]
    node = inner.insert_after(inner.nodes[0], "aten.relu", inner.nodes[0].output)
    meta = node.output.meta
    node.output.meta = msgspec.structs.replace(meta, sizes=[*meta.sizes, *meta.sizes])
    with pytest.raises(GraphError, match=r"meta\('relu'\): node 'relu': program: .*as_graph\.graph\.tensor_values"):
        editor.finish()


def test_sizes_of_too_many_terms() -> None:
    """A size that has no normal form, as it would have too many terms, is written as it was."""
    text = "Symbol('s0', positive=True, integer=True)"
    for _ in range(2):
        text = f"Max({', '.join(f'Min({text}, Integer({n}))' for n in range(40))})"
    size = sizes.expr_size(symbols.parse(text))
    assert symbols.parse(size.value.expr_str) == symbols.parse(text) == sizes.expression(size)


@pytest.mark.parametrize("name", ["float16", "torch.float16", "half", "fp16", "f16"])
def test_names_of_an_element_type(name: str) -> None:
    """Torch's names, its short one and that of model hubs mean one element type."""
    assert scalar_type(name) == ScalarType.HALF
