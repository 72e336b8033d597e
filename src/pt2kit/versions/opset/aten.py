"""Changes in aten's operator set: the calls of each version, written for the next.

    4   div truncated integers; since then it is true division, and truncation is asked for
    5   full without a dtype made floats of whatever value
    8   linspace had 100 steps if none were given
    9   logspace likewise
    10  gelu had one formula, and got the argument `approximate`

No file of `torch.export` has another number than 10; these apply to programs that were stamped with an older one.

Source: the meanings are those of torch/csrc/jit/operator_upgraders/ (2.13), whose upgraders keep TorchScript programs
of those numbers running. Complex numbers are divided truly here, as they always were.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.errors import ConversionError, OperatorError
from pt2kit.schema import ArgumentKind, ScalarType
from pt2kit.versions.opset.operator_change import OperatorChange

_PREFIX: Final = "torch.ops.aten."
_WHOLE: Final = frozenset(
    {
        ScalarType.BYTE,
        ScalarType.CHAR,
        ScalarType.SHORT,
        ScalarType.INT,
        ScalarType.LONG,
        ScalarType.BOOL,
        ScalarType.UINT16,
        ScalarType.UINT32,
        ScalarType.UINT64,
    }
)
_WHOLE_ARMS: Final = frozenset({"as_int", "as_bool", "as_sym_int", "as_sym_bool"})
_STEPS: Final = 100


def truncate_division(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `div` of 3 to 4: of integers with rounding_mode "trunc", of anything else unchanged."""
    names = ("self", "other", "out") if node.target.endswith(".out") else ("self", "other")
    if not all(_is_whole(_argument(node, name), graph, place) for name in names):
        return node
    name, _, overload = node.target.removeprefix(_PREFIX).partition(".")
    mode = _named("rounding_mode", schema.Argument(as_string="trunc"))
    target = f"{_PREFIX}{name}.{'out_mode' if overload == 'out' else f'{overload}_mode'}"
    return replace(node, target=target, inputs=[*node.inputs, mode])


def divide_truly(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `div` of 4 to 3: of integers under the name `true_divide`, of anything else unchanged."""
    if not all(_is_whole(_argument(node, name), graph, place) for name in ("self", "other")):
        return node
    return replace(node, target=node.target.replace(f"{_PREFIX}div", f"{_PREFIX}true_divide"))


def fill_with_float(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `full` of 4 to 5: a value that is no float becomes one, unless a dtype is passed."""
    value = _argument(node, "fill_value")
    if value is None or _given(node, "dtype") or value.type not in _WHOLE_ARMS:
        return node
    if value.as_int is not UNSET:
        return _with(node, "fill_value", schema.Argument(as_float=float(value.as_int)))
    if value.as_bool is not UNSET:
        return _with(node, "fill_value", schema.Argument(as_float=float(value.as_bool)))
    return _with(node, "dtype", schema.Argument(as_scalar_type=_result_type(node, graph, place)))


def fill_with_dtype(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `full` of 5 to 4: the dtype is written out, if it follows from a value that is no float."""
    value = _argument(node, "fill_value")
    if value is None or _given(node, "dtype") or value.type not in _WHOLE_ARMS:
        return node
    return _with(node, "dtype", schema.Argument(as_scalar_type=_result_type(node, graph, place)))


def count_steps(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `linspace` of 7 and `logspace` of 8: the number of steps is written out."""
    del graph, place  # the same for every call
    return node if _given(node, "steps") else _with(node, "steps", schema.Argument(as_int=_STEPS), after="end")


def name_formula(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `gelu` of 9 to 10: the formula is written out."""
    del graph, place  # the same for every call
    if _given(node, "approximate"):
        return node
    return replace(node, inputs=[*node.inputs, _named("approximate", schema.Argument(as_string="none"))])


def drop_formula(node: schema.Node, graph: schema.Graph, place: str) -> schema.Node:
    """Convert `gelu` of 10 to 9, which has only one formula.

    Raises:
        ConversionError: another formula.
    """
    del graph  # the node says it all
    argument = _argument(node, "approximate")
    if argument is None:
        return node
    if argument.as_string != "none":
        raise ConversionError(f"{place}: expected gelu with approximate 'none' for aten 9, got {argument.value!r}")
    return replace(node, inputs=[named for named in node.inputs if named.name != "approximate"])


ATEN_CHANGES: Final = (
    *(
        OperatorChange("aten", name, 3, 4, truncate_division)
        for name in ("div.Tensor", "div.Scalar", "div_.Tensor", "div_.Scalar", "div.out")
    ),
    *(
        OperatorChange("aten", name, 4, 3, divide_truly)
        for name in ("div.Tensor", "div.Scalar", "div_.Tensor", "div_.Scalar", "div.out")
    ),
    OperatorChange("aten", "full.default", 4, 5, fill_with_float),
    OperatorChange("aten", "full.default", 5, 4, fill_with_dtype),
    OperatorChange("aten", "linspace.default", 7, 8, count_steps),
    OperatorChange("aten", "linspace.out", 7, 8, count_steps),
    OperatorChange("aten", "logspace.default", 8, 9, count_steps),
    OperatorChange("aten", "logspace.out", 8, 9, count_steps),
    *(OperatorChange("aten", name, 9, 10, name_formula) for name in ("gelu.default", "gelu.out")),
    *(OperatorChange("aten", name, 10, 9, drop_formula) for name in ("gelu.default", "gelu.out")),
)
"""Up and down; where there is no way down, the newer call means the same in the older set."""


def _argument(node: schema.Node, name: str) -> schema.Argument | None:
    return next((named.arg for named in node.inputs if named.name == name), None)


def _given(node: schema.Node, name: str) -> bool:
    """Return whether an argument is present and not None."""
    argument = _argument(node, name)
    return argument is not None and argument.as_none is UNSET


def _named(name: str, argument: schema.Argument) -> schema.NamedArgument:
    return schema.NamedArgument(name, argument, ArgumentKind.KEYWORD)


def _with(node: schema.Node, name: str, argument: schema.Argument, *, after: str = "") -> schema.Node:
    """Return the node with another value of an argument; a missing argument is added after `after`, or at the end."""
    if _argument(node, name) is not None:
        inputs = [replace(named, arg=argument) if named.name == name else named for named in node.inputs]
        return replace(node, inputs=inputs)
    place = next((index + 1 for index, named in enumerate(node.inputs) if named.name == after), len(node.inputs))
    return replace(node, inputs=[*node.inputs[:place], _named(name, argument), *node.inputs[place:]])


def _is_whole(argument: schema.Argument | None, graph: schema.Graph, place: str) -> bool:
    """Return whether an argument is an integer or a tensor of integers; missing ones count as such."""
    if argument is None:
        return True
    if argument.as_tensor is UNSET:
        return argument.type in _WHOLE_ARMS
    name = argument.as_tensor.name
    if name not in graph.tensor_values:
        raise OperatorError(f"{place}: expected {name!r} among the tensor values, which say its dtype, got none")
    return graph.tensor_values[name].dtype in _WHOLE


def _result_type(node: schema.Node, graph: schema.Graph, place: str) -> ScalarType:
    """Return the dtype of a node's first result."""
    for output in node.outputs:
        if output.as_tensor is not UNSET and output.as_tensor.name in graph.tensor_values:
            return graph.tensor_values[output.as_tensor.name].dtype
    raise OperatorError(f"{place}: expected a result among the tensor values, which say its dtype, got none")
