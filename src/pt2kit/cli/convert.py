"""`pt2 convert SRC... DST --target T`: files as another release of torch, or version of the schema, has them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from pt2kit.cli.common import FILE, choose_model, json_option, model_option, open_file, pairs, progress
from pt2kit.cli.output import print_error, print_json, print_lines
from pt2kit.cli.several import answers, chosen_targets, jobs_option, make_folder, report_unread, summary_line
from pt2kit.errors import ConversionError

EPILOG = """\b
Examples:
  pt2 convert old.pt2 new.pt2 --target torch==2.13           up, from whatever release it is of
  pt2 convert new.pt2 old.pt2 --target torch==2.5 --report   down, and what changed on the way
  pt2 convert new.pt2 --target 5.3 --dry-run                 whether it can be
  pt2 convert new.pt2 old.pt2 --target torch==2.2 --allow persistent
  pt2 convert models/ converted/ --target torch==2.13 --jobs 2

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
class Wish:
    """What a file is to become."""

    target: str
    allow: tuple[str, ...]
    keep: tuple[str, ...]
    opset: dict[str, int]
    namedtuples: dict[str, str]
    model: str | None
    dry_run: bool


@click.command("convert", epilog=EPILOG, short_help="Another release's file of the same program.")
@click.argument("arguments", metavar="SRC... [DST]", nargs=-1, required=True, type=FILE)
@click.option("--target", metavar="TARGET", required=True, help="The release or version to convert to.")
@click.option("--allow", metavar="NAME", multiple=True, help="Accept that something is lost, by its name.")
@click.option("--keep", metavar="NAME", multiple=True, help="Refuse to lose something that goes without being asked.")
@click.option("--opset", metavar="NS=NUMBER", multiple=True, help="The operator set version to have (aten=10).")
@click.option(
    "--namedtuple",
    "namedtuples",
    metavar="CLASS=NAME",
    multiple=True,
    help="The name a named tuple is registered under, for files of torch 2.1 to 2.3, which do not have it.",
)
@click.option("--report", "wants_report", is_flag=True, help="Print everything that changed or was lost.")
@click.option("--dry-run", is_flag=True, help="Write nothing; say what would be done.")
@model_option
@jobs_option
@json_option
def command(
    arguments: tuple[str, ...],
    target: str,
    allow: tuple[str, ...],
    keep: tuple[str, ...],
    opset: tuple[str, ...],
    namedtuples: tuple[str, ...],
    wants_report: bool,
    dry_run: bool,
    model: str | None,
    jobs: int,
    as_json: bool,
) -> int:
    """Write .pt2 files as another release of torch writes them, up or down; DST is a file, or for several a folder."""
    places, several = chosen_targets(arguments, needs_target=not dry_run)
    if "-" in places.values() and (as_json or wants_report):
        raise click.UsageError("expected a path as DST with --json and --report, got -")
    registered = dict(pairs(namedtuples, "--namedtuple", "CLASS=NAME"))
    wish = Wish(target, allow, keep, dict(map(_opset, opset)), registered, model, dry_run)
    if not several:
        [(source, destination)] = places.items()
        return _convert_one(source, destination, wish, wants_report, as_json)
    return _convert_all(places, wish, wants_report, jobs, as_json)


def _convert_one(source: str, destination: str, wish: Wish, wants_report: bool, as_json: bool) -> int:
    def tell(report: Any) -> None:
        for line in () if as_json else _losses(report):
            if destination == "-":
                print_error(line, "note:")
            else:
                print_lines([line])
        sys.stdout.flush() if sys.stdout is not None else None

    report = _convert(source, destination, wish, tell)
    if isinstance(report, str):
        return _blocked(report, as_json)
    if destination == "-" and not wish.dry_run:
        return 0
    if as_json:
        print_json({"converted": True, **report.to_tree()})
        return 0
    print_lines(_report_lines(report, wants_report))
    if wish.dry_run and destination:
        print_lines([f"{destination}: not written (--dry-run)"])
    return 0


def _convert(source: str, destination: str, wish: Wish, tell: Any = None) -> Any:
    """The report of a conversion, or the text of what is in its way."""
    from pt2kit.release.conversion import convert

    with open_file(source, namedtuples=wish.namedtuples) as package:
        one = package
        if wish.model is not None and len(package.layout.models) > 1:
            from pt2kit.editing.packing import only

            one = only(package, choose_model(package, wish.model))
        elif wish.model is not None:
            choose_model(package, wish.model)
        try:
            with progress(f"converting {package.name}") as bar:
                return convert(
                    one,
                    None if wish.dry_run else sys.stdout.buffer if destination == "-" else destination,
                    target=wish.target,
                    allow=wish.allow,
                    keep=wish.keep,
                    opset_version=wish.opset,
                    tell=tell,
                    progress=bar,
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


def _converted(places: dict[str, str], wish: Wish, source: str) -> tuple[int, Any, list[str]]:
    """Convert one of several files: its exit code, its report as data, and what is said of it."""
    if not wish.dry_run:
        make_folder(places[source])
    report = _convert(source, places[source], wish)
    if isinstance(report, str):
        first, *obstacles = report.splitlines()
        return 1, {"converted": False, "message": first, "obstacles": [line.strip() for line in obstacles]}, [report]
    lines = [f"{source} -> {places[source] or 'nothing'}: {report}"]
    return 0, {"converted": True, **report.to_tree()}, [*lines, *_report_lines(report, True)]


def _convert_all(places: dict[str, str], wish: Wish, wants_report: bool, jobs: int, as_json: bool) -> int:
    code, unread = 0, 0
    codes: list[int] = []
    rows: list[dict[str, Any]] = []
    for answer in answers(list(places), partial(_converted, places, wish), jobs):
        if answer.found is None:
            unread += 1
            rows.append({"file": answer.file, "converted": False, "message": answer.error, "obstacles": []})
            code = max(code, report_unread(answer))
            continue
        one, tree, lines = answer.found
        codes.append(one)
        code = max(code, one)
        rows.append({"file": answer.file, "written": places[answer.file], **tree})
        if not as_json:
            print_lines(lines[0].splitlines() if one or not wants_report else [answer.file, *lines[1:], ""])
    counts = (
        (codes.count(0), "would be converted" if wish.dry_run else "converted"),
        (codes.count(1), "not expressible"),
    )
    if as_json:
        print_json({"files": rows, "summary": {"files": len(places), "converted": codes.count(0)}})
    else:
        print_lines([summary_line(len(places), *counts, (unread, "not readable or writable"))])
    return code


def _opset(text: str) -> tuple[str, int]:
    namespace, _, number = text.partition("=")
    if not namespace or not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise click.UsageError(f"--opset: expected NAMESPACE=NUMBER, got {text!r}")
    return namespace, int(number)


def _blocked(error: str, as_json: bool) -> int:
    """Print what stands in the way, a line for each."""
    first, *obstacles = error.splitlines()
    if as_json:
        print_json({"converted": False, "message": first, "obstacles": [line.strip() for line in obstacles]})
    else:
        print_lines([first, *obstacles])
    return 1
