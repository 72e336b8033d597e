"""Bits that computing with sizes may need: powers, shifts and roundings that would take minutes are refused.

Guards and the plain numbers of a graph are computed in each call of a program, by torch's own code when `load` built
the program, from sizes that nobody knows before. So they are bounded when they are read: `2 ** n` is what export writes
for `torch.zeros(2 ** n)`; `n ** n ** 99` is what hangs a process in one operation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from pt2kit.errors import ExpressionError, LimitError
from pt2kit.symbols.expr import Call, Expr, Float, Infinity, Integer, Leaf, Rational, fail, fold, quote
from pt2kit.symbols.functions import FUNCTIONS
from pt2kit.symbols.plain import to_str

WORD: Final = 64
"""Bits of a size, and of any number that an input is taken for."""

MAX_GROWN_BITS: Final = 1 << 18
"""Bits that one number may need."""

MAX_OPEN_POWERS: Final = 8
"""Powers in one guard whose exponent is a size: each may take as many bits as the size times those of its base."""

MAX_COMPARED: Final = 16
"""Limit of calls, such as remainders, among the arguments of one maximum or minimum: 32 took sympy six seconds."""
_CHOICES: Final = frozenset(("Max", "Min"))

MAX_TERMS: Final = 512
"""Terms that an expression may have once its products and powers are multiplied out, as sympy does to divide."""

_SLACK: Final = 8
"""Bits beyond: sums of sizes and small multiples of them are exponents as sizes are."""

_OPEN: Final = 1 << 16
"""Bits that such a power is counted as: few may be multiplied, and none may be raised to a power again."""

_POWERS: Final = frozenset({"Pow", "PowByNatural", "FloatPow"})
_MIXED: Final = frozenset({"Add", "Mul", "Mod", "PythonMod"})
_FLOAT: Final = 1024
_MOST_DIGITS: Final = 400


class Part(NamedTuple):
    """Known facts of one number.

    Args:
        bits: how many it may need.
        is_real: whether it is surely a float, which cannot grow.
        constant: its value, for a whole number that is written down.
        is_open: whether it is a power whose exponent is a size.
    """

    bits: int = WORD
    is_real: bool = False
    constant: int | None = None
    is_open: bool = False


def constant(value: int) -> Part:
    """Return the facts about a literal integer."""
    return Part(max(1, value.bit_length()), False, value)


def grown(function: str, args: Sequence[Part]) -> Part | str:
    """Return the facts about a result, or, if it may take minutes to compute, what was expected instead.

    Args:
        function: the name in `symbols.functions`.
        args: what is known of its arguments.
    """
    if _is_real(function, args):
        return Part(is_real=True)
    if (value := _computed(function, args)) is not None:
        return constant(value)
    is_open = function in _POWERS and args[1].constant is None
    if is_open and max(part.bits for part in args) > WORD + _SLACK:
        return "a power whose base and exponent are sizes or small numbers"
    if function == "LShift" and args[1].bits > WORD + _SLACK:
        return "a shift by a size or a small number"
    if function == "RoundDecimal" and (args[1].constant is None or abs(args[1].constant) > _MOST_DIGITS):
        return f"a rounding to at most {_MOST_DIGITS} digits"
    bits = _bits(function, args)
    if bits > MAX_GROWN_BITS:
        return f"numbers of at most {MAX_GROWN_BITS} bits"
    return Part(bits, is_open=is_open or (function == "LShift" and args[1].constant is None))


def check_growth(expr: Expr, *, where: str = "") -> int:
    """Refuse an expression over inputs whose numbers may need far more bits than the inputs.

    Args:
        expr: the expression; its symbols are sizes and other numbers of inputs.
        where: the place to name in errors.

    Returns:
        how many of its powers have an exponent that is no constant.

    Raises:
        LimitError: a number may need too many bits, or it has too many such powers.
    """
    opened = 0

    def call(node: Call, args: list[Part]) -> Part:
        nonlocal opened
        found = grown(node.function, args)
        if isinstance(found, str):
            message = f"expected {found}, got {quote(to_str(node))}, which may take minutes to compute"
            fail(where, message, LimitError)
        opened += found.is_open
        return found

    fold(expr, _leaf, call)
    if opened > MAX_OPEN_POWERS:
        fail(where, f"expected at most {MAX_OPEN_POWERS} powers whose exponent is a size, got {opened}", LimitError)
    return opened


def check_terms(expr: Expr, *, where: str = "") -> int:
    """Refuse an expression of too many terms: `(s0 + s1 + s2)**64 // s3`. A power of one term counts as its exponent.

    Like terms are counted each: `(s0 + 1)**3` has 8.

    Returns:
        the most terms that some part of it has.

    Raises:
        LimitError: it has more than `MAX_TERMS`.

    Source: `_fast_expand` in torch/fx/experimental/symbolic_shapes.py, 2.13.
    """
    most = 1

    def call(node: Call, args: list[int]) -> int:
        nonlocal most
        terms = 1
        if node.function == "Add":
            terms = sum(args)
        elif node.function == "Mul":
            terms = math.prod(args)
        elif node.function in _POWERS and isinstance(exponent := node.args[1], Integer):
            times = abs(exponent.value)
            terms = max(times, 1) if args[0] == 1 else args[0] ** min(times, MAX_TERMS.bit_length())
        if terms > MAX_TERMS:
            fail(where, f"expected at most {MAX_TERMS} terms, got more in {quote(to_str(node))}", LimitError)
        most = max(most, terms)
        return terms

    fold(expr, lambda _: 1, call)
    return most


def compared(expr: Expr, *, where: str = "") -> dict[Call, int]:
    """Return the maxima and minima of an expression that compare calls, with how many: each with each other one.

    Calls of nested maxima and minima are counted together.

    Raises:
        LimitError: one compares more than `MAX_COMPARED`.
    """
    found: dict[Call, int] = {}

    def call(node: Call, args: list[int]) -> int:
        if node.function not in _CHOICES:
            return 1
        if (calls := sum(args)) > MAX_COMPARED:
            expected = f"expected at most {MAX_COMPARED} calls in a maximum or minimum"
            fail(where, f"{expected}, got more in {quote(to_str(node))}", LimitError)
        if calls > 1:
            found[node] = calls
        return calls

    fold(expr, lambda _: 0, call)
    return found


def _leaf(leaf: Leaf) -> Part:
    if isinstance(leaf, Integer):
        return constant(leaf.value)
    return Part(is_real=isinstance(leaf, Float | Rational | Infinity))


def _computed(function: str, args: Sequence[Part]) -> int | None:
    """Return the result for whole numbers that are written down: 5000**2 is no size, but an exponent of 25,000,000."""
    values = [part.constant for part in args if part.constant is not None]
    compute = FUNCTIONS[function].compute
    if compute is None or len(values) < len(args):
        return None
    try:
        result = compute(*values)
    except (ExpressionError, LimitError, ArithmeticError, ValueError, TypeError):  # as for too many arguments of a node
        return None
    return result if type(result) is int else None


def _is_real(function: str, args: Sequence[Part]) -> bool:
    """Return whether a result is surely a float."""
    if function in _MIXED or function in _POWERS:
        return any(part.is_real for part in args)
    gives = FUNCTIONS[function].gives
    if function == "Where":
        args = args[1:]
    return gives == "float" or (gives not in ("int", "bool", "bits") and all(part.is_real for part in args))


def _bits(function: str, args: Sequence[Part]) -> int:
    """Return an upper bound of the bits of a whole number."""
    bits = [_FLOAT if part.is_real else part.bits for part in args]
    if FUNCTIONS[function].gives == "bool":
        return 1
    if function in _POWERS:
        exponent = args[1].constant
        return _OPEN if exponent is None else bits[0] * max(1, abs(exponent))
    if function == "LShift":
        by = args[1].constant
        return bits[0] + (_OPEN if by is None else abs(by))
    if function == "Mul":
        return sum(bits)
    return max(bits, default=1) + (len(bits).bit_length() if function == "Add" else 0)
