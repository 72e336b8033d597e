"""Texts that programs print: one line each, formats of plain names, widths with bounds."""

from __future__ import annotations

import pytest

from pt2kit.checks.safety import format_problem, text_problem


@pytest.mark.parametrize("text", ["", "x = {x}", "{0} {1:>8.3f}", "{}", "{x:+,.2%}", "100 %"])
def test_harmless(text: str) -> None:
    """Names, places, and widths of a line pass."""
    assert format_problem(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{x.__class__}", "expected a format of plain names"),
        ("{x[0]}", "expected a format of plain names"),
        ("{x:{y}}", "expected a format of plain names"),
        ("{x:9999999999}", "expected a format of plain names and widths below 1,000"),
        ("{x:.99999}", "expected a format of plain names and widths below 1,000"),
        ("{x:>999}" * 11, "expected widths that add up to at most 10,000"),
        ("{x", "expected a format"),
        ("\x1b[2J", "expected one line of printable text"),
    ],
)
def test_harmful(text: str, expected: str) -> None:
    """Formats that access attributes or write without bounds are refused."""
    assert expected in str(format_problem(text))


def test_plain_texts() -> None:
    """A text that is no format may hold braces, and no control characters."""
    assert text_problem("{x.y}") is None
    assert "printable" in str(text_problem("a\nb"))
