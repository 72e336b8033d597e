"""The frame of a subcommand: options declared as fields of a dataclass, and a result printed as text or JSON.

    @dataclass(frozen=True, slots=True)
    class Options(ResultOptions):
        files: tuple[str, ...] = argument("FILE...")
        strict: bool = option("Treat warnings as errors.")

    def run(options: Options) -> int: ...

The parsed command line is one object, which functions and other processes get whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from pt2kit.cli.common import FILE, Callback, bytes_amount, is_count
from pt2kit.cli.completion import complete_models
from pt2kit.cli.output import colour, help_texts, print_json, print_lines
from pt2kit.messages import printable

Options = TypeVar("Options")

_OPTIONAL: Final = re.compile(r"\[\w+\](?:\.\.\.)?")
"""Name of an argument that may be missing."""


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


def option(help: str, *words: str, about: Any = None, **settings: Any) -> Any:
    """Declare a field whose value is an option.

    The type of the field says how it is passed: `bool` is a flag, a tuple of any length may be repeated, a mapping or
    pairs are texts with "=" inside.

    Args:
        help: its help text; an option whose help begins with "With --flag:" is refused without that flag.
        words: its flags, such as `--output` and `-o`, by default the name of the field; and the name of its value in
            the help, such as FILE.
        about: metadata of the field, for the command itself.
        settings: further arguments of `click.option`.
    """

    def make(name: str, kind: str) -> click.Parameter:
        flags = [word for word in words if word.startswith("-")] or [f"--{name.replace('_', '-')}"]
        metavar = next((word for word in words if not word.startswith("-")), None)
        return click.Option([name, *flags], help=help, metavar=metavar, **{**_passed(kind, str(metavar)), **settings})

    return field(metadata={"click": make, "about": about})


def _passed(kind: str, form: str) -> dict[str, Any]:
    """Return how click passes an option whose field has a type."""
    if kind == "bool":
        return {"is_flag": True}
    if kind.startswith(("Mapping[", "tuple[tuple[")):
        return {"multiple": True, "callback": pairs(form, kind)}
    if kind.startswith("tuple["):
        return {"multiple": True} if kind.endswith("...]") else {"nargs": 2}
    return {}


def pairs(form: str, kind: str) -> Callback:
    """Return the callback of an option whose values are pairs, as a tuple of them, or as a dict.

    Args:
        form: how a value is written, such as OLD=NEW.
        kind: the type of its field; right sides may be whole numbers, and a mapping has each left side once.
    """
    is_numeric, is_mapping = ", int]" in kind, kind.startswith("Mapping")

    def parse(context: click.Context, parameter: click.Parameter, values: Iterable[str]) -> Any:
        sides: list[tuple[str, Any]] = []
        for value in values:
            left, sign, right = value.partition("=")
            if not left or not sign or not right or (is_numeric and not is_count(right)):
                raise click.UsageError(f"{parameter.opts[0]}: expected {form}, got {value!r}")
            sides.append((left, int(right) if is_numeric else right))
        found: dict[str, Any] = {}
        for left, right in sides if is_mapping else ():
            if found.setdefault(left, right) != right:
                raise click.UsageError(f"{parameter.opts[0]}: expected {left!r} once, got {found[left]} and {right}")
        return found if is_mapping else tuple(sides)

    return parse


def argument(metavar: str, **settings: Any) -> Any:
    """Declare a field whose value is an argument: a path, a URL or -, unless `settings` say otherwise.

    A tuple takes all that follow; a name in brackets alone, such as `[OUT]`, is not required.
    """
    required = _OPTIONAL.fullmatch(metavar) is None

    def make(name: str, kind: str) -> click.Parameter:
        nargs = -1 if kind.startswith("tuple[") else 1
        given = {"type": FILE, "nargs": nargs, "required": required, **settings}
        return click.Argument([name], metavar=metavar, **given)

    return field(metadata={"click": make})


def model_option(default: str = "") -> Any:
    """Declare a field for the program that a command is for; the help text ends with its `default`."""
    text = f"Select a program by name or digest (sha256:…){default}."
    return option(text, "--model", "NAME", shell_complete=complete_models)


def output_option(argument: str = "OUT", kind: str = "file") -> Any:
    """Declare a field for the file or folder to write, which an argument may name instead."""
    return option(f"The {kind} to write; the same as {argument}.", "--output", "-o", argument, type=FILE)


def path_option(help: str, *flags: str, exists: bool = False) -> Any:
    """Declare a field for a file of this machine; as `option`."""
    return option(help, *flags, type=click.Path(exists=exists, dir_okay=False))


def force_option(*, is_page: bool = False) -> Any:
    """Declare a field that is true if files may be replaced; pages replace each other without it."""
    return option("Replace an archive, such as a .pt2 file." if is_page else "Replace existing files.", "--force")


def rename_option() -> Any:
    """Declare a field that is true if odd names of files may be changed."""
    return option("Change names that are hidden or odd, instead of refusing.", "--rename")


def prove_option() -> Any:
    """Declare a field that is true if the result is to be run and compared."""
    return option("Run before and after on random inputs; refuse to write a difference.", "--prove")


def memory_option(help: str) -> Any:
    """Declare a field for the bytes of memory that a program may use; None without the option."""
    return option(f"{help}  [default: 3/4 of all]", "SIZE", callback=bytes_amount)


def external_option() -> Any:
    """Declare a field for the external file of weights."""
    text = "Write weights to this .safetensors file next to OUT; shards if large."
    return option(text, "--external", "NAME")


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
    """Return the parameters that the fields of a dataclass declare; those of its base come last."""
    shared = fields(kind.__base__) if is_dataclass(kind.__base__) else ()
    names = {one.name for one in shared}
    own = [one.metadata["click"](one.name, one.type) for one in fields(kind) if one.name not in names]
    return [*own, *parameters(kind.__base__)] if shared else own


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """Options of a command that prints a result, after its own."""

    as_json: bool = option("Print JSON for scripts.", "--json")
