"""sympy with torch's own functions, as the oracle for `pt2kit.symbols`; run as a module it renews the expected values.

    python -m tests.bridge.symbol_oracle

It reads the texts in tests/symbols/cases.json, computes what sympy says about each and writes the file again. The texts
are ours: nothing else may be given to it, since sympy runs what it reads.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sympy
import torch.utils._sympy.functions as torch_functions
from sympy.functions.elementary.piecewise import ExprCondPair
from torch.utils._sympy.numbers import int_oo

from pt2kit.symbols import kind, parse, to_srepr

CASES = Path(__file__).parent.parent / "symbols" / "cases.json"
ASSIGNMENTS = 3


class TrueDiv(sympy.Function):
    """Division as torch 2.2 and 2.3 had it."""

    @classmethod
    def eval(cls, base, divisor):
        return base / divisor if base.is_Number and divisor.is_Number else None


class Round(sympy.Function):
    """Rounding as torch 2.3 had it."""

    @classmethod
    def eval(cls, number):
        return sympy.Integer(round(float(number))) if number.is_Number else None


def _namespace() -> dict[str, Any]:
    names = {
        name: value
        for name, value in vars(torch_functions).items()
        if isinstance(value, type) and issubclass(value, sympy.Basic)
    }
    return {**names, "ExprCondPair": ExprCondPair, "TrueDiv": TrueDiv, "Round": Round, "int_oo": int_oo}


def read(text: str) -> sympy.Basic:
    """The sympy expression of a text of either dialect.

    sympy cannot read the str dialect back (it takes `//` for floor(a/b)), so that one goes through our own srepr; the
    text that sympy then prints tells whether it was read right.
    """
    srepr = text if "Symbol('" in text else to_srepr(parse(text))
    return sympy.sympify(sympy.sympify(srepr, locals=_namespace()))  # "true" comes back as a bool


def value(expr: sympy.Basic, assignment: dict[str, int | float]) -> int | float | bool | None:
    """Return sympy's result; None if it finds no real value."""
    replaced = {symbol: sympy.sympify(assignment[symbol.name]) for symbol in expr.free_symbols}
    try:
        result = expr.xreplace(replaced).doit()
        if result in (sympy.true, sympy.false):
            return bool(result)
        if result in (int_oo, sympy.oo, -int_oo, -sympy.oo):
            return math.inf if result.is_extended_positive else -math.inf
        return int(result) if result.is_Integer else float(result)
    except (ZeroDivisionError, ValueError, TypeError, AssertionError, OverflowError):
        return None


def assignment(expr: sympy.Basic, chance: random.Random) -> dict[str, int | float]:
    """Random values that fit what is assumed about the symbols."""
    values: dict[str, int | float] = {}
    for name in sorted(symbol.name for symbol in expr.free_symbols):
        if name.startswith("s"):
            values[name] = chance.randint(1, 12)
        elif name.startswith(("z", "f")):
            values[name] = chance.choice([0.25, 1.5, -2.75, 8.0])
        else:
            values[name] = chance.randint(-3, 6)
    return values


SIZES = [sympy.Symbol(f"s{i}", positive=True, integer=True) for i in (0, 1, 2, 10, 77)]
OTHERS = [sympy.Symbol("u0", integer=True), sympy.Symbol("u3", integer=True)]


def random_int(chance: random.Random, depth: int) -> sympy.Expr:
    """An int expression as torch makes them; may fail where sympy refuses the combination."""
    t = torch_functions
    if depth <= 0 or chance.random() < 0.1:
        number = sympy.Integer(chance.choice([-4, -3, -1, 0, 1, 2, 3, 7, 64]))
        return chance.choice([*SIZES, *SIZES, *OTHERS, number])

    def part() -> sympy.Expr:
        return random_int(chance, depth - 1)

    def size() -> sympy.Expr:
        return random_size(chance, depth - 1)

    makers = [
        lambda: part() + part(),
        lambda: part() - part(),
        lambda: part() * part(),
        lambda: part() ** chance.choice([2, 3]),
        lambda: t.FloorDiv(part(), size()),
        lambda: t.PythonMod(part(), size()),
        lambda: t.Mod(size(), size()),
        lambda: t.ModularIndexing(size(), size(), size()),
        lambda: t.Max(part(), part(), part()),
        lambda: t.Min(part(), part()),
        lambda: t.PowByNatural(size(), chance.choice(SIZES)),
        lambda: t.Where(random_truth(chance, depth - 1), part(), part()),
        lambda: t.BitwiseFn_bitwise_and(part(), part()),
        lambda: sympy.Abs(part()),
        lambda: sympy.Piecewise((part(), random_truth(chance, depth - 1)), (part(), True)),
        lambda: chance.choice([t.CeilToInt, t.FloorToInt, t.TruncToInt, t.RoundToInt])(random_float(chance, depth - 1)),
    ]
    return chance.choice(makers)()


def random_size(chance: random.Random, depth: int) -> sympy.Expr:
    """A positive int expression."""
    found = chance.choice([*SIZES, sympy.Integer(chance.randint(2, 9))])
    return found * chance.choice(SIZES) + chance.randint(1, 3) if depth > 0 and chance.random() < 0.4 else found


def random_float(chance: random.Random, depth: int) -> sympy.Expr:
    """A float expression as torch makes them since 2.4."""
    t = torch_functions
    if depth <= 0:
        number = sympy.Float(chance.choice([0.5, 1.5, -2.25, 0.1, 1e-7, 3e20]))
        return chance.choice([sympy.Symbol("zf0", real=True), number, t.ToFloat(chance.choice(SIZES))])

    def part() -> sympy.Expr:
        return random_float(chance, depth - 1)

    makers = [
        lambda: part() + part(),
        lambda: part() * part(),
        lambda: t.IntTrueDiv(random_int(chance, depth - 1), random_size(chance, depth - 1)),
        lambda: t.FloatTrueDiv(part(), t.ToFloat(random_size(chance, depth - 1))),
        lambda: t.ToFloat(random_int(chance, depth - 1)),
        lambda: t.OpaqueUnaryFn_sqrt(t.ToFloat(random_size(chance, depth - 1))),
        lambda: t.FloatPow(t.ToFloat(random_size(chance, depth - 1)), sympy.Float(chance.choice([0.5, 2.0, -1.5]))),
        lambda: t.RoundDecimal(part(), sympy.Integer(2)),
    ]
    return chance.choice(makers)()


def random_quotient(chance: random.Random, depth: int) -> sympy.Expr:
    """An exact quotient as torch made them up to 2.3."""
    if depth <= 0:
        return chance.choice([*SIZES, sympy.Rational(chance.randint(1, 4), 3), sympy.Integer(chance.randint(-5, 5))])

    def part() -> sympy.Expr:
        return random_quotient(chance, depth - 1)

    makers = [
        lambda: part() + part(),
        lambda: part() * part(),
        lambda: part() / part(),
        lambda: part() ** chance.choice([2, -1, -2]),
        lambda: sympy.floor(part()),
        lambda: sympy.ceiling(part()),
        lambda: sympy.Float(chance.choice([0.5, 1.5, -2.25])) * part(),
        lambda: sympy.sqrt(chance.choice(SIZES)) * part(),
    ]
    return chance.choice(makers)()


def random_truth(chance: random.Random, depth: int) -> sympy.Basic:
    """A condition."""
    relation = chance.choice([sympy.Eq, sympy.Ne, sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge])
    if depth <= 0 or chance.random() < 0.6:
        return relation(random_int(chance, depth - 1), random_int(chance, depth - 1))
    join = chance.choice([sympy.And, sympy.Or])
    return join(random_truth(chance, depth - 1), random_truth(chance, depth - 1))


def random_expression(chance: random.Random) -> sympy.Basic | None:
    """Any expression; None where sympy refuses it or leaves the real numbers."""
    maker = chance.choice([random_int, random_int, random_float, random_quotient, random_truth])
    try:
        expr = maker(chance, chance.randint(1, 4))
    except (ZeroDivisionError, ValueError, AssertionError, TypeError, OverflowError, sympy.PolynomialError):
        return None
    return None if expr.has(sympy.zoo, sympy.nan, sympy.I) else expr


@contextlib.contextmanager
def printing_of_2_5() -> Iterator[None]:
    """Gives torch's functions the brackets that they had up to 2.5, which the str dialect of files has.

    Source: torch/utils/_sympy/functions.py 2.1.2 and 2.5.1: only FloorDiv sets a precedence, that of a product.
    """
    saved = []
    for cls in set(_namespace().values()):
        for name in ("precedence", "_sympystr"):
            if isinstance(cls, type) and name in vars(cls) and cls.__module__ == torch_functions.__name__:
                saved.append((cls, name, vars(cls)[name]))
                delattr(cls, name)

    def floor_div_text(self, printer):
        return f"({printer.parenthesize(self.args[0], 50)}//{printer.parenthesize(self.args[1], 50)})"

    def identity_text(self, printer):
        return f"Identity({printer.doprint(self.args[0])})"  # 2.5 printed I, which nothing can read back

    floor_div, identity = torch_functions.FloorDiv, torch_functions.Identity
    floor_div.precedence = 50
    floor_div._sympystr = floor_div_text
    identity._sympystr = identity_text
    try:
        yield
    finally:
        del floor_div.precedence, floor_div._sympystr, identity._sympystr
        for cls, name, old in saved:
            setattr(cls, name, old)


def expected(text: str) -> dict[str, Any]:
    """Return sympy's results for one text: both dialects, if it keeps the expression as written, and values."""
    expr = read(text)
    with printing_of_2_5():
        both = {"srepr": sympy.srepr(expr), "str": str(expr)}
    case: dict[str, Any] = {"text": text, "kind": kind(parse(text))}
    if text in both.values():
        case.update(both)
    chance = random.Random(text)
    case["values"] = []
    for _ in range(ASSIGNMENTS if expr.free_symbols else 1):
        values = assignment(expr, chance)
        result = value(expr, values)
        # Infinities have no number in JSON.
        case["values"].append([values, str(result) if isinstance(result, float) and math.isinf(result) else result])
    return case


def main() -> None:
    """Renews tests/symbols/cases.json."""
    cases = json.loads(CASES.read_text())
    cases["expressions"] = [
        {**({"torch": case["torch"]} if "torch" in case else {}), **expected(case["text"])}
        for case in cases["expressions"]
    ]
    lines = [
        f"{json.dumps(key)}: [\n" + ",\n".join(json.dumps(case) for case in value_) + "\n]"
        for key, value_ in cases.items()
    ]
    CASES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
