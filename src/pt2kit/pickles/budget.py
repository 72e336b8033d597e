"""Limits on pickled payloads: the budget of one reading, the wording of its errors, final checks of the value.

The budget is what one reading has spent. An unpickled value is checked for cycles, depth, size as a tree, and stray
globals.

Handlers of pickled calls share the checks of `Place`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from msgspec.structs import astuple

from pt2kit.errors import LimitError, PayloadError, UnsupportedError
from pt2kit.messages import count_text, kind_of, printable
from pt2kit.pickles.values import (
    Device,
    DType,
    Global,
    Layout,
    MemoryFormat,
    MetaTensor,
    NamedTuple,
    Opaque,
    PickledDict,
    PickledTensor,
    QScheme,
    Size,
    TensorLike,
)

if TYPE_CHECKING:
    from types import FunctionType

T = TypeVar("T")

MAX_NAME = 1_024
"""Characters of a module or of a global's name; the longest real ones have about 100."""


@dataclass(frozen=True, slots=True)
class PickleLimits:
    """Limits of one payload: a state dict of 60,000 tensors passes, a hostile stream ends in seconds below 1 GB.

    Args:
        stream_bytes: length of the pickle stream. Tensor bytes are not in it; numpy arrays and byte strings are.
        opcodes: steps of the stream; a tensor takes about 30.
        memo_entries: entries of the pickle's memo; a tensor takes about 8.
        string_bytes: length of one string or byte string.
        integer_bytes: length of one integer. 128 bytes are 309 digits, which Python still prints without complaint.
        depth: containers inside containers in the result. Its readers may recurse; Python allows about 1,000 frames.
        total_items: values in the result counted as a tree, shared parts once per use: a payload of lists that repeat
            lists is small until it is traversed.
        built_bytes: memory taken by copies that calls in the stream make (a byte string made from a text, a set from
            a list). Without it a short stream could copy one long string many times.
        unusual_keys: dict keys and set elements, in all, whose hashes a file could make collide (floats, tuples, long
            integers); collisions cost the square of their number.
        key_items: parts of one key; its hash is computed over all of them again and again, and comparing two equal
            keys recurses as deep as they are nested.
    """

    stream_bytes: int = 256 << 20
    opcodes: int = 2_000_000
    memo_entries: int = 1_000_000
    string_bytes: int = 128 << 20
    integer_bytes: int = 128
    depth: int = 200
    total_items: int = 10_000_000
    built_bytes: int = 256 << 20
    unusual_keys: int = 10_000
    key_items: int = 100


DEFAULT_PICKLE_LIMITS = PickleLimits()
"""Default limits."""


SAFE_INT = 1 << 60
"""Integers smaller than this (in magnitude) hash to themselves, so no two of them collide."""

_KEY_LEAVES = (bool, int, float, complex, str, bytes, DType, Layout, MemoryFormat, QScheme, Device, Global, Opaque)


def describe(value: Any) -> str:
    """Return a description of `value` in a word or two, for the *got* part of a message."""
    if isinstance(value, Global):
        return f"the global {printable(value.path)}"
    return "a dict" if isinstance(value, dict) else kind_of(value)


class Budget:
    """Budget of one reading of a payload so far, and the place its errors name.

    Args:
        where: the record that holds the payload.
        limits: its limits.
    """

    __slots__ = ("_built", "_unusual", "limits", "where")

    def __init__(self, where: str, limits: PickleLimits) -> None:
        self.where = where
        self.limits = limits
        self._built = 0
        self._unusual = 0

    def error(self, subject: str, expected: str, got: str) -> PayloadError:
        """Return the error *where: subject: expected X, got Y*."""
        return PayloadError(f"{self.where}: {subject}: expected {expected}, got {got}")

    def spend(self, nbytes: int) -> None:
        """Spend `nbytes` of memory on a copy.

        Raises:
            LimitError: more is spent than `limits.built_bytes`.
        """
        self._built += nbytes
        if self._built > self.limits.built_bytes:
            allowed = self.limits.built_bytes
            raise LimitError(
                f"{self.where}: expected calls that copy at most {allowed} bytes, got {self._built} so far"
            )

    def check_key(self, key: Any) -> None:
        """Check that `key` may go into a dict or set: its hash is cheap, and few others can be made to share it.

        Raises:
            PayloadError: a key of an unhashable type or of one that cannot sensibly be a key.
            LimitError: too long a key, or too many of the kinds that can be made to collide.
        """
        if key is None or isinstance(key, str | bytes | bool):
            return
        if isinstance(key, int) and -SAFE_INT < key < SAFE_INT:
            return
        self._unusual += 1
        if self._unusual > self.limits.unusual_keys:
            allowed = self.limits.unusual_keys
            raise LimitError(
                f"{self.where}: expected at most {allowed} keys besides strings and small integers, got more"
            )
        self._check_parts(key)

    def _check_parts(self, key: Any) -> None:
        waiting, seen = [key], 0
        while waiting:
            part = waiting.pop()
            seen += 1
            if isinstance(part, tuple | frozenset):
                inner: tuple[Any, ...] | frozenset[Any] = part
            elif isinstance(part, NamedTuple):
                inner = part.values
            elif isinstance(part, Size):
                inner = part.sizes
            elif part is None or part is Ellipsis or isinstance(part, _KEY_LEAVES):
                continue
            else:
                raise self.error("key", "a plain hashable value", describe(part))
            # Checked before the parts are queued, so that a shared part cannot grow the queue past the limit.
            if seen + len(waiting) + len(inner) > self.limits.key_items:
                raise LimitError(f"{self.where}: expected keys of at most {self.limits.key_items} parts, got more")
            waiting.extend(inner)


def check_tree(budget: Budget, value: Any, is_allowed: Callable[[str], bool]) -> list[str]:
    """Check that traversing `value` as a tree ends, within the limits on depth and size.

    Args:
        budget: the reading.
        value: the value of the stream.
        is_allowed: whether a global, by its path, may be part of the value.

    Returns:
        the globals that may not, sorted. Cost: linear in the parts, each shared part is visited once.

    Raises:
        PayloadError: a value that contains itself.
        LimitError: deeper or larger than the limits.
    """
    where, limits = budget.where, budget.limits
    stray: set[str] = set()
    known: dict[int, tuple[int, int]] = {}  # Identity of a container -> its depth and size as a tree.
    outer: set[int] = set()

    def check_depth(depth: int) -> None:
        if depth > limits.depth:
            raise LimitError(f"{where}: expected containers nested at most {limits.depth} deep, got {depth} or more")

    def measure(parts: Iterator[Any], level: int, items: int) -> tuple[int, int]:
        """Return the depth of the parts of a container, and their number as trees, counted on from `items`.

        Recurses as deep as the limit on depth allows.
        """
        depth = 0
        for part in parts:
            inner = parts_of(part)
            if inner is None:
                if isinstance(part, Global) and not is_allowed(part.path):
                    stray.add(part.path)
                items += 1
                continue
            key = id(part)
            if key in outer:
                raise budget.error("value", "containers that do not contain themselves", f"a {type(part).__name__}")
            if key not in known:
                check_depth(level)
                outer.add(key)
                below, count = measure(inner, level + 1, 1)
                outer.remove(key)
                known[key] = below + 1, count
            below, count = known[key]
            depth, items = max(depth, below), items + count
            check_depth(level - 1 + below)
            if items > limits.total_items:
                allowed = limits.total_items
                raise LimitError(f"{where}: expected a value of at most {allowed} items, got {items} or more as a tree")
        return depth, items

    measure(iter((value,)), 1, 0)
    return sorted(stray)


def parts_of(value: Any) -> Iterator[Any] | None:
    """Return the entries of a container; None for a leaf and for an empty container."""
    if isinstance(value, str | bytes | int | float) or value is None:
        return None
    if isinstance(value, list | tuple | set | frozenset | deque):
        return iter(value) if value else None
    if isinstance(value, dict):
        attributes = value.attributes if isinstance(value, PickledDict) else {}
        return chain(value.keys(), value.values(), attributes.values()) if value or attributes else None
    if isinstance(value, NamedTuple):
        return iter(value.values)
    if isinstance(value, Opaque):
        return chain(value.args, value.kwargs.values(), value.items, value.pairs, (value.state,))
    if isinstance(value, TensorLike):
        if isinstance(value, PickledTensor | MetaTensor):
            return iter(value.attributes.values()) if value.attributes else None
        return chain(astuple(value), value.attributes.values())
    return None


Handler: TypeAlias = Callable[..., Any]
"""Function of (the place of a call, its arguments) that returns the replacement of the call's result."""

MAX_RANK = 64
"""Dimensions of a tensor or array; numpy's limit, and torch's for every operator that iterates."""

INT64 = 1 << 63
_COUNT = "an integer from 0 to 2**63 - 1"


class Place:
    """A place in a payload, such as a call. Its checks accept a value of unknown type, and return it or raise.

    Each check has the name of the part of the place that the value is, for messages; "" for the place itself.

    Args:
        budget: the reading.
        path: the name of the place: that of a global, for a call.
    """

    __slots__ = ("budget", "path")

    def __init__(self, budget: Budget, path: str) -> None:
        self.budget = budget
        self.path = path

    def part(self, name: str) -> Place:
        """Return a part of this place as a place of its own."""
        return Place(self.budget, f"{self.path}: {name}")

    def error(self, expected: str, got: str, part: str = "") -> PayloadError:
        """Return the error *where: place: expected X, got Y*."""
        return self.budget.error(f"{self.path}: {part}" if part else self.path, expected, got)

    def wrong(self, expected: str, value: Any, part: str = "") -> PayloadError:
        """Return the error for a value."""
        return self.error(expected, describe(value), part)

    def unsupported(self, expected: str, got: str) -> UnsupportedError:
        """Return the error for something that is not read."""
        return UnsupportedError(f"{self.budget.where}: {self.path}: expected {expected}, got {got}")

    def call(self, handler: Handler, args: tuple[Any, ...]) -> Any:
        """Return the replacement of a call's result; the call has as many arguments as its handler has parameters.

        Raises:
            PayloadError: fewer or more arguments, or whatever the handler refuses.
        """
        function = cast("FunctionType", handler)
        most = function.__code__.co_argcount - 1
        least = most - len(function.__defaults__ or ())
        if not least <= len(args) <= most:
            self.arity(args, *range(least, most + 1))
        return handler(self, *args)

    def arity(self, args: tuple[Any, ...], *allowed: int) -> None:
        """Check the number of arguments.

        Raises:
            PayloadError: it is none of `allowed`.
        """
        if len(args) not in allowed:
            noun = "argument" if list(allowed) == [1] else "arguments"
            raise self.error(f"{' or '.join(map(str, allowed))} {noun}", str(len(args)))

    def attributes(self, state: Any) -> dict[str, Any]:
        """Return the attributes that the state of an object sets.

        Args:
            state: None, a dict, or a pair of such for attributes in a dict and in slots.

        Raises:
            PayloadError: a state of another form, or an attribute name that is no string.
        """
        attributes: dict[str, Any] = {}
        for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):
            if part is None:
                continue
            self.check(part, dict, "a dict of attributes", "state")
            self.budget.spend(100 * len(part))
            attributes.update(part)
        for name in attributes:
            self.check(name, str, "attribute names", "state")
        return attributes

    def check(self, value: Any, kind: type[T] | UnionType, expected: str, part: str = "") -> T:
        """Check that a value is of a type.

        Raises:
            PayloadError: it is not.
        """
        if not isinstance(value, kind):
            raise self.wrong(expected, value, part)
        return value

    def flag(self, value: Any, part: str = "") -> bool:
        """Check that a value is True or False.

        Raises:
            PayloadError: it is not.
        """
        return self.check(value, bool, "True or False", part)

    def dims(self, value: Any, part: str = "") -> tuple[int, ...]:
        """Check that a value is a tuple (or `Size`) of at most `MAX_RANK` integers from 0 to 2**63 - 1.

        Raises:
            PayloadError: it is not.
            LimitError: too many dimensions.
        """
        dims = value.sizes if isinstance(value, Size) else value
        if not isinstance(dims, tuple):
            raise self.wrong("a tuple of integers", value, part)
        if len(dims) > MAX_RANK:
            where = f"{self.budget.where}: {self.path}: {part}"
            raise LimitError(f"{where}: expected at most {MAX_RANK} dimensions, got {len(dims)}")
        for dim in dims:
            self.count(dim, part)
        return dims

    def geometry(self, size: Any, stride: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Check that two values are sizes and strides, as many of each.

        Raises:
            PayloadError: they are not.
            LimitError: too many dimensions.
        """
        sizes, strides = self.dims(size, "sizes"), self.dims(stride, "strides")
        if len(sizes) != len(strides):
            raise self.error(f"{count_text(len(sizes), 'stride')}, one per size", str(len(strides)))
        return sizes, strides

    def count(self, value: Any, part: str = "") -> int:
        """Check that a value is an integer from 0 to 2**63 - 1.

        Raises:
            PayloadError: it is not.
        """
        if type(value) is not int or not 0 <= value < INT64:
            raise self.wrong(_COUNT, value, part)
        return value

    def tensor(self, value: Any, part: str = "", *dtypes: str) -> PickledTensor:
        """Check that a value is a dense tensor, of one of `dtypes` if any are given.

        Raises:
            PayloadError: it is not.
        """
        tensor = self.check(value, PickledTensor, "a dense tensor", part)
        if dtypes and tensor.dtype_name not in dtypes:
            raise self.error(f"a tensor of {' or '.join(dtypes)}", f"one of {tensor.dtype_name}", part)
        return tensor
