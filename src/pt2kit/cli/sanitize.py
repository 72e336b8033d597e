"""`pt2 sanitize SRC... DST`: files that mean the same and carry no pickle and no code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pt2kit.cli.common import (
    FILE,
    choose_model,
    json_option,
    model_option,
    open_file,
    output_option,
    progress,
    prove_option,
)
from pt2kit.cli.output import print_json, print_lines
from pt2kit.cli.several import Result, chosen_targets, jobs_option, make_folder, run_task

if TYPE_CHECKING:
    from pt2kit.sanitizing.options import Options
    from pt2kit.sanitizing.plan import Plan
    from pt2kit.sanitizing.writing import Sanitized

PARTS: Final = ("program", "graph", "signature", "constraints", "weights", "constants", "metadata")
_PLAIN: Final[Mapping[str, str]] = {
    "X4": "guards are conditions on the inputs",
    "X9": "tree specs name Python's own types",
    "X11": "what the program computes is not changed",
}
_SHOWN: Final = 20

EPILOG = """\b
Examples:
  pt2 sanitize model.pt2 clean.pt2                     sample inputs become raw records
  pt2 sanitize model.pt2 clean.pt2 --strip traces --scrub-paths
  pt2 sanitize model.pt2 clean.pt2 --drop compiled --drop extra/notes.bin
  pt2 sanitize old.pt2 clean.pt2 --json                what was done, for scripts
  pt2 sanitize models/ clean/ --jobs 2                 all files of a folder

\b
Exit codes: 0 written, 1 refused (the reasons are listed), 2 not readable or writable.
"""


@dataclass(frozen=True, slots=True)
class SanitizeOptions:
    """Options of sanitizing."""

    parts: Options
    model: str | None
    dry_run: bool
    prove: bool


@click.command("sanitize", epilog=EPILOG)
@click.argument("arguments", metavar="SRC... DST", nargs=-1, required=True, type=FILE)
@click.option(
    "--drop",
    metavar="WHAT",
    multiple=True,
    help="Leave out compiled, sample-inputs, extra, unused, or one extra file by its record (extra/note.txt).",
)
@click.option(
    "--strip", metavar="WHAT", multiple=True, help="Leave out metadata of nodes: traces, provenance, or metadata (all)."
)
@click.option("--scrub-paths", is_flag=True, help="Remove what identifies a machine from paths in metadata.")
@click.option("--dry-run", is_flag=True, help="Write nothing; report what prevents it.")
@output_option
@prove_option
@model_option
@jobs_option
@json_option
def command(
    arguments: tuple[str, ...],
    drop: tuple[str, ...],
    strip: tuple[str, ...],
    scrub_paths: bool,
    dry_run: bool,
    output: str | None,
    prove: bool,
    model: str | None,
    jobs: int,
    as_json: bool,
) -> int:
    """Rewrite .pt2 files without pickles and code; they mean the same, and PyTorch loads them as before.

    DST is a file, or for several a folder; it may be that of SRC.
    """
    from pt2kit.sanitizing.options import make_options

    places, several = chosen_targets(arguments, output, needs_target=not dry_run)
    if "-" in places.values():
        raise click.UsageError("expected the path of a file as DST, got -")
    options = SanitizeOptions(make_options(drop, strip, scrub_paths), model, dry_run, prove)
    if several:
        outcomes = {"written": "clean" if dry_run else "written", "refused": "refused"}
        task, unread = partial(_task, places, options), "not readable or writable"
        return run_task(list(places), task, jobs=jobs, as_json=as_json, outcomes=outcomes, unread=unread)
    [(source, target)] = places.items()
    code, tree, lines = _sanitize(source, target, options)
    if as_json:
        print_json(tree)
    else:
        print_lines(lines)
    return code


def _sanitize(source: str, target: str, options: SanitizeOptions) -> tuple[int, dict[str, Any], list[str]]:
    """The exit code of one file, what became of it as data, and as lines."""
    from pt2kit.sanitizing.plan import make_plan
    from pt2kit.sanitizing.writing import execute

    with open_file(source) as whole:
        package = whole
        if options.model is not None:
            chosen = choose_model(whole, options.model)
            if len(whole.layout.models) > 1:
                from pt2kit.editing.packing import only

                package = only(whole, chosen)
        plan = make_plan(package, options.parts)
        if plan.problems:
            problems = [asdict(problem) for problem in plan.problems]
            return 1, {"written": None, "problems": problems}, list(_refused_lines(source, plan))
        if options.dry_run:
            return (
                0,
                {"written": None, "problems": []},
                [f"{source}: nothing prevents it; not written (--dry-run)"],
            )
        with progress(f"sanitizing {package.name}") as report:
            done = execute(package, plan, target, progress=report, run=options.prove)
    return 0, {"written": target, **done.to_tree(), "problems": []}, list(_lines(target, done))


def _task(places: dict[str, str], options: SanitizeOptions, source: str) -> Result:
    """Sanitize one of several files."""
    if not options.dry_run:
        make_folder(places[source])
    code, tree, lines = _sanitize(source, places[source], options)
    if not code and not options.dry_run:
        lines = [f"{source} -> {lines[0]}: {lines[1].split(None, 1)[1]}"]
    return Result(tree, lines, code, "refused" if code else "written", {"written": 1 - code})


def _refused_lines(source: str, plan: Plan) -> Iterator[str]:
    count = len(plan.problems)
    yield f"{source}: not written: {count:,} thing{'' if count == 1 else 's'} cannot be expressed as data"
    yield from (f"  {problem}" for problem in plan.problems)


def _lines(target: str, done: Sanitized) -> Iterator[str]:
    several = len(done.digests) > 1
    yield target
    for model, digests in done.digests.items():
        if several:
            yield f"program {model}"
        before = {**digests, "metadata": done.metadata_before[model]}
        yield from (_digest_line(part, before[part], digests[part]) for part in PARTS)
    yield from _listed("sample inputs moved to raw records", done.moved)
    yield from _listed("tensors moved out of pickles", done.unpickled)
    yield from _listed("left out", done.dropped)
    yield from _listed("raised to the current version", done.raised)
    kept = {problem.rule: _PLAIN.get(problem.rule, problem.message) for problem in done.kept}
    yield from _listed("kept, as PyTorch needs it", [f"{rule}: {text}" for rule, text in kept.items()])


def _digest_line(part: str, before: str, after: str) -> str:
    verdict = f"{after}  unchanged" if before == after else f"{before} -> {after}  changed, as asked"
    return f"  {part:<13} {verdict}"


def _listed(title: str, found: Iterable[Any]) -> Iterator[str]:
    rows = list(found)
    if rows:
        yield f"  {title}:"
        yield from (f"    {row}" for row in rows[:_SHOWN])
        if len(rows) > _SHOWN:
            yield f"    … and {len(rows) - _SHOWN:,} more"
