"""`pt2 sanitize SRC DST`: a file that means the same and carries no pickle and no code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from pt2kit.cli.common import json_option, open_file, progress
from pt2kit.cli.output import print_json, print_lines

if TYPE_CHECKING:
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

\b
Exit codes: 0 written, 1 refused (what stands in the way is listed), 2 could not be read or written.
"""


@click.command("sanitize", epilog=EPILOG, short_help="Write a file without pickles and code.")
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST", type=click.Path(dir_okay=False))
@click.option(
    "--drop",
    metavar="WHAT",
    multiple=True,
    help="Leave out compiled, sample-inputs, extra, unused, or one extra file by its record (extra/note.txt).",
)
@click.option(
    "--strip", metavar="WHAT", multiple=True, help="Leave out metadata of nodes: traces, provenance, or metadata (all)."
)
@click.option("--scrub-paths", is_flag=True, help="Take what is particular to a machine out of paths in metadata.")
@json_option
def command(
    source: str, target: str, drop: tuple[str, ...], strip: tuple[str, ...], scrub_paths: bool, as_json: bool
) -> int:
    """Rewrite a .pt2 so that it means the same and holds tensors and text alone; PyTorch loads it as before."""
    if target == "-":
        raise click.UsageError("expected the path of a file as DST, got -")
    from pt2kit.sanitizing.options import make_options
    from pt2kit.sanitizing.plan import make_plan
    from pt2kit.sanitizing.writing import carry_out

    options = make_options(drop, strip, scrub_paths)
    with open_file(source) as package:
        plan = make_plan(package, options)
        if plan.problems:
            _print_refused(source, plan, as_json)
            return 1
        with progress(f"sanitizing {package.name}") as report:
            done = carry_out(package, plan, target, progress=report)
    if as_json:
        print_json({"written": target, **done.to_tree(), "problems": []})
    else:
        print_lines(_lines(target, done))
    return 0


def _print_refused(source: str, plan: Plan, as_json: bool) -> None:
    if as_json:
        print_json({"written": None, "problems": [asdict(problem) for problem in plan.problems]})
        return
    count = len(plan.problems)
    print_lines([f"{source}: not written: {count:,} thing{'' if count == 1 else 's'} cannot be expressed as data"])
    print_lines(f"  {problem}" for problem in plan.problems)


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
