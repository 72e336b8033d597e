"""Limits on pickled payloads: the budget of one reading, the wording of its errors, final checks of the value.

The budget is what one reading has spent. An unpickled value is checked for cycles, depth, size as a tree, and stray
globals.

Handlers of pickled calls share checks of arguments: each accepts a value of unknown type and returns it, or raises.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from pt2kit.errors import LimitError, PayloadError
from pt2kit.messages import kind_of, printable
from pt2kit.pickles.values import (
    Device,
    DeviceTensor,
    DType,
    Global,
    Layout,
    MemoryFormat,
    NamedTuple,
    NestedTensor,
    Opaque,
    PickledDict,
    PickledTensor,
    QScheme,
    QuantizedTensor,
    Size,
    SparseTensor,
    SubclassTensor,
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
    walk = _Walk(budget, is_allowed)
    walk.measure(iter((value,)), 1, 0)
    return sorted(walk.stray)


@dataclass(slots=True)
class _Walk:
    """Recurses as deep as the limit on depth allows.

    Args:
        budget: the reading.
        is_allowed: as in `check_tree`.
        stray: the globals that are not allowed.
        known: identity of a container -> its depth and size as a tree.
        open: the containers around the one that is being measured.
    """

    budget: Budget
    is_allowed: Callable[[str], bool]
    stray: set[str] = field(default_factory=set)
    known: dict[int, tuple[int, int]] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)

    def measure(self, parts: Iterator[Any], level: int, items: int) -> tuple[int, int]:
        """Return the depth of the parts of a container, and their number as trees, counted on from `items`."""
        depth = 0
        for part in parts:
            inner = _parts(part)
            if inner is None:
                if isinstance(part, Global) and not self.is_allowed(part.path):
                    self.stray.add(part.path)
                items += 1
                continue
            key = id(part)
            if key in self.open:
                got = f"a {type(part).__name__}"
                raise self.budget.error("value", "containers that do not contain themselves", got)
            if key not in self.known:
                self._check_depth(level)
                self.open.add(key)
                below, count = self.measure(inner, level + 1, 1)
                self.open.remove(key)
                self.known[key] = below + 1, count
            below, count = self.known[key]
            depth, items = max(depth, below), items + count
            self._check_depth(level - 1 + below)
            if items > (allowed := self.budget.limits.total_items):
                raise LimitError(
                    f"{self.budget.where}: expected a value of at most {allowed} items, got {items} or more as a tree"
                )
        return depth, items

    def _check_depth(self, depth: int) -> None:
        if depth > (allowed := self.budget.limits.depth):
            raise LimitError(
                f"{self.budget.where}: expected containers nested at most {allowed} deep, got {depth} or more"
            )


def _parts(value: Any) -> Iterator[Any] | None:
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
        return _tensor_parts(value)
    return None


def _tensor_parts(value: TensorLike) -> Iterator[Any] | None:
    attributes = value.attributes.values()
    if isinstance(value, SparseTensor):
        return chain(value.indices, (value.values,), attributes)
    if isinstance(value, QuantizedTensor):
        return chain((value.values, value.scale, value.zero_point), attributes)
    if isinstance(value, NestedTensor):
        return chain((value.buffer, value.sizes, value.strides, value.storage_offsets), attributes)
    if isinstance(value, DeviceTensor):
        return chain((value.data,), attributes)
    if isinstance(value, SubclassTensor):
        return chain(value.parts.values(), value.options.values(), attributes)
    return iter(attributes) if attributes else None


Handler: TypeAlias = Callable[..., Any]
"""Function of (budget, the global's path, the call's arguments) that returns the replacement of a call's result."""

MAX_RANK = 64
"""Dimensions of a tensor or array; numpy's limit, and torch's for every operator that iterates."""

INT64 = 1 << 63


def call_handler(handler: Handler, budget: Budget, path: str, args: tuple[Any, ...]) -> Any:
    """Return the replacement of a call's result; the call has as many arguments as its handler has parameters.

    Raises:
        PayloadError: fewer or more arguments, or whatever the handler refuses.
    """
    function = cast("FunctionType", handler)
    most = function.__code__.co_argcount - 2
    check_arity(budget, path, args, *range(most - len(function.__defaults__ or ()), most + 1))
    return handler(budget, path, *args)


def attributes_of(budget: Budget, path: str, state: Any) -> dict[str, Any]:
    """Return the attributes that the state of an object sets.

    Args:
        budget: the reading.
        path: the object, for messages.
        state: None, a dict, or a pair of such for attributes in a dict and in slots.

    Raises:
        PayloadError: a state of another form, or an attribute name that is no string.
    """
    attributes: dict[str, Any] = {}
    for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):
        if part is None:
            continue
        check_type(budget, f"{path}: state", part, dict, "a dict of attributes")
        budget.spend(100 * len(part))
        attributes.update(part)
    for name in attributes:
        check_type(budget, f"{path}: state", name, str, "attribute names")
    return attributes


def check_arity(budget: Budget, path: str, args: tuple[Any, ...], *allowed: int) -> None:
    """Check the number of arguments.

    Raises:
        PayloadError: it is none of `allowed`.
    """
    if len(args) not in allowed:
        raise budget.error(
            path, f"{' or '.join(map(str, allowed))} argument{'' if list(allowed) == [1] else 's'}", str(len(args))
        )


def check_type(budget: Budget, subject: str, value: Any, kind: type[T] | UnionType, expected: str) -> T:
    """Check that `value` is of a type.

    Raises:
        PayloadError: it is not.
    """
    if not isinstance(value, kind):
        raise budget.error(subject, expected, describe(value))
    return value


def check_dims(budget: Budget, subject: str, value: Any) -> tuple[int, ...]:
    """Check that `value` is a tuple (or `Size`) of at most `MAX_RANK` integers from 0 to 2**63 - 1.

    Raises:
        PayloadError: it is not.
        LimitError: too many dimensions.
    """
    dims = value.sizes if isinstance(value, Size) else value
    if not isinstance(dims, tuple):
        raise budget.error(subject, "a tuple of integers", describe(value))
    if len(dims) > MAX_RANK:
        raise LimitError(f"{budget.where}: {subject}: expected at most {MAX_RANK} dimensions, got {len(dims)}")
    for dim in dims:
        check_count(budget, subject, dim)
    return dims


def check_count(budget: Budget, subject: str, value: Any) -> int:
    """Check that `value` is an integer from 0 to 2**63 - 1.

    Raises:
        PayloadError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < INT64:
        raise budget.error(subject, "an integer from 0 to 2**63 - 1", describe(value))
    return value


def check_bool(budget: Budget, subject: str, value: Any) -> bool:
    """Check that `value` is True or False.

    Raises:
        PayloadError: it is not.
    """
    return check_type(budget, subject, value, bool, "True or False")


def check_tensor(budget: Budget, subject: str, value: Any, *dtypes: str) -> PickledTensor:
    """Check that `value` is a dense tensor, of one of `dtypes` if any are given.

    Raises:
        PayloadError: it is not.
    """
    tensor = check_type(budget, subject, value, PickledTensor, "a dense tensor")
    if dtypes and tensor.dtype_name not in dtypes:
        raise budget.error(subject, f"a tensor of {' or '.join(dtypes)}", f"one of {tensor.dtype_name}")
    return tensor
