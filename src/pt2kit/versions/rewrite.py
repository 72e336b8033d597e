"""Rewriting of trees by a function per type: the new tree shares all unchanged parts.

The field table says where the types are, so a step names only what it changes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pt2kit.jsontext import Path
from pt2kit.schema.fieldtable import DictOf, ListOf, Nullable, Ref, Type, frozen_table, references

Tree = TypeVar("Tree")

Visitor = Callable[[Any, Path], Any]
"""(value, its path) -> its replacement: the same object if nothing changes, never changed in place."""


def rewrite(tree: Tree, version: str, visitors: Mapping[str, Visitor], *, root: str = "", path: Path = ()) -> Tree:
    """Apply functions to every value of some types, inner values before the outer ones.

    Args:
        tree: a program that fits the table; not changed.
        version: the name of its table.
        visitors: type name -> function.
        root: the type of the tree; "" for a whole program.
        path: its place, for the functions.

    Returns:
        The new tree; parts without changes are those of `tree`. Cost: only what can hold a visited type is walked.
    """
    walks = _walks(fields_reaching(version, frozenset(visitors)), visitors, version)
    root = root or frozen_table(version).root
    new: Tree = walks[root].visit(tree, path) if root in walks else tree
    return new


def values_of(tree: Any, version: str, name: str) -> list[tuple[Any, Path]]:
    """Return every value of a type in a program, with its path, in the order in which `rewrite` meets them."""
    found: list[tuple[Any, Path]] = []

    def visit(value: Any, path: Path) -> Any:
        found.append((value, path))
        return value

    rewrite(tree, version, {name: visit})
    return found


def arm(name: str, change: Callable[[Any], Any]) -> Visitor:
    """Return a visitor of a union that changes what one arm holds."""
    return lambda value, _: {name: change(value[name])} if name in value else value


def without(value: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return an object without some of its keys."""
    return {key: entry for key, entry in value.items() if key not in keys}


Plan = Mapping[str, Mapping[str, Type]]


# Steps use the same few sets of types again and again.
@functools.cache
def fields_reaching(version: str, visited: frozenset[str]) -> Plan:
    """Return type -> its fields that can hold a visited type, for every type of a version."""
    types = frozen_table(version).definitions
    mentioned = {
        name: {key: frozenset(references(field.type)) for key, field in definition.fields.items()}
        for name, definition in types.items()
    }
    reaching = set(visited)
    while True:
        more = {name for name, fields in mentioned.items() if any(names & reaching for names in fields.values())}
        if more <= reaching:
            break
        reaching |= more
    return MappingProxyType(
        {
            name: MappingProxyType({key: types[name].fields[key].type for key in fields if fields[key] & reaching})
            for name, fields in mentioned.items()
        }
    )


@dataclass(frozen=True, slots=True)
class _Walk:
    """How values of a type are walked.

    Args:
        visit: applies the functions to a value and what is inside.
        arms: of a union, or of one that a struct holds: those in which there is something to visit; others are not
            entered. None where all values must be.
        key: the field that holds the union; "" where the value is one.
    """

    visit: Visitor
    arms: frozenset[str] | None = None
    key: str = ""


_UNCHANGED: Final = _Walk(lambda value, _: value)


def _walks(plan: Plan, visitors: Mapping[str, Visitor], version: str) -> Mapping[str, _Walk]:
    """Return type -> the traversal of its values; types that hold nothing visited are omitted."""
    walks: dict[str, _Walk] = {name: _Walk(visitor) for name, visitor in visitors.items()}
    inner: dict[str, dict[str, Visitor]] = {name: {} for name, fields in plan.items() if fields}
    for name, fields in inner.items():
        inside = _inside(fields, len(plan[name]))
        visitor = visitors.get(name)
        walks[name] = _both(inside, visitor) if visitor else _entered(name, inside, plan, visitors, version)
    for name, fields in inner.items():
        fields |= {key: _walk(kind, walks).visit for key, kind in plan[name].items()}
    return walks


def _entered(name: str, inside: Visitor, plan: Plan, visitors: Mapping[str, Visitor], version: str) -> _Walk:
    """Return the traversal of a type without a function of its own. Most arguments are of arms that hold nothing
    visited."""
    types, fields = frozen_table(version).definitions, plan[name]
    if types[name].kind == "union":
        return _Walk(inside, frozenset(fields))
    [(key, kind), *others] = fields.items()
    if others or not isinstance(kind, Ref) or types[kind.name].kind != "union" or kind.name in visitors:
        return _Walk(inside)
    return _Walk(inside, frozenset(plan[kind.name]), key)


def _inside(fields: Mapping[str, Visitor], count: int) -> Visitor:
    """Return the traversal of an object's `count` fields, in their order; `fields` is filled afterwards."""

    def inside(value: Any, path: Path) -> Any:
        if not isinstance(value, dict):
            return value
        new = value
        left = count
        for key in value:
            if key not in fields:
                continue
            now = fields[key](value[key], (*path, key))
            if now is not value[key]:
                new = dict(value) if new is value else new
                new[key] = now
            left -= 1
            if not left:
                break
        return new

    return inside


def _both(inside: Visitor, visitor: Visitor) -> _Walk:
    return _Walk(lambda value, path: visitor(inside(value, path), path))


def _walk(kind: Type, walks: Mapping[str, _Walk]) -> _Walk:
    match kind:
        case Ref(name):
            return walks.get(name, _UNCHANGED)
        case ListOf(item):
            return _Walk(_entries(_walk(item, walks), list))
        case DictOf(item):
            return _Walk(_entries(_walk(item, walks), dict))
        case Nullable(inner):
            visit = _walk(inner, walks).visit
            return _Walk(lambda value, path: None if value is None else visit(value, path))
        case _:
            return _UNCHANGED


def _entries(entry: _Walk, kind: type[Any]) -> Visitor:
    """Return the traversal of a list or a dict by that of its entries."""
    visit, arms, key = entry.visit, entry.arms, entry.key
    is_list = kind is list

    def walk(value: Any, path: Path) -> Any:
        if not isinstance(value, kind):
            return value
        if arms is not None and _is_dull(value if is_list else value.values(), arms, key):
            return value
        new = value
        for place, item in enumerate(value) if is_list else value.items():
            if (now := visit(item, (*path, place))) is not item:
                new = value.copy() if new is value else new
                new[place] = now
        return new

    return walk


def _is_dull(values: Iterable[Any], arms: frozenset[str], key: str) -> bool:
    """Return whether none of the values has one of the arms; faster than traversing them."""
    for value in values:
        union = value.get(key) if key and type(value) is dict else value
        if type(union) is not dict or not arms.isdisjoint(union):
            return False
    return True
