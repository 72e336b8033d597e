"""`pt2 convert SRC... DST --target T`: convert files to another release of torch or version of the schema."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pt2kit.cli.common import choose_model, only_model, open_file, progress
from pt2kit.cli.frame import (
    Result,
    argument,
    option,
    output_option,
    prove_option,
)
from pt2kit.cli.output import print_error, print_lines
from pt2kit.cli.several import FilesOptions, chosen_targets, make_folder, run_task
from pt2kit.errors import ConversionError

if TYPE_CHECKING:
    from pt2kit.release.conversion import Report


@dataclass(frozen=True, slots=True)
class Options(FilesOptions):
    """Options of `pt2 convert`."""

    arguments: tuple[str, ...] = argument("SRC... [DST]")
    target: str | None = option("The release or version to convert to.", "TARGET")
    allow: tuple[str, ...] = option("Accept a loss, by its name.", "NAME")
    keep: tuple[str, ...] = option("Refuse to lose something that needs no --allow.", "NAME")
    opset: Mapping[str, int] = option("The operator set version to have (aten=10).", "NS=NUMBER")
    namedtuples: Mapping[str, str] = option(
        "The name a named tuple is registered under, for files of torch 2.1 to 2.3, which do not have it.",
        "--namedtuple",
        "CLASS=NAME",
    )
    form: str | None = option("Write another format; it needs jax.", "--to", type=click.Choice(["stablehlo"]))
    at: Mapping[str, int] = option("With --to: the value of a symbol; repeatable.", "SYMBOL=N")
    report: bool = option("Print everything that changed or was lost.")
    store: bool = option("Store the JSON instead of deflating it.")
    normalize: bool = option("Number process addresses: reproducible exports.")
    dry_run: bool = option("Write nothing; report what would be done.")
    output: str | None = output_option("DST", "file or folder")
    prove: bool = prove_option()


def run(options: Options) -> int:
    """Convert .pt2 files to another release of torch, newer or older; DST is a file, or for several a folder.

    Examples:
      pt2 convert old.pt2 new.pt2 --target torch==2.13           upgrade a file of any release
      pt2 convert new.pt2 old.pt2 --target torch==2.5 --report   down, and what changed on the way
      pt2 convert new.pt2 --target 5.3 --dry-run                 whether it can be
      pt2 convert new.pt2 old.pt2 --target torch==2.2 --allow persistent
      pt2 convert models/ converted/ --target torch==2.13 --jobs 2
      pt2 convert model.pt2 normal.pt2 --normalize               same bytes for two exports of one model
      pt2 convert model.pt2 model.mlir --to stablehlo            for XLA and other compilers

    TARGET is a release (torch==2.1 to torch==2.15) or a version of the schema (1 to 8.20, 5.3-traces, draft).

    Going down, what the target has no place for is lost. These go without being asked, as neither what a program
    computes nor which inputs it takes changes: argument_kinds, assertions, assumptions, constant_names,
    equality_constraints, forward_arg_names, graph_metadata, guards_code, hints, input_names, module_calls,
    namedtuple_fields, node_names, sample_inputs, small_sizes, source_fn_stack, tied, torch_version. Anything else has
    to be allowed by its name. What is lost is named before the file is written; --keep NAME refuses to lose one of
    these.

    Exit codes: 0 converted, 1 the target cannot express it (nothing was written), 2 could not run.
    """
    if options.target is None and not options.normalize and not options.store and options.form is None:
        raise click.UsageError("expected --target TARGET, or --normalize or --store, which keep the file's own version")
    if options.form is not None and (options.target is not None or options.normalize):
        raise click.UsageError("--to: expected it without --target and --normalize")
    places, several = chosen_targets(options.arguments, options.output, needs_target=not options.dry_run)
    if "-" in places.values() and (options.as_json or options.report):
        raise click.UsageError("expected a path as DST with --json and --report, got -")
    if options.form is not None:
        if several or options.dry_run or options.prove or options.report or options.as_json:
            raise click.UsageError("--to: expected one file, and no --dry-run, --prove, --report or --json")
        [(source, destination)] = places.items()
        return _write_stablehlo(source, destination, options)
    if options.at:
        raise click.UsageError("--at: expected --to FORMAT with it")
    outcomes = {"converted": "would be converted" if options.dry_run else "converted", "refused": "not expressible"}
    task, unread = partial(_convert, options, places, several), "not readable or writable"
    return run_task(list(places), several, task, options, outcomes=outcomes, unread=unread)


def _write_stablehlo(source: str, destination: str, options: Options) -> int:
    """Write a program as StableHLO, for inputs of the sizes that it was exported with, or of others."""
    from pt2kit.runtime.inputs import random_inputs
    from pt2kit.runtime.session import Session

    with open_file(source, namedtuples=options.namedtuples) as package:
        session = Session(package, model=choose_model(package, options.model), backend="jax")
    text = session.stablehlo(random_inputs(session.convention, sizes=options.at))
    with click.open_file(destination, "w", encoding="utf-8", atomic=destination != "-") as file:
        file.write(text)
    return 0


def _convert(options: Options, places: Mapping[str, str], several: bool, source: str) -> Result:
    """Convert one file; of several, report each in one line."""
    from pt2kit.release.conversion import convert, report_lines

    destination = places[source]
    target: Any = None if options.dry_run else sys.stdout.buffer if destination == "-" else destination
    if several and not options.dry_run:
        make_folder(destination)
    row = {"written": destination} if several else {}
    try:
        with open_file(source, namedtuples=options.namedtuples) as package:
            one = only_model(package, options.model)
            with progress(f"converting {package.name}") as bar:
                report = convert(
                    one,
                    target,
                    target=options.target,
                    allow=options.allow,
                    keep=options.keep,
                    opset_version=options.opset,
                    compress=not options.store,
                    normalize=options.normalize,
                    tell=None if several or options.as_json else partial(_print_losses, destination),
                    progress=bar,
                    prove=options.prove,
                )
    except ConversionError as error:
        message, *obstacles = text = str(error).splitlines()
        tree = {**row, "converted": False, "message": message, "obstacles": [line.strip() for line in obstacles]}
        return Result(text, lambda: tree, 1, outcome="refused")
    lines = list(report_lines(report)) if options.report else [str(report)]
    if several:
        lines = [source, *lines, ""] if options.report else [f"{source} -> {destination or 'nothing'}: {report}"]
    elif destination == "-" and not options.dry_run:
        lines = []
    elif options.dry_run and destination:
        lines.append(f"{destination}: not written (--dry-run)")
    done = {**row, "converted": True, **report.to_tree()}
    return Result(lines, lambda: done, outcome="converted", totals={"converted": 1})


def _print_losses(destination: str, report: Report) -> None:
    """Print what a conversion is going to lose, before the file is written."""
    places, messages = Counter[str](), dict[str, str]()
    for note in report.lost:
        places[note.name] += note.count
        messages.setdefault(note.name, note.message)
    for name, message in messages.items():
        line = f"loses {name}: {message}{f' ({places[name]:,} places)' if places[name] > 1 else ''}"
        if destination == "-":
            print_error(line, "note:")
        else:
            print_lines([line])
    if sys.stdout is not None:
        sys.stdout.flush()
