"""Abstract values of a program: the facts about a tensor or number that are known without running anything.

Result rules (`symbolic.py`) compute facts of results from facts of arguments. A fact never guesses: a dtype, stride or
device that is not certain is None, a size that is not certain is an unknown number, and a rule that cannot answer
raises `Unknown`. A rule raises `Mismatch` if torch refuses such arguments.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import zip_longest
from typing import Any, Final, Literal, NoReturn, TypeAlias, TypeVar

from msgspec import Struct

from pt2kit.messages import count_text
from pt2kit.schema import Device, Layout, ScalarType
from pt2kit.symbols.polynomials import Polynomial, Size, Undecided, bounds, largest, product, same, text, unknown
from pt2kit.tensors.bounds import device_text
from pt2kit.tensors.dtypes import short_name

Answer = TypeVar("Answer")
Subject: TypeAlias = Literal["sizes", "dtype", "dimension", "value"]
"""Kinds of errors in the arguments of a call: `check` names a rule for each (T8, T11, T12, T15)."""

MAX_RESULTS: Final = 4096
"""Tensors of one list that a rule enumerates."""


class Unknown(Exception):
    """A result is not certain; the text says why."""


class Mismatch(Exception):
    """Arguments that torch refuses: "expected X, got Y", without the place.

    Args:
        message: the text.
        subject: what is wrong.
    """

    def __init__(self, message: str, subject: Subject = "value") -> None:
        super().__init__(message)
        self.subject: Subject = subject


class _Unknown:
    """A value that nothing is known of, not even whether it is a tensor; None is an argument that is not given."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()


class Tensor(Struct, frozen=True, gc=False):
    """Known facts of a tensor.

    Args:
        sizes: elements per dimension.
        dtype: the element type; None if unknown.
        strides: elements from one to the next, per dimension; None if unknown.
        device: None if unknown.
        offset: elements before the first one in its storage; None if unknown.
        layout: strided, or one of the sparse layouts.
    """

    sizes: tuple[Size, ...]
    dtype: ScalarType | None
    strides: tuple[Size, ...] | None = None
    device: Device | None = None
    offset: Size | None = 0
    layout: Layout = Layout.Strided

    @property
    def rank(self) -> int:
        """Return the number of dimensions (rank)."""
        return len(self.sizes)

    @property
    def may_be_sparse(self) -> bool:
        """Return whether the tensor has a sparse layout, or may have one.

        torch makes every value strided when it reads a program, and sparse ones keep their strides of 0, which views of
        one element have, too.
        """
        return self.layout is not Layout.Strided or (
            self.strides is not None and all(stride == 0 for stride in self.strides)
        )

    @property
    def numel(self) -> Size:
        """Return the number of elements (numel)."""
        return product(self.sizes)


class Symbolic(Struct, frozen=True, gc=False):
    """A number that is not a size and not known: a symbolic float or truth value.

    Args:
        kind: float, bool or int.
    """

    kind: type

    def __bool__(self) -> NoReturn:
        raise Unknown(f"it depends on a symbolic {self.kind.__name__}")

    __index__ = __int__ = __float__ = __bool__

    def __lt__(self, other: object) -> NoReturn:
        raise Undecided(f"a symbolic {self.kind.__name__} is compared")

    __le__ = __gt__ = __ge__ = __lt__


Scalar: TypeAlias = int | float | bool | complex | Polynomial | Symbolic
"""A number as an argument."""
Sizes: TypeAlias = "Sequence[Size]"
Result: TypeAlias = "Tensor | Size | Symbolic | Sequence[Any] | None"
"""A fact for each result of the schema: one, or a tuple of them; a list for a result that is a list."""


def new(
    sizes: Sequence[Size],
    dtype: ScalarType | None,
    device: Device | None = None,
    strides: Sequence[Size] | None = None,
) -> Tensor:
    """Return a new tensor of its own memory: row-major if no strides are given."""
    sizes = tuple(sizes)
    return Tensor(sizes, dtype, row_major(sizes) if strides is None else tuple(strides), device)


def like(tensor: Tensor, sizes: Sequence[Size] | None = None, dtype: ScalarType | None = None) -> Tensor:
    """Return a new row-major tensor on the same device, by default of the same sizes and dtype."""
    return new(tensor.sizes if sizes is None else sizes, tensor.dtype if dtype is None else dtype, tensor.device)


def unlike_strides(tensor: Tensor) -> Tensor:
    """Return the tensor with unknown strides: for results whose strides differ between releases or devices."""
    return Tensor(tensor.sizes, tensor.dtype, None, tensor.device, tensor.offset, tensor.layout)


def row_major(sizes: Sequence[Size]) -> tuple[Size, ...]:
    """Return the strides of a contiguous tensor; torch counts an empty dimension as one of size 1."""
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(sizes):
        strides.append(step)
        if isinstance(size, int):
            step = step * max(size, 1)
        else:
            step = step * (unknown(1) if size.is_unknown and bounds(size)[0] < 1 else largest(1, size))
    return tuple(reversed(strides))


def axis(dim: Any, rank: int, name: str = "dim") -> int:
    """Normalize a dimension to a non-negative axis; a scalar tensor counts as one dimension.

    Raises:
        Mismatch: there is no such dimension.
        Unknown: the dimension is not known.
    """
    if not isinstance(dim, int):
        raise Unknown(f"{name} is not known")
    count = max(rank, 1)
    if not -count <= dim < count:
        raise Mismatch(f"{name}: expected a dimension from {-count} to {count - 1}, got {dim}", "dimension")
    return dim % count


def axes(dims: Any, rank: int, name: str = "dim") -> tuple[int, ...]:
    """Normalize a list of dimensions, each of which may appear once.

    Raises:
        Mismatch: there is no such dimension, or one appears twice.
        Unknown: a dimension is not known.
    """
    if isinstance(dims, int):
        dims = (dims,)
    normalized = tuple([axis(dim, rank, name) for dim in dims])
    require(len(set(normalized)) == len(normalized), "dimension", f"{name}: expected each dimension once", dims)
    return normalized


def agree(one: Size, other: Size, what: str) -> Size:
    """Return the size that two sizes, which have to be equal, are: the one that is a number, if one is.

    Args:
        one, other: the sizes.
        what: what they are, for the message: "self and mat2: expected one inner size".

    Raises:
        Mismatch: they differ, whatever their symbols stand for.
    """
    if same(one, other) is False:
        raise Mismatch(f"{what}, got {text(one)} and {text(other)}", "sizes")
    return other if isinstance(other, int) else one


def expect(condition: bool | None, message: str, subject: Subject = "value") -> None:
    """Refuse arguments for which a condition is known not to hold.

    Args:
        condition: None if it is not known.
        message: "expected X, got Y".
        subject: what is wrong.

    Raises:
        Mismatch: the condition is False.
    """
    if condition is False:
        raise Mismatch(message, subject)


def require(condition: bool | None, subject: Subject, expected: str, *got: Any) -> None:
    """Refuse arguments for which a condition is known not to hold, and show what they are.

    Args:
        condition: None if it is not known.
        subject: what is wrong.
        expected: the message up to there: "dims: expected each dimension once".
        got: tensors, sizes, dtypes or devices; they are shown by a message only.

    Raises:
        Mismatch: the condition is False.
    """
    if condition is False:
        raise Mismatch(f"{expected}, got {' and '.join(map(shown, got))}", subject)


def shown(value: Any) -> str:
    """Return a fact or another argument as messages show it: a tensor by its sizes."""
    match value:
        case Tensor():
            return shape_text(value.sizes)
        case ScalarType():
            return short_name(value)
        case Device():
            return device_text(value)
        case bool():
            return str(value)
        case int() | Polynomial():
            return text(value)
        case list() | tuple() if all(isinstance(one, (int, Polynomial)) for one in value):
            return shape_text(value)
        case list() | tuple():
            return count_text(len(value), "entry", "entries")
    return f"{value!r:.60}"


def may_be(sizes: Sequence[Size], others: Sequence[Size]) -> bool:
    """Return whether two lists of sizes are the same, or may be, as symbols decide."""
    return len(sizes) == len(others) and all(same(*pair) is not False for pair in zip(sizes, others, strict=True))


def is_equal(one: Size, other: Size) -> bool:
    """Return whether two sizes are equal.

    Raises:
        Undecided: their symbols decide.
    """
    if (answer := same(one, other)) is None:
        raise Undecided(f"whether {text(one)} is {text(other)}")
    return answer


def decided(compute: Callable[..., Answer], *args: Any) -> Answer | None:
    """Return the result of a function; None if symbols decide it."""
    try:
        return compute(*args)
    except Undecided:
        return None


def at_least(size: Size, least: int) -> bool | None:
    """Return whether a size is `least` or more; None if its symbols decide."""
    return decided(operator.ge, size, least)


def require_least(sizes: Sequence[Size], least: int, expected: str, subject: Subject = "sizes") -> None:
    """Refuse sizes below a least one.

    Args:
        sizes: the sizes.
        least: what each has to be at least.
        expected: the message: "size: expected sizes of 0 or more".
        subject: what is wrong.

    Raises:
        Mismatch: one is less, whatever its symbols stand for.
    """
    require(all(at_least(size, least) is not False for size in sizes), subject, expected, sizes)


def require_rank(tensor: Tensor, ranks: Sequence[int], name: str) -> None:
    """Refuse a tensor of another rank.

    Raises:
        Mismatch: its rank is none of `ranks`.
    """
    if tensor.rank not in ranks:
        expected = " or ".join([*map(str, ranks[:-1]), count_text(ranks[-1], "dimension")])
        raise Mismatch(f"{name}: expected {expected}, got {shape_text(tensor.sizes)}", "sizes")


def require_sizes(tensor: Tensor, sizes: Sequence[Size], name: str) -> None:
    """Refuse a tensor of other sizes.

    Raises:
        Mismatch: its sizes are others, whatever their symbols stand for.
    """
    require(may_be(tensor.sizes, sizes), "sizes", f"{name}: expected sizes {shape_text(sizes)}", tensor)


def shape_text(sizes: Sequence[Size]) -> str:
    """Return sizes as messages show them: "[2, s0]"."""
    return f"[{', '.join(map(text, sizes[:64]))}]"


def broadcast(*shapes: Sequence[Size]) -> tuple[Size, ...]:
    """Return the sizes of an element-wise result.

    A size that may be 1 next to one that may not: the result has the second. Two different sizes that both may be 1
    leave the result unknown.

    Raises:
        Mismatch: they do not broadcast.
    """
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return tuple(shapes[0])
    columns = zip_longest(*map(reversed, shapes), fillvalue=1)
    sizes = [reduce(lambda one, other: _broadcast(one, other, shapes), column) for column in columns]
    return tuple(sizes[::-1])


def _broadcast(one: Size, other: Size, shapes: Sequence[Sequence[Size]]) -> Size:
    if one == 1 or one == other:
        return other
    if other == 1:
        return one
    is_one, is_other = same(one, 1), same(other, 1)
    if is_one is False and is_other is False:
        require(same(one, other), "sizes", "expected sizes that broadcast", *shapes)
        return other if isinstance(other, int) else one
    if is_one is False:
        return one
    if is_other is False:
        return other
    return one if same(one, other) else unknown()
