"""Element types as torch promotes and converts them, on NumPy arrays; bounds on what a kernel allocates.

NumPy's own promotion differs from torch's: int64 and float16 make float64 in NumPy and float16 in torch, and in torch a
tensor without dimensions or a Python number changes the type of a larger tensor only if it is of a higher category.
float16, bfloat16 and 8-bit floats are computed in float32 and rounded when the result is stored; where torch stores a
step of a computation, `rounding` does.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import ml_dtypes
import numpy as np

from pt2kit.errors import LimitError, OperatorError
from pt2kit.operators import promotion
from pt2kit.operators.facts import Mismatch, Symbolic, Tensor, Unknown, axes
from pt2kit.operators.promotion import default_float
from pt2kit.operators.table import infer
from pt2kit.schema import ScalarType
from pt2kit.tensors.dtypes import DTYPES, numpy_dtype

Array: TypeAlias = np.ndarray[Any, Any]
DType: TypeAlias = np.dtype[Any]


class ForeignArray:
    """Base class of the arrays of other engines, which implement NumPy's protocols."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


ARRAYS: Final[Any] = (np.ndarray, ForeignArray)
"""Classes of the arrays that kernels get."""
Number: TypeAlias = "bool | int | float | complex"

BOOL, INT64, FLOAT32, FLOAT64 = (np.dtype(name) for name in ("bool", "int64", "float32", "float64"))
BFLOAT16, _EXPONENT = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e8m0fnu)
_FINITE = np.dtype(ml_dtypes.float8_e4m3fn)
COMPLEX64, COMPLEX128 = np.dtype("complex64"), np.dtype("complex128")

DTYPE: Final[Mapping[ScalarType, DType]] = MappingProxyType(
    {number: COMPLEX64 if number is ScalarType.COMPLEXHALF else numpy_dtype(number) for number in DTYPES}
)
"""Element type of the schema -> type of the arrays that hold it; complex half is held as complex64."""

SCALAR_TYPE: Final[Mapping[DType, ScalarType]] = MappingProxyType(
    {dtype: number for number, dtype in DTYPE.items() if number is not ScalarType.COMPLEXHALF}
)
"""Type of arrays -> element type of the schema."""
_KINDS: Final = MappingProxyType({dtype: promotion.category(number) for dtype, number in SCALAR_TYPE.items()})
_NARROW: Final = frozenset(dtype for dtype in _KINDS if _KINDS[dtype] == 2 and dtype not in (FLOAT32, FLOAT64))


@dataclass(slots=True)
class Running:
    """One call of a session: what its kernels may use.

    Args:
        max_bytes: bytes that one array may have.
        random: the generator of random operators.
        deadline: `time.monotonic` at which the call ends with an error; None for never.
        keep: returns the result of a step as later ones get it.
        checks: conditions on numbers that are not known yet, and the errors if they do not hold.
        entries: the entry of the batch that is computed, for each region of vmap around the node; -1 in empty batches.
    """

    max_bytes: int = 1 << 62
    random: np.random.Generator = field(default_factory=np.random.default_rng)
    deadline: float | None = None
    keep: Callable[[Any, Any], Any] | None = None
    checks: list[tuple[Any, str]] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)


RUNNING: Final[ContextVar[Running]] = ContextVar("pt2kit.runtime.running")


def running() -> Running:
    """Return the call that is running, or one without limits if a kernel is called by itself."""
    return RUNNING.get(None) or Running()


def reserve(shape: Iterable[int], dtype: Any = FLOAT32) -> tuple[int, ...]:
    """Return a shape if an array of it may be allocated.

    Raises:
        OperatorError: a negative size.
        LimitError: more bytes than the call may use for one array.
    """
    sizes = tuple(int(size) for size in shape)
    if any(size < 0 for size in sizes):
        raise OperatorError(f"expected sizes of at least 0, got {list(sizes)}")
    nbytes = math.prod(sizes) * np.dtype(dtype).itemsize
    limit = running().max_bytes
    if nbytes > limit:
        raise LimitError(
            f"expected a result of at most {limit:,} bytes, got {nbytes:,} for sizes {list(sizes)}; pass a larger limit"
        )
    return sizes


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The sizes and the element type that the rule of an operator computes for a result.

    Args:
        sizes: its sizes.
        dtype: its type; float32 if the rule does not tell it.
    """

    sizes: tuple[int, ...]
    dtype: DType


def check_call(operator: str, arguments: Mapping[str, Any]) -> list[ArraySpec]:
    """Check that an operator accepts the arguments of a call, and that its results may be allocated.

    Args:
        operator: its name; operators without a rule accept all arguments.
        arguments: arrays and plain values by parameter name.

    Returns:
        Those results whose sizes follow from the arguments; all for most operators.

    Raises:
        Mismatch: torch refuses such arguments.
        LimitError: a result has more bytes than the call may use for one array.
    """
    names, values = tuple(arguments), arguments.values()
    try:
        results = _results(operator, default_float(), names, *map(_fact, values))
    except Mismatch as error:
        if error.subject != "dtype":
            raise
        # Regions of autocast mix floating-point numbers of several widths.
        results = _results(operator, default_float(), names, *(_fact(one, compute_type) for one in values))
    for result in results:
        reserve(result.sizes, result.dtype)
    return results


def _fact(value: Any, convert: Callable[[DType], DType] = lambda dtype: dtype) -> Any:
    """Return an argument as rules of operators expect it; the element types of arrays are converted."""
    if isinstance(value, ARRAYS):
        return Tensor(value.shape, SCALAR_TYPE.get(convert(value.dtype)), None, None, None)
    if isinstance(value, list | tuple):
        return tuple([_fact(one, convert) for one in value])
    return SCALAR_TYPE[value] if isinstance(value, np.dtype) else value


@functools.lru_cache(maxsize=4096, typed=True)
def _results(operator: str, _: ScalarType, names: tuple[str, ...], *facts: Any) -> list[ArraySpec]:
    """Return the results of a call whose sizes its rule is certain of; they depend on the default dtype."""
    try:
        found = flattened(infer(operator, dict(zip(names, facts, strict=True))))
    except Unknown:
        return []
    tensors = [one for one in found if isinstance(one, Tensor) and all(isinstance(size, int) for size in one.sizes)]
    return [
        ArraySpec(tuple(map(int, one.sizes)), FLOAT32 if one.dtype is None else DTYPE[one.dtype]) for one in tensors
    ]


def flattened(value: Any) -> list[Any]:
    """Return the values in a list and in the lists among its values; a value that is no list as one of one."""
    return [one for part in value for one in flattened(part)] if isinstance(value, list | tuple) else [value]


def mapped(value: Any, change: Callable[[Any], Any], kinds: Any = ARRAYS) -> Any:
    """Return a value with a function applied to each array in it, and in the lists and dicts among its values.

    Args:
        value: the value.
        change: the function.
        kinds: classes of arrays.
    """
    if isinstance(value, kinds):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(one, change, kinds) for key, one in value.items()}
    if not isinstance(value, (list, tuple)):
        return value
    found = [mapped(one, change, kinds) for one in value]
    return found if isinstance(value, list) else tuple(found)


def shaped(value: Any, specs: Sequence[ArraySpec]) -> Any:
    """Return results of a kernel in the sizes that the rule of its operator computes, where it has as many elements."""
    if isinstance(value, list | tuple):
        parts = [shaped(one, [spec]) for one, spec in zip(value, specs, strict=False)]
        return type(value)(parts) if len(parts) == len(value) else value
    if not specs or not isinstance(value, (ARRAYS, np.generic)) or value.shape == specs[0].sizes:
        return value
    return value.reshape(specs[0].sizes) if value.size == math.prod(specs[0].sizes) else value


def is_known(value: Any) -> bool:
    """Return whether the numbers of a value can be read now, not only when a traced program runs."""
    return not isinstance(value, ForeignArray) or value.is_known


def require(condition: Any, message: str) -> None:
    """Check a condition on numbers: now, or after the call if they are not known yet.

    Raises:
        OperatorError: it does not hold.
    """
    if not is_known(condition):
        running().checks.append((condition.value, message))
    elif not condition:
        raise OperatorError(message)


def strided(array: Array, shape: Sequence[int], strides: Sequence[int]) -> Any:
    """Return a view of an array with other sizes and strides, in bytes; it can be written to if the array can."""
    if isinstance(array, ForeignArray):
        return array.strided(shape, strides)
    return np.lib.stride_tricks.as_strided(array, shape, strides, writeable=array.flags.writeable)


def kind(dtype: DType) -> int:
    """Return the category of an element type: 0 bool, 1 integer, 2 floating point, 3 complex."""
    try:
        return _KINDS[dtype]
    except KeyError:
        raise OperatorError(f"expected an element type of torch, got {dtype}") from None


def is_complex(array: Array) -> bool:
    """Return whether an array is of complex numbers."""
    return bool(array.dtype.kind == "c")


def joined_type(tensors: Iterable[Array]) -> DType:
    """Return the element type of the result of joining tensors, whatever their ranks."""
    return _result_type(default_float(), *((tensor.dtype, True) for tensor in tensors))


def result_type(*values: Any) -> DType:
    """Return the element type that torch computes in for some operands (`torch.result_type`).

    Args:
        values: arrays and Python numbers.

    Raises:
        OperatorError: operands of other kinds, or types that torch has no promotion of.
    """
    kinds: list[Any] = [(one.dtype, one.ndim > 0) if isinstance(one, ARRAYS) else type(one) for one in values]
    return _result_type(default_float(), *kinds)


# A pure function; programs call it with few combinations of types.
@functools.lru_cache(maxsize=4096)
def _result_type(_: ScalarType, *operands: Any) -> DType:
    """Return the result type of operands: element types with whether there are dimensions, or types of numbers.

    It depends on the default dtype.
    """
    facts: list[Any] = []
    for one in operands:
        if isinstance(one, tuple):
            kind(one[0])
            facts.append(Tensor((2,) if one[1] else (), SCALAR_TYPE[one[0]]))
        else:
            facts.append(Symbolic(type(one().item()) if issubclass(one, np.generic) else one))
    try:
        return DTYPE[promotion.result_type(*facts)]
    except Unknown as error:
        raise OperatorError(f"expected operands whose types torch promotes: {error}") from None


def compute_type(dtype: DType) -> DType:
    """Return the type that kernels compute in: float32 for narrower floats."""
    return FLOAT32 if dtype in _NARROW else dtype


def float_type(dtype: DType) -> DType:
    """Return the type of a function of real numbers: the default dtype for integers."""
    return dtype if kind(dtype) >= 2 else DTYPE[default_float()]


def real_type(dtype: DType) -> DType:
    """Return the type of the parts of complex numbers; other types unchanged."""
    return {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}.get(dtype, dtype)


def complex_type(dtype: DType) -> DType:
    """Return the complex type whose parts hold a type."""
    return COMPLEX128 if dtype in (FLOAT64, COMPLEX128) else COMPLEX64


def asarray(value: Any) -> Any:
    """Return a number as an array; arrays, also of other engines, unchanged."""
    return value if isinstance(value, ARRAYS) else np.asarray(value)


def cast(value: Any, dtype: DType) -> Array:
    """Return a value as an array of an element type, converted as torch does; the same array if it has that type."""
    array: Array = asarray(value)
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and kind(dtype) < 3:
        if dtype == BOOL:
            return np.not_equal(array, 0)
        array = array.real
    if dtype in _NARROW and dtype.itemsize == 1 and array.dtype != FLOAT32:
        array = array.astype(FLOAT32)
    if array.dtype in _NARROW and kind(dtype) == 1:
        array = array.astype(FLOAT32)
    if array.dtype.kind == "f" and dtype.kind == "u":
        array = array.astype(INT64)  # negative numbers wrap, as in torch
    if dtype == _FINITE:
        array = np.clip(array, -448, 448)  # torch 2.13 has no larger numbers; before, they became NaN
    if dtype == _EXPONENT:
        array = np.maximum(np.abs(array), np.float32(2.0**-127))  # no sign; zero becomes the least number
    return array.astype(dtype)


def operands(*values: Any, floats: bool = False, exact: bool = False) -> tuple[list[Array], DType]:
    """Convert operands to the type that their operator computes in, and return the type of its result.

    Args:
        values: arrays and Python numbers.
        floats: compute integers in the default dtype.
        exact: do not round numbers to the type of the result first, such as 0.3 to float16, as multiplication does.
    """
    first = values[0]
    dtype = first.dtype if isinstance(first, ARRAYS) and first.ndim else None
    if dtype is None or any(not isinstance(value, ARRAYS) or value.dtype != dtype for value in values):
        dtype = result_type(*values)
    if floats:
        dtype = float_type(dtype)
    compute = compute_type(dtype)
    if compute != dtype:
        values = tuple(value if exact and np.ndim(value) == 0 else cast(value, dtype) for value in values)
    return [cast(value, compute) for value in values], dtype


def named(function: Any) -> Any:
    """Return a function whose parameters have names; those of NumPy's element-wise functions have none."""
    operands = getattr(function, "nin", None)
    if operands is None:
        return function
    return (lambda self: function(self)) if operands == 1 else (lambda self, other: function(self, other))


def converting(convert: Callable[[Array], Array]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what makes kernels of functions whose arrays are converted first, such as `computed`."""

    def adapt(function: Callable[..., Any]) -> Callable[..., Any]:
        function = named(function)

        def run(*args: Any, **options: Any) -> Any:
            return function(*mapped(args, convert), **mapped(options, convert))

        return functools.wraps(function)(run)

    return adapt


def promoted(function: Callable[..., Any], count: int = 2, **options: bool) -> Callable[..., Any]:
    """Return the kernel of a function whose first operands are converted as `operands` does, by its options."""
    function = named(function)
    names = [*inspect.signature(function).parameters][:count]

    def run(*args: Any, **others: Any) -> Any:
        values = [*args[:count], *(others.pop(name) for name in names[len(args) :])]
        return function(*operands(*values, **options)[0], *args[count:], **others)

    return functools.wraps(function)(run)


promoted_floats = functools.partial(promoted, floats=True)
"""Makes kernels as `promoted` does, of functions that compute integers in the default dtype."""


def wide(array: Array) -> Array:
    """Return an array in the type that kernels compute in."""
    return cast(array, compute_type(array.dtype))


Keep = Callable[[Any], Any]
"""Rounds the result of one step, an array or a number, to a type in which torch stores it."""


def rounding(dtype: DType) -> Keep:
    """Return what rounds to a type; results are of the type that the next step computes in."""
    compute = compute_type(dtype)
    return lambda value: cast(cast(value, dtype), compute) if compute != dtype else value


def floating(array: Array) -> Array:
    """Return an array in the type that functions of real numbers compute in."""
    return cast(array, compute_type(float_type(array.dtype)))


def double(array: Array) -> Array:
    """Return an array of real numbers in double precision."""
    return cast(array, FLOAT64)


computed, in_floats, in_doubles = converting(wide), converting(floating), converting(double)
"""Make kernels of functions of arrays in the type that kernels compute in, of floats, of double-precision floats."""


def last(index: Iterable[Any], ahead: int | None = None) -> Any:
    """Return an index of the last dimensions of an array; of those after the first `ahead` ones, if that is given."""
    return (..., *index) if ahead is None else (*(slice(None),) * ahead, *index)


def merged(array: Array, ahead: int) -> Array:
    """Return an array whose dimensions after the first `ahead` are one, also of no elements, where -1 is undefined."""
    return array.reshape(*array.shape[:ahead], math.prod(array.shape[ahead:]))


def axes_of(dims: Any, ndim: int) -> tuple[int, ...]:
    """Return dimensions counted from the first; all for None or an empty list.

    Raises:
        Mismatch: no such dimension, or one appears twice.
    """
    if dims is None or (not isinstance(dims, int) and not len(dims)):
        return tuple(range(ndim))
    found = axes(dims, ndim)
    return found if ndim else ()


def check_indices(indices: Array, size: int, *, negative: bool = False) -> Array:
    """Return indices that are within a dimension.

    Args:
        indices: integers.
        size: of the dimension.
        negative: count negative ones from the end, and return them counted from the first.

    Raises:
        OperatorError: an index outside the dimension, or no integers.
    """
    if kind(indices.dtype) != 1:
        raise OperatorError(f"expected indices that are integers, got {indices.dtype}")
    if not indices.size:
        return indices
    if not is_known(indices):
        require(np.all((indices >= (-size if negative else 0)) & (indices < size)), f"expected indices below {size}")
        return np.where(indices < 0, indices + size, indices) if negative else indices
    least, most = int(indices.min()), int(indices.max())
    if least < (-size if negative else 0) or most >= size:
        raise OperatorError(f"expected indices below {size}, got {least} to {most}")
    return np.where(indices < 0, indices + size, indices) if least < 0 else indices


def order_of(strides: Sequence[int]) -> tuple[int, ...]:
    """Return the order of dimensions in memory that strides have, outermost first."""
    return tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))


def in_order(array: Array, order: tuple[int, ...]) -> Array:
    """Return an array whose dimensions are in an order in memory, and that is all of its memory: itself or a copy."""
    turned = np.transpose(array, order)
    if turned.flags.c_contiguous and getattr(array, "base", None) is None:
        return array
    return np.transpose(turned.copy(order="C"), [order.index(axis) for axis in range(len(order))])
