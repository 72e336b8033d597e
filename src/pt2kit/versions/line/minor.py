"""Minor versions of schema 8: steps from the field tables, and the few changes that these do not contain.

    8.6 -> 8.7     nothing in a program; a node of the development state that lacks it declares its single output
    8.7 -> 8.8     optional tensors; `invoke_subgraph` takes its operands one by one
    8.8 -> 8.14    guards_code, complex values, mutated parameters; payload configs
    8.14 -> 8.15   lists of int lists, dicts of arguments
    8.15 -> 8.17   names of nodes, nested lists of tensors
    8.17 -> 8.20   lists of float lists, unsigned 32 and 64 bit, float8 e8m0

Upwards every new field is written out with its default, a node gets the name that its one result has.

`block_misfits` does the rest of every downgrade. A field that the older table does not have is dropped if it says
nothing, or noted as lost by its name. Anything else that the older version cannot express blocks: other fields, an arm
of a union, a member of an enum. Each is noted, and replaced by the smallest thing that fits, so that the remaining
steps can look for more.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.schema.fieldtable import (
    AnyOf,
    Definition,
    DictOf,
    ListOf,
    Nullable,
    Ref,
    Scalar,
    TupleOf,
    Type,
    default_values,
    frozen_table,
)
from pt2kit.versions.check import canonical_type
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.fx_names import value_name
from pt2kit.versions.line.hops import gather_operands, mark_outputs, spread_operands
from pt2kit.versions.rewrite import Visitor, rewrite

Conversion = Callable[[Tree, ConversionLog], Tree]
"""(tree, log) -> the tree at another version; the tree that comes in is not changed."""

Changes = Mapping[str, Mapping[str, Callable[[Any, Path, ConversionLog], Any]]]

LOSSES: Final = {("ExportedProgram", "guards_code"): "guards_code", ("Node", "name"): "node_names"}
"""Fields that a downgrade may drop although they say something, and the name by which that is allowed."""


def upgrade_minor(older: str, newer: str) -> Conversion:
    """Return the step from one minor of schema 8 to the next."""

    def upgrade(tree: Tree, log: ConversionLog) -> Tree:
        visitors = {name: _adding(fields) for name, fields in _new_fields(older, newer).items()}
        return rewrite(tree, older, visitors | _visitors(_UPGRADES, newer, log))

    return upgrade


def downgrade_minor(newer: str) -> Conversion:
    """Return the step from one minor of schema 8 back to the one before; new fields are left to `block_misfits`."""
    return lambda tree, log: rewrite(tree, newer, _visitors(_DOWNGRADES, newer, log))


def _visitors(changes: Changes, version: str, log: ConversionLog) -> dict[str, Visitor]:
    return {name: _logging(change, log) for name, change in changes.get(version, {}).items()}


def _logging(change: Callable[[Any, Path, ConversionLog], Any], log: ConversionLog) -> Visitor:
    return lambda value, path: change(value, path, log)


# A pure function of two frozen tables; nobody changes what it gives.
@functools.cache
def _new_fields(older: str, newer: str) -> Mapping[str, Mapping[str, Any]]:
    """Return struct -> the fields that the newer table adds, with their defaults."""
    before = frozen_table(older).definitions
    by_struct = {
        name: {key: value for key, value in default_values(definition).items() if key not in before[name].fields}
        for name, definition in frozen_table(newer).definitions.items()
        if name in before
    }
    return {name: fields for name, fields in by_struct.items() if fields}


def _adding(fields: Mapping[str, Any]) -> Visitor:
    return lambda value, _: {**copy.deepcopy(fields), **value}


def own_name(node: Mapping[str, Any]) -> str | None:
    """Return a node's name from its one result; None if it has several, or returns parts of a tuple.

    Source: `deserialize_node` in torch/_export/serde/serialize.py (2.13), which falls back to it.
    """
    if node.get("is_hop_single_tensor_return") is False:
        return None
    match node["outputs"]:
        case [output] if "as_custom_obj" not in output:
            return value_name(output)
    return None


def block_misfits(tree: Tree, older: str, newer: str, log: ConversionLog, *, exact: bool = False) -> Tree:
    """Note everything that keeps a tree from fitting the older table, and make it fit.

    Args:
        tree: a program after the downgrade from `newer`; not changed.
        older, newer: names of the tables.
        log: gets the blockers.
        exact: the tree had no keys that the newer table does not know, so that only types that lost a part are visited.

    Returns:
        `tree` itself if it fits; else a new one, which shares what needed no replacement.
    """
    types = frozen_table(older).definitions
    names = _narrowed(older, newer) if exact else types.keys()
    return rewrite(tree, older, {name: _blocking(types[name], older, newer, log) for name in names})


# One for each step between versions that is used.
@functools.cache
def _narrowed(older: str, newer: str) -> frozenset[str]:
    """Return the types of which the older table lacks a field, an arm or a member."""
    before, after = frozen_table(newer).definitions, frozen_table(older).definitions
    return frozenset(name for name in after.keys() & before.keys() if _parts(before[name]) - _parts(after[name]))


def _parts(definition: Definition) -> frozenset[Any]:
    """Return the keys of fields or arms, or the values of members."""
    return frozenset(definition.fields) | {member.value for member in definition.members.values()}


def _blocking(definition: Definition, older: str, newer: str, log: ConversionLog) -> Visitor:
    """Return a visitor that notes the parts of a value that the older table lacks, and removes or replaces them."""
    name, known = definition.name, _parts(definition)
    of_newer = frozen_table(newer).definitions.get(name)
    fields, defaults = (of_newer.fields, default_values(of_newer)) if of_newer else ({}, {})

    def enum(value: Any, path: Path) -> Any:
        if value in known:
            return value
        log.blocked(f"the {name} {value}", path, newer)
        return smallest(Ref(name), older)

    def union(value: Any, path: Path) -> Any:
        if value.keys() <= known:
            return value
        [arm] = value
        log.blocked(f"the arm {arm} of {name}", (*path, arm), newer)
        return smallest(Ref(name), older)

    def struct(value: Any, path: Path) -> Any:
        if value.keys() <= known:
            return value
        for key in value:
            loss = LOSSES.get((name, key))
            if key in known or (key in defaults and value[key] == defaults[key]):
                continue
            if key not in fields:
                log.lost("unknown_keys", f"{name}.{key}, which no schema here knows", (*path, key), "")
            elif loss is None:
                log.blocked(f"{name}.{key}", (*path, key), newer)
            elif key != "name" or value[key] != own_name(value):
                log.lost(loss, f"{name}.{key}", (*path, key), newer)
        return {key: field for key, field in value.items() if key in known}

    return {"enum": enum, "union": union, "struct": struct}[definition.kind]


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
            definition = frozen_table(version).definitions[name]
    if definition.kind == "enum":
        return next(iter(definition.members.values())).value
    if definition.kind == "union":
        arm, field = next(iter(definition.fields.items()))
        return {arm: smallest(field.type, version)}
    return {key: smallest(canonical_type(definition.name, field), version) for key, field in definition.fields.items()}


_UPGRADES: Final[Changes] = {
    "8.7": {"Node": lambda node, *_: mark_outputs(node)},
    "8.8": {"Node": spread_operands},
    "8.17": {"Node": lambda node, *_: {**node, "name": own_name(node)}},
}
# An optional tensor was a tensor or None before 8.8: what it holds.
_DOWNGRADES: Final[Changes] = {
    "8.8": {"Argument": lambda value, *_: value.get("as_optional_tensor", value), "Node": gather_operands}
}
"""Version -> the changes of a type's values that the field tables do not contain."""
