"""Names in the spelling of other languages, and the lines at the top."""

from __future__ import annotations

import pytest
from tests.idl.helpers import table

from pt2kit.idl.text import WIDTH, banner, comment, noted, safe_name, upper_snake, version_suffix


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SparseCoo", "SPARSE_COO"),
        ("_mkldnn", "MKLDNN"),
        ("FLOAT8E5M2", "FLOAT8E5M2"),
        ("ChannelsLast3d", "CHANNELS_LAST3D"),
        ("ScalarType", "SCALAR_TYPE"),
    ],
)
def test_upper_snake(name, expected):
    """A word starts at each capital that follows a small letter; what is in capitals stays."""
    assert upper_snake(name) == expected


@pytest.mark.parametrize(
    ("version", "expected"), [("8.20", "v8_20"), ("2", "v2"), ("draft", "draft"), ("5.3-traces", "v5_3_traces")]
)
def test_version_suffix(version, expected):
    """A version as part of an identifier."""
    assert version_suffix(version) == expected


def test_the_banner_names_version_and_command():
    """A note tells that wire ids are made up."""
    text = " ".join(banner(table("8.20"), "proto"))
    assert "schema 8.20" in text
    assert "`pt2 schema --format proto --version 8.20`" in text
    assert "no wire ids" in " ".join(banner(table("5.1"), "proto"))


def test_comments_wrap():
    """No line is wider than the limit; no text, no line."""
    lines = comment("//", "word " * 60, "  ")
    assert len(lines) == 3
    assert all(line.startswith("  // word") and len(line) <= WIDTH + 3 for line in lines)
    assert comment("//", "") == []


def test_the_version_that_brought_a_field_is_noted():
    """Not for the oldest, nor for those without a number."""
    assert noted("x;", "8.2") == "x;  // since 8.2"
    assert [noted("x;", since) for since in ("1", "", "draft", "5.3-traces")] == ["x;"] * 4


def test_reserved_names():
    """Only they change."""
    assert [safe_name(name, frozenset(["class"])) for name in ("class", "klass")] == ["class_", "klass"]
