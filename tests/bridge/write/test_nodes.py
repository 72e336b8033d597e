"""fx nodes that become inputs, outputs and calls, and where errors say they are."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest
import torch
from tests.bridge.write.trees import our_file, tree
from tests.bridge.zoo.handmade import Sketch
from torch.export.graph_signature import CustomObjArgument
from torch.fx import Graph, GraphModule
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from pt2kit import codec
from pt2kit.bridge.write.nodes import write_node
from pt2kit.bridge.write.program import write_graph, write_scope
from pt2kit.bridge.write.scope import Scope, Shared
from pt2kit.errors import GraphError, LimitError, UnsupportedError
from pt2kit.schema import Graph as Graph8

aten = torch.ops.aten
T = torch.ones(2)


def scope():
    return Scope(torch.nn.Module(), Shared(write_graph))


def written(*nodes, here=None):
    here = here or scope()
    for node in nodes:
        write_node(node, here)
    return here


def placeholder(graph, name, value):
    node = graph.placeholder(name)
    node.meta["val"] = value
    return node


ENV = ShapeEnv()
INPUTS: list[tuple[Any, dict[str, Any]]] = [
    (T, {"as_tensor": {"name": "x"}}),
    (ENV.create_unbacked_symint(), {"as_sym_int": {"as_name": "x"}}),
    (ENV.create_unbacked_symfloat(), {"as_sym_float": {"as_name": "x"}}),
    (ENV.create_unbacked_symbool(), {"as_sym_bool": {"as_name": "x"}}),
    (3, {"as_int": 3}),
    (True, {"as_bool": True}),
    (0.5, {"as_float": 0.5}),
    ("a", {"as_string": "a"}),
    (None, {"as_none": True}),
    (CustomObjArgument("obj", "a.B"), {"as_custom_obj": {"name": "x", "class_fqn": "a.B"}}),
]


@pytest.mark.parametrize(("value", "expected"), INPUTS, ids=[next(iter(tree)) for _, tree in INPUTS])
def test_inputs(value, expected):
    """Every kind of input; a constant of the calling convention has no name."""
    here = written(placeholder(Graph(), "x", value))
    assert [codec.to_tree(argument) for argument in here.inputs] == [expected]


def test_custom_objects_are_entered():
    """The table of custom objects keeps the name that the value has of itself."""
    here = written(placeholder(Graph(), "x", CustomObjArgument("obj", "a.B")))
    assert codec.to_tree(here.values["custom_obj_values"]["x"]) == {"name": "obj", "class_fqn": "a.B"}


def test_constant_input_used():
    """Uses of a constant input are written as the constant."""
    graph = Graph()
    x, n = placeholder(graph, "x", T), placeholder(graph, "n", 3)
    call = graph.call_function(aten.add.Tensor, (x, n))
    call.meta["val"] = T
    here = written(x, n, call)
    assert codec.to_tree(here.nodes[0].inputs[1].arg) == {"as_int": 3}


def test_outputs():
    """A single node is a single return; a list is none."""
    graph = Graph()
    x = placeholder(graph, "x", T)
    here = written(x, graph.output(x))
    assert here.is_single_tensor_return
    assert [codec.to_tree(argument) for argument in here.outputs] == [{"as_tensor": {"name": "x"}}]
    graph = Graph()
    x = placeholder(graph, "x", T)
    here = written(x, graph.output((x, None, 1, "a")))
    assert not here.is_single_tensor_return
    assert [next(iter(codec.to_tree(argument))) for argument in here.outputs] == [
        "as_tensor",
        "as_none",
        "as_int",
        "as_string",
    ]


def test_kinds_of_arguments():
    """Arguments are written as they were passed, and defaults are not."""
    s = Sketch()
    x = s.input("x", torch.randn(2, 3))
    call = s.call(aten.std.correction, (x,), s.fake(2), keepdim=True, correction=0)
    node = tree(our_file(s.program([call])), "models/model.json")["graph_module"]["graph"]["nodes"][0]
    assert [(item["name"], item["kind"]) for item in node["inputs"]] == [("self", 1), ("correction", 2), ("keepdim", 2)]


def test_functions_over_symbols():
    """A plain function has its parameters named; more arguments than Python knows names for have none."""
    graph = Graph()
    n = placeholder(graph, "n", ENV.create_unbacked_symint())
    calls = [
        graph.call_function(function, args)
        for function, args in [
            (math.ceil, (n,)),
            (round, (n, 2)),
            (round, (n, None)),
            (operator.abs, (n,)),
            (max, (n, 3)),
            (torch.sym_sum, ([n, 2],)),
        ]
    ]
    for call in calls:
        call.meta["val"] = ENV.create_unbacked_symint()
    here = written(n, *calls)
    assert [(node.target, [item.name for item in node.inputs]) for node in here.nodes] == [
        ("math.ceil", ["x"]),
        ("builtins.round", ["number", "ndigits"]),
        ("builtins.round", ["number"]),
        ("_operator.abs", ["a"]),
        ("builtins.max", ["", ""]),
        ("torch.sym_sum", ["args"]),
    ]


def failing(kind):
    """A node that cannot be written, and the nodes before it."""
    graph = Graph()
    x = placeholder(graph, "x", T)
    if kind == "no value":
        return [graph.placeholder("y")]
    if kind == "input":
        return [placeholder(graph, "y", object())]
    if kind == "method":
        return [x, graph.call_method("relu", (x,))]
    if kind == "module":
        return [graph.call_module("a.b", ())]
    if kind == "output":
        return [x, graph.create_node("output", "output", ({"a": x},))]
    if kind == "argument":
        call = graph.call_function(aten.add.Tensor, (x, object()), {"alpha": 1})
    if kind == "keyword":
        call = graph.call_function(aten.add.Tensor, (x, x), {"alpha": b""})
    if kind == "untyped":
        call = graph.call_function(torch.ops.higher_order.cond, (True, [1, "a"]))
    if kind == "result":
        call = graph.call_function(aten.add.Tensor, (x, x))
        call.meta["val"] = b""
    if kind == "missing":
        return [x, graph.call_function(aten.add.Tensor, (x, x))]
    if kind == "function":
        return [x, graph.call_function(torch.relu, (x,))]
    if kind == "getitem":
        call = graph.call_function(operator.getitem, (x, 0))
    if kind == "kwargs":
        call = graph.call_function(operator.add, (1,), {"b": 2})
    call.meta.setdefault("val", T)
    return [x, call]


ERRORS = [
    ("no value", GraphError, r"^node y: expected a value in its metadata \('val'\), got none$"),
    ("input", UnsupportedError, "^node y: expected a tensor, a number or None as result 'y', got object$"),
    ("method", UnsupportedError, "^node relu: expected a graph of function calls, got a node of kind 'call_method'$"),
    ("module", UnsupportedError, "^node a_b: expected a graph of function calls, got a node of kind 'call_module'$"),
    ("output", GraphError, "^node output: expected a tuple of results, got immutable_dict$"),
    (
        "argument",
        UnsupportedError,
        r"^node add_tensor \(torch\.ops\.aten\.add\.Tensor\): argument 'other': expected a value .* got object$",
    ),
    ("keyword", UnsupportedError, r"^node add_tensor \(torch\.ops\.aten\.add\.Tensor\): argument 'alpha': .* bytes$"),
    ("untyped", UnsupportedError, r"^node cond \(torch\.ops\.higher_order\.cond\): argument 1: expected a list of one"),
    ("result", UnsupportedError, r"^node add_tensor \(torch\.ops\.aten\.add\.Tensor\): .* 'add_tensor', got bytes$"),
    ("missing", GraphError, r"^node add_tensor \(torch\.ops\.aten\.add\.Tensor\): expected a value in its metadata"),
    ("function", GraphError, r"^node relu \(torch\.relu\): expected a value in its metadata"),
    ("getitem", UnsupportedError, r"^node getitem \(_operator\.getitem\): expected it to take one result of a node"),
    ("kwargs", UnsupportedError, r"^node add \(_operator\.add\): expected no keyword arguments, got b$"),
]


@pytest.mark.parametrize(("kind", "error", "message"), ERRORS, ids=[kind for kind, _, _ in ERRORS])
def test_places(kind, error, message):
    """An error names the node, its operator and the argument."""
    try:
        nodes = failing(kind)
    except (TypeError, AssertionError) as refused:
        pytest.skip(f"fx itself refuses it: {refused}")
    with pytest.raises(error, match=message):
        written(*nodes)


def nest(depth):
    """Graphs inside graphs."""
    module = None
    for _ in range(depth):
        root, graph = torch.nn.Module(), Graph()
        x = placeholder(graph, "x", T)
        if module is None:
            call = graph.call_function(aten.sin.default, (x,))
        else:
            root.inner = module
            call = graph.call_function(torch.ops.higher_order.wrap, (graph.get_attr("inner"), x))
        call.meta["val"] = T
        graph.output(call)
        module = GraphModule(root, graph)
    return module


def test_deep_nesting():
    """Graphs inside graphs, up to a limit that readers can follow; beyond it there is an error and no crash."""
    data = codec.encode(write_scope(nest(49), Shared(write_graph)).graph())
    assert codec.decode(data, Graph8, "graph").value
    with pytest.raises(LimitError, match="expected at most 48 graphs inside each other, got more"):
        write_graph(nest(200), Shared(write_graph))


def test_subgraph_place():
    """An error inside a subgraph names the whole way to it."""
    module = nest(2)
    inner = module.inner.graph
    next(node for node in inner.nodes if node.op == "call_function").args = (object(),)
    with pytest.raises(
        UnsupportedError,
        match=r"^node wrap \(torch\.ops\.higher_order\.wrap\): argument 0: graph inner: "
        r"node sin_default \(torch\.ops\.aten\.sin\.default\): argument 'self': expected a value",
    ):
        write_graph(module, Shared(write_graph))
