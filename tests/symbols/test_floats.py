"""Floating point numbers <-> their decimal texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.narrow import instance

from pt2kit.errors import ExpressionError
from pt2kit.symbols import Call, Float, float_from, parse
from pt2kit.symbols.order import decimal_text, float_of


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_seventeen_digits_are_enough(value):
    """The srepr text of a double reads back as the double."""
    assert float(float_from(value).text) == value


@pytest.mark.parametrize(
    ("value", "long", "short"),
    [
        (0.5, "0.5", "0.500000000000000"),
        (0.1, "0.10000000000000001", "0.100000000000000"),
        (-1.5, "-1.5", "-1.50000000000000"),
        (0.0, "0.0", "0.0"),
        (1e-5, "1.0000000000000001e-5", "1.00000000000000e-5"),
        (1.25e-4, "0.000125", "0.000125000000000000"),
        (1e20, "1.0e+20", "1.00000000000000e+20"),
        (123456789.0, "123456789.0", "123456789.000000"),
        (123456789012345.625, "123456789012345.63", "123456789012346."),
        (999999999999999.9, "999999999999999.88", "1.00000000000000e+15"),
        (5e-324, "4.9406564584124654e-324", "4.94065645841247e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308", "1.79769313486232e+308"),
    ],
)
def test_texts_of_sympy(value, long, short):
    """srepr writes 17 digits without zeros at the end, str 15 with them where the number stands alone."""
    assert decimal_text(value, 17) == long
    assert decimal_text(value, 15, strip=False) == short


@pytest.mark.parametrize("text", ["", "abc", ".", "0x10", "1e", "inf", "nan", "1_0", "1e400", "-1e999", "٣"])
def test_other_texts_are_refused(text):
    """Only decimal numbers that fit a double are floats."""
    with pytest.raises(ExpressionError, match=r"^here: expected a (decimal number|number that fits)"):
        float_of(text, where="here")


def test_texts_are_normal_in_one_dialect_and_kept_in_the_other():
    """str texts become the 17 digits that srepr would write; srepr texts are unchanged."""
    assert instance(Float, parse("0.10")).text == "0.10000000000000001"
    assert instance(Float, instance(Call, parse("1.0e-7*s0")).args[0]).text == "9.9999999999999995e-8"
    assert instance(Float, parse("Float('0.10', precision=53)")).text == "0.10"
