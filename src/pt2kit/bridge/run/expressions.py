"""Compile symbolic expressions into Python closures over the values of their symbols.

The values may be symbolic numbers of torch (in `torch.compile`, or another export), so the same functions are called
that torch itself writes into the source of guards. No text is compiled.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

import torch

from pt2kit.bridge.torch_names import SYMBOLIC
from pt2kit.errors import LimitError, UnsupportedError
from pt2kit.symbols import polynomials
from pt2kit.symbols.expr import Call, Expr, Leaf, Symbol, constant_value, fold
from pt2kit.symbols.functions import OPAQUE, PLAIN, TARGETS, by_name

Read = Callable[[Sequence[Any]], Any]

MAX_BITS: Final = 1 << 20
"""Bits of a number in a condition, when a program is called: milliseconds to compute."""


def computed(expr: Expr, values: Mapping[str, Read]) -> Read:
    """Return a function that computes an expression.

    Args:
        expr: the expression.
        values: name of a symbol -> function that reads it.

    Raises:
        UnsupportedError: a function that has no meaning for values that may be symbolic.
    """

    def leaf(held: Leaf) -> Read:
        if isinstance(held, Symbol):
            return values[held.name]
        value = constant_value(held)
        constant = float(value) if isinstance(value, Fraction) else value
        return lambda leaves: constant

    def call(node: Call, args: list[Read]) -> Read:
        if node.function in _LAZY:
            return _LAZY[node.function](args)
        function = _FUNCTIONS.get(node.function)
        if function is None:
            raise UnsupportedError(f"expression: expected functions that guards are computed by, got {node.function}")
        return lambda leaves: function(*[arg(leaves) for arg in args])

    return fold(expr, leaf, call)


def linear(expr: Expr, symbol: Symbol) -> tuple[int, int] | None:
    """Return (a, b) of a size that is a*symbol + b with a other than 0; None for any other."""
    size = polynomials.from_expression(expr, lambda one: polynomials.symbol(one, -math.inf))
    terms = {} if isinstance(size, int) else dict(size.terms)
    rest = terms.pop((), 0)
    if [(symbol,)] != [tuple(atom.expr for atom in factors) for factors in terms]:
        return None
    [factor] = terms.values()
    return factor, rest


def _all(args: list[Read]) -> Read:
    return lambda leaves: all(arg(leaves) for arg in args)


def _any(args: list[Read]) -> Read:
    return lambda leaves: any(arg(leaves) for arg in args)


def _pair(args: list[Read]) -> Read:
    return lambda leaves: (args[0](leaves), args[1](leaves))


def _piecewise(args: list[Read]) -> Read:
    def choose(leaves: Sequence[Any]) -> Any:
        for arg in args:
            value, condition = arg(leaves)
            if condition:
                return value
        return None

    return choose


def _where(args: list[Read]) -> Read:
    condition, then, otherwise = args
    return lambda leaves: then(leaves) if condition(leaves) else otherwise(leaves)


_LAZY: Final[Mapping[str, Callable[[list[Read]], Read]]] = MappingProxyType(
    {"And": _all, "Or": _any, "ExprCondPair": _pair, "Piecewise": _piecewise, "Where": _where, "ITE": _where}
)


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *args: functools.reduce(function, args)


def bounded_power(base: Any, exponent: Any) -> Any:
    """Return base ** exponent, unless it is a whole number of more than `MAX_BITS` bits.

    Raises:
        LimitError: it is one.
    """
    if isinstance(base, int) and isinstance(exponent, int) and base not in (-1, 0, 1):
        _check_bits(base.bit_length() * abs(exponent))
    return base**exponent


def bounded_shift(value: Any, by: Any) -> Any:
    """Return value << by, unless it is a whole number of more than `MAX_BITS` bits.

    Raises:
        LimitError: it is one.
    """
    if isinstance(value, int) and isinstance(by, int) and value:
        _check_bits(value.bit_length() + by)
    return value << by


def _check_bits(bits: int) -> None:
    if bits > MAX_BITS:
        raise LimitError(f"expected numbers of at most {MAX_BITS} bits, got one of about {bits}")


def _one(name: str) -> Callable[..., Any]:
    """Return a function over a float: torch's if the value is symbolic."""
    symbolic = SYMBOLIC.get(f"torch._sym_{name}")
    plain = getattr(math, name)
    return lambda value: symbolic(value) if isinstance(value, _SYMBOLIC) and symbolic is not None else plain(value)


_SYMBOLIC: Final = (torch.SymInt, torch.SymFloat)
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = by_name(
    {
        # The function that a node calls for the same; of several, the first.
        **{TARGETS[target].function: SYMBOLIC[target] for target in reversed([*SYMBOLIC])},
        "Add": _folded(operator.add),
        "Mul": _folded(operator.mul),
        "Max": _folded(torch.sym_max),
        "Min": _folded(torch.sym_min),
        "Pow, PowByNatural, FloatPow": bounded_power,
        "Identity": lambda value: value,
        "FloorDiv, CleanDiv": operator.floordiv,
        "CeilDiv": lambda a, b: -(-a // b),
        "Mod, PythonMod": operator.mod,
        "ModularIndexing": lambda base, divisor, modulus: base // divisor % modulus,
        "LShift": bounded_shift,
        "TrueDiv, IntTrueDiv, FloatTrueDiv": operator.truediv,
        "TruncToFloat": lambda value: torch.sym_float(math.trunc(value)),
        "floor, FloorToInt": math.floor,
        "ceiling, CeilToInt": math.ceil,
        "RoundToInt, Round, RoundDecimal": round,
        "BitwiseFn_bitwise_xor, Xor": operator.xor,
        **{f"OpaqueUnaryFn_{name}": _one(name) for name in OPAQUE},
        **{name: _one(name) for name in (*PLAIN, "log")},
    }
)
