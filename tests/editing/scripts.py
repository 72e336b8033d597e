"""Random edits of a program: each is drawn, tried, and either made or refused by name.

What draws is a `random.Random`: a seeded one for long runs, or hypothesis's own, which shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import numpy as np

from pt2kit import schema, text
from pt2kit.editing import Editor, passes, tensor_meta
from pt2kit.editing.graphs import Graph, Value
from pt2kit.errors import Pt2Error
from pt2kit.tensors import numpy_dtype


def run_script(editor: Editor, dice: Random, steps: int, log: list[str] | None = None) -> list[str]:
    """Make random edits; gives the texts of those that were refused, and writes into `log` what was tried."""
    refused = []
    for number in range(steps):
        edit = dice.choice(EDITS)
        said = "made"
        try:
            edit(editor, dice, number)
        except Pt2Error as error:
            said = str(error)
            refused.append(said)
        if log is not None:
            log.append(f"{edit.__name__}: {said}")
    return refused


def _any(dice: Random, items: Iterable[Any]) -> Any:
    listed = list(items)
    return dice.choice(listed) if listed else None


def _coin(dice: Random) -> bool:
    return dice.choice([False, True])


def _any_graph(editor: Editor, dice: Random) -> Graph:
    """The program's own graph as often as all subgraphs together."""
    graph: Graph = editor.graph if _coin(dice) else _any(dice, editor.graph.walk())
    return graph


def _rank(value: Value) -> int:
    return len(value.shape or ())


def _tensors(graph: Graph) -> list[Value]:
    return [value for value in graph.values.values() if value.kind == "tensor"]


def _sizes(meta: schema.TensorMeta) -> list[int]:
    return [size.as_int if isinstance(size.as_int, int) else 4 for size in meta.sizes]


def rename_value(editor: Editor, dice: Random, number: int) -> None:
    graph = _any_graph(editor, dice)
    if (value := _any(dice, graph.values.values())) is not None:
        names = [f"v{number}", "x", "not a name", value.name, "self", "class", "max", "max_1", "torch"]
        graph.rename(value, dice.choice(names))


def rename_input(editor: Editor, dice: Random, number: int) -> None:
    if (one := _any(dice, editor.user_inputs)) is not None:
        editor.rename_input(one.name, dice.choice([f"arg{number}", one.name, "1x", "lambda", "self", "torch", "inf"]))


def rename_output(editor: Editor, dice: Random, number: int) -> None:
    if (one := _any(dice, editor.outputs)) is not None:
        editor.rename_output(one.name, dice.choice([f"out{number}", one.name, "1x"]))


Call = Callable[[Random, Value, Sequence[Value]], tuple[str, list[Any]]]
CALLS: list[Call] = [
    *(
        lambda dice, value, others, name=name: (name, [value])
        for name in (
            "aten.relu",
            "aten.neg",
            "aten.clone",
            "aten.sum",
            "aten.t",
            "aten.exp",
            "aten.detach",
            "aten.abs",
            "aten.contiguous",
            "aten.zeros_like",
            "aten.amax",
            "aten.relu_",
            "aten.alias",
            "aten.isnan",
            "aten.rand_like",
        )
    ),
    *(
        lambda dice, value, others, name=name: (name, [value, dice.choice(others)])
        for name in (
            "aten.add.Tensor",
            "aten.mul.Tensor",
            "aten.sub.Tensor",
            "aten.matmul",
            "aten.linear",
            "aten.maximum",
            "aten.eq.Tensor",
            "aten.add_.Tensor",
            "aten.copy_",
            "aten.div.Tensor",
        )
    ),
    lambda dice, value, others: ("aten.mul.Scalar", [value, dice.choice([0, 1, 2.5, True])]),
    lambda dice, value, others: ("aten.add.Tensor", [value, dice.choice([0, -0.0, 1])]),
    lambda dice, value, others: ("aten.unsqueeze", [value, dice.randint(-3, 3)]),
    lambda dice, value, others: ("aten.squeeze.dim", [value, dice.randint(-2, 2)]),
    lambda dice, value, others: ("aten.view", [value, dice.choice([[-1], [1, -1], [2, -1], value.shape])]),
    lambda dice, value, others: ("aten.reshape", [value, dice.choice([[-1], [1, -1], [2, -1]])]),
    lambda dice, value, others: ("aten.permute", [value, [*reversed(range(_rank(value)))]]),
    lambda dice, value, others: ("aten.transpose.int", [value, 0, dice.randint(-2, 2)]),
    lambda dice, value, others: ("aten.expand", [value, [dice.choice([2, -1]), *[-1] * _rank(value)]]),
    lambda dice, value, others: ("aten.select.int", [value, dice.randint(-2, 2), dice.randint(-2, 2)]),
    lambda dice, value, others: (
        "aten.slice.Tensor",
        [value, dice.randint(-2, 2), dice.randint(-3, 3), dice.randint(-3, 5), dice.randint(1, 2)],
    ),
    lambda dice, value, others: ("aten.cat", [[value, dice.choice(others)], dice.randint(-2, 2)]),
    lambda dice, value, others: ("aten.stack", [[value, value], dice.randint(-2, 2)]),
    lambda dice, value, others: ("aten.split.Tensor", [value, dice.randint(0, 3), dice.randint(-2, 2)]),
    lambda dice, value, others: ("aten.to.dtype", [value, dice.choice(["f32", "bf16", "i64", "b8", "f64"])]),
    lambda dice, value, others: ("aten.sum.dim_IntList", [value, [dice.randint(-2, 2)], _coin(dice)]),
    lambda dice, value, others: ("aten.mean.dim", [value, [dice.randint(-2, 2)], _coin(dice)]),
    lambda dice, value, others: ("aten.softmax.int", [value, dice.randint(-2, 2)]),
    lambda dice, value, others: ("aten.max.dim", [value, dice.randint(-2, 2)]),
    lambda dice, value, others: ("aten.sym_size.int", [value, dice.randint(-2, 2)]),
    lambda dice, value, others: ("aten.where.self", [value, dice.choice(others), dice.choice(others)]),
    lambda dice, value, others: ("aten.masked_fill.Scalar", [value, dice.choice(others), 0.5]),
    lambda dice, value, others: ("aten.flatten.using_ints", [value]),
    lambda dice, value, others: ("aten.cumsum", [value, dice.randint(-2, 2)]),
    lambda dice, value, others: ("aten.full", [dice.choice([[2], [], value.shape]), 1.5]),
]
"""Draws an operator and its arguments for a tensor and the other tensors of its graph."""


def insert(editor: Editor, dice: Random, number: int) -> None:
    """Insert a node anywhere, with any values before or after it as inputs; often it replaces its input."""
    graph = _any_graph(editor, dice)
    tensors = _tensors(graph)
    value = _any(dice, tensors)
    if value is None:
        return
    name, args = dice.choice(CALLS)(dice, value, tensors)
    node = _any(dice, graph.nodes)
    metadata = dice.choice([None, {"stack_trace": "mine"}])
    where = dice.choice(["append", "before", "after", "prepend", "own"])
    if where == "own" and value.producer is not None:
        made = value.producer.insert_after(name, *args, metadata=metadata)
    elif where == "before" and node is not None:
        made = graph.insert_before(node, name, *args, metadata=metadata)
    elif where == "after" and node is not None:
        made = graph.insert_after(node, name, *args, metadata=metadata)
    elif where == "prepend":
        made = graph.prepend(name, *args, name="mine")
    else:
        made = graph.append(name, *args)
    if _coin(dice) and len(made.outputs) == 1 and made.output.kind == "tensor":
        if _coin(dice) and (made.output.meta.dtype, made.output.meta.sizes) == (value.meta.dtype, value.meta.sizes):
            graph.replace_uses(value, made.output, only=lambda user: user is not made)
        elif graph is editor.graph:
            editor.add_output(made.output)


def arithmetic(editor: Editor, dice: Random, number: int) -> None:
    """A node over sizes."""
    graph = _any_graph(editor, dice)
    size = _any(dice, [value for value in graph.values.values() if value.kind == "sym_int"])
    if size is not None:
        name = dice.choice(["add", "sub", "mul", "floordiv", "mod", "ge", "eq"])
        made = graph.append(f"_operator.{name}", size, dice.choice([0, 1, 2, size]))
        if _coin(dice) and graph is editor.graph:
            editor.add_output(made.output)


def replace(editor: Editor, dice: Random, number: int) -> None:
    graph = _any_graph(editor, dice)
    value = _any(dice, graph.values.values())
    alike = [one for one in graph.values.values() if value is not None and one.meta == value.meta]
    if (other := _any(dice, alike)) is not None:
        graph.replace_uses(value, other)


def erase(editor: Editor, dice: Random, number: int) -> None:
    graph = _any_graph(editor, dice)
    unused = [node for node in graph.nodes if not any(value.is_used for value in node.outputs)]
    if (node := _any(dice, unused if _coin(dice) else graph.nodes)) is not None:
        node.erase()


def bypass(editor: Editor, dice: Random, number: int) -> None:
    """Replace a node's output by one of its inputs, and erase it."""
    graph = _any_graph(editor, dice)
    fitting = [
        (node, one)
        for node in graph.nodes
        if len(node.outputs) == 1
        for one in node.inputs
        if one.kind == node.output.kind and one.meta == node.output.meta
    ]
    if fitting:
        node, one = dice.choice(fitting)
        graph.replace_uses(node.output, one)
        node.erase()


def retarget(editor: Editor, dice: Random, number: int) -> None:
    if (node := _any(dice, editor.nodes)) is not None:
        node.retarget(dice.choice(["aten.gelu", "aten.relu", "aten.mul.Tensor", "aten.nothing", "aten.tanh"]))


def set_argument(editor: Editor, dice: Random, number: int) -> None:
    """Another number or tensor for a parameter that has one."""
    node = _any(dice, editor.nodes)
    if node is None or not node.slots:
        return
    name = dice.choice(list(node.arguments))
    slot = node.slots[list(node.arguments).index(name)]
    if len(slot.values) == 1 and slot.values[0].kind == "tensor" and slot.template.type == "as_tensor":
        alike = [one for one in _tensors(node.graph) if one.meta == slot.values[0].meta]
        node.set_argument(name, _any(dice, alike))
    elif not slot.values and not slot.graphs:
        node.set_argument(name, slot.template)


def add_input(editor: Editor, dice: Random, number: int) -> None:
    meta: Any = tensor_meta("f32", dice.choice([[], [2, 3], ["s77", 4], ["s999"]]))
    if _coin(dice) and (value := _any(dice, _tensors(editor.graph))) is not None:
        meta = value
    position = dice.choice([None, 0, 1, 7])
    name = dice.choice([f"new{number}", f"new{number}", "self", "class", "torch", "device"])
    keyword = _coin(dice)
    editor.add_input(name, meta, keyword=keyword, position=None if keyword else position)


def drop_input(editor: Editor, dice: Random, number: int) -> None:
    if (one := _any(dice, editor.user_inputs)) is not None:
        editor.drop_input(one.name)


def drop_argument(editor: Editor, dice: Random, number: int) -> None:
    if (name := _any(dice, editor.calls.names("drop"))) is not None:
        editor.drop_input(name)


def freeze(editor: Editor, dice: Random, number: int) -> None:
    one = _any(dice, editor.user_inputs)
    if one is None:
        return
    if one.value is None:
        editor.freeze_input(one.name)
    elif one.value.kind == "tensor":
        meta = one.value.meta
        editor.freeze_input(one.name, np.ones(_sizes(meta), numpy_dtype(meta.dtype)))
    else:
        editor.freeze_input(one.name, dice.choice([3, 4, 2.5]))


def specialize(editor: Editor, dice: Random, number: int) -> None:
    if (symbol := _any(dice, editor.ranges)) is not None:
        editor.specialize(symbol, dice.choice([1, 2, 4, 7]))


def narrow(editor: Editor, dice: Random, number: int) -> None:
    """Another range of a symbol, inside the old one."""
    if (symbol := _any(dice, editor.ranges)) is not None:
        low, high = editor.ranges[symbol]
        editor.ranges[symbol] = (max(low or 0, 3), high)


def add_output(editor: Editor, dice: Random, number: int) -> None:
    if (value := _any(dice, editor.graph.values.values())) is not None:
        editor.add_output(value, key=dice.choice([None, f"k{number}"]), position=dice.choice([None, 0, 1]))


def drop_output(editor: Editor, dice: Random, number: int) -> None:
    named = _any(dice, editor.outputs)
    editor.drop_output(named.name if named is not None and _coin(dice) else dice.randint(0, 3))


def reorder_outputs(editor: Editor, dice: Random, number: int) -> None:
    order = list(range(len(editor.user_outputs)))
    dice.shuffle(order)
    editor.reorder_outputs(order)


def reorder_inputs(editor: Editor, dice: Random, number: int) -> None:
    args, _ = editor.calls.sides("reorder")
    order = list(editor.calls.names("reorder")[: len(args.children)])
    dice.shuffle(order)
    editor.reorder_inputs(order)


def add_weight(editor: Editor, dice: Random, number: int) -> None:
    """A new weight, often of what an input of the program is like, and used in its place."""
    old = _any(dice, [value for value in editor.graph.inputs if value.kind == "tensor"])
    numbers = np.ones((2, 3), "f4")
    if old is not None and _coin(dice):
        numbers = np.ones(_sizes(old.meta), numpy_dtype(old.meta.dtype))
    kind = dice.choice(["parameter", "buffer", "constant"])
    name = dice.choice([f"w{number}", f"mod.w{number}", "w", "a..b", "lambda.x"])
    if kind == "parameter":
        new = editor.add_parameter(name, numbers, requires_grad=dice.choice([None, False, True]))
    elif kind == "buffer":
        new = editor.add_buffer(name, numbers, persistent=_coin(dice))
    else:
        new = editor.add_constant(name, numbers)
    if old is not None and new.meta.sizes == old.meta.sizes and _coin(dice):
        editor.graph.replace_uses(old, new)


def _weight(editor: Editor, dice: Random) -> Any:
    return _any(dice, [*editor.weights, *editor.constants])


def rename_weight(editor: Editor, dice: Random, number: int) -> None:
    if (name := _weight(editor, dice)) is not None:
        editor.rename_weight(name, dice.choice([f"other.w{number}", f"{name}.inner", _weight(editor, dice), "w0"]))


def drop_weight(editor: Editor, dice: Random, number: int) -> None:
    if (name := _weight(editor, dice)) is not None:
        editor.drop_weight(name)


def tie(editor: Editor, dice: Random, number: int) -> None:
    if (name := _weight(editor, dice)) is not None:
        there = {**editor.weights, **editor.constants}
        alike = [one for one, held in there.items() if getattr(held, "sizes", 0) == getattr(there[name], "sizes", 1)]
        editor.tie(name, _any(dice, alike) or _weight(editor, dice))


def untie(editor: Editor, dice: Random, number: int) -> None:
    if (name := _weight(editor, dice)) is not None:
        editor.untie(name)


def convert_weight(editor: Editor, dice: Random, number: int) -> None:
    if (name := _weight(editor, dice)) is not None:
        editor.convert_weight(name, dice.choice(["parameter", "buffer", "constant"]), persistent=_coin(dice))


def set_weight(editor: Editor, dice: Random, number: int) -> None:
    if (name := _weight(editor, dice)) is not None:
        held = {**editor.weights, **editor.constants}[name]
        sizes = getattr(held, "sizes", (2,))
        editor.set_weight(name, np.ones(sizes, numpy_dtype(getattr(held, "dtype", schema.ScalarType.FLOAT))))


def load_weights(editor: Editor, dice: Random, number: int) -> None:
    """All weights from the package itself, which changes nothing; by strict names often enough refused."""
    editor.load_weights(dict(editor.weights), strict=_coin(dice))


def as_text(editor: Editor, dice: Random, number: int) -> None:
    """The program as it is now, printed, parsed and taken again."""
    editor.replace_program(text.parse(text.print_program(editor.check())))


def one_pass(editor: Editor, dice: Random, number: int) -> None:
    passes.PASSES[dice.choice(sorted(passes.PASSES))](editor)


def cast(editor: Editor, dice: Random, number: int) -> None:
    names = dice.choice([None, [name] if (name := _weight(editor, dice)) else None])
    passes.cast_weights(editor, dice.choice(["bf16", "float16", "float64", "int8"]), names)


def move(editor: Editor, dice: Random, number: int) -> None:
    devices: list[Any] = ["cpu", {"cuda:0": "cpu"}, "nowhere:x"]
    passes.move(editor, dice.choice(devices))


def rename_operators(editor: Editor, dice: Random, number: int) -> None:
    passes.rename_operators(editor, dice.choice([{"aten::relu": "aten::tanh"}, {"aten.add.Tensor": "aten.sub.Tensor"}]))


EDITS: list[Callable[[Editor, Random, int], None]] = [
    *(rename_value, rename_input, rename_output, insert, insert, insert, insert, arithmetic, replace, replace),
    *(erase, bypass, retarget, set_argument, add_input, drop_input, drop_argument, freeze, specialize, narrow),
    *(add_output, add_output, drop_output, reorder_outputs, reorder_inputs, add_weight, rename_weight, drop_weight),
    *(tie, untie, convert_weight, set_weight, load_weights, as_text, one_pass, one_pass, cast, move, rename_operators),
]
"""Each takes the editor, something that draws, and its own number."""
