"""Symbolic expressions of an exported program as data: parsing and printing, values, ranges, guards.

`expr_str` holds sympy expressions in one of two dialects: str() up to torch 2.5, srepr() since 2.6. This package reads
both into one tree (`expr`), prints it in both (`plain`, `srepr`), computes it (`evaluation`) and returns its kind and
bounds before it is computed (`value_kinds`, `ranges`). `guards` reads the conditions of `guards_code`. It runs nothing
from a file and does not need sympy: the functions are a closed table (`functions`), and text, tree and numbers have
limits (`Limits`).

It does not simplify: a tree is what was written. The names load when they are first used (PEP 562), so that importing
this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.symbols.dialects import parse as parse
    from pt2kit.symbols.dialects import parse_number as parse_number
    from pt2kit.symbols.dialects import parse_size as parse_size
    from pt2kit.symbols.dialects import parse_truth as parse_truth
    from pt2kit.symbols.evaluation import check_constants as check_constants
    from pt2kit.symbols.evaluation import evaluate as evaluate
    from pt2kit.symbols.expr import DEFAULT_LIMITS as DEFAULT_LIMITS
    from pt2kit.symbols.expr import Boolean as Boolean
    from pt2kit.symbols.expr import Call as Call
    from pt2kit.symbols.expr import Expr as Expr
    from pt2kit.symbols.expr import Float as Float
    from pt2kit.symbols.expr import Infinity as Infinity
    from pt2kit.symbols.expr import Integer as Integer
    from pt2kit.symbols.expr import Limits as Limits
    from pt2kit.symbols.expr import Rational as Rational
    from pt2kit.symbols.expr import Symbol as Symbol
    from pt2kit.symbols.expr import default_assumptions as default_assumptions
    from pt2kit.symbols.expr import fold as fold
    from pt2kit.symbols.expr import free_symbols as free_symbols
    from pt2kit.symbols.expr import substitute as substitute
    from pt2kit.symbols.functions import FUNCTIONS as FUNCTIONS
    from pt2kit.symbols.functions import Function as Function
    from pt2kit.symbols.guards import Guard as Guard
    from pt2kit.symbols.guards import Source as Source
    from pt2kit.symbols.guards import parse_guard as parse_guard
    from pt2kit.symbols.order import float_from as float_from
    from pt2kit.symbols.plain import parse_str as parse_str
    from pt2kit.symbols.plain import to_str as to_str
    from pt2kit.symbols.ranges import bounds as bounds
    from pt2kit.symbols.srepr import parse_srepr as parse_srepr
    from pt2kit.symbols.srepr import to_srepr as to_srepr
    from pt2kit.symbols.value_kinds import Kind as Kind
    from pt2kit.symbols.value_kinds import kind as kind

__getattr__, __dir__, __all__ = front_door(__name__)
