"""What is known of a value -> the entry that the value tables have for it, from whatever form a caller has it in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pt2kit import schema
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.values import Value
from pt2kit.errors import GraphError
from pt2kit.graph.argument_values import ValueKind
from pt2kit.graph.values import Meta
from pt2kit.messages import quote
from pt2kit.tensors.dtypes import DTYPES, scalar_type_named, scalar_type_of

CPU: Final = schema.Device("cpu")
ZERO: Final = schema.SymInt(as_int=0)

_KINDS: Final[tuple[tuple[type[Any], ValueKind], ...]] = (
    (schema.TensorMeta, "tensor"),
    (schema.SymInt, "sym_int"),
    (schema.SymFloat, "sym_float"),
    (schema.SymBool, "sym_bool"),
    (schema.CustomObjArgument, "custom_obj"),
)
_SHORT: Final = {row.short: number for number, row in DTYPES.items()}
_OTHER_NAMES: Final = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64"}


def tensor_meta(
    dtype: Any,
    sizes: Sequence[Any],
    *,
    strides: Sequence[Any] | None = None,
    storage_offset: Any = 0,
    device: str | schema.Device = CPU,
    requires_grad: bool = False,
    layout: schema.Layout = schema.Layout.Strided,
) -> schema.TensorMeta:
    """State what is known of a tensor.

    Args:
        dtype: "float32", "f32", a numpy type or a `schema.ScalarType`.
        sizes: elements per dimension: ints, expressions as text ("s77", "2*s77 + 1"), `schema.SymInt`s, or the values
            that hold them.
        strides: elements from one to the next in each dimension, likewise; row-major where it is None.
        storage_offset: elements in front of the first.
        device: "cpu", "cuda:0".
        requires_grad, layout: as the schema has them.

    Raises:
        GraphError: a size that is none of these, or other numbers of sizes and strides.
        Pt2Error: a text that is no expression, or no element type.
    """
    listed = [size_of(size) for size in sizes]
    steps = row_major(listed) if strides is None else [size_of(stride) for stride in strides]
    if len(steps) != len(listed):
        raise GraphError(f"tensor_meta: expected {len(listed)} strides, one for each size, got {len(steps)}", rule="G6")
    return schema.TensorMeta(
        scalar_type(dtype), listed, requires_grad, device_of(device), steps, size_of(storage_offset), layout
    )


def row_major(sizes: Sequence[schema.SymInt]) -> list[schema.SymInt]:
    """The strides of a tensor whose elements lie one after another; torch counts an empty dimension as one of 1."""
    strides: list[schema.SymInt] = []
    step = arithmetic.number(1)
    for size in reversed(sizes):
        strides.append(step)
        step = arithmetic.product((step, arithmetic.number(1) if size.as_int == 0 else size))
    return strides[::-1]


def size_of(size: Any) -> schema.SymInt:
    """A size from an int, the text of an expression, a `SymInt`, or the value that holds one.

    Raises:
        GraphError: something else.
        Pt2Error: a text that is no expression.
    """
    match size:
        case bool():
            pass
        case int():
            return arithmetic.number(size)
        case str():
            return arithmetic.parsed(size)
        case schema.SymInt():
            return size
        case Value(meta=schema.SymInt() as meta):
            return meta
    raise GraphError(f"size: expected an int, an expression or a sym_int value, got {quote(repr(size))}")


def scalar_type(dtype: Any) -> schema.ScalarType:
    """An element type from its number, torch's name or short name for it, or numpy's type.

    Raises:
        UnsupportedError: no element type of the schema (P4).
    """
    if isinstance(dtype, schema.ScalarType):
        return dtype
    if isinstance(dtype, str):
        name = dtype.removeprefix("torch.")
        return _SHORT[name] if name in _SHORT else scalar_type_named(_OTHER_NAMES.get(name, name), "dtype")
    if str(dtype).startswith("torch."):
        return scalar_type_named(str(dtype).removeprefix("torch."), "dtype")
    import numpy as np

    return scalar_type_of(np.dtype(dtype), "dtype")


def device_of(device: str | schema.Device) -> schema.Device:
    """A device from its text: "cuda:0".

    Raises:
        GraphError: no text of that form.
    """
    if isinstance(device, schema.Device):
        return device
    kind, colon, index = str(device).partition(":")
    if not kind.isidentifier() or (colon and not (index.isascii() and index.isdecimal() and len(index) < 4)):
        raise GraphError(f"device: expected a type and perhaps an index ('cuda:0'), got {quote(str(device))}")
    return schema.Device(kind, int(index) if colon else None)


def device_text(device: schema.Device) -> str:
    """A device as `device_of` reads it."""
    return device.type if device.index is None else f"{device.type}:{device.index}"


def kind_of(meta: Any, edit: str) -> ValueKind:
    """The kind of value that an entry of the tables is for.

    Raises:
        GraphError: it is no entry of the tables.
    """
    for cls, kind in _KINDS:
        if isinstance(meta, cls):
            return kind
    raise GraphError(
        f"{edit}: expected as meta a Value, a schema.TensorMeta (pt2kit.editing.tensor_meta makes one) or what else "
        f"the value tables hold, got {type(meta).__name__}"
    )


def entry(meta: Any, edit: str) -> Meta:
    """What a caller gives as a meta -> the entry: of a `Value` its own.

    Raises:
        GraphError: as `kind_of`.
    """
    unchecked: Any = meta.meta if isinstance(meta, Value) else meta
    kind_of(unchecked, edit)
    checked: Meta = unchecked
    return checked
