"""Random edits of a program, for property tests: each is drawn, tried, and either made or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from pt2kit.editing import Editor, passes, tensor_meta
from pt2kit.errors import Pt2Error

Draw = Callable[..., Any]


def run_script(editor: Editor, data: Any, steps: int) -> list[str]:
    """Make random edits; gives the texts of those that were refused."""
    refused = []
    for number in range(steps):
        edit = data.draw(st.sampled_from(EDITS), label="edit")
        try:
            edit(editor, lambda strategy: data.draw(strategy), number)
        except Pt2Error as error:
            refused.append(str(error))
    return refused


def _any(draw: Draw, items: Any) -> Any:
    listed = list(items)
    return draw(st.sampled_from(listed)) if listed else None


def _rename_value(editor: Editor, draw: Draw, number: int) -> None:
    graph = _any(draw, editor.graph.walk())
    if (value := _any(draw, graph.values.values())) is not None and graph is not editor.graph:
        graph.rename(value, draw(st.sampled_from([f"v{number}", "x", "not a name", value.name])))


def _rename_input(editor: Editor, draw: Draw, number: int) -> None:
    if (one := _any(draw, editor.user_inputs)) is not None:
        editor.rename_input(one.name, draw(st.sampled_from([f"arg{number}", one.name, "1x"])))


def _insert(editor: Editor, draw: Draw, number: int) -> None:
    graph = _any(draw, editor.graph.walk())
    tensors = [value for value in graph.values.values() if value.kind == "tensor"]
    value, other = _any(draw, tensors), _any(draw, tensors)
    node = _any(draw, graph.nodes)
    if value is None:
        return
    name = draw(st.sampled_from(["aten.relu", "aten.add.Tensor", "aten.neg", "aten.clone", "aten.sum", "aten.t"]))
    args = (value, other) if name == "aten.add.Tensor" else (value,)
    if node is None or draw(st.booleans()):
        made = graph.append(name, *args)
    else:
        made = graph.insert_after(node, name, *args)
    if draw(st.booleans()) and made.output.meta.sizes == value.meta.sizes:
        graph.replace_uses(value, made.output, only=lambda user: user is not made)


def _replace(editor: Editor, draw: Draw, number: int) -> None:
    graph = _any(draw, editor.graph.walk())
    value = _any(draw, [one for one in graph.values.values() if one.kind == "tensor"])
    alike = [one for one in graph.values.values() if value is not None and one.meta == value.meta]
    if (other := _any(draw, alike)) is not None:
        graph.replace_uses(value, other)


def _erase(editor: Editor, draw: Draw, number: int) -> None:
    graph = _any(draw, editor.graph.walk())
    if (node := _any(draw, graph.nodes)) is not None:
        node.erase()


def _retarget(editor: Editor, draw: Draw, number: int) -> None:
    if (node := _any(draw, editor.nodes)) is not None:
        node.retarget(draw(st.sampled_from(["aten.gelu", "aten.relu", "aten.mul.Tensor", "aten.nothing"])))


def _add_input(editor: Editor, draw: Draw, number: int) -> None:
    meta = tensor_meta("f32", draw(st.sampled_from([[], [2, 3], ["s77", 4], ["s999"]])))
    editor.add_input(f"new{number}", meta, keyword=draw(st.booleans()))


def _drop_input(editor: Editor, draw: Draw, number: int) -> None:
    if (one := _any(draw, editor.user_inputs)) is not None:
        editor.drop_input(one.name)


def _freeze(editor: Editor, draw: Draw, number: int) -> None:
    import numpy as np

    from pt2kit.tensors import numpy_dtype

    one = _any(draw, editor.user_inputs)
    if one is None or one.value is None or one.value.kind != "tensor":
        return
    sizes = [size.as_int if isinstance(size.as_int, int) else 4 for size in one.value.meta.sizes]
    editor.freeze_input(one.name, np.zeros(sizes, numpy_dtype(one.value.meta.dtype)))


def _add_output(editor: Editor, draw: Draw, number: int) -> None:
    if (value := _any(draw, editor.graph.values.values())) is not None:
        editor.add_output(value, key=draw(st.sampled_from([None, f"k{number}"])))


def _drop_output(editor: Editor, draw: Draw, number: int) -> None:
    editor.drop_output(draw(st.integers(0, 3)))


def _reorder(editor: Editor, draw: Draw, number: int) -> None:
    if draw(st.booleans()):
        editor.reorder_outputs(draw(st.permutations(range(len(editor.user_outputs)))))
    else:
        args, _ = editor.calls.sides("reorder")
        editor.reorder_inputs(draw(st.permutations(editor.calls.names("reorder")[: len(args.children)])))


def _weights(editor: Editor, draw: Draw, number: int) -> None:
    import numpy as np

    name = _any(draw, [*editor.weights, *editor.constants])
    other = _any(draw, [*editor.weights, *editor.constants])
    match draw(st.integers(0, 6)):
        case 0:
            editor.add_parameter(f"w{number}", np.ones((2, 3), "f4"))
        case 1 if name is not None:
            editor.rename_weight(name, f"other.w{number}")
        case 2 if name is not None:
            editor.drop_weight(name)
        case 3 if name is not None:
            editor.tie(name, other)
        case 4 if name is not None:
            editor.untie(name)
        case 5 if name is not None:
            editor.convert_weight(name, draw(st.sampled_from(["parameter", "buffer", "constant"])))
        case 6:
            editor.add_buffer(f"b{number}", np.zeros(3, "i8"), persistent=draw(st.booleans()))


def _pass(editor: Editor, draw: Draw, number: int) -> None:
    passes.PASSES[draw(st.sampled_from(sorted(passes.PASSES)))](editor)


def _cast(editor: Editor, draw: Draw, number: int) -> None:
    passes.cast_weights(editor, draw(st.sampled_from(["bf16", "float16", "float64", "int8"])))


EDITS = [
    *(_rename_value, _rename_input, _insert, _replace, _erase, _retarget, _add_input, _drop_input, _freeze),
    *(_add_output, _drop_output, _reorder, _weights, _pass, _cast),
]
"""Each takes the editor, something that draws, and its own number."""
