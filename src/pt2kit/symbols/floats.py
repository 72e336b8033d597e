"""Decimal texts of floating point numbers, as sympy writes them.

srepr writes a double with 17 significant digits (`0.10000000000000001`), str with 15 (`0.1`, or `0.100000000000000`
where the number stands alone). Both write `1.0e-7` and `2.5e+20` outside a middle range.
"""

from __future__ import annotations

import re

from pt2kit.symbols.expr import Float, fail, quote

SREPR_DIGITS = 17
STR_DIGITS = 15

_NUMBER = r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"


def float_of(text: str, precision: int = 53, where: str = "") -> Float:
    """Return the node of a decimal text as srepr writes it; the text is kept.

    Raises:
        ExpressionError: not a decimal number, or too large for a double.
    """
    if not re.fullmatch(_NUMBER, text, re.ASCII):
        fail(where, f"expected a decimal number in Float, got {quote(text)}")
    if float(text) in (float("inf"), float("-inf")):
        fail(where, f"expected a number that fits a double, got {quote(text)}")
    return Float(text, precision)


def float_from(value: float) -> Float:
    """Return the node of a finite double, written as srepr writes it."""
    return Float(decimal_text(value, SREPR_DIGITS))


def decimal_text(value: float, digits: int, *, strip: bool = True) -> str:
    """Return a finite double as sympy writes it.

    Args:
        value: the number.
        digits: significant digits; a tie is rounded away from zero.
        strip: leave out zeros at the end.

    Source: what mpmath 1.3 and sympy 1.12 to 1.14 print; fixed notation from 1e-5 (exclusive) up to 1e<digits>.
    """
    if value == 0:
        return "0.0"
    sign = "-" if value < 0 else ""
    # The digit after the last one decides, whatever follows it: so take many, and round these half up.
    mantissa, _, power = f"{abs(value):.60e}".partition("e")
    exponent = int(power)
    rounded = str((int(mantissa.replace(".", "")[: digits + 1]) + 5) // 10)
    if len(rounded) > digits:
        rounded = rounded[:digits]
        exponent += 1
    fixed = min(-(digits // 3), -5) < exponent < digits
    if not fixed:
        body, point = rounded, 1
    elif exponent < 0:
        body, point = "0" * -exponent + rounded, 1
    else:
        body, point = rounded, exponent + 1
    text = f"{body[:point]}.{body[point:]}"
    if strip:
        text = text.rstrip("0")
        text += "0" if text.endswith(".") else ""
    if fixed:
        return sign + text
    return f"{sign}{text}e{'+' if exponent >= 0 else ''}{exponent}"
