"""Element-wise operators: sizes by broadcasting, element types by promotion, strides as the operands have them.

Source: `compute_types` and `compute_elementwise_output_strides` in torch/_prims_common/__init__.py, 2.13, for what
counts in promotion and for the order of dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pt2kit import schema
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.calling import Call, Refused, Rule, Unknown, broadcast, is_row_major, like, meta_of, size_like
from pt2kit.editing.metas import CPU, row_major
from pt2kit.editing.values import Value
from pt2kit.schema import ScalarType, SymInt, TensorMeta
from pt2kit.tensors.dtypes import DTYPES

_FLOATS: Final = (ScalarType.HALF, ScalarType.BFLOAT16, ScalarType.FLOAT, ScalarType.DOUBLE)
_INTS: Final = (ScalarType.CHAR, ScalarType.SHORT, ScalarType.INT, ScalarType.LONG)
_COMPLEX: Final = (ScalarType.COMPLEXHALF, ScalarType.COMPLEXFLOAT, ScalarType.COMPLEXDOUBLE)


def rank_of(dtype: ScalarType) -> int:
    """The category of an element type: 0 bool, 1 int, 2 float, 3 complex."""
    return {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}[DTYPES[dtype].kind]


def joined(a: ScalarType, b: ScalarType) -> ScalarType:
    """The element type that two tensors of equal standing give.

    Raises:
        Unknown: types for which torch has no promotion, or that are not known here.
    """
    if a == b:
        return a
    low, high = sorted((a, b), key=rank_of)
    if rank_of(low) == 0:
        return high
    if rank_of(low) != rank_of(high):
        if rank_of(high) == 3 and low is ScalarType.DOUBLE:
            return ScalarType.COMPLEXDOUBLE
        return high
    if {a, b} == {ScalarType.HALF, ScalarType.BFLOAT16}:
        return ScalarType.FLOAT
    for group in (_FLOATS, _INTS, _COMPLEX):
        if a in group and b in group:
            return max(a, b, key=group.index)
    if ScalarType.BYTE in (a, b):
        other = b if a is ScalarType.BYTE else a
        if other in _INTS:
            return ScalarType.SHORT if other is ScalarType.CHAR else other
    raise Unknown(f"{a.name} and {b.name} have no common type here")


def promoted(operands: Sequence[Any]) -> ScalarType:
    """The element type of a result: tensors with dimensions count before those without, and these before numbers.

    Raises:
        Unknown: as `joined`.
    """
    groups: list[list[ScalarType]] = [[], [], []]
    for operand in operands:
        if isinstance(operand, Value) and isinstance(operand.meta, TensorMeta):
            groups[0 if operand.meta.sizes else 1].append(operand.meta.dtype)
        elif operand is not None:
            groups[2].append(_number_type(operand))
    best: ScalarType | None = None
    for position, group in enumerate(groups):
        if not group:
            continue
        dtype = group[0]
        for other in group[1:]:
            dtype = joined(dtype, other)
        if best is None:
            best = dtype
        elif rank_of(dtype) > rank_of(best):
            best = _default(dtype, best) if position == 2 else dtype
    if best is None:
        raise Unknown("there is no tensor")
    return best


def _default(found: ScalarType, best: ScalarType) -> ScalarType:
    """The type that a number of a higher category makes of a tensor: the default of that category."""
    if rank_of(found) == 2:
        return ScalarType.FLOAT
    if rank_of(found) == 3:
        return ScalarType.COMPLEXDOUBLE if best is ScalarType.DOUBLE else ScalarType.COMPLEXFLOAT
    return ScalarType.LONG


def _number_type(operand: Any) -> ScalarType:
    if isinstance(operand, Value):
        return {"sym_int": ScalarType.LONG, "sym_float": ScalarType.FLOAT, "sym_bool": ScalarType.BOOL}[operand.kind]
    for cls, dtype in ((bool, ScalarType.BOOL), (int, ScalarType.LONG), (float, ScalarType.FLOAT)):
        if isinstance(operand, cls):
            return dtype
    return ScalarType.COMPLEXFLOAT


def with_floats(dtype: ScalarType) -> ScalarType:
    """The element type of a function over the reals: ints and bools become float32."""
    return ScalarType.FLOAT if rank_of(dtype) < 2 else dtype


def combined(operands: Sequence[Any], dtype: ScalarType) -> TensorMeta:
    """The result of an element-wise operator.

    Raises:
        Unknown: sizes or strides that are not sure.
    """
    tensors = [one.meta for one in operands if isinstance(one, Value) and isinstance(one.meta, TensorMeta)]
    for one in tensors:
        if one.layout is not schema.Layout.Strided:
            raise Unknown("an operand is not strided")
    devices = [one.device for one in tensors if one.sizes] or [one.device for one in tensors]
    if not tensors or any(device != devices[0] for device in devices):
        raise Unknown("operands on several devices")
    sizes = broadcast([one.sizes for one in tensors])
    gradient = any(one.requires_grad for one in tensors) and DTYPES[dtype].has_gradient
    return like(tensors[0], sizes, _strides(tensors, sizes), dtype=dtype, device=devices[0], gradient=gradient)


def _strides(tensors: Sequence[TensorMeta], sizes: Sequence[SymInt]) -> list[SymInt]:
    """The strides of a result: those of its operands where they agree on the order of dimensions."""
    whole = [one for one in tensors if arithmetic.all_same(one.sizes, sizes)]
    if all(map(is_row_major, tensors)):
        return row_major(sizes)
    if whole and len(whole) == len(tensors):
        first = whole[0]
        if all(arithmetic.all_same(one.strides, first.strides) for one in whole):
            return dense_like(first)
    if whole and all(is_row_major(one) for one in tensors if one.sizes and one not in whole):
        first = whole[0]
        if all(arithmetic.all_same(one.strides, first.strides) for one in whole) and all(
            sum(not arithmetic.is_one(size) for size in one.sizes) == 0 for one in tensors if one not in whole
        ):
            return dense_like(first)
    raise Unknown("operands lie in memory in different orders")


def dense_like(meta: TensorMeta) -> list[SymInt]:
    """The strides of a new tensor with the order of dimensions that one has; without gaps.

    Raises:
        Unknown: the order is not sure.
    """
    if is_row_major(meta):
        return row_major(meta.sizes)
    steps = [arithmetic.hint(stride) for stride in meta.strides]
    if any(step is None or step == 0 for step in steps) or len(set(steps)) != len(steps):
        raise Unknown("the order of the dimensions in memory is not sure")
    order = sorted(range(len(steps)), key=lambda place: -(steps[place] or 0))
    strides = row_major([meta.sizes[place] for place in order])
    dense_strides = [strides[order.index(place)] for place in range(len(order))]
    if not all(map(arithmetic.same, dense_strides, meta.strides)):
        raise Unknown("the tensor has gaps in memory")
    return dense_strides


def _unary(result: Callable[[ScalarType], ScalarType] = lambda dtype: dtype, parameter: str = "self") -> Rule:
    def rule(call: Call) -> TensorMeta:
        operand = call.get(parameter)
        return combined([operand], result(meta_of(operand).dtype))

    return rule


def _binary(
    result: Callable[[ScalarType], ScalarType] = lambda dtype: dtype, names: tuple[str, str] = ("self", "other")
) -> Rule:
    def rule(call: Call) -> TensorMeta:
        operands = [call.get(name) for name in names]
        return combined(operands, result(promoted(operands)))

    return rule


def _to_bool(_: ScalarType) -> ScalarType:
    return ScalarType.BOOL


def _in_place(result: Callable[[ScalarType], ScalarType] = lambda dtype: dtype) -> Rule:
    """The tensor that is written to, where what is computed fits into it."""

    def rule(call: Call) -> TensorMeta:
        meta, operand = call.tensor("self"), call.get("other")
        if rank_of(result(promoted([call.get("self"), operand]))) > rank_of(meta.dtype):
            raise Unknown(f"what is computed is no {meta.dtype.name}, which it would be written to")
        return _filled(meta, operand)

    return rule


def _copy_into(call: Call) -> TensorMeta:
    return _filled(call.tensor("self"), call.get("src"))


def _filled(meta: TensorMeta, operand: Any) -> TensorMeta:
    """A tensor, where another operand needs no larger one."""
    if isinstance(operand, Value) and isinstance(operand.meta, TensorMeta):
        sizes = broadcast([meta.sizes, operand.meta.sizes])
        if len(sizes) != len(meta.sizes) or not arithmetic.all_same(sizes, meta.sizes):
            raise Unknown("the result would be larger than what it is written to")
    return meta


def _check_condition(meta: TensorMeta, *others: ScalarType) -> None:
    """Refuse a condition that is no truth values."""
    if meta.dtype not in (ScalarType.BOOL, *others):
        raise Unknown(f"expected truth values as the condition, got {meta.dtype.name}")


def _where(call: Call) -> TensorMeta:
    operands = [call.get("condition"), call.get("self"), call.get("other")]
    _check_condition(call.tensor("condition"), ScalarType.BYTE)
    return combined(operands, promoted(operands[1:]))


def _masked_fill(call: Call) -> TensorMeta:
    _check_condition(call.tensor("mask"))
    return combined([call.get("self"), call.get("mask")], call.tensor("self").dtype)


def _clamp(call: Call) -> TensorMeta:
    operands = [call.get("self"), call.get("min"), call.get("max")]
    return combined(operands[:1], promoted(operands))


def _clone(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    return like(meta, meta.sizes, _formatted(meta, call.get("memory_format")))


def _formatted(meta: TensorMeta, wanted: Any) -> list[SymInt]:
    if wanted is schema.MemoryFormat.ContiguousFormat:
        return row_major(meta.sizes)
    if wanted in (None, schema.MemoryFormat.PreserveFormat):
        return dense_like(meta)
    raise Unknown("a memory format")


def _contiguous(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    if call.get("memory_format") not in (None, schema.MemoryFormat.ContiguousFormat):
        raise Unknown("a memory format")
    if is_row_major(meta):
        return meta
    return like(meta, meta.sizes)


def _cast(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    dtype, device = call.get("dtype"), call.get("device")
    dtype = meta.dtype if dtype is None else dtype
    device = meta.device if device is None else device
    if (dtype, device) == (meta.dtype, meta.device) and not call.get("copy") and call.get("memory_format") is None:
        return meta
    gradient = meta.requires_grad and DTYPES[dtype].has_gradient
    strides = _formatted(meta, call.get("memory_format"))
    return like(meta, meta.sizes, strides, dtype=dtype, device=device, gradient=gradient)


def _copy(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    dtype, device = call.get("dtype"), call.get("device")
    dtype = meta.dtype if dtype is None else dtype
    gradient = meta.requires_grad and DTYPES[dtype].has_gradient
    strides = _formatted(meta, call.get("memory_format"))
    return like(meta, meta.sizes, strides, dtype=dtype, device=device or meta.device, gradient=gradient)


def _created(call: Call) -> TensorMeta:
    sizes = [size_like(size) for size in call.get("size", [])]
    fill = call.get("fill_value")
    dtype = call.get("dtype")
    if dtype is None:
        dtype = ScalarType.FLOAT if fill is None else _number_type(fill)
    return TensorMeta(
        dtype, sizes, False, call.get("device") or CPU, row_major(sizes), arithmetic.number(0), schema.Layout.Strided
    )


def _created_like(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    dtype = call.get("dtype")
    strides = _formatted(meta, call.get("memory_format"))
    created_meta = like(meta, meta.sizes, strides, dtype=meta.dtype if dtype is None else dtype, gradient=False)
    return (
        created_meta
        if call.get("device") is None
        else like(created_meta, created_meta.sizes, created_meta.strides, device=call.get("device"))
    )


_SAME = (
    *("relu", "abs", "neg", "sign", "round", "floor", "ceil", "trunc", "detach", "alias", "silu", "gelu", "elu"),
    *("hardswish", "hardtanh", "leaky_relu", "relu6", "mish", "selu", "celu", "hardsigmoid", "softplus"),
    *("bitwise_not", "log_sigmoid", "dropout", "positive", "feature_dropout", "tril", "triu"),
)
_REAL = (
    *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("asin", "acos", "atan", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv", "exp2", "reciprocal"),
    *("lgamma", "digamma"),
)
_PREDICATES = ("logical_not", "isnan", "isinf", "isfinite", "signbit")
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")


def _no_bools(rule: Rule) -> Rule:
    """A rule that does not hold where the result would be bools, of which torch makes integers."""

    def no_bools(call: Call) -> Any:
        meta = rule(call)
        if meta.dtype is ScalarType.BOOL:
            raise Unknown("powers of bools")
        return meta

    return no_bools


def _of_numbers(rule: Rule, *names: str) -> Rule:
    """A rule that holds where no operand is bools, of which torch makes no difference and no negative."""

    def of_numbers(call: Call) -> Any:
        for name in names:
            operand = call.get(name)
            if isinstance(operand, bool) or (
                isinstance(operand, Value) and (operand.dtype is ScalarType.BOOL or operand.kind == "sym_bool")
            ):
                raise Refused(f"expected numbers as {name}, got bools")
        return rule(call)

    return of_numbers


def _of_floats(rule: Rule) -> Rule:
    """A rule that holds for floats alone."""

    def of_floats(call: Call) -> Any:
        if rank_of(call.tensor("self").dtype) < 2:
            raise Unknown("numbers that are no floats")
        return rule(call)

    return of_floats


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        **{f"aten.{name}.default": _unary() for name in _SAME},
        **{f"aten.{name}.default": _of_floats(_unary()) for name in ("softshrink", "hardshrink")},
        "aten.dropout.default": _unary(parameter="input"),
        "aten.feature_dropout.default": _unary(parameter="input"),
        **{f"aten.{name}.default": _unary(with_floats) for name in _REAL},
        **{f"aten.{name}.default": _unary(_to_bool) for name in _PREDICATES},
        **{f"aten.{name}.{kind}": _binary() for name in ("add", "mul") for kind in ("Tensor", "Scalar")},
        **{
            f"aten.{name}.{kind}": _of_numbers(_binary(), "self", "other")
            for name in ("sub", "rsub")
            for kind in ("Tensor", "Scalar")
        },
        **{f"aten.{name}.default": _of_numbers(_unary(), "self") for name in ("neg", "relu")},
        **{
            f"aten.{name}.{kind}": _binary(with_floats)
            for name in ("div", "true_divide")
            for kind in ("Tensor", "Scalar")
        },
        **{f"aten.{name}.{kind}": _binary() for name in ("remainder", "fmod") for kind in ("Tensor", "Scalar")},
        "aten.floor_divide.default": _binary(),
        "aten.floor_divide.Scalar": _binary(),
        **{f"aten.{name}.default": _binary() for name in ("maximum", "minimum")},
        **{
            f"aten.pow.{kind}": _no_bools(_binary(names=("self", "exponent")))
            for kind in ("Tensor_Scalar", "Tensor_Tensor", "Scalar")
        },
        "aten.square.default": _no_bools(_unary()),
        "aten.atan2.default": _binary(with_floats),
        **{f"aten.{name}.{kind}": _binary(_to_bool) for name in _COMPARED for kind in ("Tensor", "Scalar")},
        **{f"aten.logical_{name}.default": _binary(_to_bool) for name in ("and", "or", "xor")},
        **{f"aten.bitwise_{name}.{kind}": _binary() for name in ("and", "or", "xor") for kind in ("Tensor", "Scalar")},
        **{f"aten.__{name}__.{kind}": _binary() for name in ("and", "or", "xor") for kind in ("Tensor", "Scalar")},
        **{f"aten.{name}_.{kind}": _in_place() for name in ("add", "mul") for kind in ("Tensor", "Scalar")},
        **{f"aten.sub_.{kind}": _of_numbers(_in_place(), "self", "other") for kind in ("Tensor", "Scalar")},
        **{f"aten.div_.{kind}": _in_place(with_floats) for kind in ("Tensor", "Scalar")},
        **{f"aten.{name}_.default": _in_place() for name in ("detach", "zero", "silu")},
        **{f"aten.{name}_.default": _of_numbers(_in_place(), "self") for name in ("neg", "relu")},
        "aten.sigmoid_.default": _in_place(with_floats),
        "aten.copy_.default": _copy_into,
        "aten.where.self": _where,
        "aten.where.ScalarOther": _where,
        "aten.where.ScalarSelf": _where,
        "aten.where.Scalar": _where,
        "aten.masked_fill.Scalar": _masked_fill,
        "aten.masked_fill.Tensor": _masked_fill,
        "aten.clamp.default": _clamp,
        "aten.clamp_min.default": _clamp,
        "aten.clamp_max.default": _clamp,
        "aten.clone.default": _clone,
        "aten.lift_fresh_copy.default": _clone,
        "aten.contiguous.default": _contiguous,
        "aten.to.dtype": _cast,
        "aten.to.device": _cast,
        "aten.to.dtype_layout": _cast,
        "aten._to_copy.default": _copy,
        **{f"aten.{name}.default": _created for name in ("full", "zeros", "ones", "rand", "randn")},
        "aten.empty.memory_format": _created,
        **{f"aten.{name}_like.default": _created_like for name in ("zeros", "ones", "full", "empty", "rand", "randn")},
    }
)
