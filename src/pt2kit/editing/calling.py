"""What the rules of inference share: the arguments of a call, and tensors made like others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pt2kit import schema
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.metas import ZERO, row_major
from pt2kit.editing.values import Value
from pt2kit.schema import SymInt, TensorMeta


class Unknown(Exception):
    """A rule is not sure of the result; the text says why."""


class Refused(Unknown):
    """Torch takes no such arguments; the text says what it takes, and what it got."""


class Call:
    """The arguments of a call by parameter, plain, with `Value`s where values are used."""

    __slots__ = ("arguments",)

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = arguments

    def get(self, name: str, default: Any = None) -> Any:
        """An argument; the default where it is not given."""
        return self.arguments.get(name, default)

    def tensor(self, name: str) -> TensorMeta:
        """What a tensor argument is like.

        Raises:
            Unknown: it is no tensor.
        """
        return meta_of(self.arguments.get(name), name)

    def number(self, name: str, default: int | None = None) -> int:
        """An int that is given as it is.

        Raises:
            Unknown: it is not known.
        """
        value = self.arguments.get(name, default)
        if not isinstance(value, int):
            raise Unknown(f"{name} is no known number")
        return value

    def size(self, held: Any) -> SymInt:
        """A size that is given as an int or as a value.

        Raises:
            Unknown: it is neither.
        """
        return size_like(held)


Rule: TypeAlias = Callable[[Call], Any]


def meta_of(held: Any, name: str = "an argument") -> TensorMeta:
    """What a value that is a strided tensor is like.

    Raises:
        Unknown: it is no such tensor.
    """
    if not isinstance(held, Value) or not isinstance(held.meta, TensorMeta):
        raise Unknown(f"{name} is no tensor")
    if held.meta.layout is not schema.Layout.Strided:
        raise Unknown(f"{name} is not strided")
    return held.meta


def size_like(held: Any) -> SymInt:
    """A size that is given as an int or as a value.

    Raises:
        Unknown: it is neither.
    """
    if isinstance(held, int) and not isinstance(held, bool):
        return arithmetic.number(held)
    if isinstance(held, Value) and isinstance(held.meta, SymInt):
        return held.meta
    raise Unknown("a size is not known")


def like(
    meta: TensorMeta,
    sizes: Sequence[SymInt],
    strides: Sequence[SymInt] | None = None,
    *,
    dtype: schema.ScalarType | None = None,
    device: schema.Device | None = None,
    offset: SymInt = ZERO,
    gradient: bool | None = None,
) -> TensorMeta:
    """A tensor like another one, of other sizes; row-major where no strides are given."""
    return TensorMeta(
        meta.dtype if dtype is None else dtype,
        list(sizes),
        meta.requires_grad if gradient is None else gradient,
        device or meta.device,
        list(row_major(sizes) if strides is None else strides),
        offset,
        meta.layout,
    )


def is_row_major(meta: TensorMeta) -> bool:
    """Whether the elements lie one after another, whatever the symbols stand for; dimensions of 1 do not count."""
    return all(
        arithmetic.is_one(size) or arithmetic.same(stride, wanted)
        for size, stride, wanted in zip(meta.sizes, meta.strides, row_major(meta.sizes), strict=True)
    )


def axis(dim: int, rank: int) -> int:
    """A dimension counted from the front.

    Raises:
        Unknown: there is no such dimension.
    """
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise Unknown(f"there is no dimension {dim} of {rank}")
    return dim % max(rank, 1)


def broadcast(shapes: Sequence[Sequence[SymInt]]) -> list[SymInt]:
    """The sizes that tensors have in common when they are combined element by element.

    Raises:
        Unknown: two sizes that differ, or that symbols decide.
    """
    rank = max(map(len, shapes), default=0)
    sizes = []
    for position in range(-rank, 0):
        size = arithmetic.number(1)
        for shape in shapes:
            if -position > len(shape) or arithmetic.is_one(shape[position]):
                continue
            if arithmetic.is_one(size):
                size = shape[position]
            elif not arithmetic.same(size, shape[position]):
                raise Unknown(f"sizes {_text(size)} and {_text(shape[position])} do not meet")
        sizes.append(size)
    return sizes


def _text(size: SymInt) -> str:
    return str(size.value if isinstance(size.value, int) else size.value.expr_str)
