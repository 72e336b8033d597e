"""`pt2 sanitize SRC... DST`: files that mean the same and carry no pickle and no code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pt2kit.cli.common import only_model, open_file, progress
from pt2kit.cli.frame import (
    Result,
    argument,
    option,
    output_option,
    prove_option,
)
from pt2kit.cli.several import FilesOptions, chosen_targets, make_folder, run_task
from pt2kit.digests.result import PARTS
from pt2kit.messages import count_text

if TYPE_CHECKING:
    from pt2kit.sanitizing.options import Options as Parts
    from pt2kit.sanitizing.writing import Sanitized

_PLAIN: Final[Mapping[str, str]] = {
    "X4": "guards are conditions on the inputs",
    "X9": "tree specs name Python's own types",
    "X11": "what the program computes is not changed",
}
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Options(FilesOptions):
    """Options of `pt2 sanitize`."""

    arguments: tuple[str, ...] = argument("SRC... DST")
    drop: tuple[str, ...] = option(
        "Leave out compiled, sample-inputs, extra, unused, or one extra file by its record (extra/note.txt).", "WHAT"
    )
    strip: tuple[str, ...] = option("Leave out metadata of nodes: traces, provenance, or metadata (all).", "WHAT")
    scrub_paths: bool = option("Remove what identifies a machine from paths in metadata.")
    dry_run: bool = option("Write nothing; report what prevents it.")
    output: str | None = output_option("DST", "file or folder")
    prove: bool = prove_option()


def run(options: Options) -> int:
    """Rewrite .pt2 files without pickles and code; they mean the same, and PyTorch loads them as before.

    DST is a file, or for several a folder; it may be that of SRC.

    Examples:
      pt2 sanitize model.pt2 clean.pt2                     sample inputs become raw records
      pt2 sanitize model.pt2 clean.pt2 --strip traces --scrub-paths
      pt2 sanitize model.pt2 clean.pt2 --drop compiled --drop extra/notes.bin
      pt2 sanitize old.pt2 clean.pt2 --json                what was done, for scripts
      pt2 sanitize models/ clean/ --jobs 2                 all files of a folder

    Exit codes: 0 written, 1 refused (the reasons are listed), 2 not readable or writable.
    """
    from pt2kit.sanitizing.options import make_options

    places, several = chosen_targets(options.arguments, options.output, needs_target=not options.dry_run)
    if "-" in places.values():
        raise click.UsageError("expected the path of a file as DST, got -")
    parts = make_options(options.drop, options.strip, options.scrub_paths)
    outcomes = {"written": "clean" if options.dry_run else "written", "refused": "refused"}
    task, unread = partial(_sanitize, options, parts, places, several), "not readable or writable"
    return run_task(list(places), several, task, options, outcomes=outcomes, unread=unread)


def _sanitize(options: Options, parts: Parts, places: Mapping[str, str], several: bool, source: str) -> Result:
    """Sanitize one file; of several, report each in one line."""
    from pt2kit.sanitizing.plan import make_plan
    from pt2kit.sanitizing.writing import execute

    target = places[source]
    if several and not options.dry_run:
        make_folder(target)
    with open_file(source) as whole:
        package = only_model(whole, options.model)
        plan = make_plan(package, parts)
        if problems := plan.problems:
            refused = {"written": None, "problems": [asdict(problem) for problem in problems]}
            head = f"{source}: not written: {count_text(len(problems), 'thing')} cannot be expressed as data"
            lines = [head, *(f"  {problem}" for problem in problems)]
            return Result(lines, lambda: refused, 1, outcome="refused")
        if options.dry_run:
            lines = [f"{source}: nothing prevents it; not written (--dry-run)"]
            return Result(lines, lambda: {"written": None, "problems": []}, outcome="written", totals={"written": 1})
        with progress(f"sanitizing {package.name}") as report:
            done = execute(package, plan, target, progress=report, run=options.prove)
    tree = {"written": target, **done.to_tree(), "problems": []}
    lines = list(_lines(target, done))
    if several:
        lines = [f"{source} -> {lines[0]}: {lines[1].split(None, 1)[1]}"]
    return Result(lines, lambda: tree, outcome="written", totals={"written": 1})


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
