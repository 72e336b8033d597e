"""Evaluation of an expression with values of its symbols, to an int, a float or a truth value.

Only what the result needs is required to have a value: the branch of a `Piecewise` or `Where` that is not taken may
divide by zero or name a symbol without a value, as in the Python text that torch makes of an expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Union

from pt2kit.errors import ExpressionError, LimitError
from pt2kit.symbols.arithmetic import Number, checked, real
from pt2kit.symbols.expr import Call, Expr, Integer, Leaf, Symbol, constant_value, fail, fold, quote
from pt2kit.symbols.functions import FUNCTIONS, by_name
from pt2kit.symbols.plain import to_str
from pt2kit.symbols.polynomials import Polynomial, Size, size_of_call, symbol, unknown
from pt2kit.symbols.value_kinds import Kind, kind, symbol_kind

_Error = ExpressionError | LimitError
# A part without a value is carried as the error that says why, and raised if the result needs it. A pair is the value
# and the condition inside a Piecewise.
_Result = Union[Number, _Error, tuple["_Result", "_Result"]]  # noqa: UP007 - names itself, so | has no left side yet


def evaluate(
    expr: Expr, values: Mapping[str, int | float | bool], *, where: str = "", eager: bool = False
) -> int | float | bool:
    """Compute an expression.

    Args:
        expr: the tree.
        values: symbol name -> value; others are ignored.
        where: the place to name in errors.
        eager: require a value of every part, as sympy does when it replaces symbols by numbers, also of branches that
            are not taken.

    Returns:
        An int, float or bool, as `kind` says; `inf` may stand for an unbounded int. Exact quotients (`s0/2`) become
        floats at the very end, so `floor(s0/2)` is exact; roots are floats immediately, so `floor(sqrt(3)/sqrt(3))` is
        0.

    Raises:
        ExpressionError: a symbol has no value, a function is called with what it does not take (0 as divisor, -1 to
            sqrt), or the result is not a number or too large for a float.
        LimitError: an integer needs more than 4096 bits; powers and shifts are refused before they are computed.
    """
    expr_kind = kind(expr, where=where)

    def leaf(node: Leaf) -> _Result:
        if not isinstance(node, Symbol):
            return constant_value(node)
        try:
            return _given(node, values[node.name])
        except KeyError:
            return ExpressionError(f"expected a value for the symbol {node.name}, got none")

    result = fold(expr, leaf, _call_as_sympy if eager else _call)
    try:
        return _as_kind(result, expr_kind)
    except (ExpressionError, LimitError) as error:
        raise type(error)(f"{where or 'expression'}: {error}, in {quote(to_str(expr))}") from None


def check_constants(expr: Expr, *, where: str = "") -> Expr:
    """Return the same expression, if every part of it without symbols has a value.

    Raises:
        ExpressionError: some part divides by zero or the like, whatever its symbols are.
        LimitError: some part needs a number of more than 4096 bits.
    """

    def call(node: Call, args: list[_Result | None]) -> _Result | None:
        for place in _divisors(node):
            if args[place] == 0 or (args[place] is None and _cancels_out(node.args[place])):
                fail(where, f"division by zero (in {quote(to_str(node))})")
        known = [arg for arg in args if arg is not None]
        if len(known) < len(args):
            return None
        result = _call_as_sympy(node, known)
        if isinstance(result, _Error):
            fail(where, str(result), type(result))
        return result

    fold(expr, lambda leaf: None if isinstance(leaf, Symbol) else constant_value(leaf), call)
    return expr


def _divisors(node: Call) -> tuple[int, ...]:
    """Return the places of the arguments that a call divides by."""
    if node.function == "Pow" and isinstance(exponent := node.args[1], Integer) and exponent.value < 0:
        return (0,)
    return _DIVISORS.get(node.function, ())


def _cancels_out(expr: Expr) -> bool:
    """Return whether an expression with symbols is 0 for all of them, as `s0 - s0`: sympy computes with that 0."""

    def leaf(node: Leaf) -> _Result | Size:
        if isinstance(node, Symbol):
            return symbol(node, 1 if ("positive", True) in node.assumptions else -math.inf)
        return constant_value(node)

    def call(node: Call, args: list[_Result | Size]) -> _Result | Size:
        numbers = [arg for arg in args if not isinstance(arg, Polynomial)]
        if len(numbers) == len(args):
            return _call(node, numbers)
        return size_of_call(node, [arg if isinstance(arg, int | Polynomial) else unknown(-math.inf) for arg in args])

    return isinstance(expr, Call) and fold(expr, leaf, call) == 0


def _given(symbol: Symbol, value: object) -> _Result:
    expected = symbol_kind(symbol)
    if not isinstance(value, int | float) or (isinstance(value, bool) and expected != "any"):
        return ExpressionError(f"expected a number as {symbol.name}, got {type(value).__name__}")
    if isinstance(value, float) and expected == "int":
        return ExpressionError(f"expected an int as {symbol.name}, got {value}")
    try:
        return checked(value)
    except (ExpressionError, LimitError) as error:
        return error


def _call(node: Call, args: Sequence[_Result]) -> _Result:
    compute = FUNCTIONS[node.function].compute
    if compute is None:
        return _LAZY[node.function](args)
    values: list[Number] = []
    for arg in args:
        if isinstance(arg, _Error):
            return arg
        if isinstance(arg, tuple):
            return ExpressionError("expected a value, got a pair that belongs in a Piecewise")
        values.append(arg)
    try:
        return real(lambda: compute(*values))
    except (ExpressionError, LimitError) as error:
        return type(error)(f"{error} (in {quote(to_str(node))})")


def _call_as_sympy(node: Call, args: Sequence[_Result]) -> _Result:
    """Return the value of a call of numbers, all of which sympy needs, also for branches that are not taken."""
    failed = next((arg for arg in args if isinstance(arg, _Error)), None)
    if failed is None and node.function == "Mod":
        number, by = (arg if isinstance(arg, Real) else 0 for arg in args)
        if abs(number) not in (0, abs(by)) and by != 1 and (number < 0 or 0 != by < 1):
            return ExpressionError(f"expected Mod of a number from 0 by a number from 1, got {number} and {by}")
    return failed or _call(node, args)


def _as_kind(result: _Result, found: Kind) -> int | float | bool:
    if isinstance(result, _Error):
        raise result
    if isinstance(result, tuple):
        raise ExpressionError("expected a value, got a pair that belongs in a Piecewise")
    if found == "bool":
        return bool(result)
    if found == "float" or (found == "any" and not isinstance(result, int)):
        return real(lambda: float(result))
    if isinstance(result, float) and result.is_integer():
        return int(result)  # 0 % int_oo: a whole number that met an infinity, which is a float here
    if isinstance(result, int | float):
        return result
    raise ExpressionError(f"expected a whole number, got {result}")


def _piecewise(args: Sequence[_Result]) -> _Result:
    for arg in args:
        value, condition = arg if isinstance(arg, tuple) else (arg, True)
        if isinstance(condition, _Error):
            return condition
        if condition:
            return value
    return ExpressionError("expected one of the conditions of Piecewise to hold, got none that does")


def _where(args: Sequence[_Result]) -> _Result:
    condition, then, otherwise = args
    if isinstance(condition, _Error):
        return condition
    return then if condition else otherwise


def _until(stop: bool) -> Callable[[Sequence[_Result]], _Result]:
    """Return the evaluation rule of And (stops at the first false) or Or (stops at the first true)."""

    def rule(args: Sequence[_Result]) -> _Result:
        for arg in args:
            if isinstance(arg, _Error):
                return arg
            if bool(arg) is stop:
                return stop
        return not stop

    return rule


# Which arguments must not be 0, whatever the others are.
_DIVISORS: Mapping[str, tuple[int, ...]] = by_name(
    {
        "ModularIndexing": (1, 2),
        "FloorDiv, CleanDiv, CeilDiv, Mod, PythonMod, IntTrueDiv, FloatTrueDiv, TrueDiv": (1,),
    }
)

_LAZY: Mapping[str, Callable[[Sequence[_Result]], _Result]] = by_name(
    {
        "ExprCondPair": lambda args: (args[0], args[1]),
        "Piecewise": _piecewise,
        "ITE, Where": _where,
        "And": _until(stop=False),
        "Or": _until(stop=True),
    }
)
