"""Metadata of values: from any accepted form to entries of the graph's value tables, or inferred by result rules.

Shapes and dtypes of calls that are added or edited follow from the result rules of the operator table; no torch. If a
rule is not certain, the caller states the result with `meta=`, or asks torch's fake tensors with `infer="torch"`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from pt2kit import schema
from pt2kit.editing import sizes as arithmetic
from pt2kit.errors import GraphError, Pt2Error
from pt2kit.front_door import registered
from pt2kit.graph.argument_values import ValueKind
from pt2kit.graph.reading import readable_size
from pt2kit.graph.traversal import Meta
from pt2kit.messages import count_text, quote
from pt2kit.operators.facts import Mismatch, Symbolic, Tensor, Unknown
from pt2kit.operators.metas import Symbols, to_size
from pt2kit.operators.table import find
from pt2kit.operators.table import infer as infer_facts
from pt2kit.schema import TensorMeta
from pt2kit.schema.names import OPS
from pt2kit.symbols.polynomials import Polynomial, Undecided
from pt2kit.tensors.bounds import parse_device
from pt2kit.tensors.dtypes import DTYPES, scalar_type_named, scalar_type_of
from pt2kit.tensors.view import CPU

ZERO: Final = schema.SymInt(as_int=0)

_KINDS: Final[tuple[tuple[type[Any], ValueKind], ...]] = (
    (schema.TensorMeta, "tensor"),
    (schema.SymInt, "sym_int"),
    (schema.SymFloat, "sym_float"),
    (schema.SymBool, "sym_bool"),
    (schema.CustomObjArgument, "custom_obj"),
)
_SHORT: Final = {row.short: number for number, row in DTYPES.items()}
_TORCH_NAMES: Final = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64"}
_OTHER_NAMES: Final = {**_TORCH_NAMES, "fp64": "float64", "fp32": "float32", "fp16": "float16"}
"""Torch's other names of element types, and those of model hubs."""


class Operand:
    """A value as arguments and metas refer to it: `graphs.Value` without its graph.

    Attributes:
        name: unique in its graph.
        kind: "tensor", "sym_int", "sym_float", "sym_bool" or "custom_obj".
    """

    __slots__ = ("_meta", "kind", "name")

    def __init__(self, name: str, kind: ValueKind, meta: Meta | None) -> None:
        self.name = name
        self.kind: ValueKind = kind
        self._meta = meta

    @property
    def meta(self) -> Any:
        """Return the value's table entry: a `schema.TensorMeta` for a tensor."""
        return self._meta

    @property
    def dtype(self) -> schema.ScalarType | None:
        """Return the element type of a tensor; None for anything else."""
        return self._meta.dtype if isinstance(self._meta, schema.TensorMeta) else None

    @property
    def shape(self) -> tuple[int | str, ...] | None:
        """Return the sizes of a tensor, symbolic ones as the text of their expression; None for anything else."""
        if not isinstance(self._meta, schema.TensorMeta):
            return None
        return tuple(map(readable_size, self._meta.sizes))


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
    """Return the `schema.TensorMeta` of a tensor.

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
        raise GraphError(
            f"tensor_meta: expected {count_text(len(listed), 'stride')}, one for each size, got {len(steps)}", rule="G6"
        )
    return schema.TensorMeta(
        scalar_type(dtype), listed, requires_grad, device_of(device), steps, size_of(storage_offset), layout
    )


def row_major(sizes: Sequence[schema.SymInt]) -> list[schema.SymInt]:
    """Return row-major (contiguous) strides; torch counts an empty dimension as one of 1."""
    strides: list[schema.SymInt] = []
    step = arithmetic.number(1)
    for size in reversed(sizes):
        strides.append(step)
        step = arithmetic.product((step, arithmetic.number(1) if size.as_int == 0 else size))
    return strides[::-1]


def cast_meta(meta: schema.TensorMeta, dtype: schema.ScalarType) -> schema.TensorMeta:
    """Return the meta of a row-major copy of a tensor in another dtype."""
    return replace(meta, dtype=dtype, strides=row_major(meta.sizes), storage_offset=ZERO)


def size_of(size: Any) -> schema.SymInt:
    """Return a size from an int, the text of an expression, a `SymInt`, or the value that holds one.

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
        case Operand(meta=schema.SymInt() as meta):
            return meta
    raise GraphError(f"size: expected an int, an expression or a sym_int value, got {quote(repr(size))}")


def scalar_type(dtype: Any) -> schema.ScalarType:
    """Return an element type from its number, torch's name or short name for it, or numpy's type.

    Raises:
        GraphError: something else.
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

    try:
        return scalar_type_of(np.dtype(dtype), "dtype")
    except TypeError:
        raise GraphError(f"dtype: expected an element type such as 'float32', got {quote(repr(dtype))}") from None


def device_of(device: str | schema.Device) -> schema.Device:
    """Return a device from its text: "cuda:0".

    Raises:
        GraphError: no text of that form.
    """
    if isinstance(device, schema.Device):
        return device
    parsed = parse_device(str(device))
    if parsed is None:
        raise GraphError(f"device: expected a type and perhaps an index ('cuda:0'), got {quote(str(device))}")
    return parsed


def kind_of(meta: Any, edit: str) -> ValueKind:
    """Return the kind of value that a table entry is for.

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
    """Return the table entry of a meta in any accepted form; of a `Value` its own.

    Raises:
        GraphError: as `kind_of`.
    """
    found: Meta = meta.meta if isinstance(meta, Operand) else meta
    kind_of(found, edit)
    return found


def infer_meta(target: str, arguments: Mapping[str, Any], infer: str | None, edit: str) -> Any:
    """Return the metas of the results of a call.

    Args:
        target: the operator.
        arguments: by parameter, plain, with values of the graph where it uses them.
        infer: "torch" to ask torch's fake tensors if no rule is certain.
        edit: what messages call the edit.

    Returns:
        A meta, a tuple of them for several results, a list for a result that is a list.

    Raises:
        GraphError: it cannot be inferred; the message says which meta to pass.
    """
    name = target.removeprefix(OPS)
    try:
        return inferred(name, arguments)
    except (Unknown, Mismatch) as error:
        why = str(error)
    if infer == "torch":
        return registered("inference with torch")(target, arguments, edit)
    if infer is not None:
        raise GraphError(f"{edit}: expected infer=None or infer='torch', got {infer!r}")
    raise GraphError(
        f"{edit}: expected meta= for the result of {name}, which cannot be inferred ({why}); pass a Value that is like "
        "it, pt2kit.editing.tensor_meta(dtype, sizes), or infer='torch'"
    )


def inferred(name: str, arguments: Mapping[str, Any]) -> Any:
    """Return the metas of the results of a call.

    Raises:
        Unknown: there is no rule for it, or the rule is not certain.
        Mismatch: torch refuses the arguments.
    """
    results = inferred_facts(name, arguments)
    operands = [one for held in arguments.values() for one in (held if isinstance(held, (list, tuple)) else (held,))]
    row = find(name)
    requires_grad = (row is None or row.has_gradient) and any(
        isinstance(one, Operand) and isinstance(one.meta, TensorMeta) and one.meta.requires_grad for one in operands
    )
    try:
        return _meta(results, requires_grad)
    except (Undecided, Pt2Error) as error:
        raise Unknown(str(error)) from error


def inferred_facts(name: str, arguments: Mapping[str, Any]) -> Any:
    """Return the facts of the results of a call, of which single ones may be uncertain, such as strides.

    Raises:
        Unknown: there is no rule for it, or the rule is not certain.
        Mismatch: torch refuses the arguments.
    """
    known = Symbols(assumed_least=2)  # As torch's own fake tensors assume.
    return infer_facts(name, {parameter: _fact(held, known) for parameter, held in arguments.items()})


def _fact(held: Any, known: Symbols) -> Any:
    if isinstance(held, Operand):
        return known.fact(held.meta)
    if isinstance(held, (list, tuple)):
        return tuple([_fact(one, known) for one in held])
    return held


def _meta(result: Any, requires_grad: bool) -> Any:
    if isinstance(result, Tensor):
        if result.strides is None or result.offset is None:
            raise Unknown("its strides are not certain")
        if result.dtype is None or result.device is None:
            raise Unknown("its dtype or device is not certain")
        sizes, strides = list(map(to_size, result.sizes)), list(map(to_size, result.strides))
        requires_grad = requires_grad and DTYPES[result.dtype].has_gradient
        return TensorMeta(
            result.dtype, sizes, requires_grad, result.device, strides, to_size(result.offset), result.layout
        )
    if isinstance(result, (list, tuple)):
        metas = [_meta(one, requires_grad) for one in result]
        return metas if isinstance(result, list) else tuple(metas)
    if isinstance(result, bool):
        return schema.SymBool(as_bool=result)
    if isinstance(result, (int, Polynomial)):
        return to_size(result)
    if isinstance(result, Symbolic):
        raise Unknown(f"it is a symbolic {result.kind.__name__}")
    raise Unknown("its result is not certain")
