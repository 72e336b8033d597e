"""Symbolic expressions and tree specs between releases.

Two dialects of expressions, and names of symbols that changed:

1, 2          unbacked ints are i0, i1, …; later u0, u1, …
1 to 5.1      unbacked floats are f0, f1, …; later zuf0, zuf1, …
up to 7.3     str(): "2*s0 + 1"
from 8.2      srepr(): "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))"

Call specs of schema 1, and contexts of named tuples and dataclasses:

1            in_spec is (args) for a call without keywords, else ((args), {kwargs}); later always the second
up to 5.1    a named tuple's context is {"class_name": "NT", "fields": ["a", "b"]}
from 5.3     it is the name under which the class is registered: "corpus.NT"

1, 2         a dataclass's context is a list: ["module.DC", ["x"], ["y"]], the fields given and those that are None
from 5.1     it is JSON text of the latter two, "[[\"x\"], [\"y\"]]"; the class is known by its registered name
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit.errors import SchemaError
from pt2kit.jsontext import Path
from pt2kit.symbols.dialects import parse
from pt2kit.symbols.expr import default_assumptions, free_symbols
from pt2kit.symbols.plain import to_str
from pt2kit.symbols.srepr import to_srepr
from pt2kit.treespec.containers import child_keys
from pt2kit.treespec.spec import TreeSpec, context_text, context_value, dump, map_nodes, walk
from pt2kit.treespec.spec import parse as parse_spec
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.rewrite import Visitor, rewrite

_ATTRIBUTE: Final = r"(?<![\w.'])"


_NO_VISITORS: Final[Mapping[str, Visitor]] = MappingProxyType({})


def rename_symbols(
    tree: Tree, version: str, old: str, new: str, visitors: Mapping[str, Visitor] = _NO_VISITORS
) -> Tree:
    """Rename symbols of one prefix in every expression and range: `rename_symbols(tree, "2", "i", "u")`.

    Args:
        tree: a program whose expressions are in the str dialect.
        version: the name of its table.
        old, new: prefixes, each followed by a number.
        visitors: what else to apply on the same walk, to other types than `SymExpr`.
    """
    pattern = re.compile(rf"{_ATTRIBUTE}{old}(\d+)(?!\w)")
    known: dict[str, str] = {}

    def expression(value: Any, _: Path) -> Any:
        text = value["expr_str"]
        if text not in known:
            known[text] = pattern.sub(rf"{new}\1", text)
        return value if known[text] == text else {**value, "expr_str": known[text]}

    ranges = {pattern.sub(rf"{new}\1", name): limits for name, limits in tree["range_constraints"].items()}
    if len(ranges) != len(tree["range_constraints"]):
        # Both names are taken, so one of them is no symbol of the prefix.
        return rewrite(tree, version, visitors)
    changed = rewrite(tree, version, {**visitors, "SymExpr": expression})
    if list(ranges) == list(tree["range_constraints"]):
        return changed
    values = changed["range_constraints"].values()
    return {**changed, "range_constraints": dict(zip(ranges, values, strict=True))}


def to_structural(tree: Tree, version: str, log: ConversionLog, visitors: Mapping[str, Visitor] = _NO_VISITORS) -> Tree:
    """Write every expression in the srepr dialect.

    Args:
        tree: a program whose expressions are in the str dialect.
        version: the name of its table.
        log: for places.
        visitors: what else to apply on the same walk, to other types than `SymExpr`.

    Raises:
        ExpressionError: a text that is no expression.
        LimitError: one that is too large.
    """
    known: dict[str, str] = {}

    def expression(value: Any, path: Path) -> Any:
        text = value["expr_str"]
        if text not in known:
            known[text] = to_srepr(parse(text, where=log.place((*path, "expr_str"))))
        return {**value, "expr_str": known[text]}

    return rewrite(tree, version, {**visitors, "SymExpr": expression})


def to_plain(tree: Tree, version: str, log: ConversionLog, since: str) -> Tree:
    """Write every expression in the str dialect, which has no place for what is assumed of a symbol.

    Raises:
        ExpressionError: a text that is no expression.
        LimitError: one that is too large.
    """
    known: dict[str, tuple[str, tuple[str, ...]]] = {}

    def expression(value: Any, path: Path) -> Any:
        text = value["expr_str"]
        if text not in known:
            expr = parse(text, where=log.place((*path, "expr_str")))
            symbols = free_symbols(expr)
            unusual = tuple(s.name for s in symbols if set(s.assumptions) != set(default_assumptions(s.name)))
            known[text] = to_str(expr), unusual
        for name in known[text][1]:
            log.lost("assumptions", f"what is assumed of {name}", (*path, "expr_str"), since)
        return {**value, "expr_str": known[text][0]}

    return rewrite(tree, version, {"SymExpr": expression})


NAMEDTUPLE: Final = "collections.namedtuple"
_TUPLE: Final = "builtins.tuple"
_DICT: Final = "builtins.dict"
_NO_KEYWORDS: Final = TreeSpec(_DICT, context_text([]))


def with_keywords(text: str, path: Path, log: ConversionLog) -> str:
    """Return the in_spec of a schema 1 program, as later schemas write it.

    Raises:
        SchemaError, JsonError, LimitError: no tree spec, or not one of a call.
    """
    spec = _parse(text, path, log)
    if spec.type != _TUPLE:
        raise SchemaError(f"{log.place(path)}: expected a tuple of arguments at the root, got {spec.type!r}")
    if _has_keywords(spec):
        return text
    return dump(TreeSpec(_TUPLE, spec.context, (spec, _NO_KEYWORDS)))


def without_keywords(text: str, path: Path, log: ConversionLog) -> str:
    """Return an in_spec of later schemas as schema 1 writes it."""
    spec = _parse(text, path, log)
    if [child.type for child in spec.children] != [_TUPLE, _DICT] or spec.type != _TUPLE:
        log.blocked("an in_spec that is not ((args), {kwargs})", path, "2")
        return text
    args, kwargs = spec.children
    if kwargs.children:
        return text
    if _has_keywords(args):
        log.blocked("a call of one tuple and one dict, which schema 1 takes for keywords", path, "2")
    return dump(args)


def _has_keywords(spec: TreeSpec) -> bool:
    """Return whether schema 1 means ((args), {kwargs}): a tuple and a dict with keys that are names."""
    if [child.type for child in spec.children] != [_TUPLE, _DICT]:
        return False
    keys = [key.value for key in child_keys(spec.children[1])]
    return bool(keys) and all(isinstance(key, str) for key in keys)


def name_tuples(text: str, path: Path, log: ConversionLog) -> str:
    """Replace contexts with class names and fields by registered names; the fields go to the log.

    A class name is taken for the registered name unless the caller of the conversion says otherwise.
    """
    if NAMEDTUPLE not in text:
        return text

    def change(node: TreeSpec) -> TreeSpec:
        context = context_value(node, log.place(path)) if node.type == NAMEDTUPLE else None
        match context:
            case {"class_name": str(name), "fields": list(fields)} if all(isinstance(f, str) for f in fields):
                registered = log.namedtuples.get(name, name)
                _keep_fields(registered, fields, path, log)
                return TreeSpec(node.type, json.dumps(registered), node.children)
        return node

    return dump(map_nodes(_parse(text, path, log), change))


def describe_tuples(text: str, path: Path, log: ConversionLog, since: str) -> str:
    """Replace contexts with registered names by class names and fields, which the log must have."""
    if NAMEDTUPLE not in text:
        return text

    def change(node: TreeSpec) -> TreeSpec:
        name = context_value(node, log.place(path)) if node.type == NAMEDTUPLE else None
        if not isinstance(name, str):
            return node
        fields = log.namedtuple_fields.get(name)
        if fields is None or len(fields) != len(node.children):
            log.blocked(f"a named tuple {name!r} whose field names the program does not have", path, since)
            return node
        described = {"class_name": name.rpartition(".")[2], "fields": fields}
        return TreeSpec(node.type, json.dumps(described), node.children)

    return dump(map_nodes(_parse(text, path, log), change))


def text_dataclasses(text: str, path: Path, log: ConversionLog) -> str:
    """Return contexts of dataclasses that are lists as later releases write them; the Python path of the class is
    dropped."""

    def change(node: TreeSpec) -> TreeSpec:
        match context_value(node, log.place(path)):
            case [str(place), list(given), list(missing)]:
                log.changed(f"the dataclass {place!r} is known by its registered name {node.type!r}", path)
                return TreeSpec(node.type, context_text([given, missing]), node.children)
        return node

    return _changed(text, path, log, change)


def list_dataclasses(text: str, path: Path, log: ConversionLog) -> str:
    """Return contexts of dataclasses as lists; a class's Python path is taken from its registered name."""

    def change(node: TreeSpec) -> TreeSpec:
        if node.type is None or node.type.startswith(("builtins.", "collections.")):
            return node
        context = context_value(node, log.place(path))
        match _json(context) if isinstance(context, str) else None:
            case [list(given), list(missing)] if len(given) == len(node.children):
                log.changed(f"the dataclass {node.type!r} is looked for in Python by that name", path)
                return TreeSpec(node.type, json.dumps([node.type, given, missing]), node.children)
        return node

    return _changed(text, path, log, change)


def _changed(text: str, path: Path, log: ConversionLog, change: Callable[[TreeSpec], TreeSpec]) -> str:
    """Return a spec after a change of its nodes; the text itself if none changed."""
    spec = _parse(text, path, log)
    new = map_nodes(spec, change)
    return text if new == spec else dump(new)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def registered_names(text: str, path: Path, log: ConversionLog) -> list[str]:
    """Return the registered names of the named tuples in a spec, in order."""
    if NAMEDTUPLE not in text:
        return []
    nodes = (node for node in walk(_parse(text, path, log)) if node.type == NAMEDTUPLE)
    return [name for node in nodes if isinstance(name := context_value(node, log.place(path)), str)]


def _keep_fields(name: str, fields: list[str], path: Path, log: ConversionLog) -> None:
    known = log.namedtuple_fields.setdefault(name, fields)
    if known != fields:
        raise SchemaError(
            f"{log.place(path)}: expected the fields {', '.join(known)} of the named tuple {name!r}, "
            f"as elsewhere in the program, got {', '.join(fields)}"
        )


def _parse(text: str, path: Path, log: ConversionLog) -> TreeSpec:
    return parse_spec(text, log.place(path))


def map_specs(signature: dict[str, Any], path: Path, change: Any) -> dict[str, Any]:
    """Apply `change(text, path)` to both specs of a module call signature."""
    new = {key: change(signature[key], (*path, key)) for key in ("in_spec", "out_spec")}
    return signature if all(signature[key] == text for key, text in new.items()) else {**signature, **new}
