"""Minor versions of schema 8: steps from the field tables, and the few changes that these do not contain.

    8.6 -> 8.7     nothing in a program; a node of the development state that lacks it declares its single output
    8.7 -> 8.8     optional tensors; `invoke_subgraph` takes its operands one by one
    8.8 -> 8.14    guards_code, complex values, mutated parameters; payload configs
    8.14 -> 8.15   lists of int lists, dicts of arguments
    8.15 -> 8.17   names of nodes, nested lists of tensors
    8.17 -> 8.20   lists of float lists, unsigned 32 and 64 bit, float8 e8m0

Upwards every new field is written out with its default, a node gets the name that its one result has. Downwards a new
field is dropped if it says nothing, or noted as lost by its name; new arms of unions and members of enums block, which
`steps` finds by the older table.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.schema.fieldtable import default_value, frozen_table
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.line.hops import gather_operands, mark_outputs, spread_operands
from pt2kit.versions.rewrite import Visitor, rewrite

Conversion = Callable[[Tree, ConversionLog], Tree]
"""(tree, log) -> the tree at another version; the tree that comes in is not changed."""

LOSSES: Final = {("ExportedProgram", "guards_code"): "guards_code", ("Node", "name"): "node_names"}
"""Fields that a downgrade may drop although they say something, and the name by which that is allowed."""


def upgrade_minor(older: str, newer: str) -> Conversion:
    """Return the step from one minor of schema 8 to the next."""

    def upgrade(tree: Tree, log: ConversionLog) -> Tree:
        visitors = {name: _adding(fields) for name, fields in _new_fields(older, newer).items()}
        if special := _UPGRADES.get(newer):
            visitors["Node"] = _chained(special(log), visitors.get("Node", _unchanged))
        return rewrite(tree, older, visitors)

    return upgrade


def downgrade_minor(newer: str, older: str) -> Conversion:
    """Return the step from one minor of schema 8 back to the one before."""

    def downgrade(tree: Tree, log: ConversionLog) -> Tree:
        new_fields = _new_fields(older, newer).items()
        visitors = {name: _removing(name, fields, newer, log) for name, fields in new_fields}
        if newer == "8.8":
            visitors["Argument"] = _plain_optional
        if special := _DOWNGRADES.get(newer):
            visitors["Node"] = _chained(visitors.get("Node", _unchanged), special(log))
        return rewrite(tree, newer, visitors)

    return downgrade


# A pure function of two frozen tables; nobody changes what it gives.
@functools.cache
def _new_fields(older: str, newer: str) -> Mapping[str, Mapping[str, Any]]:
    """Return struct -> the fields that the newer table adds, with their defaults."""
    before, after = frozen_table(older).definitions, frozen_table(newer).definitions
    by_struct: dict[str, dict[str, Any]] = {}
    for name, definition in after.items():
        if definition.kind == "struct" and name in before:
            added = [field for key, field in definition.fields.items() if key not in before[name].fields]
            new = {field.name: default_value(field) for field in added}
            by_struct |= {name: new} if new else {}
    return by_struct


def _adding(fields: Mapping[str, Any]) -> Visitor:
    return lambda value, _: {**copy.deepcopy(fields), **value}


def _removing(name: str, fields: Mapping[str, Any], since: str, log: ConversionLog) -> Visitor:
    def visit(value: Any, path: Path) -> Any:
        kept = dict(value)
        for key, default in fields.items():
            field_value = kept.get(key, default)
            says_nothing = field_value == default or (
                (name, key) == ("Node", "name") and field_value == own_name(value)
            )
            if says_nothing or (name, key) in LOSSES:
                kept.pop(key, None)
            if not says_nothing and (name, key) in LOSSES:
                log.lost(LOSSES[name, key], f"{name}.{key}", (*path, key), since)
        return kept

    return visit


def own_name(node: Mapping[str, Any]) -> str | None:
    """Return a node's name from its one result; None if it has several, or returns parts of a tuple.

    Source: `deserialize_node` in torch/_export/serde/serialize.py (2.13), which falls back to it.
    """
    if node.get("is_hop_single_tensor_return") is False:
        return None
    match node["outputs"]:
        case [
            {"as_tensor": {"name": name}}
            | {"as_sym_int": {"as_name": name}}
            | {"as_sym_float": {"as_name": name}}
            | {"as_sym_bool": {"as_name": name}}
        ]:
            return str(name)
    return None


def _plain_optional(value: Any, _: Path) -> Any:
    """Return an optional tensor as 2.7 wrote it: a tensor, or None."""
    match value:
        case {"as_optional_tensor": {"as_tensor": tensor}}:
            return {"as_tensor": tensor}
        case {"as_optional_tensor": {"as_none": none}}:
            return {"as_none": none}
    return value


def _unchanged(value: Any, _: Path) -> Any:
    return value


def _chained(first: Visitor, second: Visitor) -> Visitor:
    return lambda value, path: second(first(value, path), path)


_UPGRADES: Final[Mapping[str, Callable[[ConversionLog], Visitor]]] = {
    "8.7": lambda _: lambda value, __: mark_outputs(value),
    "8.8": lambda log: lambda value, path: spread_operands(value, path, log),
    "8.17": lambda _: lambda value, __: {**value, "name": own_name(value)},
}
_DOWNGRADES: Final[Mapping[str, Callable[[ConversionLog], Visitor]]] = {
    "8.8": lambda log: lambda value, path: gather_operands(value, path, log, "8.8")
}
