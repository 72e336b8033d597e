"""Symbolic expressions as data -> sympy's, by a closed table of classes; no text is ever evaluated.

`to_sympy` calls the constructors that the names of a tree stand for, so sympy puts sums and products in its own order,
as it does when torch reads a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import sympy
import torch
from sympy.functions.elementary.piecewise import ExprCondPair

from pt2kit.bridge.torch_export_names import int_oo
from pt2kit.bridge.torch_export_names import sympy_functions as torch_functions
from pt2kit.errors import ExpressionError, UnsupportedError
from pt2kit.symbols.expr import Boolean, Call, Expr, Float, Infinity, Integer, Leaf, Rational, Symbol, fold
from pt2kit.symbols.functions import FUNCTIONS

# Functions of torch whose class stands under another name, or that later releases write as another one.
_RENAMED: Final[Mapping[str, str]] = MappingProxyType({"Round": "RoundToInt", "TrueDiv": "IntTrueDiv"})
# What torch's reader takes from sympy although torch has a class of that name too.
_OF_SYMPY: Final = frozenset({"Max", "Min"})
_TROUBLE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)


def _classes() -> dict[str, Callable[..., Any]]:
    classes: dict[str, Callable[..., Any]] = {"ExprCondPair": ExprCondPair}
    for name in FUNCTIONS.keys() - classes.keys():
        of_torch = vars(torch_functions).get(_RENAMED.get(name, name))
        made = vars(sympy).get(name) if of_torch is None or name in _OF_SYMPY else of_torch
        if made is not None:
            classes[name] = made
    return classes


CLASSES: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(_classes())
"""Name of a function in a tree -> the class that builds it; releases of torch lack some."""


def to_sympy(expr: Expr, where: str = "") -> sympy.Basic:
    """Build the sympy expression of a tree.

    Args:
        expr: the tree; whoever read it has checked kinds and constants (`pt2kit.symbols.parse_size` and its kin).
        where: the place to name in errors.

    Returns:
        The expression as sympy normalises it; equal symbols in it are one object. Cost: a few microseconds per node.

    Raises:
        ExpressionError: sympy refuses it, or it has no value (a division by zero).
        UnsupportedError: a function that this release of torch does not have.
    """

    def call(node: Call, args: list[sympy.Basic]) -> sympy.Basic:
        if node.function not in CLASSES:
            raise UnsupportedError(
                f"{where or 'expression'}: expected functions that torch {torch.__version__} has, got {node.function}"
            )
        result: sympy.Basic = CLASSES[node.function](*args)
        return result

    try:
        built = fold(expr, _leaf, call)
    except _TROUBLE as error:
        raise ExpressionError(
            f"{where or 'expression'}: expected an expression that has a value, got one that has none: {error}"
        ) from error
    if built.has(sympy.nan, sympy.zoo):
        raise ExpressionError(f"{where or 'expression'}: expected an expression that has a value, got {built}")
    return built


def _leaf(leaf: Leaf) -> sympy.Basic:
    match leaf:
        case Symbol(name, assumptions):
            return sympy.Symbol(name, **dict(assumptions))
        case Integer(value):
            return sympy.Integer(value)
        case Rational(p, q):
            return sympy.Rational(p, q)
        case Float(text, precision):
            return sympy.Float(text, precision=precision)
        case Boolean(value):
            return sympy.true if value else sympy.false
        case Infinity(negative, integer):
            infinity = int_oo if integer else sympy.oo
            return -infinity if negative else infinity
