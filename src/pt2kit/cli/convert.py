"""`pt2 convert SRC... DST --target T`: files as another release of torch, or version of the schema, has them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from pt2kit.cli.common import (
    FILE,
    choose_model,
    dict_of,
    json_option,
    model_option,
    open_file,
    output_option,
    progress,
    prove_option,
    symbol_values,
)
from pt2kit.cli.output import print_error, print_json, print_lines
from pt2kit.cli.several import Result, chosen_targets, jobs_option, make_folder, run_task
from pt2kit.errors import ConversionError

EPILOG = """\b
Examples:
  pt2 convert old.pt2 new.pt2 --target torch==2.13           up, from whatever release it is of
  pt2 convert new.pt2 old.pt2 --target torch==2.5 --report   down, and what changed on the way
  pt2 convert new.pt2 --target 5.3 --dry-run                 whether it can be
  pt2 convert new.pt2 old.pt2 --target torch==2.2 --allow persistent
  pt2 convert models/ converted/ --target torch==2.13 --jobs 2
  pt2 convert model.pt2 normal.pt2 --normalize               same bytes for two exports of one model
  pt2 convert model.pt2 model.mlir --to stablehlo            for XLA and other compilers

\b
TARGET is a release (torch==2.1 to torch==2.15) or a version of the schema (1 to 8.20, 5.3-traces, draft).

Going down, what the target has no place for is lost. These go without being asked, as neither what a program
computes nor which inputs it takes changes: argument_kinds, assertions, assumptions, constant_names,
equality_constraints, forward_arg_names, graph_metadata, guards_code, hints, input_names, module_calls,
namedtuple_fields, node_names, sample_inputs, small_sizes, source_fn_stack, tied, torch_version. Anything else has to
be allowed by its name. What is lost is named before the file is written; --keep NAME refuses to lose one of these.

\b
Exit codes: 0 converted, 1 the target cannot express it (nothing was written), 2 could not run.
"""


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """Options of a conversion."""

    target: str | None
    allow: tuple[str, ...]
    keep: tuple[str, ...]
    opset: dict[str, int]
    namedtuples: dict[str, str]
    model: str | None
    dry_run: bool
    store: bool
    prove: bool
    normalize: bool


@click.command("convert", epilog=EPILOG)
@click.argument("arguments", metavar="SRC... [DST]", nargs=-1, required=True, type=FILE)
@click.option("--target", metavar="TARGET", help="The release or version to convert to.")
@click.option("--allow", metavar="NAME", multiple=True, help="Accept a loss, by its name.")
@click.option("--keep", metavar="NAME", multiple=True, help="Refuse to lose something that needs no --allow.")
@click.option(
    "--opset",
    metavar="NS=NUMBER",
    multiple=True,
    callback=lambda *given: _opset(*given),
    help="The operator set version to have (aten=10).",
)
@click.option(
    "--namedtuple",
    "namedtuples",
    metavar="CLASS=NAME",
    multiple=True,
    callback=dict_of("CLASS=NAME"),
    help="The name a named tuple is registered under, for files of torch 2.1 to 2.3, which do not have it.",
)
@click.option("--to", "form", type=click.Choice(["stablehlo"]), help="Write another format; it needs jax.")
@click.option("--at", metavar="SYMBOL=N", multiple=True, help="With --to: the value of a symbol; repeatable.")
@click.option("--report", "wants_report", is_flag=True, help="Print everything that changed or was lost.")
@click.option("--store", is_flag=True, help="Store the JSON instead of deflating it.")
@click.option("--normalize", is_flag=True, help="Number process addresses: reproducible exports.")
@click.option("--dry-run", is_flag=True, help="Write nothing; report what would be done.")
@output_option
@prove_option
@model_option
@jobs_option
@json_option
def command(
    arguments: tuple[str, ...],
    target: str | None,
    allow: tuple[str, ...],
    keep: tuple[str, ...],
    opset: dict[str, int],
    namedtuples: dict[str, str],
    form: str | None,
    at: tuple[str, ...],
    wants_report: bool,
    store: bool,
    normalize: bool,
    dry_run: bool,
    output: str | None,
    prove: bool,
    model: str | None,
    jobs: int,
    as_json: bool,
) -> int:
    """Convert .pt2 files to another release of torch, newer or older; DST is a file, or for several a folder."""
    if target is None and not normalize and form is None:
        raise click.UsageError("expected --target TARGET, or --normalize, which keeps the file's own version")
    if form is not None and (target is not None or normalize):
        raise click.UsageError("--to: expected it without --target and --normalize")
    places, several = chosen_targets(arguments, output, needs_target=not dry_run)
    if "-" in places.values() and (as_json or wants_report):
        raise click.UsageError("expected a path as DST with --json and --report, got -")
    options = ConvertOptions(target, allow, keep, opset, namedtuples, model, dry_run, store, prove, normalize)
    if form is not None:
        if several or dry_run or prove or wants_report or as_json:
            raise click.UsageError("--to: expected one file, and no --dry-run, --prove, --report or --json")
        [(source, destination)] = places.items()
        return _write_stablehlo(source, destination, model, namedtuples, symbol_values(at))
    if at:
        raise click.UsageError("--at: expected --to FORMAT with it")
    if not several:
        [(source, destination)] = places.items()
        return _convert_one(source, destination, options, wants_report, as_json)
    outcomes = {"converted": "would be converted" if dry_run else "converted", "refused": "not expressible"}
    task, unread = partial(_task, places, options, wants_report), "not readable or writable"
    return run_task(list(places), task, jobs=jobs, as_json=as_json, outcomes=outcomes, unread=unread)


def _convert_one(source: str, destination: str, options: ConvertOptions, wants_report: bool, as_json: bool) -> int:
    def tell(report: Any) -> None:
        for line in () if as_json else _losses(report):
            if destination == "-":
                print_error(line, "note:")
            else:
                print_lines([line])
        sys.stdout.flush() if sys.stdout is not None else None

    report = _convert(source, destination, options, tell)
    if isinstance(report, str):
        if as_json:
            print_json(_refused_tree(report))
        else:
            print_lines(_refused_lines(report))
        return 1
    if destination == "-" and not options.dry_run:
        return 0
    if as_json:
        print_json({"converted": True, **report.to_tree()})
        return 0
    print_lines(_report_lines(report, wants_report))
    if options.dry_run and destination:
        print_lines([f"{destination}: not written (--dry-run)"])
    return 0


def _write_stablehlo(
    source: str, destination: str, model: str | None, namedtuples: dict[str, str], sizes: dict[str, int]
) -> int:
    """Write a program as StableHLO, for inputs of the sizes that it was exported with, or of others."""
    from pt2kit.runtime.random_inputs import random_inputs
    from pt2kit.runtime.session import Session

    with open_file(source, namedtuples=namedtuples) as package:
        session = Session(package, model=choose_model(package, model), backend="jax")
    text = session.stablehlo(random_inputs(session.convention, sizes=sizes))
    with click.open_file(destination, "w", encoding="utf-8", atomic=destination != "-") as file:
        file.write(text)
    return 0


def _convert(source: str, destination: str, options: ConvertOptions, tell: Any = None) -> Any:
    """The report of a conversion, or the text of what is in its way."""
    from pt2kit.release.conversion import convert

    with open_file(source, namedtuples=options.namedtuples) as package:
        one = package
        if options.model is not None and len(package.layout.models) > 1:
            from pt2kit.editing.packing import only

            one = only(package, choose_model(package, options.model))
        elif options.model is not None:
            choose_model(package, options.model)
        try:
            with progress(f"converting {package.name}") as bar:
                return convert(
                    one,
                    None if options.dry_run else sys.stdout.buffer if destination == "-" else destination,
                    target=options.target,
                    allow=options.allow,
                    keep=options.keep,
                    opset_version=options.opset,
                    compress=not options.store,
                    normalize=options.normalize,
                    tell=tell,
                    progress=bar,
                    prove=options.prove,
                )
        except ConversionError as error:
            return str(error)


def _losses(report: Any) -> Iterator[str]:
    """A line for each thing that is lost."""
    names: dict[str, tuple[int, str]] = {}
    for note in report.lost:
        count, message = names.get(note.name, (0, note.message))
        names[note.name] = (count + note.count, message)
    for name, (count, message) in names.items():
        yield f"loses {name}: {message}{f' ({count:,} places)' if count > 1 else ''}"


def _report_lines(report: Any, wants_report: bool) -> list[str]:
    from pt2kit.text.conversion import headline, report_lines

    return list(report_lines(report)) if wants_report else [headline(report)]


def _task(places: dict[str, str], options: ConvertOptions, wants_report: bool, source: str) -> Result:
    """Convert one of several files."""
    place = places[source]
    if not options.dry_run:
        make_folder(place)
    report = _convert(source, place, options)
    if isinstance(report, str):
        return Result({"written": place, **_refused_tree(report)}, _refused_lines(report), 1, "refused")
    lines = (
        [source, *_report_lines(report, True), ""] if wants_report else [f"{source} -> {place or 'nothing'}: {report}"]
    )
    return Result({"written": place, "converted": True, **report.to_tree()}, lines, 0, "converted", {"converted": 1})


def _opset(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    numbers = {}
    for text in values:
        namespace, _, number = text.partition("=")
        if not namespace or not (number.isascii() and number.isdecimal() and len(number) < 10):
            raise click.UsageError(f"--opset: expected NAMESPACE=NUMBER, got {text!r}")
        numbers[namespace] = int(number)
    return numbers


def _refused_tree(error: str) -> dict[str, Any]:
    """Return a refusal as data: its first line, and an obstacle for each other one."""
    first, *obstacles = error.splitlines()
    return {"converted": False, "message": first, "obstacles": [line.strip() for line in obstacles]}


def _refused_lines(error: str) -> list[str]:
    return error.splitlines()
