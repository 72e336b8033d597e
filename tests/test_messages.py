"""Names and values in messages: on one line, bounded, and with the number of those left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.messages import PRINTED, QUOTED, cut, kind_of, listed, printable, quote


@given(st.text(max_size=400) | st.binary(max_size=400) | st.floats() | st.none() | st.lists(st.text(max_size=9)))
def test_whatever_is_quoted_fits_a_line(value):
    """No line end survives, and nothing is longer than its escapes and the note on its length."""
    text = quote(value)
    assert "\n" not in text
    assert len(text) <= 10 * QUOTED + 40


@given(st.text(max_size=500))
def test_whatever_is_printed_is_printable(text):
    """Text that prints and is short enough does not change."""
    shown = printable(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable() or len(text) > PRINTED


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        ("a" * 61, f"'{'a' * 60}…' (61 characters)"),
        (b"\x00" * 61, f"{bytes(60)!r}… (61 bytes)"),
        (1.5, "1.5"),
        (list(range(99)), cut(repr(list(range(99))), 62)),
    ],
)
def test_quote(value, text):
    """A long value is cut, and its length said."""
    assert quote(value) == text


def test_listed():
    """Those that are left out are counted."""
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(["a", "b", "c"], 2, "; ") == "a; b and 1 more"
    assert listed([str(number) for number in range(2_001)], 1) == "0 and 2,000 more"
    assert listed([], 2) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, "None"), (True, "True"), (7, "the integer 7"), (0.5, "the number 0.5"), ("x", "the string 'x'")),
        *((1 << 200, "an integer of 201 bits"), ([1, 2], "a list of 2"), ((), "a tuple of 0"), ({}, "an empty object")),
        *(({"a": 1, "b": 2}, "an object with the keys 'a', 'b'"), (b"x", "a bytes")),
    ],
)
def test_kind_of(value, text):
    """A value is named as a reader of JSON would name it."""
    assert kind_of(value) == text
