"""The tables of two versions -> whether a tree is of the second, given one of the first that it shares parts with.

A step copies what it changes and shares the rest. What is shared has been checked by the table before, so it need not
be walked again where the next table takes every value of its type. What is not shared, or of a type that the two
tables do not have in common, is checked in full.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any, Final

from pt2kit.schema.tables import Shape, table
from pt2kit.versions.narrowed import narrowed_shape
from pt2kit.versions.predicates import Predicate, plain_kinds, predicate, predicates, required_fields, shape_of

Pair = Callable[[Any, Any], bool]
"""(value, one that is known to be of the same type in the version before, or _NOTHING) -> whether it is of the type."""

_NOTHING: Final = object()


def still_fits(tree: Any, before: Any, version: str, version_before: str, *, root: str = "ExportedProgram") -> bool:
    """Whether a tree fits the table of a version exactly: what `check.fits(tree, version)` says, without walking what
    it shares with a tree of another version.

    Args:
        tree: any tree.
        before: a tree that fits the table of `version_before` exactly; not changed since that was found out.
        version, version_before: names of the tables.
        root: the type of both trees.

    Cost: what is not shared is walked, and of what is shared the values of types that the newer table narrowed.
    """
    return _pairs(version, version_before)[root](tree, before)


# Pure functions of two frozen tables, for the neighbours on the line of versions.
@functools.cache
def _pairs(version: str, before: str) -> Mapping[str, Pair]:
    """Type name -> its `Pair`, for all types of `version`."""
    found: dict[str, Pair] = {}
    for name in table(version):
        found[name] = _type_pair(name, version, before, found)
    return MappingProxyType(found)


def _type_pair(name: str, version: str, before: str, known: Mapping[str, Pair]) -> Pair:
    new, old = table(version), table(before)
    row = new[name]
    if name not in old or old[name].kind != row.kind or row.kind == "enum":
        return _alone(predicates(version)[name])
    pairs: dict[str, Pair] = {}
    shared: dict[str, Predicate | None] = {}
    for key, field in row.fields.items():
        shape = shape_of(name, field)
        theirs = shape_of(name, old[name].fields[key]) if key in old[name].fields else None
        pairs[key] = _pair(shape, theirs, version, before, known)
        if theirs is not None:
            shared[key] = narrowed_shape(shape, theirs, version, before)
    kinds = plain_kinds(name, row)
    if row.kind == "union":
        return _union(pairs, shared, kinds)
    return _struct(pairs, shared, kinds, required_fields(row))


def _struct(
    pairs: Mapping[str, Pair],
    shared: Mapping[str, Predicate | None],
    kinds: Mapping[str, type],
    required: frozenset[str],
) -> Pair:
    def struct(value: Any, old: Any) -> bool:
        if type(value) is not dict or not required <= value.keys():
            return False
        before = old if type(old) is dict else {}
        for key, entry in value.items():
            if type(entry) is kinds.get(key):
                continue
            held = before.get(key, _NOTHING)
            if held is entry and key in shared:
                fits = shared[key]
                if fits is not None and not fits(entry):
                    return False
            else:
                pair = pairs.get(key)
                if pair is None or not pair(entry, held):
                    return False
        return True

    return struct


def _union(pairs: Mapping[str, Pair], shared: Mapping[str, Predicate | None], kinds: Mapping[str, type]) -> Pair:
    def union(value: Any, old: Any) -> bool:
        if type(value) is not dict or len(value) != 1:
            return False
        [(arm, held)] = value.items()
        before = old.get(arm, _NOTHING) if type(old) is dict else _NOTHING
        if before is held and arm in shared:
            fits = shared[arm]
            return fits is None or fits(held)
        if type(held) is kinds.get(arm):
            return True
        pair = pairs.get(arm)
        return pair is not None and pair(held, before)

    return union


def _pair(shape: Shape, theirs: Shape | None, version: str, before: str, known: Mapping[str, Pair]) -> Pair:
    if theirs is not None and shape.kind != "optional" and theirs.kind == "optional":
        return _pair(shape, theirs.inner[0], version, before, known)  # None is of no other shape than optional ones
    if shape.kind == "optional":
        inner = theirs.inner[0] if theirs is not None and theirs.kind == "optional" else theirs
        entry = _pair(shape.inner[0], inner, version, before, known)
        return lambda value, old: value is None or entry(value, old)
    if theirs is None or shape.kind != theirs.kind or shape.kind not in ("type", "list", "dict"):
        return _alone(predicate(shape, version))
    if shape.kind == "type":
        if shape.name != theirs.name:
            return _alone(predicate(shape, version))
        name = shape.name
        return known[name] if name in known else lambda value, old: known[name](value, old)
    entry = _pair(shape.inner[0], theirs.inner[0], version, before, known)
    entry = _unless_shared(entry, narrowed_shape(shape.inner[0], theirs.inner[0], version, before))
    return _list(entry) if shape.kind == "list" else _dict(entry)


def _alone(fits: Predicate) -> Pair:
    return lambda value, _: fits(value)


def _unless_shared(entry: Pair, shared: Predicate | None) -> Pair:
    if shared is None:
        return lambda value, old: value is old or entry(value, old)
    return lambda value, old: shared(value) if value is old else entry(value, old)


def _list(entry: Pair) -> Pair:
    # Which old entry a new one is compared with decides only what is skipped: all old entries are of one shape.
    return lambda value, old: (
        type(value) is list and all(map(entry, value, chain(old if type(old) is list else (), repeat(_NOTHING))))
    )


def _dict(entry: Pair) -> Pair:
    def fits(value: Any, old: Any) -> bool:
        if type(value) is not dict:
            return False
        before = old if type(old) is dict else {}
        return all(entry(held, before.get(key, _NOTHING)) for key, held in value.items())

    return fits
