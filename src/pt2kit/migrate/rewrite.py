"""A tree and a function per type -> a new tree with those functions applied, sharing all that did not change.

The field table says where the types are, so a step names only what it changes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pt2kit.codec.text import Path
from pt2kit.schema.tables import Shape, table

Visitor = Callable[[Any, Path], Any]
"""(value, its path) -> what stands there afterwards: the same object where nothing changes, never changed in place."""


def rewrite(tree: Any, version: str, visitors: Mapping[str, Visitor], *, root: str = "ExportedProgram") -> Any:
    """Apply functions to every value of some types, inner values before the outer ones.

    Args:
        tree: fits the table; not changed.
        version: the name of its table.
        visitors: type name -> function.
        root: the type of the tree.

    Returns:
        The new tree; parts without changes are those of `tree`. Cost: only what can hold a visited type is walked.
    """
    plan = _plan(version, frozenset(visitors))
    return _value(tree, Shape("type", root), plan, visitors, ())


Plan = Mapping[str, Mapping[str, Shape]]


# Steps use the same few sets of types again and again.
@functools.cache
def _plan(version: str, visited: frozenset[str]) -> Plan:
    """Type -> its fields that can hold a visited type."""
    types = table(version)
    reaching = set(visited)
    while True:
        more = {name for name, row in types.items() if any(_names(f.shape) & reaching for f in row.fields.values())}
        if more <= reaching:
            break
        reaching |= more
    return MappingProxyType(
        {
            name: MappingProxyType({key: f.shape for key, f in row.fields.items() if _names(f.shape) & reaching})
            for name, row in types.items()
        }
    )


def _names(shape: Shape) -> set[str]:
    return {shape.name} if shape.kind == "type" else {name for inner in shape.inner for name in _names(inner)}


def _value(value: Any, shape: Shape, plan: Plan, visitors: Mapping[str, Visitor], path: Path) -> Any:
    match shape.kind:
        case "type":
            new = _fields(value, plan.get(shape.name, {}), plan, visitors, path) if isinstance(value, dict) else value
            visitor = visitors.get(shape.name)
            return visitor(new, path) if visitor else new
        case "list" if isinstance(value, list):
            (inner,) = shape.inner
            entries = [_value(entry, inner, plan, visitors, (*path, index)) for index, entry in enumerate(value)]
            return value if all(map(_same, entries, value)) else entries
        case "dict" if isinstance(value, dict):
            (inner,) = shape.inner
            named = {key: _value(entry, inner, plan, visitors, (*path, key)) for key, entry in value.items()}
            return value if all(map(_same, named.values(), value.values())) else named
        case "optional" if value is not None:
            return _value(value, shape.inner[0], plan, visitors, path)
    return value


def _fields(
    value: dict[str, Any], fields: Mapping[str, Shape], plan: Plan, visitors: Mapping[str, Visitor], path: Path
) -> dict[str, Any]:
    new = value
    for key in value:
        if key in fields:
            held = _value(value[key], fields[key], plan, visitors, (*path, key))
            if held is not value[key]:
                new = dict(value) if new is value else new
                new[key] = held
    return new


def _same(new: Any, old: Any) -> bool:
    return new is old
