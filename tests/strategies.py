"""Hypothesis strategies: any value of any type of the schema."""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import UNSET, UnsetType
from msgspec.structs import fields

from pt2kit import schema

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INTS = st.integers() | st.sampled_from([2**63, -(2**63) - 1, 2**200])
FLOATS = st.floats(allow_nan=False) | st.sampled_from(["Infinity", "-Infinity"])


def values(annotation: Any, depth: int = 6) -> st.SearchStrategy[Any]:
    """Any value of a type; below `depth` levels only the smallest ones."""
    if annotation == schema.Float:
        return FLOATS
    origin, args = get_origin(annotation), [arg for arg in get_args(annotation) if arg is not UnsetType]
    # Python 3.10 takes list[int] for a type.
    if isinstance(annotation, type) and origin is None:
        return _of_class(annotation, depth)
    size = 2 if depth > 0 else 0
    if origin is list:
        return st.lists(values(args[0], depth - 1), max_size=size)
    if origin is dict:
        return st.dictionaries(NAMES, values(args[1], depth - 1), max_size=size)
    if set(get_args(schema.Float)) <= set(args):
        return FLOATS
    return st.one_of([values(arg, depth) for arg in args])


def _of_class(cls: type, depth: int) -> st.SearchStrategy[Any]:
    if cls is type(None):
        return st.none()
    if issubclass(cls, IntEnum):
        return st.sampled_from(list(cls))
    simple = {bool: st.booleans(), int: INTS, str: NAMES}
    if cls in simple:
        return simple[cls]
    return unions(cls, depth) if issubclass(cls, schema.Union) else structs(cls, depth)


def structs(cls: type, depth: int = 6) -> st.SearchStrategy[Any]:
    """Any value of a struct of the schema."""
    hints = get_type_hints(cls)
    return st.deferred(
        lambda: st.builds(cls, **{info.name: values(hints[info.name], depth - 1) for info in fields(cls)})
    )


def _made(cls: type, arm: str, value: Any) -> Any:
    return cls(**{arm: value})


def unions(cls: type, depth: int = 6) -> st.SearchStrategy[Any]:
    """Any value of a union of the schema; deep down only arms that hold nothing."""
    hints = get_type_hints(cls)
    arms = [name for name in hints if depth > 0 or not _holds_structs(hints[name])] or list(hints)
    return st.deferred(
        lambda: st.one_of([values(hints[name], depth - 1).map(partial(_made, cls, name)) for name in arms])
    )


def _holds_structs(annotation: Any) -> bool:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return issubclass(annotation, schema.Object | schema.Union)
    return any(_holds_structs(arg) for arg in get_args(annotation))


__all__ = ["FLOATS", "INTS", "NAMES", "UNSET", "structs", "unions", "values"]
