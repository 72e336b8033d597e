"""The frame of a subcommand: options declared as fields of a dataclass, and a result printed as text or JSON.

    @dataclass(frozen=True, slots=True)
    class Options:
        files: tuple[str, ...] = files_argument()
        strict: bool = flag("Treat warnings as errors.")
        as_json: bool = json_option()

    def run(options: Options) -> int: ...

The parsed command line is one object, which functions and other processes get whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from pt2kit.cli.common import FILE, bytes_amount, pairs
from pt2kit.cli.completion import complete_models
from pt2kit.cli.output import colour, help_texts, print_json, print_lines
from pt2kit.messages import printable

Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command for one file.

    Args:
        lines: its lines in the report; computed as they are printed.
        tree: returns what `--json` prints: for several files, the keys of a file.
        code: the exit code.
        fitted: whether lines may be broken to fit a terminal.
        outcome: what the summary of several files counts it as.
        totals: numbers that the summary adds up over all files.
    """

    lines: Iterable[str]
    tree: Callable[[], Any]
    code: int = 0
    fitted: bool = True
    outcome: str = ""
    totals: Mapping[str, int] = field(default_factory=dict)


def print_result(result: Result, as_json: bool, style: Callable[[str], str] = colour) -> int:
    """Print a result as lines or JSON, and return its exit code."""
    if as_json:
        print_json(result.tree())
    else:
        print_lines(result.lines, style, fitted=result.fitted)
    return result.code


def by_program(found: Mapping[str, Iterable[str]], *, named: bool = False) -> Iterator[str]:
    """Yield the lines of programs, each below its name; those of a single program without it, unless it is `named`."""
    for number, (model, lines) in enumerate(found.items()):
        if named or len(found) > 1:
            yield from [""] if number else []
            yield f"program {printable(model)}"
        yield from lines


def option(help: str, *flags: str, about: Any = None, **settings: Any) -> Any:
    """Declare a field whose value is an option; its flag follows from the name of the field if none is passed.

    Args:
        help: its help text; an option whose help begins with "With --flag:" is refused without that flag.
        flags: the flags, such as `--output` and `-o`.
        about: metadata of the field, for the command itself.
        settings: further arguments of `click.option`.
    """

    def make(name: str) -> click.Parameter:
        return click.Option([name, *(flags or (f"--{name.replace('_', '-')}",))], help=help, **settings)

    return field(metadata={"click": make, "about": about})


def flag(help: str, *flags: str) -> Any:
    """Declare a field that is true if its flag is passed; as `option`."""
    return option(help, *flags, is_flag=True)


def pairs_option(help: str, *flags: str, form: str = "NAME=VALUE", **settings: Any) -> Any:
    """Declare a field whose values are pairs, parsed to a dict as `pairs` does; as `option`."""
    parse = pairs(form)

    def parsed(context: click.Context, parameter: click.Parameter, values: Iterable[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for left, right in parse(context, parameter, values):
            if found.setdefault(left, right) != right:
                raise click.UsageError(f"{parameter.opts[0]}: expected {left!r} once, got {found[left]} and {right}")
        return found

    return option(help, *flags, metavar=form, multiple=True, callback=parsed, **settings)


def argument(metavar: str, **settings: Any) -> Any:
    """Declare a field whose value is an argument: a path, a URL or -, unless `settings` say otherwise."""
    return field(metadata={"click": lambda name: click.Argument([name], metavar=metavar, **{"type": FILE, **settings})})


def model_option(default: str = "") -> Any:
    """Declare a field for the program that a command is for; the help text ends with its `default`."""
    text = f"Select a program by name or digest (sha256:…){default}."
    return option(text, "--model", metavar="NAME", shell_complete=complete_models)


def json_option() -> Any:
    """Declare a field that is true if JSON is to be printed."""
    return flag("Print JSON for scripts.", "--json")


def output_option(argument: str = "OUT", kind: str = "file") -> Any:
    """Declare a field for the file or folder to write, which an argument may name instead."""
    return option(f"The {kind} to write; the same as {argument}.", "--output", "-o", metavar=argument, type=FILE)


def force_option(*, is_page: bool = False) -> Any:
    """Declare a field that is true if files may be replaced; pages replace each other without it."""
    return flag("Replace an archive, such as a .pt2 file." if is_page else "Replace existing files.", "--force")


def rename_option() -> Any:
    """Declare a field that is true if odd names of files may be changed."""
    return flag("Change names that are hidden or odd, instead of refusing.", "--rename")


def prove_option() -> Any:
    """Declare a field that is true if the result is to be run and compared."""
    return flag("Run before and after on random inputs; refuse to write a difference.", "--prove")


def memory_option(help: str) -> Any:
    """Declare a field for the bytes of memory that a program may use; None without the option."""
    return option(f"{help}  [default: 3/4 of all]", metavar="SIZE", callback=bytes_amount)


def external_option() -> Any:
    """Declare a field for the external file of weights."""
    text = "Write weights to this .safetensors file next to OUT; shards if large."
    return option(text, "--external", metavar="NAME")


def load_command(name: str) -> click.Command:
    """Import the module of a subcommand; make the command of its `Options` and its `run`, unless it has made one."""
    module = import_module(f"pt2kit.cli.{name}")
    made: click.Command | None = getattr(module, "command", None)
    return made or subcommand(name, module.Options, module.run)


def subcommand(name: str, kind: type[Options], run: Callable[[Options], int]) -> click.Command:
    """Make the command of a function.

    Args:
        name: its name.
        kind: the dataclass of its options; its fields are the arguments and options, in the order of the help.
        run: parsed options -> exit code; its docstring is the help.
    """

    def called(**given: Any) -> int:
        _check_flags(click.get_current_context())
        return run(kind(**given))

    return click.Command(
        name,
        callback=called,
        params=parameters(kind),
        **help_texts(run),
        # click keeps the option that it made first, which may have been without the settings of `pt2`.
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _check_flags(context: click.Context) -> None:
    """Refuse options whose help says "With --flag: …" where the flag is not passed: they would have no effect."""
    flags = {one.opts[0]: one for one in context.command.params if isinstance(one, click.Option) and one.is_flag}
    for one in context.command.params:
        owner = flags.get(str(getattr(one, "help", "")).removeprefix("With ").partition(":")[0].partition(" and ")[0])
        if owner is None or context.get_parameter_source(str(one.name)) is not ParameterSource.COMMANDLINE:
            continue
        if not context.params[str(owner.name)]:
            raise click.UsageError(f"expected {one.opts[0]} with {owner.opts[0]}, got it without", context)


def parameters(kind: Any) -> list[click.Parameter]:
    """Return the parameters that the fields of a dataclass declare."""
    return [one.metadata["click"](one.name) for one in fields(kind)]
