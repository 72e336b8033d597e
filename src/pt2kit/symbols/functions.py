"""Functions over numbers: those that an expression may call, and those that a node calls.

Both tables are closed, and have the arguments and results of each function. The names in expressions are those of the
classes in sympy and in torch/utils/_sympy/functions.py, 2.1 to 2.13, which is what both dialects print. A name that is
not in a table is refused; nothing is ever looked up by a name from a file.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeVar

from pt2kit.messages import count_text
from pt2kit.symbols import arithmetic
from pt2kit.symbols.expr import Call, Expr, fail, quote

T = TypeVar("T")
Gives = Literal["number", "int", "float", "bool", "power", "first", "joined", "bits", "pair"]


@dataclass(frozen=True, slots=True)
class Function:
    """Arguments and result of a function.

    Args:
        least, most: how many arguments; `most` None is any number.
        takes: what each argument is, the last word for all that follow: a "number", "int", "bool", any "value", or a
            "pair" of value and condition; "same" two numbers or two truth values.
        gives: the kind of the result; "number" is the widest kind of the arguments, "first" that of the first one,
            "power" depends on the exponent, "joined" is the widest kind of the values, "bits" is a truth value if all
            arguments are, else an int.
        compute: the result for numbers, by the rules of Python's `math`, which torch calls, and with its errors; None
            if it does not need all of its arguments (`evaluation`).
    """

    least: int
    most: int | None
    takes: str
    gives: Gives
    compute: Callable[..., arithmetic.Number] | None = None


_SHARED = ("cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "exp", "asinh")
OPAQUE = (*_SHARED, "sqrt", "log", "log2")
PLAIN = (*_SHARED, "acosh", "atanh")
_OF_FLOAT: Mapping[str, Function] = {
    name: Function(1, 1, "number", "float", arithmetic.of_floats(getattr(math, name))) for name in {*OPAQUE, *PLAIN}
}


def by_name(rows: Mapping[str, T]) -> Mapping[str, T]:
    """Return a table by the name of a function, from rows by the names of those that are alike: "Mod, PythonMod"."""
    return MappingProxyType({name: row for names, row in rows.items() for name in names.split(", ")})


FUNCTIONS: Mapping[str, Function] = by_name(
    {
        "Add": Function(1, None, "number", "number", arithmetic.add),
        "Mul": Function(1, None, "number", "number", arithmetic.multiply),
        "Max": Function(1, None, "number", "number", arithmetic.extreme(max)),
        "Min": Function(1, None, "number", "number", arithmetic.extreme(min)),
        "Abs": Function(1, 1, "number", "number", lambda number: max(number, -number)),
        "Identity": Function(1, 1, "number", "number", lambda number: number),
        "Pow": Function(2, 2, "number", "power", arithmetic.power),
        "FloorDiv, CleanDiv": Function(2, 2, "number", "int", arithmetic.floor_divide),
        "CeilDiv": Function(2, 2, "number", "int", arithmetic.ceil_divide),
        "Mod, PythonMod": Function(2, 2, "number", "number", arithmetic.modulo),
        "ModularIndexing": Function(3, 3, "int", "int", arithmetic.modular_indexing),
        "LShift": Function(2, 2, "int", "int", arithmetic.shift_left),
        "RShift": Function(2, 2, "int", "int", arithmetic.shift_right),
        "PowByNatural": Function(2, 2, "int", "int", arithmetic.natural_power),
        "floor, FloorToInt": Function(1, 1, "number", "int", arithmetic.rounding(math.floor)),
        "ceiling, CeilToInt": Function(1, 1, "number", "int", arithmetic.rounding(math.ceil)),
        "TruncToInt": Function(1, 1, "number", "int", arithmetic.rounding(math.trunc)),
        "RoundToInt, Round": Function(1, 1, "number", "int", arithmetic.rounding(round)),
        "RoundDecimal": Function(2, 2, "number", "first", arithmetic.round_decimal),
        "ToFloat": Function(1, 1, "number", "float", float),
        "TruncToFloat": Function(1, 1, "number", "float", lambda number: float(arithmetic.whole(math.trunc, number))),
        "IntTrueDiv, FloatTrueDiv, TrueDiv": Function(2, 2, "number", "float", arithmetic.true_divide),
        "FloatPow": Function(2, 2, "number", "float", lambda base, power: arithmetic.power(float(base), float(power))),
        "IsNonOverlappingAndDenseIndicator": Function(0, None, "int", "int", arithmetic.is_dense),
        **{f"OpaqueUnaryFn_{name}": _OF_FLOAT[name] for name in OPAQUE},
        **{name: _OF_FLOAT[name] for name in PLAIN},
        "log": Function(1, 2, "number", "float", arithmetic.of_floats(math.log)),
        "BitwiseFn_bitwise_and": Function(2, 2, "value", "bits", arithmetic.bitwise(operator.and_)),
        "BitwiseFn_bitwise_or": Function(2, 2, "value", "bits", arithmetic.bitwise(operator.or_)),
        "BitwiseFn_bitwise_xor": Function(2, 2, "value", "bits", arithmetic.bitwise(operator.xor)),
        "Equality": Function(2, 2, "same", "bool", operator.eq),
        "Unequality": Function(2, 2, "same", "bool", operator.ne),
        "GreaterThan": Function(2, 2, "number", "bool", operator.ge),
        "LessThan": Function(2, 2, "number", "bool", operator.le),
        "StrictGreaterThan": Function(2, 2, "number", "bool", operator.gt),
        "StrictLessThan": Function(2, 2, "number", "bool", operator.lt),
        "And, Or": Function(1, None, "bool", "bool"),
        "Xor": Function(1, None, "bool", "bool", lambda *truths: sum(map(bool, truths)) % 2 == 1),
        "Not": Function(1, 1, "bool", "bool", operator.not_),
        "ITE": Function(3, 3, "bool", "bool"),
        "Where": Function(3, 3, "bool value", "joined"),
        "Piecewise": Function(1, None, "pair", "joined"),
        "ExprCondPair": Function(2, 2, "value bool", "pair"),
    }
)

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "Eq": "Equality",
        "Ne": "Unequality",
        "Ge": "GreaterThan",
        "Le": "LessThan",
        "Gt": "StrictGreaterThan",
        "Lt": "StrictLessThan",
    }
)


@dataclass(frozen=True, slots=True)
class Target:
    """A function over numbers that nodes call.

    Args:
        function: the function of expressions that computes its result, or at least as large a one.
        least, most: how many arguments a node passes.
        is_of_list: whether an argument may be a list of numbers.
    """

    function: str
    least: int
    most: int
    is_of_list: bool = False


def _targets() -> Mapping[str, Target]:
    rows = {
        "Add": "_operator.add _operator.sub",
        "Abs": "_operator.abs _operator.neg _operator.pos",
        "Mul": "_operator.mul",
        "Pow": "_operator.pow",
        "FloorDiv": "_operator.floordiv",
        "PythonMod": "_operator.mod",
        "TrueDiv": "_operator.truediv",
        "LShift": "_operator.lshift",
        "RShift": "_operator.rshift",
        "BitwiseFn_bitwise_and": "_operator.and_",
        "BitwiseFn_bitwise_or": "_operator.or_",
        **{ALIASES[name.title()]: f"_operator.{name}" for name in ("eq", "ne", "ge", "le", "gt", "lt")},
        "Not": "_operator.not_ torch.sym_not",
        "FloorToInt": "math.floor",
        "CeilToInt": "math.ceil",
        "TruncToInt": "math.trunc torch.sym_int",
        "ToFloat": "torch.sym_float",
        "Max": "torch.sym_max",
        "Min": "torch.sym_min",
        "Where": "torch.sym_ite",
        "OpaqueUnaryFn_sqrt": "torch.sym_sqrt torch._sym_sqrt",
        **{
            f"OpaqueUnaryFn_{name}": f"torch._sym_{name}"
            for name in ("acos", "asin", "atan", "cos", "cosh", "log2", "sin", "sinh", "tan", "tanh")
        },
    }
    table = {
        "torch.sym_sum": Target("Add", 1, 1, is_of_list=True),
        "builtins.round": Target("RoundDecimal", 1, 2),
    }
    for name, targets in rows.items():
        count = FUNCTIONS[name].least if FUNCTIONS[name].most else 2
        table.update(dict.fromkeys(targets.split(), Target(name, count, count)))
    return MappingProxyType(table)


TARGETS: Mapping[str, Target] = _targets()
"""Functions over numbers by the names that nodes call them by.

Source: `Verifier` in torch/_export/verifier.py, 2.13.
"""


def make_call(name: str, args: Sequence[Expr], where: str = "") -> Call:
    """Return the call of a function by its written name.

    Args:
        name: the name in either dialect; `Eq`, `Ne`, `Ge`, `Le`, `Gt` and `Lt` become their class names.
        args: the arguments in order; shared, not copied.
        where: the place to name in errors.

    Raises:
        ExpressionError: an unknown function, a wrong number of arguments, or a Piecewise of something else than pairs.
    """
    function = FUNCTIONS.get(name)
    if function is None:
        name = ALIASES.get(name, name)
        function = FUNCTIONS.get(name)
        if function is None:
            fail(where, f"expected a function that torch writes, got {quote(name)}")
    check_arity(name, function, len(args), where)
    if name == "IsNonOverlappingAndDenseIndicator" and len(args) % 2:
        fail(where, f"expected as many strides as sizes in {name}, got {count_text(len(args), 'argument')} in all")
    if function.takes == "pair":
        for arg in args:
            if not (isinstance(arg, Call) and arg.function == "ExprCondPair"):
                fail(where, f"expected pairs of a value and a condition in {name}, got something else")
    return Call(name, tuple(args))


def check_arity(name: str, function: Function | Target, count: int, where: str) -> None:
    """Refuse a call with too few or too many arguments.

    Raises:
        ExpressionError: `function` does not take `count` arguments.
    """
    least, most = function.least, function.most
    if count < least or (most is not None and count > most):
        expected = f"at least {least}" if most is None else f"{least}" if least == most else f"{least} to {most}"
        noun = "argument" if expected in ("1", "at least 1") else "arguments"
        fail(where, f"expected {expected} {noun} of {name}, got {count}")
