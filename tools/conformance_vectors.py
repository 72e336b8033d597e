"""Texts of expressions and guards -> vectors: what each yields for given values, or that it is refused."""

from __future__ import annotations

import json
import math
from typing import Any

from pt2kit import symbols
from pt2kit.errors import Pt2Error

S = "Symbol('s0', positive=True, integer=True)"
U = "Symbol('u0', integer=True)"
Z = "Symbol('zf0', real=True)"
VALUES: dict[str, int | float] = {"s0": 7, "s1": 4, "u0": -7, "zf0": 2.5}

SREPR = (
    "Integer(3)",
    "Integer(-3)",
    "Rational(1, 3)",
    "Float('0.5', precision=53)",
    "true",
    S,
    f"Add({S}, Integer(1))",
    f"Mul(Integer(2), {S}, {U})",
    f"Add(Mul(Integer(-1), {S}), {U})",
    f"FloorDiv({U}, Integer(2))",
    f"FloorDiv({U}, Integer(-2))",
    f"CleanDiv({S}, Integer(7))",
    f"CeilDiv({U}, Integer(2))",
    f"Mod({U}, Integer(3))",
    f"PythonMod({U}, Integer(3))",
    f"PythonMod({S}, Integer(-3))",
    f"ModularIndexing({S}, Integer(2), Integer(3))",
    f"Max({S}, {U})",
    f"Min({S}, {U})",
    f"Abs({U})",
    f"Identity({S})",
    f"Pow({S}, Integer(2))",
    f"Pow({S}, Integer(-1))",
    f"Pow({S}, Rational(1, 2))",
    f"PowByNatural({U}, Integer(3))",
    f"LShift({S}, Integer(3))",
    f"RShift({U}, Integer(1))",
    f"floor(Mul(Rational(1, 2), {U}))",
    f"ceiling(Mul(Rational(1, 2), {U}))",
    f"FloorToInt({Z})",
    f"CeilToInt({Z})",
    f"TruncToInt(Mul(Integer(-1), {Z}))",
    f"RoundToInt({Z})",
    f"RoundDecimal({Z}, Integer(0))",
    f"ToFloat({S})",
    f"TruncToFloat({Z})",
    f"IntTrueDiv({S}, Integer(2))",
    f"FloatTrueDiv({Z}, Integer(2))",
    f"OpaqueUnaryFn_sqrt({S})",
    f"exp({Z})",
    f"GreaterThan({S}, {U})",
    f"LessThan({S}, {U})",
    f"StrictGreaterThan({S}, Integer(7))",
    f"StrictLessThan({U}, Integer(0))",
    f"Equality({S}, Integer(7))",
    f"Unequality({S}, Integer(7))",
    f"And(StrictGreaterThan({S}, Integer(1)), StrictLessThan({S}, Integer(9)))",
    f"Or(Equality({S}, Integer(1)), Equality({S}, Integer(7)))",
    f"Xor(true, Equality({S}, Integer(7)))",
    f"Not(Equality({S}, Integer(7)))",
    f"Piecewise(ExprCondPair(Integer(1), StrictLessThan({S}, Integer(0))), ExprCondPair({S}, true))",
    f"Where(StrictLessThan({U}, Integer(0)), Mul(Integer(-1), {U}), {U})",
    f"Mod(FloorDiv({S}, Integer(2)), Max(Integer(2), {U}))",
    f"Add({S}, Float('0.25', precision=53))",
)

STR = (
    "s0",
    "2*s0 + 1",
    "s0*s1 - 3",
    "(s0//2)",
    "s0//2*2",
    "-s0**2",
    "2**-1",
    "s0**2**2",
    "s0/2",
    "(s0 + s1)/2",
    "Mod(s0, 3)",
    "s0 % 4",
    "Max(1, s0, s1)",
    "floor(s0/2)",
    "ceiling(s0/2)",
    "Eq(s0, 7)",
    "Ne(Mod(s0, 2), 0)",
    "s0 > s1",
    "(s0 > 1) & (s1 < 2)",
    "~Eq(s0, 7)",
    "Piecewise((1, s0 < 0), (s1, True))",
    "sqrt(s1)",
    "u0//2",
    "FloorDiv(u0, 2)",
)

REFUSED = (
    "",
    " ",
    "Add(",
    f"Add({S}",
    "Integer(1) Integer(2)",
    "Nope(Integer(1))",
    "FloorDiv(Integer(1))",
    "FloorDiv(Integer(1), Integer(0))",
    "Rational(2, 4)",
    "Rational(3, 1)",
    "Symbol('s 0')",
    'Symbol("s0")',
    "Integer(1.5)",
    "Float('nan', precision=53)",
    "ExprCondPair(Integer(1), true)",
    "Pow(Integer(10), Integer(99999999))",
    "s0 +",
    "s0 s1",
    "s0 == 1",
    "s0 < s1 < 3",
    "nan",
    "zoo",
    "__import__('os')",
    "lambda: 0",
    "s0.size",
    "s0[0]",
    "'text'",
    "s0 if s1 else 0",
)

GUARDS = (
    ("L['x'].size()[0] == 7", {"L['x'].size()[0]": 7}),
    ("L['x'].size()[0] % 2 != 0", {"L['x'].size()[0]": 7}),
    ("2 <= L['x'].stride()[1] and L['n'] > 3", {"L['x'].stride()[1]": 2, "L['n']": 3}),
    ("not L['flag'] or L['d']['k'].storage_offset() == 0", {"L['flag']": True, "L['d']['k'].storage_offset()": 0}),
    ("L['args'][0].item() / 2 == 3.5", {"L['args'][0].item()": 7}),
    ("L['nt'].a.size()[0] // 2 == 3", {"L['nt'].a.size()[0]": 7}),
    ("(1 if L['n'] > 0 else 0) == 1", {"L['n']": 5}),
    ("max(L['n'], 3) - min(L['n'], 3) <= 2", {"L['n']": 5}),
    ("math.floor(L['f']) == 2", {"L['f']": 2.5}),
    ("cast_symbool_to_symint_guardless(L['flag']) == 1", {"L['flag']": True}),
    ("-L['n'] % 4 == 3", {"L['n']": 5}),
    ("L['n'] & 1 == 0", {"L['n']": 4}),
)

GUARDS_REFUSED = (
    "",
    "L",
    "L['x']()",
    "L['x'].__class__ == 1",
    "L['x'].size() == 1",
    "open('f')",
    "__import__('os')",
    "L['x'].size()[0]",
    "x > 1",
    "L['x'].numel() > 1",
    "[1]",
    "L['a'] < L['b'] < 3",
    "lambda: 1",
    "L['x'] = 1",
    "f'{1}' == 1",
    "1; 2",
    'L["x\'"].size()[0] == 1',
    "L['x'].data.size()[0] == 1 if",
    "print(1) == 1",
)


def vectors() -> dict[str, Any]:
    """The vectors as plain data."""
    found: dict[str, Any] = {"values": VALUES}
    for dialect, texts in (("srepr", SREPR), ("str", STR)):
        rows = []
        for text in texts:
            expr = symbols.parse(text)
            used = {symbol.name: VALUES[symbol.name] for symbol in symbols.free_symbols(expr)}
            rows.append({"text": text, "kind": symbols.kind(expr), "gives": _plain(symbols.evaluate(expr, used))})
        found[dialect] = rows
    found["refused"] = [text for text in REFUSED if _is_refused(text)]
    found["guards"] = []
    for text, values in GUARDS:
        guard = symbols.parse_guard(text)
        gives = bool(symbols.evaluate(guard.expr, values))
        found["guards"].append({"text": text, "values": values, "gives": gives})
    found["guards_refused"] = list(GUARDS_REFUSED)
    for text in GUARDS_REFUSED:
        try:
            symbols.parse_guard(text)
        except Pt2Error:
            continue
        raise LookupError(f"guard {text!r} is not refused")
    return found


def _is_refused(text: str) -> bool:
    try:
        symbols.check_constants(symbols.parse(text))
    except Pt2Error:
        return True
    raise LookupError(f"expression {text!r} is not refused")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def one_a_line(document: dict[str, Any]) -> str:
    """Return an object as JSON, with each element of its lists on a line."""
    parts = []
    for key, value in document.items():
        is_list = isinstance(value, list)
        text = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]" if is_list else json.dumps(value)
        parts.append(f"{json.dumps(key)}: {text}")
    return "{" + ",\n ".join(parts) + "}\n"
