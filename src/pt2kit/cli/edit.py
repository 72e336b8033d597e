"""`pt2 edit FILE OUT`: change inputs, outputs, operators, weights or devices of a program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from pt2kit.cli.common import choose_model, is_count, one_output, open_file, write_result
from pt2kit.cli.completion import complete_nodes, complete_weights
from pt2kit.cli.frame import (
    Result,
    ResultOptions,
    argument,
    external_option,
    model_option,
    option,
    output_option,
    print_result,
    prove_option,
)
from pt2kit.cli.output import print_lines
from pt2kit.errors import Pt2Error, at
from pt2kit.messages import count_text, printable

if TYPE_CHECKING:
    from pt2kit.editing.editor import Editor

Done: TypeAlias = tuple[str, int]
"""Description of an edit, and the number of places it changed."""

_DYNAMIC: Final = re.compile(
    r"(?P<input>\w+)\.(?P<dim>\d{1,2})=(?:(?P<name>[A-Za-z_]\w*)(?::(?=\d)|$))?(?:(?P<low>\d{1,18})\.\.(?P<high>\d{1,18})?)?",
    re.ASCII,
)


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


def _drop_outputs(editor: Editor, _: str, values: Sequence[str]) -> Iterator[Done]:
    # From the end: the numbers are those of the file.
    for which in sorted(values, key=lambda one: -int(one) if is_count(one) else 1):
        editor.drop_output(int(which) if is_count(which) else which)
        yield f"drop output {which}", 1


def _set_sample_inputs(editor: Editor, file: str) -> int:
    from pt2kit.runtime.session import read_arrays

    editor.set_sample_inputs(arrays := read_arrays(file))
    return len(arrays)


def _make_dynamic(editor: Editor, _: str, dimensions: Sequence[str]) -> Iterator[Done]:
    """Make dimensions dynamic; those of one NAME together, with the range that one of them states."""
    from pt2kit.editing import passes

    groups: dict[str, tuple[list[tuple[str, int]], list[tuple[int, int | None]]]] = {}
    for text in dimensions:
        match = _DYNAMIC.fullmatch(text)
        if match is None or (match["name"] is None and match["low"] is None):
            raise click.UsageError(
                f"--dynamic: expected INPUT.DIM=[NAME:]LOW..HIGH, such as x.0=batch:1..64, got {text}"
            )
        places, ranges = groups.setdefault(match["name"] or text, ([], []))
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
    """Replace the program by a text; an error about the program also names its line and column."""
    from pt2kit.text.source_reader import read

    with open(where, encoding="utf-8") as file:
        parsed = read(file.read(), where)
    try:
        editor.replace_program(parsed.program)
    except Pt2Error as error:
        if (place := parsed.place(str(error))) is None:
            raise
        raise at(place, error) from error


def _edit(form: str, help: str, make: str | Callable[..., Any], label: str = "", *flags: str, **settings: Any) -> Any:
    """Declare a field whose values are edits; as `option`.

    Args:
        form: how a value is written.
        help: the help text.
        make: a method of the editor, or a function of the editor and a value (of a pair, both sides); returns the
            number of places, or something else for one.
        label: what one edit did; the words of the option and the value if it is empty.
        flags: the flags.
        settings: further arguments of `click.option`.
    """

    def edits(editor: Editor, name: str, given: Any) -> Iterator[Done]:
        run = getattr(editor, make) if isinstance(make, str) else partial(make, editor)
        values = [given] if isinstance(given, str) else given
        for sides in (one if isinstance(one, tuple) else (one,) for one in values):
            text = label or name.replace("_", " ") + " {}" + " to {}" * (len(sides) - 1)
            count = run(*sides)
            yield text.format(*sides), count if isinstance(count, int) else 1

    return option(help, form, *flags, about=edits, **settings)


def _list_passes(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from pt2kit.editing import passes

    print_lines(passes.PASSES)
    context.exit(0)


@dataclass(frozen=True, slots=True)
class Options(ResultOptions):
    """Options of `pt2 edit`; edits are made in the order of the fields.

    The `about` of a field makes its edits: a function of the editor, the name of the option and its values.
    """

    source: str = argument("FILE")
    target: str | None = argument("[OUT]")
    program: str | None = _edit("TEXT", "Replace the program by one in text form.", _replace_program, "program")
    weights: tuple[str, ...] = _edit("SOURCE", "Replace weights by those of a .safetensors or .pt2.", _load_weights)
    rename_input: tuple[tuple[str, str], ...] = _edit("OLD=NEW", "Rename an input.", "rename_input")
    rename_output: tuple[tuple[str, str], ...] = _edit("OLD=NEW", "Rename an output.", "rename_output")
    rename_weight: tuple[tuple[str, str], ...] = _edit("OLD=NEW", "Rename a weight or constant.", "rename_weight")
    operator: tuple[tuple[str, str], ...] = _edit(
        "OLD=NEW", "Call another operator instead.", _rename_operator, "{} to {}"
    )
    drop_output: tuple[str, ...] = option("Remove an output, by number from 0 or name.", "OUTPUT", about=_drop_outputs)
    add_output: tuple[str, ...] = _edit(
        "VALUE", "Return an additional value.", "add_output", shell_complete=complete_nodes
    )
    specialize: tuple[tuple[str, int], ...] = _edit("SYMBOL=N", "Set a symbol to a number.", "specialize", "{} is {}")
    dynamic: tuple[str, ...] = option("Make a dimension dynamic: x.0=batch:1..64.", "DIM=RANGE", about=_make_dynamic)
    sample_inputs: str | None = _edit(
        "FILE.npz", "Store sample inputs: one array for each input.", _set_sample_inputs, "sample inputs"
    )
    to: str | None = _edit(
        "DTYPE", "Compute in another float type: inputs, weights, results.", _pass("compute_in"), "compute in {}"
    )
    cast: str | None = _edit(
        "DTYPE", "Store float parameters and buffers in another type.", _pass("cast_weights"), "cast to {}"
    )
    device: tuple[str, ...] = _edit("[OLD=]NEW", "Rewrite devices; all of them without OLD=.", _move)
    # A keyword of Python cannot be the name of a field.
    run_pass: tuple[str, ...] = _edit("NAME", "Run a pass; `--list-passes` names them.", _run_pass, "pass {}", "--pass")
    drop_input: tuple[str, ...] = _edit("INPUT", "Remove an input that nothing uses.", "drop_input")
    drop_weight: tuple[str, ...] = _edit(
        "WEIGHT", "Remove a weight that nothing uses.", "drop_weight", shell_complete=complete_weights
    )
    list_passes: bool = option("List the passes and exit.", is_flag=True, is_eager=True, callback=_list_passes)
    output: str | None = output_option()
    external: str | None = external_option()
    skeleton: bool = option("Omit weight data.")
    prove: bool = prove_option()
    model: str | None = model_option()

    def edits(self, editor: Editor) -> Iterator[Done]:
        """Make all edits; yield what each did, and in how many places."""
        for one in fields(self):
            edits, given = one.metadata.get("about"), getattr(self, one.name)
            if edits is not None and given:
                yield from edits(editor, one.name, given)


def run(options: Options) -> int:
    """Change a program of a .pt2 file and write the result; everything else is unchanged.

    Examples:
      pt2 edit model.pt2 new.pt2 --rename-input x=input_ids --drop-output 1
      pt2 edit model.pt2 new.pt2 --cast bf16 --device cpu --pass dce --pass cse
      pt2 edit model.pt2 new.pt2 --to bfloat16
      pt2 edit model.pt2 new.pt2 --dynamic x.0=batch:1..64
      pt2 edit model.pt2 new.pt2 --weights model.safetensors
      pt2 edit model.pt2 new.pt2 --operator aten::relu=aten::gelu
      pt2 edit model.pt2 new.pt2 --program model.txt    the program as `pt2 show --text` wrote it

    Edits are applied in the order of the options above; those of one option in the order given.

    Exit codes: 0 written, 1 --prove found a difference, 2 it cannot be done (the error says why; nothing was written).
    """
    from pt2kit.editing.editor import edit

    target = one_output(options.target, options.output)
    if target == "-" and options.as_json:
        raise click.UsageError("expected a path as OUT with --json, got -")
    with open_file(options.source) as package:
        chosen = choose_model(package, options.model)
        with edit(package, chosen) as editor:
            done = list(options.edits(editor))
        if options.prove:
            editor.prove()
        write_result(editor.result, target, external=options.external, skeleton=options.skeleton)
    if target == "-":
        return 0
    lines = [
        target,
        *(f"  {what}: {count_text(count, 'place')}" for what, count in done),
        *map(printable, editor.notes),
    ]
    edits = [{"edit": what, "places": count} for what, count in done]
    tree = {"written": target, "model": chosen, "edits": edits, "notes": editor.notes}
    return print_result(Result(lines, lambda: tree), options.as_json)
