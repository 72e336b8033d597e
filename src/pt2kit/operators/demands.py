"""Requirements of unchecked kernels: the arguments of one call, and conditions on them.

A rule is a function of a `Call` that yields a `Demand` for each thing that has to hold. Sizes are numbers, symbolic
numbers of torch, or None where they are not known; values are arrays of NumPy or tensors of torch, which rules use
through what the two have in common: comparisons, `&`, `|`, `all`, `sum`, `cumsum` and slices. So the same rule judges
a call that runs, a call that torch traces (its conditions become assertions), and a call of which a file shows a part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pt2kit.schema import ScalarType

Condition = Any
"""True, False, a symbolic truth value, or an array of one truth value."""

# A dict, as torch.compile looks up no enum in a read-only mapping.
_LEAST: Final[Mapping[ScalarType | None, int]] = {
    ScalarType.BOOL: 0,
    ScalarType.BYTE: 0,
    ScalarType.CHAR: -(1 << 7),
    ScalarType.SHORT: -(1 << 15),
    ScalarType.INT: -(1 << 31),
    ScalarType.LONG: -(1 << 63),
}


@dataclass(frozen=True, slots=True)
class Demand:
    """One thing that has to hold of a call.

    Args:
        holds: whether it does.
        argument: the argument that is wrong if it does not.
        expected: what the argument has to be: "one element for each channel of input".
    """

    holds: Condition
    argument: str
    expected: str


@dataclass(slots=True, eq=False)
class Operand:
    """A tensor of a call. Nothing changes; the bridge, which asks a live tensor, has properties in place of the fields.

    Args:
        sizes: in elements.
        strides: in elements; None if unknown.
        values: its elements as an array; None if unknown.
        dtype: its type in the schema; None if unknown.
    """

    sizes: Sequence[Any]
    strides: Sequence[Any] | None = None
    values: Any = None
    dtype: Any = None

    @property
    def least(self) -> int | None:
        """Return the smallest number of its type, if those are whole numbers; None for others."""
        return _LEAST.get(self.dtype)


Array = Callable[[Sequence[Any], Any], Any]
"""Whole numbers, and values of a call or None -> an array of the kind that these values are."""


class Call:
    """The arguments of one call, by the names of the schema.

    Args:
        arguments: an `Operand` for a tensor, a list of them for a list of tensors, numbers, texts; None for what is
            missing or not known.
        array: returns an array of some whole numbers, of the kind that the values of the call are (given as `like`).
        records: whether the call is recorded for gradients, so that its arguments are used again by backward kernels.

    Attributes:
        trusted: names of the tensors whose values were asked for: a caller passes on copies of these, which nothing
            else can change between the check and the kernel.
        unknown: whether something was asked for that is not known.
    """

    def __init__(self, arguments: Mapping[str, Any], array: Array | None = None, records: bool = False) -> None:
        self.arguments = arguments
        self.array = array
        self.records = records
        self.trusted: list[str] = []
        self.unknown = False

    def get(self, name: str) -> Any:
        """Return an argument; None if it is missing or not known."""
        return self.arguments.get(name)

    def keep(self, name: str) -> None:
        """Have the kernel use a private copy of a tensor, which nothing else can change."""
        if self.arguments.get(name) is not None:
            self.trusted.append(name)

    def values(self, name: str) -> Any:
        """Return the values of a tensor, of which the kernel gets a copy; None if they are missing or not known."""
        operand = self.arguments.get(name)
        if not isinstance(operand, Operand):
            return None
        self.trusted.append(name)
        if operand.values is None:
            self.unknown = True
        return operand.values

    def numbers(self, name: str, like: Any) -> Any:
        """Return a list of whole numbers, or the values of a tensor of them, as an array; None if not known."""
        given = self.arguments.get(name)
        if given is None or isinstance(given, Operand):
            return self.values(name)
        if None in given or self.array is None:
            self.unknown = True
            return None
        return self.array(given, like)


Rule = Callable[[Call], Iterator[Demand]]


def equal(one: Any, other: Any) -> Condition:
    """Return whether two sizes are the same; True if one is not known."""
    return True if one is None or other is None else one == other


def at_least(size: Any, least: int) -> Condition:
    """Return whether a size is `least` or more; True if it is not known."""
    return True if size is None else size >= least


def every(conditions: Iterable[Condition]) -> Condition:
    """Return whether all conditions hold."""
    result: Condition = True
    for condition in conditions:
        if condition is False:
            return False
        if condition is not True:
            result = condition if result is True else result & condition
    return result


def either(one: Condition, other: Condition) -> Condition:
    """Return whether one of two conditions holds."""
    if one is True or other is True:
        return True
    if one is False:
        return other
    return one if other is False else one | other


def fit(one: Sequence[Any] | None, other: Sequence[Any] | None) -> Condition:
    """Return whether two lists of sizes are the same, as far as they are known."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and every(map(equal, one, other))


def ranked(sizes: Sequence[Any] | None, *ranks: int) -> bool:
    """Return whether a tensor of these sizes has one of some ranks; True if they are not known."""
    return sizes is None or len(sizes) in ranks


def filled(sizes: Sequence[Any] | None) -> Condition:
    """Return whether a tensor of these sizes has elements."""
    return True if sizes is None else every(at_least(size, 1) for size in sizes)


def product(sizes: Iterable[Any] | None) -> Any:
    """Return the number of elements; None if it is not known."""
    if sizes is None:
        return None
    known = list(sizes)
    return None if any(size is None for size in known) else math.prod(known)


def within(values: Any, low: Any, high: Any) -> Condition:
    """Return whether every element is at least `low` and less than `high`; True if not known."""
    if values is None or high is None:
        return True
    return ((values >= low) & (values < high)).all()


def rising(values: Any) -> Condition:
    """Return whether no element along the last dimension is less than the one before."""
    return True if values is None else (values[..., 1:] >= values[..., :-1]).all()
