"""Symbolic expressions between releases: the two dialects, and names of symbols that changed.

1, 2          unbacked ints are i0, i1, …; later u0, u1, …
1 to 5.1      unbacked floats are f0, f1, …; later zuf0, zuf1, …
up to 7.3     str(): "2*s0 + 1"
from 8.2      srepr(): "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.symbols.dialects import parse
from pt2kit.symbols.expr import default_assumptions, free_symbols
from pt2kit.symbols.plain import to_str
from pt2kit.symbols.srepr import to_srepr
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
        same: Tree = rewrite(tree, version, visitors)
        return same
    changed: Tree = rewrite(tree, version, {**visitors, "SymExpr": expression})
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

    result: Tree = rewrite(tree, version, {**visitors, "SymExpr": expression})
    return result


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

    result: Tree = rewrite(tree, version, {"SymExpr": expression})
    return result
