"""`pt2 schema`: the list of versions, a definition, a comparison; as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pt2kit import idl, schema
from pt2kit.cli.frame import load_command
from pt2kit.errors import Pt2Error, SchemaError, VersionError


def _run(*args: str) -> tuple[Any, str]:
    """The command's return value, which becomes the exit code, and its output."""
    found = CliRunner().invoke(load_command("schema"), args, standalone_mode=False)
    if found.exception is not None:
        raise found.exception
    return found.return_value, found.output


def test_alone_it_lists_the_versions():
    """Oldest first, with the releases that write them."""
    code, out = _run()
    lines = out.splitlines()
    assert (code, len(lines)) == (0, len(schema.LOG))
    assert lines[0].startswith("1     torch 2.1 ")
    assert "8.20  torch 2.12, 2.13, 2.14, 2.15  " in out
    rows = json.loads(_run("--json")[1])
    assert [row["releases"] for row in rows if row["version"] == "8.20"] == [["2.12", "2.13", "2.14", "2.15"]]
    assert [row["version"] for row in rows] == [version.number for version in schema.LOG]


@pytest.mark.parametrize("format", idl.FORMATS)
def test_a_definition_is_printed(format):
    """The current version by default, any other by name."""
    assert _run("--format", format) == (0, idl.emit(idl.table(), format))
    assert _run("--format", format, "--version", "8.6") == (0, idl.emit(idl.table("8.6"), format))


def test_a_comparison_lists_changes_by_demand():
    """Major first; then what number that demands and what it got."""
    code, out = _run("--check", "8.17", "8.20")
    assert code == 0
    assert "minor (4)\n  ScalarType.FLOAT8E8M0FNU: the value 33 is added [C9]\n" in out
    assert out.endswith("expected at least 8.18, got 8.17 -> 8.20: as it must be\n")
    code, out = _run("--check", "5.1", "5.3")
    assert code == 1
    assert out.startswith("major (1)\n  OptionalTensorArgument.as_tensor: str -> TensorArgument [C12]\nminor (8)\n")
    assert "expected at least 6.1, got 5.1 -> 5.3: not enough. A tensor in a list" in out


def test_a_comparison_as_json():
    """The same for scripts."""
    code, out = _run("--check", "8.8", "8.14", "--json")
    found = json.loads(out)
    assert code == 1
    assert (found["demanded"], found["chosen"], found["least"], found["agrees"]) == ("major", "minor", "9.1", False)
    assert {"rule": "C2", "level": "major", "where": "Model", "what": "the struct is removed"} in found["changes"]


def test_the_classes_and_files_are_compared_too(tmp_path):
    """The frozen table of the newest version is that of the classes; a file has the number it says, or none."""
    now = schema.CURRENT.number
    same = f"no changes\nexpected at least {now}, got {now} -> {now}: as it must be\n"
    assert _run("--check", now, "current") == (0, same)
    text = idl.emit(idl.table("8.20"), "yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("COMPLEXHALF: 9\n", "COMPLEXHALF: 9\n      MINE: 99\n"))
    code, out = _run("--check", "8.20", str(path))
    assert code == 1
    assert out.endswith("expected at least 8.21, got 8.20 -> 8.20: not enough\n")
    path.write_text(text.replace('schema_version: "8.20"\n', ""))
    assert _run("--check", "8.20", str(path))[1].endswith("expected at least 8.20; no two numbers to compare\n")
    path.write_text(text.replace('schema_version: "8.20"', 'schema_version: "9.1"'))
    code, out = _run("--check", "8.20", str(path))
    assert (code, out) == (1, "no changes\nexpected at least 8.20, got 8.20 -> 9.1: more than needed\n")


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        (["--format", "flatbuffers"], click.UsageError, "'flatbuffers' is not one of 'yaml', 'thrift'"),
        (["--version", "8.6"], click.UsageError, "expected --version with --format, got it alone"),
        (["--format", "yaml", "--json"], click.UsageError, "expected --format alone or with --version"),
        (["--format", "yaml", "--check", "1", "2"], click.UsageError, "expected --format alone or with --version"),
        (["--format", "yaml", "--version", "8.19"], VersionError, "expected one of draft, 1, 2"),
        (["--check", "8.20", "8.19"], click.ClickException, "expected a file, current, or one of draft, 1"),
        (["--check", "8.20", "nine"], click.ClickException, "expected a file, current, or one of draft, 1"),
        (["--check", "8.20", "8.2"], VersionError, "expected the older version first"),
        (["--check", "8.20", __file__], SchemaError, "test_schema.py: not a field table"),
    ],
)
def test_what_cannot_be_answered_is_refused(args, error, message):
    """With what was expected."""
    with pytest.raises(error) as caught:
        _run(*args)
    text = caught.value.format_message() if isinstance(caught.value, click.ClickException) else str(caught.value)
    assert message in text
    assert isinstance(caught.value, click.ClickException | Pt2Error | OSError)
