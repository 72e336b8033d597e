"""Graphs that say something odd: what loads all the same, and what is refused with the node, operator and argument."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.read.edited import edited, graph, node, sample

from pt2kit.bridge.load import load
from pt2kit.bridge.torch_names import find_higher_order
from pt2kit.errors import GraphError, LimitError, OperatorError, Pt2Error, SchemaError, UnsupportedError

MLP = sample("mlp")
LINEAR, RELU = "torch.ops.aten.linear.default", "torch.ops.aten.relu.default"
CREATED = {"dtype": 7, "requires_grad": False, "device": {"type": "cpu", "index": None}, "layout": 7}


def named(name: str, **arm: Any) -> Any:
    """A keyword argument of a node."""
    return {"name": name, "arg": arm, "kind": 2}


def placed(name: str, **arm: Any) -> Any:
    """A positional argument of a node."""
    return {"name": name, "arg": arm, "kind": 1}


def call(target: str, inputs: list[Any], output: str | None, **fields: Any) -> Any:
    """A node with one tensor as its result, or none."""
    outputs = [] if output is None else [{"as_tensor": {"name": output}}]
    ends = {"target": target, "inputs": inputs, "outputs": outputs}
    return {**ends, "metadata": {}, "name": output, "is_hop_single_tensor_return": None, **fields}


def declare(tree: Any, name: str, sizes: list[int]) -> None:
    """Describe a contiguous tensor."""
    strides = [1] * len(sizes)
    for i in reversed(range(len(sizes) - 1)):
        strides[i] = strides[i + 1] * max(sizes[i + 1], 1)
    numbers = {"sizes": sizes, "strides": strides}
    graph(tree)["tensor_values"][name] = {
        **CREATED,
        **{key: [{"as_int": n} for n in value] for key, value in numbers.items()},
        "storage_offset": {"as_int": 0},
    }


def insert(tree: Any, *nodes: Any, before: str = RELU) -> None:
    """Put nodes before the first one of a target."""
    where = graph(tree)["nodes"].index(node(tree, before))
    graph(tree)["nodes"][where:where] = nodes


def empty_then(*nodes: Any, read: str = "e", sizes: tuple[int, ...] = (3, 16)) -> Any:
    """A change: `e` is what `empty` gives, then the nodes, and what relu gets is added to `read`."""

    def change(tree: Any) -> None:
        made = call("torch.ops.aten.empty.memory_format", [placed("size", as_ints=list(sizes))], "e")
        insert(tree, made, *nodes, call("torch.ops.aten.add.Tensor", TWO(read), "sum"))
        for name in {"e", "sum", *(found["name"] for found in nodes if found["outputs"])}:
            declare(tree, name, [3, 16] if name == "sum" else list(sizes))
        node(tree, RELU)["inputs"][0]["arg"]["as_tensor"]["name"] = "sum"

    return change


def TWO(read: str) -> list[Any]:
    """The arguments of an addition."""
    return [placed("self", as_tensor={"name": "linear"}), placed("other", as_tensor={"name": read})]


def self_(name: str) -> Any:
    """The first argument of most operators."""
    return placed("self", as_tensor={"name": name})


FILL = [self_("e"), placed("value", as_float=0.0)]
ZEROS = placed("src", as_tensor={"name": "linear"})

FILLED = {
    "fill_": empty_then(call("torch.ops.aten.fill_.Scalar", FILL, "f")),
    "fill": empty_then(call("torch.ops.aten.fill.Scalar", FILL, "f"), read="f"),
    "copy_": empty_then(call("torch.ops.aten.copy_.default", [self_("e"), ZEROS], "f")),
    "copy": empty_then(call("torch.ops.aten.copy.default", [self_("e"), ZEROS], "f"), read="f"),
    "uniform_": empty_then(call("torch.ops.aten.uniform_.default", [self_("e")], "f")),
    "zeros_like": empty_then(call("torch.ops.aten.zeros_like.default", [self_("e")], "f"), read="f"),
    "through a view": empty_then(
        call("torch.ops.aten.view.default", [self_("e"), placed("size", as_ints=[3, 16])], "v"),
        call("torch.ops.aten.zero_.default", [self_("v")], "z"),
    ),
    "in parts": empty_then(
        call("torch.ops.aten.slice_scatter.default", [self_("e"), ZEROS], "f"),
        read="f",
    ),
    "no elements": empty_then(sizes=(0, 16)),
}


@pytest.mark.parametrize("change", FILLED.values(), ids=FILLED)
def test_filled(change: Any) -> None:
    """Memory that is written to, or not looked at, passes."""
    sizes = change is FILLED["no elements"]
    try:
        load(edited(MLP, change)).validate()
    except GraphError as error:
        assert sizes  # an empty tensor does not broadcast
        assert "broadcast" in str(error)


def changed(**edits: Any) -> Any:
    """A change of the node that calls relu: fields to replace."""
    return lambda tree: node(tree, RELU).update(edits)


def _two_outputs(tree: Any) -> None:
    node(tree, RELU)["outputs"].append({"as_tensor": {"name": "more"}})
    declare(tree, "more", [1])


def _renamed(tree: Any) -> None:
    values = graph(tree)["tensor_values"]
    values["x y"] = values.pop("relu")
    node(tree, RELU)["outputs"][0]["as_tensor"]["name"] = "x y"
    node(tree, RELU)["name"] = "x y"
    graph(tree)["nodes"][2]["inputs"][0]["arg"]["as_tensor"]["name"] = "x y"


def _twice(tree: Any) -> None:
    insert(tree, {**node(tree, LINEAR), "name": "other"})


def _created(sizes: list[int], asked: list[int]) -> Any:
    def change(tree: Any) -> None:
        inputs = [placed("size", as_ints=asked), placed("fill_value", as_float=0.0)]
        insert(tree, call("torch.ops.aten.full.default", inputs, "made"))
        declare(tree, "made", sizes)

    return change


def _huge(tree: Any) -> None:
    insert(tree, call("torch.ops.aten.neg.default", [self_("linear")], "made"))
    declare(tree, "made", [1 << 40])


def _deep(tree: Any) -> None:
    argument: Any = {"as_int": 1}
    for _ in range(60):
        argument = {"as_string_to_argument": {"k": argument}}
    node(tree, RELU)["inputs"].append({"name": "bogus", "arg": argument, "kind": 2})


PLACE = r"^\$\.graph_module\.graph\.nodes\[1\]: node relu \(torch\.ops\.aten\.relu\.default\): "
REFUSED: dict[str, tuple[Any, type[Pt2Error], str]] = {
    "undefined": (
        changed(inputs=[self_("ghost")]),
        GraphError,
        PLACE + "argument 'self': expected a value that is defined before, got 'ghost'",
    ),
    "later": (
        changed(inputs=[self_("linear_1")]),
        GraphError,
        PLACE + "argument 'self': expected a value that is defined before",
    ),
    "missing": (
        changed(inputs=[]),
        OperatorError,
        PLACE + r"expected the argument self of aten.relu.default, got none of that name \[T4\]",
    ),
    "unknown": (
        changed(inputs=[self_("linear"), named("bogus", as_int=1)]),
        OperatorError,
        PLACE + r"expected an argument of .* \(self\), got 'bogus' \[T3\]",
    ),
    "twice": (
        changed(inputs=[self_("linear"), self_("linear")]),
        OperatorError,
        PLACE + r"expected 'self' once, got it twice \[T3\]",
    ),
    "kind": (
        changed(inputs=[placed("self", as_string="x")]),
        OperatorError,
        PLACE + r"expected Tensor as the argument self of .* got as_string \[T5\]",
    ),
    "outputs": (_two_outputs, OperatorError, PLACE + r"expected 1 output, .*, got 2 \[T6\]"),
    "no outputs": (changed(outputs=[]), OperatorError, PLACE + r"expected 1 output, .*, got 0 \[T6\]"),
    "defined twice": (_twice, GraphError, "expected a value that is defined once, got 'linear' again"),
    "name": (_renamed, GraphError, "name of a value: expected an identifier that is no keyword of Python, got 'x y'"),
    "created": (
        _created([1 << 33], [1 << 33]),
        LimitError,
        r"expected at most 17,179,869,184 bytes from one call, got 34,359,738,368; .* pass trust=.*T9",
    ),
    "huge": (_huge, GraphError, r"tensor_values.made: expected at most 1,099,511,627,776 bytes, .* \[G17\]"),
    "deep": (_deep, Pt2Error, "levels|bogus"),
}


@pytest.mark.parametrize(("change", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_refused(change: Any, error: type[Pt2Error], text: str) -> None:
    """One error, with the place."""
    with pytest.raises(error, match=text):
        load(edited(MLP, change))


def test_order_of_arguments() -> None:
    """Arguments may stand in any order; torch's own reader takes them by name as well."""

    def change(tree: Any) -> None:
        node(tree, LINEAR)["inputs"].reverse()

    x = torch.ones(3, 8)
    assert torch.equal(load(edited(MLP, change)).module()(x), load(MLP).module()(x))
    assert load(edited(MLP, change)).graph_module.code == load(MLP).graph_module.code


def test_gap_in_places() -> None:
    """An argument by place after one that is left out would land in another parameter (T10)."""

    def change(tree: Any) -> None:
        keep = placed("keepdim", as_bool=True)
        insert(tree, call("torch.ops.aten.argmax.default", [self_("linear"), keep], "total"))
        declare(tree, "total", [1, 1])

    with pytest.raises(OperatorError, match=r"argument keepdim of aten\.argmax\.default by name, got it by place"):
        load(edited(MLP, change))


def _print(text: str, target: str = "torch.ops.aten._print.default") -> Any:
    def change(tree: Any) -> None:
        made = call(target, [placed("s", as_string=text)], None, name="said")
        if target.startswith("torch.ops.higher_order"):
            made.update(inputs=[{"name": "", "arg": {"as_string": text}, "kind": 1}], outputs=[{"as_none": True}])
        insert(tree, made)

    return change


@pytest.mark.parametrize("text", ["hello", "größe: 3 {}", 'it\'s "quoted"'])
def test_printing(text: str) -> None:
    """A program may print a line."""
    load(edited(MLP, _print(text))).module()(torch.ones(3, 8))


@pytest.mark.parametrize("text", ["a\nb", "\x1b[2J", "\u202e", "x" * 20_000])
def test_control_characters(text: str) -> None:
    """Text that could drive a terminal is not printed."""
    with pytest.raises(OperatorError, match="the program prints '"):
        load(edited(MLP, _print(text)))


FORMATS = ["{x.__class__}", "{0[a]}", "{0:>999999999}", "{", "{x!r:{y}}"]


PRINTS = pytest.mark.skipif(find_higher_order("print") is None, reason="this torch has no operator that prints")


@PRINTS
@pytest.mark.parametrize("text", FORMATS)
def test_formats(text: str) -> None:
    """A format that reaches into its arguments, or pads without end, is refused."""
    with pytest.raises(OperatorError, match="the program prints '"):
        load(edited(MLP, _print(text, "torch.ops.higher_order.print")))


@PRINTS
def test_plain_format() -> None:
    """A format of plain names is fine."""
    load(edited(MLP, _print("moo", "torch.ops.higher_order.print"))).validate()


def test_missing_things() -> None:
    """Operators, containers and script classes that are not there are listed by one error, with what to import."""

    def change(tree: Any) -> None:
        node(tree, RELU)["target"] = "torch.ops.my_ops.relu.default"
        node(tree, LINEAR)["target"] = "torch.ops.aten.liner.default"
        call_ = tree["graph_module"]["module_call_graph"][0]["signature"]
        call_["out_spec"] = f'[1, {{"type": "my.Box", "context": {BOX}, "children_spec": [{LEAF}]}}]'
        graph(tree)["custom_obj_values"]["obj"] = {"name": "obj", "class_fqn": "__torch__.torch.classes.my.Thing"}

    LEAF = '{"type": null, "context": null, "children_spec": []}'
    BOX = json.dumps(json.dumps([["weight"], None]))  # a module
    with pytest.raises(OperatorError) as error:
        load(edited(MLP, change))
    text = str(error.value)
    for part in (
        "expected operators, containers and classes that are known here, got the operator",
        "the operator torch.ops.my_ops.relu.default ($.graph_module.graph.nodes[1]: node relu)",
        "the operator torch.ops.aten.liner.default",
        "the container type my.Box",
        "the script class __torch__.torch.classes.my.Thing",
        "import the module that registers my_ops::…, the libraries that register the script classes.",
        f"torch {torch.__version__} does not have the others",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        ("mylib.relu", "Before loading, import the module mylib."),
        ("torch._functorch.predispatch._nothing", f"torch {torch.__version__} does not have them."),
    ],
)
def test_missing_functions(target: str, advice: str) -> None:
    """A trusted function that is not there is a missing operator, too."""
    with pytest.raises(OperatorError, match=rf"got the operator {re.escape(target)} .*\. {re.escape(advice)}$"):
        load(edited(MLP, lambda tree: node(tree, RELU).update(target=target)), trust=[target])


def test_verifiers() -> None:
    """A dialect without a verifier is refused; none at all means torch's own."""
    with pytest.raises(SchemaError, match=r"^\$\.verifiers: expected the dialect of a verifier .*, got 'EVIL'"):
        load(edited(MLP, lambda tree: tree.update(verifiers=["EVIL"])))
    assert load(edited(MLP, lambda tree: tree.update(verifiers=[]))).verifiers


def test_unknown_dtype() -> None:
    """An element type without a live form is refused at the argument."""
    to = "torch.ops.aten.to.dtype"

    def change(tree: Any) -> None:
        insert(tree, call(to, [self_("linear"), placed("dtype", as_scalar_type=0)], "cast"))
        declare(tree, "cast", [3, 16])

    with pytest.raises(UnsupportedError, match=r"node cast .*: expected a ScalarType that torch has, got UNKNOWN"):
        load(edited(MLP, change))


@pytest.mark.parametrize(
    ("model", "call", "value"),
    [("multi_output", "chunk", "getitem_6"), ("uint16_dtype", "_assert_tensor_metadata_default", "to_2")],
)
def test_call_named_like_a_value(model: str, call: str, value: str) -> None:
    """A call with several results, or none, may have the name of a value: that keeps it, the call gets another."""

    def rename(tree: Any) -> None:
        for one in graph(tree)["nodes"]:
            if one["name"] == call:
                one["name"] = value

    program = load(edited(sample(model), rename))
    names = [one.name for one in program.graph.nodes]
    assert len(set(names)) == len(names)
    assert value in names
