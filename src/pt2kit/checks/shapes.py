"""Shapes of the tensors of one call, as far as they are known, for rules about what kernels take on trust."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


class Shape(tuple[int | None, ...]):
    """The sizes of a tensor, and its strides, as far as they are known.

    Args:
        sizes: in elements.
        strides: in elements.
    """

    strides: tuple[int | None, ...]

    def __new__(cls, sizes: Iterable[int | None], strides: Iterable[int | None]) -> Shape:
        """The sizes, which are the tuple, and the strides beside them."""
        made = super().__new__(cls, sizes)
        made.strides = tuple(strides)
        return made


Sizes = Shape | None
Call = Mapping[str, Any]
"""Name of an argument -> what it is: a `Shape` for a tensor, a list of them for a list, numbers, texts."""
Rule = Callable[[Call], Iterator[str]]
"""A call -> what should hold of it and does not: "running_mean of 4 elements, as many as input has channels"."""


def meet(a: Any, b: Any) -> bool:
    """Whether two sizes may be the same."""
    return a is None or b is None or a == b


def fit(a: Any, b: Any) -> bool:
    """Whether two shapes may be the same."""
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(map(meet, a, b))
