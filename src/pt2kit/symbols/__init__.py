"""Symbolic expressions of an exported program as data: text <-> tree, values, ranges, guards.

`expr_str` holds sympy expressions in one of two dialects: str() up to torch 2.5, srepr() since 2.6. This room reads
both into one tree (`expr`), prints it in both (`srepr`, `printer`), computes it (`evaluation`) and says what it yields
before it is computed (`kinds`, `ranges`). `guards` reads the conditions of `guards_code`. It runs nothing from a file
and knows no sympy: the functions are a closed table (`functions`), and text, tree and numbers have limits (`Limits`).

It does not simplify: a tree is what was written. The names load when they are first used (PEP 562), so that importing
this room costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pt2kit.symbols.dialects import parse, parse_all, parse_number, parse_size, parse_truth
    from pt2kit.symbols.evaluation import check_constants, evaluate
    from pt2kit.symbols.expr import (
        DEFAULT_LIMITS,
        Boolean,
        Call,
        Expr,
        Float,
        Infinity,
        Integer,
        Limits,
        Rational,
        Symbol,
        default_assumptions,
        fold,
        free_symbols,
        substitute,
    )
    from pt2kit.symbols.floats import float_from
    from pt2kit.symbols.functions import FUNCTIONS, Function
    from pt2kit.symbols.guards import Guard, Source, parse_guard
    from pt2kit.symbols.kinds import Kind, kind, require_int
    from pt2kit.symbols.plain import parse_str
    from pt2kit.symbols.printer import to_str
    from pt2kit.symbols.ranges import bounds
    from pt2kit.symbols.srepr import parse_srepr, to_srepr

_HOMES = (
    ("dialects", ("parse", "parse_all", "parse_number", "parse_size", "parse_truth")),
    ("srepr", ("parse_srepr", "to_srepr")),
    ("plain", ("parse_str",)),
    ("printer", ("to_str",)),
    ("evaluation", ("evaluate", "check_constants")),
    ("kinds", ("Kind", "kind", "require_int")),
    ("ranges", ("bounds",)),
    ("guards", ("Guard", "Source", "parse_guard")),
    ("floats", ("float_from",)),
    ("functions", ("FUNCTIONS", "Function")),
    ("expr", ("Expr", "Symbol", "Integer", "Rational", "Float", "Boolean", "Infinity", "Call", "Limits")),
    ("expr", ("DEFAULT_LIMITS", "default_assumptions", "fold", "free_symbols", "substitute")),
)

__all__ = [
    "parse", "parse_all", "parse_number", "parse_size", "parse_truth", "parse_srepr", "to_srepr", "parse_str", "to_str",
    "evaluate", "check_constants", "Kind", "kind", "require_int", "bounds", "Guard", "Source", "parse_guard",
    "float_from", "FUNCTIONS", "Function", "Expr", "Symbol", "Integer", "Rational", "Float", "Boolean", "Infinity",
    "Call", "Limits", "DEFAULT_LIMITS", "default_assumptions", "fold", "free_symbols", "substitute",
]  # fmt: skip


def __getattr__(name: str) -> object:
    for home, names in _HOMES:
        if name in names:
            from importlib import import_module

            value: object = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
