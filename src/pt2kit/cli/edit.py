"""`pt2 edit FILE OUT`: a program with other inputs, outputs, operators, weights or devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from pt2kit.cli.common import (
    FILE,
    choose_model,
    external_option,
    json_option,
    one_model_option,
    open_file,
    pairs,
    skeleton_option,
    write_result,
)
from pt2kit.cli.output import print_json, print_lines
from pt2kit.messages import printable

if TYPE_CHECKING:
    from pt2kit.editing.editor import Editor

EPILOG = """\b
Examples:
  pt2 edit model.pt2 new.pt2 --rename-input x=input_ids --drop-output 1
  pt2 edit model.pt2 new.pt2 --cast bf16 --device cpu --pass dce --pass cse
  pt2 edit model.pt2 new.pt2 --weights model.safetensors
  pt2 edit model.pt2 new.pt2 --operator aten::relu=aten::gelu
  pt2 edit model.pt2 new.pt2 --program model.txt    the program as `pt2 show --text` wrote it

Edits are made in the order of the list of options above; of one option in the order given.

\b
Exit codes: 0 written, 2 an edit cannot be made (the error names it; nothing was written).
"""


@click.command("edit", epilog=EPILOG, short_help="Change a program and its weights.")
@click.argument("source", metavar="FILE", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
@click.option("--program", metavar="TEXT", help="Take the program from a file of its text form.")
@click.option("--weights", "weights", metavar="SOURCE", multiple=True, help="Take weights from a .safetensors or .pt2.")
@click.option("--rename-input", metavar="OLD=NEW", multiple=True, help="Give an input another name.")
@click.option("--rename-output", metavar="OLD=NEW", multiple=True, help="Give an output another name.")
@click.option("--rename-weight", metavar="OLD=NEW", multiple=True, help="Give a weight or constant another name.")
@click.option("--operator", "operators", metavar="OLD=NEW", multiple=True, help="Call another operator instead.")
@click.option("--drop-output", metavar="OUTPUT", multiple=True, help="Leave out an output, by number from 0 or name.")
@click.option("--add-output", metavar="VALUE", multiple=True, help="Give back a value more.")
@click.option("--specialize", metavar="SYMBOL=N", multiple=True, help="Let a symbol be a number.")
@click.option("--cast", metavar="DTYPE", help="Store parameters and buffers of floats in another type.")
@click.option("--device", metavar="[OLD=]NEW", multiple=True, help="Rewrite devices; all of them without OLD=.")
@click.option("--pass", "passes", metavar="NAME", multiple=True, help="Run a pass; `--list-passes` names them.")
@click.option("--drop-input", metavar="INPUT", multiple=True, help="Leave out an input that nothing uses.")
@click.option("--drop-weight", metavar="WEIGHT", multiple=True, help="Leave out a weight that nothing uses.")
@click.option(
    "--list-passes",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda *a: _list_passes(*a),
    help="Name the passes, and do nothing else.",
)
@external_option
@skeleton_option
@one_model_option
@json_option
def command(
    source: str,
    target: str,
    external: str | None,
    skeleton: bool,
    model: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Change a program of a .pt2 file and write the result; what was not asked for stays as it is."""
    from pt2kit.editing.editor import edit

    with open_file(source) as package:
        chosen = choose_model(package, model)
        with edit(package, chosen) as editor:
            done = _apply(editor, options)
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


def _apply(editor: Editor, options: dict[str, Any]) -> list[tuple[str, int]]:
    """Make the edits, in the order of the options; what each did."""
    from pt2kit.editing import passes

    done: list[tuple[str, int]] = []
    if options["program"] is not None:
        with open(options["program"], encoding="utf-8") as file:
            text = file.read()
        editor.replace_program(_parsed(text, options["program"]))
        done.append(("program", 1))
    for weights in options["weights"]:
        done.append((f"weights {weights}", len(editor.load_weights(weights, strict=False))))
    renames: tuple[tuple[str, Callable[[str, str], None]], ...] = (
        ("rename_input", editor.rename_input),
        ("rename_output", editor.rename_output),
        ("rename_weight", editor.rename_weight),
    )
    for option, rename in renames:
        for old, new in pairs(options[option], f"--{option.replace('_', '-')}"):
            rename(old, new)
            done.append((f"{option.replace('_', ' ')} {old} to {new}", 1))
    for old, new in pairs(options["operators"], "--operator"):
        done.append((f"{old} to {new}", passes.rename_operators(editor, {old: new})))
    # From the end: the numbers are those of the file.
    for which in sorted(options["drop_output"], key=lambda one: -int(one) if one.isdecimal() else 1):
        editor.drop_output(int(which) if which.isdecimal() else which)
        done.append((f"drop output {which}", 1))
    for value in options["add_output"]:
        editor.add_output(value)
        done.append((f"add output {value}", 1))
    for symbol, number in pairs(options["specialize"], "--specialize"):
        if not number.isdecimal():
            raise click.UsageError(f"--specialize: expected SYMBOL=NUMBER, got {symbol}={number}")
        editor.specialize(symbol, int(number))
        done.append((f"{symbol} is {number}", 1))
    if options["cast"] is not None:
        done.append((f"cast to {options['cast']}", passes.cast_weights(editor, options["cast"])))
    for device in options["device"]:
        old, sign, new = device.rpartition("=")
        done.append((f"device {device}", passes.move(editor, {old: new} if sign else new)))
    for name in options["passes"]:
        if name not in passes.PASSES:
            raise click.UsageError(f"--pass: expected one of {', '.join(passes.PASSES)}, got {name!r}")
        done.append((f"pass {name}", passes.PASSES[name](editor)))
    for name in options["drop_input"]:
        editor.drop_input(name)
        done.append((f"drop input {name}", 1))
    for name in options["drop_weight"]:
        editor.drop_weight(name)
        done.append((f"drop weight {name}", 1))
    return done


def _parsed(text: str, where: str) -> Any:
    from pt2kit.text.source_reader import parse

    return parse(text, where)


def _list_passes(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from pt2kit.editing import passes

    print_lines(passes.PASSES)
    ctx.exit(0)
