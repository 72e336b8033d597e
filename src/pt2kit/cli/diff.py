"""`pt2 diff OLD NEW`: compare two programs by behavior, or by running them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pt2kit.cli.common import SECONDS, check_page, choose_model, open_file, progress
from pt2kit.cli.frame import (
    Result,
    ResultOptions,
    argument,
    force_option,
    memory_option,
    option,
    path_option,
    print_result,
)
from pt2kit.cli.output import colour, print_lines, width

if TYPE_CHECKING:
    from pt2kit.comparing.runs import RunComparison
    from pt2kit.diffs.changes import Diff
    from pt2kit.package.open import Package

STYLES: Final = {"+ ": "green", "- ": "red", "~ ": "yellow", "@ ": "cyan"}
"""The mark of a line -> its color."""


@dataclass(frozen=True, slots=True)
class Options(ResultOptions):
    """Options of `pt2 diff`."""

    files: tuple[str, ...] = argument("OLD NEW")
    no_tensors: bool = option("Don't compare the data of weights and constants.")
    no_metadata: bool = option("Don't compare stack traces and the like.")
    names: bool = option("Compare the names of nodes and values, too.")
    order: bool = option("Compare the order of nodes, too.")
    model: tuple[str, ...] = option(
        "Compare this program with that one; by default those of equal names, then those of equal digests.", "OLD[=NEW]"
    )
    full: bool = option("Leave nothing out.")
    html: str | None = path_option("Write a page with everything.", "--output", "-o", "--html")
    force: bool = force_option(is_page=True)
    textconv: bool = option("Print one file as text that git can compare.")
    run: bool = option("Run both with NumPy and compare what they compute.")
    against: str | None = option("With --run and one file: PyTorch, or recorded outputs.", "torch|FILE")
    input: tuple[str, ...] = option("With --run: an input, as of `pt2 run`.", "NAME=VALUE")
    seed: int = option(
        "With --run: seed of random inputs and operators.  [default: 0]", type=click.IntRange(0), default=0
    )
    timeout: float = option("With --run: stop then.  [default: 600]", "SECONDS", type=SECONDS, default=600.0)
    max_memory: int | None = memory_option("With --run: memory to use, such as 4G.")


def run(options: Options) -> int:
    """Compare two .pt2 files by what they do: names of values and the order of nodes make no difference.

    Examples:
      pt2 diff old.pt2 new.pt2                   summary first, then what differs
      pt2 diff old.pt2 new.pt2 --no-tensors      programs only: no weights are read
      pt2 diff old.pt2 new.pt2 --html diff.html  one page with everything
      pt2 diff both.pt2 new.pt2 --model encoder=model
      pt2 diff old.pt2 new.pt2 --run             first node whose numbers differ
      pt2 diff model.pt2 --run --against torch   NumPy and PyTorch, node by node
      pt2 diff model.pt2 --run --input in.npz --against out.npz
      git config diff.pt2.textconv 'pt2 diff --textconv'   and "*.pt2 diff=pt2" in .gitattributes

    With --textconv, what cannot be read becomes a line that says why, as git gives up if this command does.

    Exit codes: 0 no difference, 1 a difference, 2 could not be read.
    """
    files, against, textconv = options.files, options.against, options.textconv
    if len(files) != (1 if textconv or against is not None else 2):
        expected = "one file with --textconv and --against" if textconv or against is not None else "two files"
        raise click.UsageError(f"expected {expected}, got {len(files)}")
    if textconv and options.model:
        raise click.UsageError("expected --textconv without --model, got both")
    if textconv and (options.html is not None or options.as_json):
        raise click.UsageError("expected --textconv without --json and --html, got both")
    if files.count("-") > 1:
        raise click.UsageError("expected standard input once, got it twice")
    check_page(options.html, options.force)
    if textconv:
        return _print_whole(files[0])
    if options.run:
        found = _compare_runs(options)
        return print_result(Result(found.lines(), found.to_tree, int(not found.same)), options.as_json)
    from pt2kit.diffs.compute import diff

    with ExitStack() as stack:
        old, new = (stack.enter_context(open_file(file)) for file in files)
        with progress("comparing tensors", wanted=not options.no_tensors) as report:
            comparison = diff(
                old,
                new,
                models=_pairs(old, new, options.model) if options.model else None,
                tensors=not options.no_tensors,
                metadata=not options.no_metadata,
                names=options.names,
                order=options.order,
                progress=report,
            )
        return print_result(_result(comparison, options), options.as_json, _style)


def _compare_runs(options: Options) -> RunComparison:
    """Run two programs, or one and PyTorch or recorded outputs, with the same inputs, and compare their results."""
    from pt2kit.cli.run import filled, limited, most_memory
    from pt2kit.comparing.runs import compare_runs
    from pt2kit.runtime.session import RunLimits, Session, read_outputs

    memory, seed, against = options.max_memory or most_memory(), options.seed, options.against
    limits = RunLimits(memory, options.timeout)
    # PyTorch reserves more memory than it uses.
    with limited(options.timeout, 1 << 62 if against == "torch" else memory), ExitStack() as stack:
        packages = [stack.enter_context(open_file(file)) for file in options.files]
        old, new = packages[0], packages[-1]
        if options.model and against is None:
            models = next(iter(_pairs(old, new, options.model).items()))
        else:
            wanted = options.model[0] if options.model else None
            models = choose_model(old, wanted), choose_model(new, wanted)
        session = Session(old, model=models[0], limits=limits)
        leaves = filled(session, options.input, seed, is_random=not options.input)
        if against == "torch":
            from pt2kit.bridge.against_torch import compare_with_torch

            return compare_with_torch(options.files[0], leaves, model=models[0], seed=seed, limits=limits)
        other = new if against is None else read_outputs(against)
        return compare_runs(old, other, leaves=leaves, models=models, seed=seed, limits=limits)


def _pairs(old: Package, new: Package, models: tuple[str, ...]) -> dict[str, str]:
    """Return program of the old file -> program of the new one, from "a=b", or "a" for two of one name."""
    pairs = {}
    for text in models:
        one, sign, other = (text, "", "") if text in old.layout.models else text.rpartition("=")
        if not sign:
            one, other = text, text
        pairs[choose_model(old, one)] = choose_model(new, other)
    return pairs


def _print_whole(file: str) -> int:
    """Print one file as text; print the error of one that cannot be read, because git would show nothing."""
    from pt2kit.errors import Pt2Error
    from pt2kit.text.program import whole_lines

    try:
        with open_file(file) as package:
            print_lines(whole_lines(package))
    except Pt2Error as error:
        print_lines([f"cannot be read: {error}"])
    return 0


def _result(found: Diff, options: Options) -> Result:
    """Return a comparison as lines and as data; write the page if one is asked for."""
    from pt2kit.text.diff_report import diff_lines, headline

    columns = None if options.full else width()
    lines: Iterator[str] = (_cut(line, columns) for line in diff_lines(found, full=options.full))
    if options.html is not None:
        from pt2kit.text.diff_report import diff_html

        Path(options.html).write_text(diff_html(found), encoding="utf-8")
        lines = iter([headline(found)])
    return Result(lines, found.to_tree, int(not found.same))


def _style(line: str) -> str:
    """Return a line in the color of its mark."""
    style = STYLES.get(line[2:4])
    return click.style(line, fg=style) if style else colour(line)


def _cut(line: str, columns: int | None) -> str:
    """Return a line, cut to the width of the terminal if it is a node that is listed as context only."""
    is_around = line.startswith("    ") and line[4:5] not in (" ", "…")
    return f"{line[: columns - 1]}…" if columns and is_around and len(line) > columns else line
