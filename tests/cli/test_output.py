"""Printing: lines that are safe whatever they hold, colours that change no character."""

from __future__ import annotations

import io
import json
import os
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.golden import CASES, text

from pt2kit.cli.output import colour, print_error, print_json, print_lines, wants_colour

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", CASES)
def test_colours_change_no_character(name: str) -> None:
    """A coloured line without its colours is the line; colours do not run on into the next line."""
    for line in text(name).splitlines():
        shown = colour(line)
        assert ESCAPE.sub("", shown) == line
        assert shown.count("\x1b[0m") * 2 == shown.count("\x1b[")


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=60))
def test_any_line_can_be_coloured(line: str) -> None:
    """Whatever prints, prints the same in colour."""
    assert ESCAPE.sub("", colour(line)) == line


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("model  schema 8.20", "\x1b[1mmodel"),
        ("  parameters   4 elements", "\x1b[36m  parameters   \x1b[0m4"),
        ("  constraints sha256:00", "  constraints sha256:00"),
        ("  graph       sha256:00", "  graph       sha256:00"),
        ("  X1  data: text", "\x1b[33m  X1"),
        ("  problems     text", "\x1b[33m  problems"),
        ("  %x: f32[2] = call(%y)  # block", "  \x1b[32m%x\x1b[0m: \x1b[34mf32[2]\x1b[0m = call("),
    ],
)
def test_styles(line: str, start: str) -> None:
    """Headings, labels, warnings, values, types and comments have styles of their own."""
    assert colour(line).startswith(start)


def test_control_characters_never_get_out(capsys) -> None:
    """A line that holds what does not print is escaped at the last moment, should nobody have done so before."""
    print_lines(["a\x1b[31mb", "fine", "x\u202ey\n"])
    assert capsys.readouterr().out == "a\\x1b[31mb\nfine\nx\\u202ey\\n\n"


def test_json(monkeypatch) -> None:
    """JSON is indented, ends with a line end, and goes to text streams too."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    print_json({"a": [1, "é"]})
    assert stream.getvalue() == '{\n  "a": [\n    1,\n    "é"\n  ]\n}\n'


def test_json_of_names_that_are_not_utf_8(monkeypatch) -> None:
    """The name of a file is escaped as Python's json does, so that `os.fsencode` returns its bytes."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    value = {"files": [os.fsdecode(b"b\xff.pt2")], "é": [], "size": 1.5, "mean": None}
    print_json({**value, "mean": float("nan")})
    assert json.loads(stream.getvalue()) == value
    assert (
        stream.getvalue()
        == '{\n  "files": [\n    "b\\udcff.pt2"\n  ],\n  "é": [],\n  "size": 1.5,\n  "mean": null\n}\n'
    )


class _Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_closed_pipe_ends_the_printing(monkeypatch) -> None:
    """Nobody reads on: what is left of the lines is not even computed, and the command goes on to its exit code."""
    monkeypatch.setattr(sys, "stdout", _Closed())
    lines = iter(["a", "b"])
    print_lines(lines)
    assert list(lines) == ["b"]
    print_json({})


def test_errors_are_one_line_whatever_they_hold(capsys, monkeypatch) -> None:
    """Control characters are escaped; a terminal gets a colour unless nobody wants one; without a stream, nothing."""
    print_error("a\nb\x1b[31m")
    assert capsys.readouterr().err == "error: a\\nb\\x1b[31m\n"
    for environment, start in (({}, "\x1b[31m"), ({"NO_COLOR": "1"}, "error: ")):
        stream = _Terminal()
        with monkeypatch.context() as patch:
            patch.delenv("NO_COLOR", raising=False)
            patch.setenv("TERM", "xterm")
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stderr", stream)
            print_error("text")
        assert stream.getvalue().startswith(start)
    monkeypatch.setattr(sys, "stderr", None)
    print_error("text")


def test_no_stream(monkeypatch) -> None:
    """Without a standard output nothing is printed and nothing is raised."""
    monkeypatch.setattr(sys, "stdout", None)
    print_lines(["a"])
    print_json({})


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_wants_colour(monkeypatch, environment: dict[str, str], wanted: bool) -> None:
    """Colours are for terminals that have them and users that want them."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(_Terminal()) is wanted
    assert wants_colour(io.StringIO()) is (wanted and "FORCE_COLOR" in environment)
    assert wants_colour(None) is False
