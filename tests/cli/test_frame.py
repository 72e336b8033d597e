"""Options as fields of a dataclass: flags, arguments, pairs; results as lines or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import click
from click.testing import CliRunner

from pt2kit.cli.frame import Result, ResultOptions, argument, option, print_result, subcommand


@dataclass(frozen=True, slots=True)
class Options(ResultOptions):
    """Options of a command that prints what it got."""

    files: tuple[str, ...] = argument("[FILE]...")
    is_strict: bool = option("Be strict.")
    count: int = option("How often.", "--times", "-n", default=1)
    names: Mapping[str, str] = option("New names.", "OLD=NEW")
    at: Mapping[str, int] = option("Values.", "SYMBOL=N")
    depth: int = option("With --is-strict: how deep.", default=3)


def show(options: Options) -> int:
    """Show what it got.

    Examples:
      show a b

    Exit codes: 1.
    """
    tree = {"files": options.files, "strict": options.is_strict, "names": options.names, "at": options.at}
    return print_result(Result([str(options.count)], lambda: tree, 1), options.as_json)


COMMAND = subcommand("show", Options, show)


def test_fields_are_parameters_in_order() -> None:
    """A flag follows from the field's name unless flags are passed; the help has the order of the fields."""
    names = [parameter.opts[0] for parameter in COMMAND.params]
    assert names == ["files", "--is-strict", "--times", "--names", "--at", "--depth", "--json"]
    assert COMMAND.help == "Show what it got."
    assert COMMAND.epilog == "\b\nExamples:\n  show a b\n\n\b\nExit codes: 1."


def test_the_function_gets_one_object() -> None:
    """Values are parsed before; its result is the exit code."""
    arguments = ["a", "b", "--is-strict", "--names", "x=y", "--at", "s0=3", "--json"]
    done = CliRunner().invoke(COMMAND, arguments, standalone_mode=False)
    expected = {"files": ["a", "b"], "strict": True, "names": {"x": "y"}, "at": {"s0": 3}}
    assert (done.return_value, json.loads(done.output)) == (1, expected)


def test_options_of_flags_need_them() -> None:
    """An option whose help begins "With --flag" is refused without the flag, also if its value is the default."""
    for arguments, is_right in ((["--depth", "3"], False), (["--depth", "3", "--is-strict"], True), ([], True)):
        done = CliRunner().invoke(COMMAND, arguments, standalone_mode=False)
        assert (done.exception is None) is is_right
        if not is_right:
            assert "expected --depth with --is-strict, got it without" in str(done.exception)


def test_wrong_pairs_are_wrong_usage() -> None:
    """The message names the option and the form."""
    for arguments, text in (
        (["--names", "x"], "--names: expected OLD=NEW"),
        (["--at", "s0=x"], "--at: expected SYMBOL=N"),
        (["--at", "s0=3", "--at", "s0=4"], "--at: expected 's0' once, got 3 and 4"),
    ):
        done = CliRunner().invoke(COMMAND, arguments, standalone_mode=False)
        assert isinstance(done.exception, click.UsageError)
        assert text in str(done.exception)
