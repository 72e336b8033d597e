"""Names from a file on a terminal: nothing that does not print, nothing too long, nothing that passes for more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.messages import PRINTED, printable
from pt2kit.text.format import dotted, value_name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("été 漢字", "été 漢字"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\r\x00", "a\\nb\\tc\\r\\x00"),
        ("\u202eevil", "\\u202eevil"),
        ("\ud800", "\\ud800"),
        ("a" * 300, "a" * 200 + "…"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    """Unprintable text is escaped, long text is cut."""
    assert printable(text) == shown


@given(st.text(), st.integers(1, 50))
def test_printable_is_printable(text: str, limit: int) -> None:
    """Whatever a text holds, the result prints, and its length is bounded."""
    shown = printable(text, limit)
    assert shown.isprintable()
    assert len(shown) <= 10 * limit + 1
    if text.isprintable() and len(text) <= limit:
        assert shown == text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("fc.weight", "fc.weight"),
        ("layers.0.été", "layers.0.été"),
        ("_a.__b", "_a.__b"),
        ("d.a-b", '"d.a-b"'),
        ("a b", '"a b"'),
        ("", '""'),
        ("a..b", '"a..b"'),
        ("x\x1b[2J", '"x\\x1b[2J"'),
        ("a" * 250, f'"{"a" * PRINTED}…"'),
    ],
)
def test_dotted(name: str, shown: str) -> None:
    """Plain dotted names stand as they are, others in quotes."""
    assert dotted(name) == shown


@given(st.text())
def test_names_print(name: str) -> None:
    """Whatever a name holds, what is shown of it prints."""
    assert dotted(name).isprintable()
    assert value_name(name).isprintable()
