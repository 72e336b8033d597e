"""Columns that stay aligned whatever stands in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.text.format import display_width, fit, pad, table, wrap


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("été", 3), ("e\u0301te", 3), ("漢字", 4), ("\uff46\uff55\uff4c\uff4c", 8), ("", 0)]
)
def test_display_width(text: str, width: int) -> None:
    """Wide characters take two columns, combining ones none."""
    assert display_width(text) == width


def test_pad() -> None:
    """Texts are filled up by columns, not by characters; long ones stay whole."""
    assert pad("漢", 4) == "漢  "
    assert pad("ab", 4, right=True) == "  ab"
    assert pad("abcdef", 4) == "abcdef"


def test_wrap() -> None:
    """Lines break after commas and semicolons only."""
    assert list(wrap("add 1, mul 22, sub 333; neg 4", 15)) == ["add 1, mul 22,", "sub 333; neg 4"]
    assert list(wrap("no break in here, at all", 5)) == ["no break in here,", "at all"]
    assert list(wrap("", 5)) == [""]


@given(st.text("ab ,;漢"), st.integers(1, 20))
def test_wrap_loses_nothing(text: str, width: int) -> None:
    """The lines joined again are the text, and only a part that cannot be broken is too long."""
    lines = list(wrap(text, width))
    assert " ".join(lines) == text
    assert all(display_width(line) <= width or (", " not in line and "; " not in line) for line in lines)


def test_table() -> None:
    """Columns are as wide as their widest cell; the first one has a limit, and what passes it stands alone."""
    rows = [("a", "1", "x"), ("漢字", "22", "y"), ("a name that is far too long", "333", "")]
    assert list(table(rows, 10, right=(1,))) == [
        "a       1  x",
        "漢字   22  y",
        "a name that is far too long",
        "      333",
    ]
    assert list(table([], 10)) == []
    assert list(table([("too long for it",)], 3)) == ["too long for it", ""]


CELLS = st.tuples(st.text("aé漢", max_size=12), st.text("1", max_size=5), st.text("b", max_size=3))


@given(st.lists(CELLS), st.integers(0, 12))
def test_cells_of_a_column_end_together(rows: list[tuple[str, str, str]], limit: int) -> None:
    """Whatever the first cells are, the second column ends at the same place in every row."""
    lines = [line for line in table(rows, limit, right=(1,)) if not (line and line in {row[0] for row in rows})]
    ends = {display_width(line[: line.rindex("1") + 1]) for line in lines if "1" in line}
    assert len(ends) <= 1


@given(st.text(st.sampled_from("ab, ;:→ü漢 "), max_size=120), st.integers(20, 60))
def test_lines_are_broken_between_words(line: str, width: int) -> None:
    """Every word is there, in order; a line is too long only where it is one word."""
    parts = list(fit(line, width))
    assert " ".join(parts).split() == line.split()
    assert all(display_width(part) <= width or len(part.split()) == 1 for part in parts)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("  a.weight  f32[16, 8]  512 B  parameter", ["  a.weight  f32[16, 8]", "      512 B  parameter"]),
        (
            "  where  s0: 1 … 4, s1: 2 … 8, s2: 3 … 9",
            ["  where  s0: 1 … 4,", "         s1: 2 … 8,", "         s2: 3 … 9"],
        ),
        ("  where  s0: 1, abcdefghijklmnopqr", ["  where  s0: 1,", "      abcdefghijklmnopqr"]),
        (" " * 12 + "of torch 2.9 and later", [" " * 12 + "of torch 2.9", " " * 12 + "and later"]),
        ("  " + "x" * 40, ["  " + "x" * 40]),
        ("short", ["short"]),
    ],
)
def test_better_places_are_taken_first(line: str, parts: list[str]) -> None:
    """Between columns, then after commas, then at blanks; what follows is indented further, or as its column."""
    assert list(fit(line, 24)) == parts
