"""Final checks of an unpickled value: no cycles, not too deep, not too large as a tree, no stray globals.

Nothing recurses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pt2kit.errors import LimitError
from pt2kit.pickles.budget import Budget
from pt2kit.pickles.values import (
    DeviceTensor,
    Global,
    NamedTuple,
    NestedTensor,
    Opaque,
    PickledDict,
    QuantizedTensor,
    SparseTensor,
    TensorLike,
)


@dataclass(slots=True)
class _Frame:
    """A container that is being walked: the rest of its parts, its depth and size as far as they are known."""

    owner: Any
    parts: Iterator[Any]
    depth: int = 0
    items: int = 1


@dataclass(slots=True)
class _Walk:
    budget: Budget
    stray: set[str] = field(default_factory=set)
    done: dict[int, tuple[int, int]] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)


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
    walk = _Walk(budget)
    frames = [_Frame(None, iter((value,)), items=0)]
    while frames:
        frame = frames[-1]
        inner = _next_container(walk, frame, is_allowed, len(frames))
        if inner is not None:
            frames.append(inner)
            continue
        frames.pop()
        if frames:
            walk.open.discard(id(frame.owner))
            walk.done[id(frame.owner)] = (frame.depth + 1, frame.items)
            _add(walk, frames[-1], frame.depth + 1, frame.items, len(frames))
    return sorted(walk.stray)


def _next_container(walk: _Walk, frame: _Frame, is_allowed: Callable[[str], bool], level: int) -> _Frame | None:
    for part in frame.parts:
        parts = _parts(part)
        if parts is None:
            if isinstance(part, Global) and not is_allowed(part.path):
                walk.stray.add(part.path)
            frame.items += 1
            continue
        if id(part) in walk.open:
            raise walk.budget.error("value", "containers that do not contain themselves", f"a {type(part).__name__}")
        known = walk.done.get(id(part))
        if known is None:
            _check_depth(walk, level)
            walk.open.add(id(part))
            return _Frame(part, parts)
        _add(walk, frame, *known, level)
    return None


def _add(walk: _Walk, frame: _Frame, depth: int, items: int, level: int) -> None:
    frame.depth = max(frame.depth, depth)
    frame.items += items
    _check_depth(walk, level - 1 + depth)
    allowed = walk.budget.limits.total_items
    if frame.items > allowed:
        where = walk.budget.where
        raise LimitError(f"{where}: expected a value of at most {allowed} items, got {frame.items} or more as a tree")


def _check_depth(walk: _Walk, depth: int) -> None:
    allowed = walk.budget.limits.depth
    if depth > allowed:
        raise LimitError(f"{walk.budget.where}: expected containers nested at most {allowed} deep, got {depth} or more")


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
    return iter(attributes) if attributes else None
