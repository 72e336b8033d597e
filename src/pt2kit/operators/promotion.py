"""Type promotion: the dtype of a result from those of its operands.

Source: `ResultTypeState` in aten/src/ATen/native/TypeProperties.cpp and c10/core/ScalarType.h, torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from typing import Any, Final, NoReturn

from pt2kit.operators.facts import Mismatch, Symbolic, Tensor, Unknown
from pt2kit.schema import ScalarType
from pt2kit.schema.names import ATEN_OPS
from pt2kit.symbols.polynomials import Polynomial
from pt2kit.tensors.dtypes import DTYPES, short_name

BOOL, INT, FLOAT, COMPLEX = range(4)
"""Categories of dtypes, in the order of promotion."""

_DEFAULT_FLOAT: Final = ContextVar("pt2kit.operators.default_float", default=ScalarType.FLOAT)

_CATEGORIES: Final = {"bool": BOOL, "int": INT, "uint": INT, "float": FLOAT, "complex": COMPLEX}
_BY_WIDTH: Final = frozenset(
    (
        *(ScalarType.HALF, ScalarType.BFLOAT16, ScalarType.FLOAT, ScalarType.DOUBLE),
        *(ScalarType.CHAR, ScalarType.BYTE, ScalarType.SHORT, ScalarType.INT, ScalarType.LONG),
        *(ScalarType.COMPLEXHALF, ScalarType.COMPLEXFLOAT, ScalarType.COMPLEXDOUBLE),
    )
)
"""Dtypes of which the wider one is the dtype of two of one category."""
_COMPLEX_OF: Final = {
    ScalarType.HALF: ScalarType.COMPLEXHALF,
    ScalarType.BFLOAT16: ScalarType.COMPLEXFLOAT,
    ScalarType.FLOAT: ScalarType.COMPLEXFLOAT,
    ScalarType.DOUBLE: ScalarType.COMPLEXDOUBLE,
}
# COMPLEXFLOAT has parts of FLOAT, which replaces BFLOAT16.
_REAL_OF: Final = {complex_dtype: dtype for dtype, complex_dtype in _COMPLEX_OF.items()}

_COUNTING: Final = ("_unique2", "unique_dim", "unique_consecutive", "bincount")
KEPT_BEFORE_2_13: Final = frozenset((f"{ATEN_OPS}div.Tensor", *(f"{ATEN_OPS}{name}.default" for name in _COUNTING)))
"""Operators whose results torch before 2.13 may declare in the dtype of the operands: quotients of integers in symbolic
sizes, indices and counts of unique elements, and sums of weights."""

_KIND_NAMES: Final = {"b": "bool", "i": "integer", "f": "floating-point", "c": "complex"}

_NUMBERS_AS_TENSORS: Final = frozenset(
    name + suffix
    for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide")
    for suffix in ("", "_")
) | {"copy", "copy_", "to", "_to_copy", "_conj"}
"""Operators of aten that take a number where their schema says Tensor; all of prims do.

Source: `should_allow_numbers_as_tensors` in torch/csrc/utils/python_arg_parser.cpp, 2.13.
"""


def category(dtype: ScalarType) -> int:
    """Return the category of a dtype: bool, int, float or complex."""
    return _CATEGORIES[DTYPES[dtype].kind]


def default_float() -> ScalarType:
    """Return torch's default dtype where the program was exported: of floats that are computed from no other floats.

    Files do not record what `torch.set_default_dtype` set there; it is float32 unless `with_default_float` says else.
    """
    return _DEFAULT_FLOAT.get()


@contextmanager
def with_default_float(dtype: ScalarType) -> Iterator[None]:
    """Compute results by another default dtype inside a block."""
    token = _DEFAULT_FLOAT.set(dtype)
    try:
        yield
    finally:
        _DEFAULT_FLOAT.reset(token)


def promote_types(one: ScalarType, other: ScalarType) -> ScalarType:
    """Return the dtype of two tensors of equal priority.

    Raises:
        Unknown: torch has no promotion of the two, or it is not in the table.
    """
    if one is other:
        return one
    low, high = sorted((one, other), key=category)
    if category(low) == BOOL:
        return high
    if category(low) < category(high):
        if category(high) == COMPLEX and category(low) == FLOAT:
            return promote_types(complex_of(low), high)
        return high
    if {one, other} == {ScalarType.HALF, ScalarType.BFLOAT16}:
        return ScalarType.FLOAT
    if {one, other} == {ScalarType.BYTE, ScalarType.CHAR}:
        return ScalarType.SHORT
    if {one, other} <= _BY_WIDTH:
        return max(one, other, key=lambda dtype: DTYPES[dtype].itemsize)
    raise Unknown(f"{short_name(one)} and {short_name(other)} have no common dtype in the table")


def result_type(*operands: Any) -> ScalarType:
    """Return the dtype of an element-wise result.

    Tensors with dimensions have priority over scalar tensors, and those over numbers: an operand of lower priority
    counts only if its category is higher.

    Args:
        operands: tensors, numbers, sizes, or None for operands that are not given.

    Raises:
        Unknown: an operand's dtype is not known, or the dtypes have no promotion in the table.
    """
    groups: list[list[ScalarType]] = [[], [], []]
    for operand in operands:
        if isinstance(operand, Tensor):
            if operand.dtype is None:
                raise Unknown("the dtype of an operand is not known")
            groups[0 if operand.sizes else 1].append(operand.dtype)
        elif operand is not None:
            groups[2].append(number_type(operand))
    best: ScalarType | None = None
    for dtypes in filter(None, groups):
        dtype = common_dtype(dtypes)
        if best is None:
            best = dtype
        elif category(dtype) > category(best):
            # A complex operand has no say in how precise floats are.
            has_parts = category(dtype) == COMPLEX and category(best) == FLOAT
            best = complex_of(best) if has_parts else dtype
    if best is None:
        raise Unknown("there is no operand")
    return best


def promoted(operands: Iterable[Any]) -> ScalarType | None:
    """Return the dtype of operands as `result_type`; None if it is not known."""
    try:
        return result_type(*operands)
    except Unknown:
        return None


def common_dtype(dtypes: Iterable[ScalarType]) -> ScalarType:
    """Return the dtype of one or more tensors of equal priority.

    Raises:
        Unknown: torch has no promotion of two of them, or it is not in the table.
    """
    return reduce(promote_types, dtypes)


def number_type(number: Any) -> ScalarType:
    """Return the dtype that a number counts as in promotion.

    Raises:
        Unknown: it is no number.
    """
    kind = number.kind if isinstance(number, Symbolic) else int if isinstance(number, Polynomial) else type(number)
    default = default_float()
    for cls, dtype in (
        (bool, ScalarType.BOOL),
        (int, ScalarType.LONG),
        (float, default),
        (complex, complex_of(default)),
    ):
        if issubclass(kind, cls):  # Floats of files may keep the text that they are read from.
            return dtype
    raise Unknown("an operand is no number")


def float_type(dtype: ScalarType) -> ScalarType:
    """Return the dtype of a function over the reals: ints and bools are computed in the default dtype."""
    return dtype if category(dtype) >= FLOAT else default_float()


def integer_sum_type(dtype: ScalarType) -> ScalarType:
    """Return the dtype of a sum or product: ints and bools are added as int64."""
    return dtype if category(dtype) >= FLOAT else ScalarType.LONG


def complex_of(dtype: ScalarType) -> ScalarType:
    """Return the complex dtype with parts of a real dtype.

    Raises:
        Unknown: there is none.
    """
    if category(dtype) == COMPLEX:
        return dtype
    if dtype not in _COMPLEX_OF:
        raise Unknown(f"{short_name(dtype)} has no complex dtype")
    return _COMPLEX_OF[dtype]


def real_of(dtype: ScalarType) -> ScalarType:
    """Return the dtype of the parts of a complex dtype; real dtypes are their own, and None is, which is not known."""
    return _REAL_OF.get(dtype, dtype)


def known_dtype(tensor: Tensor) -> ScalarType:
    """Return the dtype of a tensor.

    Raises:
        Unknown: it is not known.
    """
    if tensor.dtype is None:
        raise Unknown("a dtype is not known")
    return tensor.dtype


KINDS: Final = "bifc"
"""Letters for the categories of dtypes: bool, int, float, complex."""


def require_kind(dtype: ScalarType | None, kinds: str, name: str) -> None:
    """Refuse a dtype of another category.

    Args:
        dtype: the dtype; None if it is not known.
        kinds: letters of the categories that are allowed: "fc" for floats and complex numbers.
        name: of the operand, for the message.

    Raises:
        Mismatch: its category is none of `kinds`.
    """
    if dtype is not None and KINDS[category(dtype)] not in kinds:
        expected = " or ".join(_KIND_NAMES[kind] for kind in kinds)
        raise Mismatch(f"{name}: expected {expected} elements, got {short_name(dtype)}", "dtype")


def require_dtype(tensor: Tensor, allowed: Iterable[ScalarType], name: str) -> None:
    """Refuse a tensor of another dtype.

    Raises:
        Mismatch: its dtype is none of `allowed`.
    """
    allowed = tuple(allowed)
    if tensor.dtype is not None and tensor.dtype not in allowed:
        expected = " or ".join(map(short_name, allowed))
        raise Mismatch(f"{name}: expected {expected}, got {short_name(tensor.dtype)}", "dtype")


def takes_numbers_as_tensors(operator: str) -> bool:
    """Return whether an operator ("aten.add.Tensor") takes a number as a tensor, of one element and on its device."""
    namespace, _, rest = operator.partition(".")
    return namespace == "prims" or (namespace == "aten" and rest.partition(".")[0] in _NUMBERS_AS_TENSORS)


def unsure(dtype: ScalarType) -> NoReturn:
    """Leave the dtype of a result unknown."""
    raise Unknown("releases, or kernels and fake tensors, differ in the dtype")
