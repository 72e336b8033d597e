"""Blockers of a downgrade: parts of a tree that the older version cannot express are noted, and replaced.

What the older table does not have blocks the conversion: a field that says something, an arm of a union, a member of an
enum. Each is replaced by the smallest thing that fits, so that the remaining steps can look for more.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pt2kit.jsontext import Path
from pt2kit.schema.fieldtable import frozen_table
from pt2kit.schema.fieldtypes import AnyOf, DictOf, ListOf, Nullable, Ref, Scalar, TupleOf, Type
from pt2kit.versions.check import Misfit, fits, misfits
from pt2kit.versions.conforms import canonical_type
from pt2kit.versions.conversion_log import ConversionLog, Tree


def block_misfits(tree: Tree, older: str, newer: str, log: ConversionLog) -> Tree:
    """Note everything that keeps a tree from fitting the older table, and make it fit.

    Args:
        tree: a program after the downgrade from `newer`; not changed.
        older, newer: names of the tables.
        log: gets the blockers.

    Returns:
        `tree` itself if it fits; else a new one, which shares what needed no replacement.
    """
    if fits(tree, older):
        return tree
    obstacles = [misfit for misfit in misfits(tree, older) if misfit.cause in ("unknown key", "arm", "member")]
    for misfit in obstacles:
        if misfit.cause == "unknown key" and misfit.key not in _known_keys(misfit.type, newer):
            log.lost("unknown_keys", f"{misfit.type}.{misfit.key}, which no schema here knows", misfit.path, "")
        else:
            log.blocked(_message(misfit), misfit.path, newer)
    new = dict(tree)
    copied: set[Path] = {()}
    for misfit in obstacles:
        _replace(new, misfit, older, copied)
    return new


def _known_keys(type_name: str, version: str) -> Collection[str]:
    types = frozen_table(version).definitions
    return types[type_name].fields if type_name in types else ()


def _message(misfit: Misfit) -> str:
    if misfit.cause == "unknown key":
        return f"{misfit.type}.{misfit.key}"
    if misfit.cause == "arm":
        return f"the arm {misfit.key} of {misfit.type}"
    return f"the {misfit.type} {misfit.value}"


def _replace(tree: Any, misfit: Misfit, version: str, copied: set[Path]) -> None:
    """Replace a mismatch by something that fits, in place except for what is not in `copied` yet."""
    *outer, last = misfit.path
    holder = tree
    for depth, step in enumerate(outer, 1):
        if (way := misfit.path[:depth]) not in copied:
            copied.add(way)
            holder[step] = holder[step].copy()
        holder = holder[step]
    if misfit.cause == "member":
        holder[last] = smallest(Ref(misfit.type), version)
        return
    del holder[last]
    if misfit.cause == "arm":
        holder |= smallest(Ref(misfit.type), version)


def smallest(kind: Type, version: str) -> Any:
    """Return the smallest value of a type: nothing in lists, the first arm that does not hold its own union."""
    match kind:
        case Scalar(name):
            return {"str": "", "int": 0, "float": 0.0, "bool": False, "bytes": ""}[name]
        case ListOf():
            return []
        case DictOf():
            return {}
        case Nullable():
            return None
        case TupleOf(items):
            return [smallest(item, version) for item in items]
        case AnyOf(arms):
            return smallest(arms[0], version)
        case Ref(name):
            return _smallest_of(name, version)


def _smallest_of(name: str, version: str) -> Any:
    definition = frozen_table(version).definitions[name]
    if definition.kind == "enum":
        return next(iter(definition.members.values())).value
    if definition.kind == "union":
        arm, field = next(iter(definition.fields.items()))
        return {arm: smallest(field.type, version)}
    return {key: smallest(canonical_type(name, field), version) for key, field in definition.fields.items()}
