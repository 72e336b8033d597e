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
from typing import Any, Final

from pt2kit.errors import SchemaError
from pt2kit.jsontext import Path
from pt2kit.symbols.dialects import parse
from pt2kit.symbols.expr import default_assumptions, free_symbols
from pt2kit.symbols.plain import to_str
from pt2kit.symbols.srepr import to_srepr
from pt2kit.treespec.callsig import split_call
from pt2kit.treespec.spec import TreeSpec, context_text, context_value, dump, map_nodes, walk
from pt2kit.treespec.spec import parse as parse_spec
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.rewrite import Visitor, rewrite


def expressions(change: Callable[[str, Path], str]) -> Visitor:
    """Return a visitor of `SymExpr` that writes expressions otherwise: `change(text, path)` once for each text."""
    known: dict[str, str] = {}

    def visit(value: Any, path: Path) -> Any:
        text = value["expr_str"]
        if text not in known:
            known[text] = change(text, (*path, "expr_str"))
        return value if known[text] == text else {**value, "expr_str": known[text]}

    return visit


def rename_symbols(tree: Tree, version: str, old: str, new: str, visitors: Mapping[str, Visitor]) -> Tree:
    """Rename symbols of one prefix in every expression and range: `rename_symbols(tree, "2", "i", "u", {})`.

    Args:
        tree: a program whose expressions are in the str dialect.
        version: the name of its table.
        old, new: prefixes, each followed by a number.
        visitors: what else to apply on the same walk, to other types than `SymExpr`.
    """
    pattern = re.compile(rf"(?<![\w.']){old}(\d+)(?!\w)")

    def renamed(text: str, _: Path = ()) -> str:
        return pattern.sub(rf"{new}\1", text)

    ranges = {renamed(name): limits for name, limits in tree["range_constraints"].items()}
    if len(ranges) != len(tree["range_constraints"]):
        # Both names are taken, so one of them is no symbol of the prefix.
        return rewrite(tree, version, visitors)
    changed = rewrite(tree, version, {**visitors, "SymExpr": expressions(renamed)})
    if list(ranges) == list(tree["range_constraints"]):
        return changed
    values = changed["range_constraints"].values()
    return {**changed, "range_constraints": dict(zip(ranges, values, strict=True))}


def to_structural(log: ConversionLog) -> Visitor:
    """Return a visitor that turns expressions of the str dialect into the srepr dialect.

    Raises (while visiting):
        ExpressionError: a text that is no expression.
        LimitError: one that is too large.
    """
    return expressions(lambda text, path: to_srepr(parse(text, where=log.place(path))))


def to_plain(log: ConversionLog) -> Visitor:
    """Return a visitor that turns expressions into the str dialect, which has no place for what is assumed of a symbol.

    Raises (while visiting):
        ExpressionError: a text that is no expression.
        LimitError: one that is too large.
    """
    unusual: dict[str, list[str]] = {}

    def plain(text: str, path: Path) -> str:
        expr = parse(text, where=log.place(path))
        symbols = free_symbols(expr)
        unusual[text] = [s.name for s in symbols if set(s.assumptions) != set(default_assumptions(s.name))]
        return to_str(expr)

    write = expressions(plain)

    def visit(value: Any, path: Path) -> Any:
        new = write(value, path)
        for name in unusual[value["expr_str"]]:
            log.lost("assumptions", f"what is assumed of {name}", (*path, "expr_str"))
        return new

    return visit


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
    _, keywords = split_call(spec, log.place(path), schema_1=True)
    return text if keywords else dump(TreeSpec(_TUPLE, spec.context, (spec, _NO_KEYWORDS)))


def without_keywords(text: str, path: Path, log: ConversionLog) -> str:
    """Return an in_spec of later schemas as schema 1 writes it."""
    spec = _parse(text, path, log)
    if [child.type for child in spec.children] != [_TUPLE, _DICT] or spec.type != _TUPLE:
        log.blocked("an in_spec that is not ((args), {kwargs})", path)
        return text
    args, kwargs = spec.children
    if kwargs.children:
        return text
    if split_call(args, log.place(path), schema_1=True)[1]:
        log.blocked("a call of one tuple and one dict, which schema 1 takes for keywords", path)
    return dump(args)


def call_specs(
    change: Callable[[TreeSpec, Path, ConversionLog], TreeSpec], log: ConversionLog, *, having: str = ""
) -> Visitor:
    """Return a visitor of `ModuleCallSignature` that changes the containers of both tree specs.

    Args:
        change: `name_tuple` or the like.
        log: what `change` gets.
        having: only texts that contain this are read.

    Raises (while visiting):
        SchemaError, JsonError, LimitError: a tree spec that is none.
    """

    def visit(signature: Any, path: Path) -> Any:
        new = signature
        for key in ("in_spec", "out_spec"):
            if having in (text := signature[key]):
                place = (*path, key)
                spec = _parse(text, place, log)
                changed = map_nodes(spec, lambda node, place=place: change(node, place, log))  # type: ignore[misc]
                new = new if changed == spec else {**new, key: dump(changed)}
        return new

    return visit


def name_tuple(node: TreeSpec, path: Path, log: ConversionLog) -> TreeSpec:
    """Replace the context of a named tuple, class name and fields, by its registered name; the fields go to the log.

    A class name is taken for the registered name unless the caller of the conversion says otherwise.
    """
    match context_value(node, log.place(path)) if node.type == NAMEDTUPLE else None:
        case {"class_name": str(name), "fields": list(fields)} if all(isinstance(f, str) for f in fields):
            registered = log.namedtuples.get(name, name)
            _keep_fields(registered, fields, path, log)
            return TreeSpec(node.type, json.dumps(registered), node.children)
    return node


def describe_tuple(node: TreeSpec, path: Path, log: ConversionLog) -> TreeSpec:
    """Replace the registered name of a named tuple by its class name and fields, which the log must have."""
    name = context_value(node, log.place(path)) if node.type == NAMEDTUPLE else None
    if not isinstance(name, str):
        return node
    fields = log.namedtuple_fields.get(name)
    if fields is None or len(fields) != len(node.children):
        log.blocked(f"a named tuple {name!r} whose field names the program does not have", path)
        return node
    described = {"class_name": name.rpartition(".")[2], "fields": fields}
    return TreeSpec(node.type, json.dumps(described), node.children)


def text_dataclass(node: TreeSpec, path: Path, log: ConversionLog) -> TreeSpec:
    """Write the context of a dataclass, a list, as later releases do; the Python path of the class is dropped."""
    match context_value(node, log.place(path)):
        case [str(place), list(given), list(missing)]:
            log.changed(f"the dataclass {place!r} is known by its registered name {node.type!r}", path)
            return TreeSpec(node.type, context_text([given, missing]), node.children)
    return node


def list_dataclass(node: TreeSpec, path: Path, log: ConversionLog) -> TreeSpec:
    """Write the context of a dataclass as a list; the Python path of the class is taken from its registered name."""
    if node.type is None or node.type.startswith(("builtins.", "collections.")):
        return node
    context = context_value(node, log.place(path))
    match _json(context) if isinstance(context, str) else None:
        case [list(given), list(missing)] if len(given) == len(node.children):
            log.changed(f"the dataclass {node.type!r} is looked for in Python by that name", path)
            return TreeSpec(node.type, json.dumps([node.type, given, missing]), node.children)
    return node


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
