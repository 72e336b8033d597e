"""`pt2 edit FILE OUT`: a program with other inputs, outputs, operators, weights or devices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import click

from pt2kit.cli.common import (
    FILE,
    choose_model,
    external_option,
    json_option,
    one_model_option,
    one_output,
    open_file,
    output_option,
    pairs,
    prove_option,
    skeleton_option,
    write_result,
)
from pt2kit.cli.completion import complete_nodes, complete_weights
from pt2kit.cli.output import print_json, print_lines
from pt2kit.errors import Pt2Error
from pt2kit.messages import printable

if TYPE_CHECKING:
    from pt2kit.editing.editor import Editor

Done: TypeAlias = tuple[str, int]
"""Description of an edit, and the number of places it changed."""

F = TypeVar("F", bound=Callable[..., Any])

_PAIRS: Final = ("OLD=NEW", "SYMBOL=N")
_DYNAMIC: Final = re.compile(
    r"(?P<input>\w+)\.(?P<dim>\d{1,2})=(?:(?P<name>[A-Za-z_]\w*)(?::(?=\d)|$))?(?:(?P<low>\d{1,18})\.\.(?P<high>\d{1,18})?)?",
    re.ASCII,
)

EPILOG = """\b
Examples:
  pt2 edit model.pt2 new.pt2 --rename-input x=input_ids --drop-output 1
  pt2 edit model.pt2 new.pt2 --cast bf16 --device cpu --pass dce --pass cse
  pt2 edit model.pt2 new.pt2 --to bfloat16
  pt2 edit model.pt2 new.pt2 --dynamic x.0=batch:1..64
  pt2 edit model.pt2 new.pt2 --weights model.safetensors
  pt2 edit model.pt2 new.pt2 --operator aten::relu=aten::gelu
  pt2 edit model.pt2 new.pt2 --program model.txt    the program as `pt2 show --text` wrote it

Edits are made in the order of the list of options above; of one option in the order given.

\b
Exit codes: 0 written, 1 --prove found a difference, 2 an edit cannot be made (the error names it; nothing was written).
"""


def _pass(name: str) -> Callable[..., Any]:
    """Return the pass of a name, which is imported when it is called."""

    def run(editor: Editor, argument: Any) -> Any:
        from pt2kit.editing import passes

        return getattr(passes, name)(editor, argument)

    return run


def _run_pass(editor: Editor, name: str) -> int:
    from pt2kit.editing import passes

    if name not in passes.PASSES:
        raise click.UsageError(f"--pass: expected one of {', '.join(passes.PASSES)}, got {name!r}")
    return passes.PASSES[name](editor)


def _load_weights(editor: Editor, source: str) -> int:
    return len(editor.load_weights(source, strict=False))


def _rename_operator(editor: Editor, old: str, new: str) -> Any:
    return _pass("rename_operators")(editor, {old: new})


def _move(editor: Editor, device: str) -> Any:
    old, sign, new = device.rpartition("=")
    return _pass("move")(editor, {old: new} if sign else new)


def _drop_outputs(editor: Editor, values: Sequence[str]) -> Iterator[Done]:
    # From the end: the numbers are those of the file.
    for which in sorted(values, key=lambda one: -int(one) if one.isdecimal() else 1):
        editor.drop_output(int(which) if which.isdecimal() else which)
        yield f"drop output {which}", 1


def _specialize(editor: Editor, symbol: str, number: str) -> None:
    if not number.isdecimal():
        raise click.UsageError(f"--specialize: expected SYMBOL=NUMBER, got {symbol}={number}")
    editor.specialize(symbol, int(number))


def _set_sample_inputs(editor: Editor, file: str) -> int:
    from pt2kit.runtime.files import read_arrays

    editor.set_sample_inputs(arrays := read_arrays(file))
    return len(arrays)


def _make_dynamic(editor: Editor, wishes: Sequence[str]) -> Iterator[Done]:
    """Make dimensions dynamic; those of one NAME together, with the range that one of them states."""
    from pt2kit.editing import passes

    groups: dict[str, tuple[list[tuple[str, int]], list[tuple[int, int | None]]]] = {}
    for wish in wishes:
        match = _DYNAMIC.fullmatch(wish)
        if match is None or (match["name"] is None and match["low"] is None):
            raise click.UsageError(
                f"--dynamic: expected INPUT.DIM=[NAME:]LOW..HIGH, such as x.0=batch:1..64, got {wish}"
            )
        places, ranges = groups.setdefault(match["name"] or wish, ([], []))
        places.append((match["input"], int(match["dim"])))
        if match["low"] is not None:
            ranges.append((int(match["low"]), int(match["high"]) if match["high"] else None))
    for name, (places, ranges) in groups.items():
        if len(set(ranges)) > 1:
            raise click.UsageError(f"--dynamic: expected one range for {name}, got {len(set(ranges))}")
        low, high = ranges[0] if ranges else (1, None)
        symbol = passes.make_dynamic(editor, *places[0], low, high, equal=places[1:])
        yield f"{', '.join(f'{one}.{dim}' for one, dim in places)} is {symbol}", len(places)


def _replace_program(editor: Editor, where: str) -> None:
    """Take the program of a text; an error about the program names its line and column, too."""
    from pt2kit.text.source_reader import read

    with open(where, encoding="utf-8") as file:
        parsed = read(file.read(), where)
    try:
        editor.replace_program(parsed.program)
    except Pt2Error as error:
        if (place := parsed.place(str(error))) is None:
            raise
        located = type(error)(f"{place}: {error}")
        located.rule = error.rule
        raise located from error


@dataclass(frozen=True, slots=True)
class Option:
    """An option that makes edits.

    Args:
        flag: as it is written.
        form: the form of its value. Of OLD=NEW and SYMBOL=N the edit takes both sides.
        help: what it does.
        edit: a method of the editor, or a function of the editor and the value; returns the number of places, or
            something else for one.
        label: what one edit did; the words of the option and the value if it is empty.
        multiple: whether it may be repeated.
        complete: what completes its value in a shell.
        edit_all: makes the edits of all values together, instead of `edit`.
    """

    flag: str
    form: str
    help: str
    edit: str | Callable[..., Any] = ""
    label: str = ""
    multiple: bool = True
    complete: Callable[[click.Context, click.Parameter, str], Any] | None = None
    edit_all: Callable[[Editor, Sequence[str]], Iterator[Done]] | None = None

    @property
    def name(self) -> str:
        """Return the name of the command's parameter."""
        return self.flag.removeprefix("--").replace("-", "_")

    def edits(self, editor: Editor, values: Sequence[str]) -> Iterator[Done]:
        """Make the edits of all its values; return what each did, and in how many places."""
        if self.edit_all is not None:
            yield from self.edit_all(editor, values)
            return
        edit = getattr(editor, self.edit) if isinstance(self.edit, str) else partial(self.edit, editor)
        is_pair = self.form in _PAIRS
        label = self.label or self.name.replace("_", " ") + (" {} to {}" if is_pair else " {}")
        for sides in pairs(values, self.flag) if is_pair else zip(values, strict=True):
            count = edit(*sides)
            yield label.format(*sides), count if isinstance(count, int) else 1


EDITS: Final = (
    Option("--program", "TEXT", "Take the program from a file of its text form.", _replace_program, "program", False),
    Option("--weights", "SOURCE", "Take weights from a .safetensors or .pt2.", _load_weights),
    Option("--rename-input", "OLD=NEW", "Give an input another name.", "rename_input"),
    Option("--rename-output", "OLD=NEW", "Give an output another name.", "rename_output"),
    Option("--rename-weight", "OLD=NEW", "Give a weight or constant another name.", "rename_weight"),
    Option("--operator", "OLD=NEW", "Call another operator instead.", _rename_operator, "{} to {}"),
    Option("--drop-output", "OUTPUT", "Leave out an output, by number from 0 or name.", edit_all=_drop_outputs),
    Option("--add-output", "VALUE", "Return an additional value.", "add_output", complete=complete_nodes),
    Option("--specialize", "SYMBOL=N", "Let a symbol be a number.", _specialize, "{} is {}"),
    Option("--dynamic", "DIM=RANGE", "Make a dimension dynamic: x.0=batch:1..64.", edit_all=_make_dynamic),
    Option(
        *("--sample-inputs", "FILE.npz", "Store sample inputs: one array for each input."),
        *(_set_sample_inputs, "sample inputs", False),
    ),
    Option(
        *("--to", "DTYPE", "Compute in another type of floats: inputs, weights, results."),
        *(_pass("compute_in"), "compute in {}", False),
    ),
    Option(
        *("--cast", "DTYPE", "Store parameters and buffers of floats in another type."),
        *(_pass("cast_weights"), "cast to {}", False),
    ),
    Option("--device", "[OLD=]NEW", "Rewrite devices; all of them without OLD=.", _move),
    Option("--pass", "NAME", "Run a pass; `--list-passes` names them.", _run_pass),
    Option("--drop-input", "INPUT", "Leave out an input that nothing uses.", "drop_input"),
    Option(
        *("--drop-weight", "WEIGHT", "Leave out a weight that nothing uses.", "drop_weight"), complete=complete_weights
    ),
)
"""The options that make edits, in the order in which the edits are made."""


def _edit_options(function: F) -> F:
    """Add the options of `EDITS` to a command; each value comes as a sequence."""
    for row in reversed(EDITS):
        several = row.multiple
        function = click.option(
            row.flag,
            metavar=row.form,
            multiple=several,
            help=row.help,
            shell_complete=row.complete,
            callback=None if several else lambda context, parameter, value: () if value is None else (value,),
        )(function)
    return function


@click.command("edit", epilog=EPILOG)
@click.argument("source", metavar="FILE", type=FILE)
@click.argument("target", metavar="[OUT]", required=False, type=FILE)
@_edit_options
@click.option(
    "--list-passes",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda *a: _list_passes(*a),
    help="Name the passes, and do nothing else.",
)
@output_option
@external_option
@skeleton_option
@prove_option
@one_model_option
@json_option
def command(
    source: str,
    target: str | None,
    output: str | None,
    external: str | None,
    skeleton: bool,
    prove: bool,
    model: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Change a program of a .pt2 file and write the result; everything else is unchanged."""
    from pt2kit.editing.editor import edit

    target = one_output(target, output)
    with open_file(source) as package:
        chosen = choose_model(package, model)
        with edit(package, chosen) as editor:
            done = [
                row for option in EDITS if options[option.name] for row in option.edits(editor, options[option.name])
            ]
        if prove:
            editor.prove()
        write_result(editor.result, target, external=external, skeleton=skeleton)
    if target == "-":
        return 0
    if as_json:
        print_json(
            {
                "written": target,
                "model": chosen,
                "edits": [{"edit": what, "places": n} for what, n in done],
                "notes": editor.notes,
            }
        )
    else:
        print_lines(
            [
                target,
                *(f"  {what}: {count:,} place{'' if count == 1 else 's'}" for what, count in done),
                *map(printable, editor.notes),
            ]
        )
    return 0


def _list_passes(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from pt2kit.editing import passes

    print_lines(passes.PASSES)
    ctx.exit(0)
