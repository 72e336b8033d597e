"""Calls of everyday operators against what the graph declares of their results: sizes, types, layouts (T8, T11, T12).

What an operator gives follows from its arguments (`result_sizes.py`); a graph that declares something else fails when
torch runs it, or computes with other sizes than those it was checked for. Symbols agree with everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.program_context import ProgramContext
from pt2kit.checks.result_sizes import MADE, TENSORS, Misfit, Sizes, meet, text
from pt2kit.errors import Problem
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Step
from pt2kit.schema import MemoryFormat, ScalarType

_Values = Mapping[str, schema.TensorMeta]

_ATEN: Final = "torch.ops.aten."
_RANKS: Final = {MemoryFormat.ChannelsLast: 4, MemoryFormat.ChannelsLast3d: 5}
"""Formats that only tensors of so many dimensions have."""
_INDICES: Final = frozenset((ScalarType.LONG, ScalarType.INT, ScalarType.BYTE, ScalarType.BOOL))
_MASKS: Final = frozenset((ScalarType.BYTE, ScalarType.BOOL))
_PLAIN: Final = frozenset(("as_int", "as_ints", "as_float", "as_floats", "as_bool", "as_bools", "as_string"))

_READING: Final = frozenset((f"{_ATEN}item.default", f"{_ATEN}_local_scalar_dense.default"))

_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge")
_TYPES: Final[Mapping[str, tuple[ScalarType, ...]]] = {
    **{f"{name}.{overload}": (ScalarType.BOOL,) for name in _COMPARISONS for overload in ("Tensor", "Scalar")},
    **{f"logical_{name}.default": (ScalarType.BOOL,) for name in ("and", "or", "xor", "not")},
    **{f"{name}.default": (ScalarType.BOOL,) for name in ("isnan", "isinf")},
    **{f"{name}.default": (ScalarType.LONG,) for name in ("argmax", "argmin")},
}
"""Operator -> the element types of its results, whatever it gets."""
_WITH_INDICES: Final = frozenset(
    (
        *("max.dim", "min.dim", "median.dim", "sort.default", "topk.default"),
        *("max_pool2d_with_indices.default", "max_pool3d_with_indices.default"),
    )
)
"""Operators whose first result is of the type of `self`, and the second of indices."""
_KEEPING: Final = frozenset(
    (
        *("permute.default", "transpose.int", "t.default", "view.default", "reshape.default", "expand.default"),
        *("slice.Tensor", "select.int", "unsqueeze.default", "flatten.using_ints", "clone.default", "alias.default"),
        *("contiguous.default", "detach.default", "relu.default", "relu_.default", "index.Tensor", "gather.default"),
        *("index_select.default", "dropout.default", "flip.default", "roll.default", "tril.default", "triu.default"),
        *("squeeze.dim", "squeeze.dims", "squeeze.default", "repeat.default", "unbind.int", "split.Tensor"),
        "split_with_sizes.default",
    )
)
"""Operators whose results are of the type of `self`."""


def result_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate calls that give something else than the graph declares, or whose arguments do not fit one another.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for step in context.steps():
        if step.node.target.startswith(_ATEN):
            values = step.scope.graph.tensor_values
            names = [name for output in step.node.outputs for name in arguments(output)]
            yield from _sizes(step, values, names)
            yield from _types(step, values, names)
            yield from _formats(step, values, names)
            if step.node.target in _READING:
                yield from _read(step)


def _sizes(step: Step, values: _Values, names: list[str]) -> Iterator[Problem]:
    made = MADE.get(step.node.target)
    if made is None:
        return
    short = step.node.target.removeprefix("torch.ops.")
    try:
        expected = made(_call(step.node, values))
    except Misfit as error:
        yield Problem(step.where, "T8", f"{error} ({short})")
        return
    if expected is None:
        return
    is_list = any(output.type == "as_tensors" for output in step.node.outputs)
    if is_list and len(names) != len(expected):
        yield Problem(f"{step.where}.outputs", "T8", f"expected {len(expected)} results of {short}, got {len(names)}")
    for name, sizes in zip(names, expected, strict=False):
        declared = _declared(values.get(name))
        if sizes is None or declared is None or (len(sizes) == len(declared) and all(map(meet, sizes, declared))):
            continue
        message = f"expected a result of the sizes {text(sizes)}, as {short} makes them, got {text(declared)} declared"
        yield Problem(step.where, "T8", message)


def _types(step: Step, values: _Values, names: list[str]) -> Iterator[Problem]:
    short = step.node.target.removeprefix(_ATEN)
    own = next((named.arg for named in step.node.inputs if named.name == "self"), None)
    meta = values.get(next(iter(arguments(own)), "")) if own is not None and own.type == "as_tensor" else None
    expected: tuple[ScalarType, ...] = _TYPES.get(short, ())
    if meta is not None and short in _WITH_INDICES:
        expected = (meta.dtype, ScalarType.LONG)
    elif meta is not None and short in _KEEPING:
        expected = (meta.dtype,) * len(names)
    for name, dtype in zip(names, expected, strict=False):
        if name in values and values[name].dtype not in (dtype, ScalarType.UNKNOWN):
            message = f"expected a result of the type {dtype.name}, as {short} gives it, got {values[name].dtype.name}"
            yield Problem(step.where, "T11", f"{message} declared")


def _formats(step: Step, values: _Values, names: list[str]) -> Iterator[Problem]:
    """Layouts and memory formats that a call asks for."""
    result = values.get(names[0]) if len(names) == 1 else None
    if result is None or step.node.target.startswith(f"{_ATEN}_assert"):
        return
    for named in step.node.inputs:
        rank = _RANKS.get(named.arg.as_memory_format) if named.arg.as_memory_format is not UNSET else None
        if rank is not None and len(result.sizes) != rank:
            message = f"expected a tensor of {rank} dimensions for this memory format, got {len(result.sizes)}"
            yield Problem(step.where, "T12", message)
        layout = named.arg.as_layout
        if named.name == "layout" and layout is not UNSET and layout is not result.layout:
            message = f"expected a result of the layout {layout.name}, as it is asked for, got {result.layout.name}"
            yield Problem(step.where, "T11", f"{message} declared")


def _read(step: Step) -> Iterator[Problem]:
    """A number that is read out of a tensor: only running the program tells it."""
    graph = step.scope.graph
    tables: Any = (graph.sym_int_values, graph.sym_float_values, graph.sym_bool_values)
    for output in step.node.outputs:
        name = getattr(output.value, "as_name", UNSET)
        number = next((table[name] for table in tables if name is not UNSET and name in table), None)
        if number is not None and number.as_expr is UNSET:
            message = f"expected an expression for what only running tells, got {number.value!r:.40}"
            yield Problem(f"{step.where}.outputs[0]", "T13", message)


def _call(node: schema.Node, values: _Values) -> dict[str, Any]:
    """The arguments of a call by name, as `result_sizes` takes them; of one that is not known, the name with a "?"."""
    call: dict[str, Any] = {}
    for named in node.inputs:
        value, kind = named.arg.value, named.arg.type
        if kind == "as_none":
            call[named.name] = None
        elif kind in _PLAIN and named.name not in TENSORS:
            call[named.name] = value
        elif kind == "as_sym_ints":
            call[named.name] = [None if one.as_int is UNSET else one.as_int for one in value]
        elif kind == "as_sym_int" and value.as_int is not UNSET:
            call[named.name] = value.as_int
        elif (
            kind == "as_tensor" and named.name != "tensors" and (sizes := _declared(values.get(value.name))) is not None
        ):
            call[named.name] = sizes
        elif kind == "as_tensors" and named.name == "tensors":
            call[named.name] = [_declared(values.get(one.name)) for one in value]
        elif kind == "as_optional_tensors" and named.name == "indices":
            _put_indices(call, named.name, value, values)
        else:
            call[f"{named.name}?"] = True
    return call


def _put_indices(call: dict[str, Any], name: str, held: list[schema.OptionalTensorArgument], values: _Values) -> None:
    """Indices: sizes, None where a dimension has none.

    Raises:
        Misfit: an index is of a type that is no index.
    """
    metas = [None if one.as_tensor is UNSET else values.get(one.as_tensor.name) for one in held]
    for meta in metas:
        if meta is not None and meta.dtype not in _INDICES:
            raise Misfit(f"expected whole numbers or truth values as {name}, got {meta.dtype.name}")
    unknown = any(meta is None and one.as_tensor is not UNSET for meta, one in zip(metas, held, strict=True))
    if unknown or any(meta is not None and meta.dtype in _MASKS for meta in metas):
        call["masks"] = True
    call[name] = [_declared(meta) for meta in metas]


def _declared(meta: schema.TensorMeta | None) -> Sizes | None:
    """The sizes that the graph declares."""
    if meta is None:
        return None
    return tuple(size.as_int if isinstance(size.as_int, int) else None for size in meta.sizes)
