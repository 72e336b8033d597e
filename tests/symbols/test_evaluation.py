"""Values of expressions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.symbols.cases import EXPRESSIONS, INFIX, TREES

from pt2kit.errors import ExpressionError, LimitError, Pt2Error
from pt2kit.symbols import (
    Call,
    Integer,
    check_constants,
    evaluate,
    free_symbols,
    kind,
    parse,
    parse_str,
    to_srepr,
    to_str,
)

VALUES = [(case["text"], values, result) for case in EXPRESSIONS for values, result in case["values"]]


@pytest.mark.parametrize(("text", "values", "result"), VALUES)
def test_values_of_sympy(text, values, result):
    """Every text has the value that sympy computes, of the type that its kind says."""
    expr = parse(text)
    got = evaluate(expr, values)
    if isinstance(result, str):
        result = float(result)
    assert got == pytest.approx(result, rel=1e-12)
    assert type(got).__name__ == kind(expr) or math.isinf(got)


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        ("(u0//s0)", {"u0": -7, "s0": 2}, -4),
        ("(u0//u1)", {"u0": 7, "u1": -2}, -4),
        ("Mod(u0, s0)", {"u0": -7, "s0": 3}, 2),
        ("PythonMod(u0, u1)", {"u0": 7, "u1": -3}, -2),
        ("CeilDiv(u0, s0)", {"u0": -7, "s0": 2}, -3),
        ("FloorDiv(zf0, 2)", {"zf0": 7.5}, 3),
        ("FloorDiv(oo, 2)", {}, math.inf),
        ("FloorDiv(-int_oo, 2)", {}, -math.inf),
        ("Mod(zf0, 2)", {"zf0": 7.5}, 1.5),
        ("floor(u0/2)", {"u0": -3}, -2),
        ("ceiling(u0/2)", {"u0": -3}, -1),
        ("TruncToInt(zf0)", {"zf0": -1.75}, -1),
        ("TruncToFloat(zf0)", {"zf0": -1.75}, -1.0),
        ("RoundToInt(zf0)", {"zf0": 2.5}, 2),
        ("RoundToInt(zf0)", {"zf0": 3.5}, 4),
        ("CeilToInt(oo)", {}, math.inf),
        ("RoundDecimal(zf0, 1)", {"zf0": 0.25}, 0.2),
        ("RoundDecimal(u0, -1)", {"u0": 125}, 120),
        ("RoundDecimal(u0, -99999999)", {"u0": 125}, 0),
        ("RoundDecimal(u0, 99999999)", {"u0": 125}, 125),
        ("RoundDecimal(zf0, 99999999)", {"zf0": 0.3}, 0.3),
        ("IntTrueDiv(s0, 3)", {"s0": 10**30 + 1}, (10**30 + 1) / 3),
        ("IntTrueDiv(s0, s1)", {"s0": 10**400, "s1": 10**399}, 10.0),
        ("s0/3*3", {"s0": 7}, 7),
        ("floor(s0/s1*s1)", {"s0": 10**40 + 1, "s1": 7}, 10**40 + 1),
        ("s0**(-2)", {"s0": 2}, 0.25),
        ("(-1)**u0", {"u0": 2**70}, 1),
        ("PowByNatural(0, u0)", {"u0": 0}, 1),
        ("sqrt(s0)", {"s0": 49}, 7.0),
        ("Max(1, zf0)", {"zf0": 0.5}, 1.0),
        ("Min(s0, -oo)", {"s0": 1}, -math.inf),
        ("IsNonOverlappingAndDenseIndicator(2, 3, 3, 1)", {}, 1),
        ("IsNonOverlappingAndDenseIndicator(2, 3, 1, 2)", {}, 1),
        ("IsNonOverlappingAndDenseIndicator(2, 3, 4, 1)", {}, 0),
        ("IsNonOverlappingAndDenseIndicator(1, 3, 9, 1)", {}, 1),
        ("IsNonOverlappingAndDenseIndicator(1, 5)", {}, 1),
        ("IsNonOverlappingAndDenseIndicator(2, 5)", {}, 0),
        ("IsNonOverlappingAndDenseIndicator()", {}, 1),
        ("RShift(u0, 99999)", {"u0": -5}, -1),
        ("LShift(0, 99999)", {}, 0),
        ("Xor(s0 > 1, s0 > 2, s0 > 3)", {"s0": 4}, True),
        ("ITE(s0 > 1, s0 > 2, True)", {"s0": 2}, False),
        ("BitwiseFn_bitwise_xor(s0 > 1, s0 > 5)", {"s0": 2}, True),
        ("Eq(s0 > 1, True)", {"s0": 2}, True),
        ("Eq(s0, 2.0)", {"s0": 2}, True),
        ("log(8, 2)", {}, 3.0),
    ],
)
def test_values(text, values, result):
    """Division rounds down, modulo takes the sign of the divisor, whole numbers stay exact."""
    got = evaluate(parse(text), values)
    assert got == result
    assert type(got) is type(result) or kind(parse(text)) == "float"


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        ("Piecewise((s0/u0, u0 > 0), (1, True))", {"u0": 0, "s0": 2}, 1),
        ("Where(u0 > 0, s0/u0, 1)", {"u0": 0}, 1),
        ("(u0 > 0) & (s0 > 2)", {"u0": 0}, False),
        ("(u0 > 0) | Eq(s0, 1/u0)", {"u0": 1}, True),
        ("ITE(u0 > 0, True, s0 > 1)", {"u0": 1}, True),
    ],
)
def test_what_is_not_needed_need_not_have_a_value(text, values, result):
    """Branches and conditions that are not reached may fail."""
    assert evaluate(parse(text), values) == result


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("2*s0 + s1", {"s0": 1}, "expected a value for the symbol s1, got none, in '2*s0 + s1'"),
        ("s0", {"s0": 1.5}, "expected an int as s0, got 1.5"),
        ("s0", {"s0": True}, "expected a number as s0, got bool"),
        ("s0", {"s0": "1"}, "expected a number as s0, got str"),
        ("s0", {"s0": None}, "expected a number as s0, got NoneType"),
        ("zf0", {"zf0": math.nan}, "not a number"),
        ("(s0//u0)", {"s0": 1, "u0": 0}, "division by zero (in '(s0//u0)')"),
        ("Mod(s0, u0)", {"s0": 1, "u0": 0}, "division by zero"),
        ("s0/u0", {"s0": 1, "u0": 0}, "division by zero"),
        ("IntTrueDiv(s0, u0)", {"s0": 1, "u0": 0}, "division by zero"),
        ("FloatPow(zf0, -1.0)", {"zf0": 0.0}, "division by zero"),
        ("FloatPow(zf0, 0.5)", {"zf0": -1.0}, "not real"),
        ("sqrt(u0)", {"u0": -1}, "not real"),
        ("OpaqueUnaryFn_sqrt(zf0)", {"zf0": -1.0}, "has no value there"),
        ("log(zf0)", {"zf0": 0.0}, "has no value there"),
        ("exp(zf0)", {"zf0": 1e6}, "too large for a float"),
        ("ToFloat(s0)", {"s0": 10**400}, "too large for a float"),
        ("IntTrueDiv(s0, 1)", {"s0": 10**400}, "too large for a float"),
        ("oo - oo", {}, "not a number"),
        ("0*oo", {}, "not a number"),
        ("Mod(oo, 2)", {}, "not a number"),
        ("LShift(s0, u0)", {"s0": 1, "u0": -1}, "expected a shift of at least 0, got -1"),
        ("RShift(s0, u0)", {"s0": 1, "u0": -1}, "expected a shift of at least 0, got -1"),
        ("PowByNatural(s0, u0)", {"s0": 1, "u0": -1}, "expected an exponent of at least 0, got -1"),
        ("Piecewise((1, s0 > 1))", {"s0": 1}, "one of the conditions of Piecewise"),
        ("s0**s1", {"s0": 2, "s1": -1}, "expected a whole number, got 1/2"),
        ("BitwiseFn_bitwise_and(zf0, 1)", {"zf0": 0.5}, "whole numbers or truth values"),
    ],
)
def test_no_value(text, values, message):
    """Errors of parts without a value name the place and the part."""
    with pytest.raises(ExpressionError) as caught:
        evaluate(parse(text), values, where="hint")
    assert str(caught.value).startswith("hint: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("9**9**9", {}),
        ("s0**s1", {"s0": 3, "s1": 10**9}),
        ("s0**s1", {"s0": 2, "s1": 2**4000}),
        ("PowByNatural(s0, s1)", {"s0": 10, "s1": 10**18}),
        ("LShift(s0, s1)", {"s0": 1, "s1": 10**18}),
        ("s0*s0", {"s0": 2**4000}),
        ("s0**(-s1)", {"s0": 3, "s1": 10**9}),
        ("(1/s0)**s1", {"s0": 3, "s1": 10**9}),
        ("s0", {"s0": 2**5000}),
        ("s0/s1 + 1/s2", {"s0": 1, "s1": 2**4000 + 1, "s2": 2**3999 - 1}),
    ],
)
def test_numbers_have_a_limit(text, values):
    """A number that would be too large is refused, where it grows fast before it is computed."""
    with pytest.raises(LimitError, match="expected numbers of at most 4096 bits"):
        evaluate(parse(text), values)


@given(INFIX, st.integers(1, 9), st.integers(1, 9), st.integers(-9, 9))
def test_both_dialects_have_one_value(text, s0, s1, u0):
    """A text, its srepr and its str have the same value, or all fail."""
    values = {"s0": s0, "s1": s1, "u0": u0, "s77": 3}
    results: list[object] = []
    for write in (str, lambda text: to_srepr(parse_str(text)), lambda text: to_str(parse_str(text))):
        try:
            results.append(evaluate(parse(write(text)), values))
        except Pt2Error as error:
            results.append(type(error))
    assert results[0] == results[1] == results[2]


@given(TREES, st.data())
def test_any_tree_has_a_value_or_an_error(tree, data):
    """Only errors of this project come out, and the value has the kind that was promised."""
    numbers = st.integers(-5, 70) | st.floats() | st.booleans()
    values = {symbol.name: data.draw(numbers) for symbol in free_symbols(tree)}
    try:
        result = evaluate(tree, values)
    except Pt2Error:
        return
    assert type(result).__name__ == kind(tree) or math.isinf(result)


def test_check_constants():
    """Parts without symbols must have values; parts with symbols are left alone."""
    for text in ("s0*(1/u0)", "Where(s0 > 1, s0**9, 2)", "Piecewise((1, Eq(u0, 1)), (0, True))", "2**64 + s0"):
        expr = parse(text)
        assert check_constants(expr) is expr
    with pytest.raises(LimitError, match=r"^here: .* \(in '9\*\*\(9\*\*9\)'\)$"):
        check_constants(parse("s0*9**9**9"), where="here")
    with pytest.raises(ExpressionError, match=r"^here: division by zero \(in 'Mod\(s0, 0\)'\)$"):
        check_constants(parse("1 + Mod(s0, 0)"), where="here")


def test_trees_that_no_text_gives():
    """Pairs outside a Piecewise have no value."""
    pair = Call("ExprCondPair", (Integer(1), parse("True")))
    with pytest.raises(ExpressionError, match="belongs in a Piecewise"):
        evaluate(pair, {})
