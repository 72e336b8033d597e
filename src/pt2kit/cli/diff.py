"""`pt2 diff OLD NEW`: what differs between two files."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pt2kit.cli.colours import colour
from pt2kit.cli.common import FILE, check_page, choose_model, force_option, json_option, open_file, progress
from pt2kit.cli.output import print_json, print_lines, width

if TYPE_CHECKING:
    from pt2kit.diffs.changes import Diff
    from pt2kit.package.open import Package

STYLES: Final = {"+ ": "green", "- ": "red", "~ ": "yellow", "@ ": "cyan"}
"""The mark of a line -> its colour."""

EPILOG = """\b
Examples:
  pt2 diff old.pt2 new.pt2                   summary first, then what differs
  pt2 diff old.pt2 new.pt2 --no-tensors      programs only: no weights are read
  pt2 diff old.pt2 new.pt2 --html diff.html  one page with everything
  pt2 diff both.pt2 new.pt2 --model encoder=model
  pt2 diff old.pt2 new.pt2 --run             first node whose numbers differ
  pt2 diff model.pt2 --run --against torch   NumPy and PyTorch, node by node
  pt2 diff model.pt2 --run --input in.npz --against out.npz
  git config diff.pt2.textconv 'pt2 diff --textconv'   and "*.pt2 diff=pt2" in .gitattributes

\b
Exit codes: 0 no difference, 1 a difference, 2 could not be read. With --textconv, what cannot be read becomes a line
that says why, as git gives up where this command does.
"""


@click.command("diff", epilog=EPILOG)
@click.argument("files", metavar="OLD NEW", nargs=-1, required=True, type=FILE)
@click.option("--no-tensors", is_flag=True, help="Don't compare the data of weights and constants.")
@click.option("--no-metadata", is_flag=True, help="Don't compare stack traces and the like.")
@click.option("--names", is_flag=True, help="Compare the names of nodes and values, too.")
@click.option("--order", is_flag=True, help="Compare the order of nodes, too.")
@click.option(
    "--model",
    "models",
    metavar="OLD[=NEW]",
    multiple=True,
    help="Compare this program with that one; by default those of equal names, then those of equal digests.",
)
@click.option("--full", is_flag=True, help="Leave nothing out.")
@click.option(
    "--output",
    "-o",
    "--html",
    "html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page with everything.",
)
@force_option
@click.option("--textconv", is_flag=True, help="Print one file as text that git can compare.")
@click.option("--run", "runs", is_flag=True, help="Run both with NumPy and compare what they compute.")
@click.option("--against", metavar="torch|FILE", help="With --run and one file: PyTorch, or recorded outputs.")
@click.option("--input", "inputs", metavar="NAME=VALUE", multiple=True, help="With --run: an input, as of `pt2 run`.")
@click.option("--seed", type=int, default=0, help="With --run: seed of random inputs and operators.  [default: 0]")
@click.option("--timeout", type=float, default=600.0, metavar="SECONDS", help="With --run: stop then.  [default: 600]")
@click.option("--max-memory", metavar="SIZE", help="With --run: memory to use, such as 4G.  [default: 3/4 of all]")
@json_option
def command(
    files: tuple[str, ...],
    no_tensors: bool,
    no_metadata: bool,
    names: bool,
    order: bool,
    models: tuple[str, ...],
    full: bool,
    html: Path | None,
    force: bool,
    textconv: bool,
    runs: bool,
    against: str | None,
    inputs: tuple[str, ...],
    seed: int,
    timeout: float,
    max_memory: str | None,
    as_json: bool,
) -> int:
    """Compare two .pt2 files by what they do: names of values and the order of nodes make no difference."""
    if against is not None and not runs:
        raise click.UsageError("expected --against with --run")
    if len(files) != (1 if textconv or against is not None else 2):
        expected = "one file with --textconv and --against" if textconv or against is not None else "two files"
        raise click.UsageError(f"expected {expected}, got {len(files)}")
    if textconv and models:
        raise click.UsageError("expected --textconv without --model, got both")
    if textconv and (html is not None or as_json):
        raise click.UsageError("expected --textconv without --json and --html, got both")
    if files.count("-") > 1:
        raise click.UsageError("expected standard input once, got it twice")
    if html is not None:
        check_page(html, force)
    if textconv:
        return _print_whole(files[0])
    if against is not None:
        return _run_against(files[0], against, models, inputs, seed, timeout, max_memory, as_json)
    if runs:
        return _run(files, models, inputs, seed, timeout, max_memory, as_json)
    from pt2kit.diffs.compute import diff
    from pt2kit.tensors.output import no_progress

    with ExitStack() as stack:
        old, new = (stack.enter_context(open_file(file)) for file in files)
        with nullcontext(no_progress) if no_tensors else progress("comparing tensors") as report:
            comparison = diff(
                old,
                new,
                models=_pairs(old, new, models) if models else None,
                tensors=not no_tensors,
                metadata=not no_metadata,
                names=names,
                order=order,
                progress=report,
            )
        _show(comparison, full, html, as_json)
    return int(not comparison.same)


def _run(
    files: tuple[str, ...],
    models: tuple[str, ...],
    inputs: tuple[str, ...],
    seed: int,
    timeout: float,
    max_memory: str | None,
    as_json: bool,
) -> int:
    """Run both programs with the same inputs, and print what differs in their results."""
    from pt2kit.cli.run import filled, limited, memory_limit
    from pt2kit.comparing.runs import compare_runs
    from pt2kit.runtime.session import RunLimits, Session

    memory = memory_limit(max_memory)
    with limited(timeout, memory), ExitStack() as stack:
        old, new = (stack.enter_context(open_file(file)) for file in files)
        chosen = (
            next(iter(_pairs(old, new, models).items()))
            if models
            else (choose_model(old, None), choose_model(new, None))
        )
        limits = RunLimits(memory, timeout)
        leaves = filled(Session(old, model=chosen[0], limits=limits), inputs, seed, is_random=not inputs)
        found = compare_runs(old, new, leaves=leaves, models=chosen, seed=seed, limits=limits)
    if as_json:
        print_json(found.to_tree())
    else:
        print_lines(found.lines())
    return int(not found.same)


def _run_against(
    file: str,
    against: str,
    models: tuple[str, ...],
    inputs: tuple[str, ...],
    seed: int,
    timeout: float,
    max_memory: str | None,
    as_json: bool,
) -> int:
    """Run one program, and print what differs from PyTorch or from recorded outputs."""
    from pt2kit.cli.run import filled, limited, memory_limit
    from pt2kit.comparing.runs import compare_runs
    from pt2kit.runtime.files import read_outputs
    from pt2kit.runtime.session import RunLimits, Session

    memory = memory_limit(max_memory)
    limits = RunLimits(memory, timeout)
    # PyTorch reserves more memory than it uses.
    with limited(timeout, 1 << 62 if against == "torch" else memory), open_file(file) as package:
        chosen = choose_model(package, models[0] if models else None)
        session = Session(package, model=chosen, limits=limits)
        leaves = filled(session, inputs, seed, is_random=not inputs)
        if against == "torch":
            from pt2kit.bridge.against_torch import compare_with_torch

            found = compare_with_torch(file, leaves, model=chosen, seed=seed, limits=limits)
        else:
            outputs = read_outputs(against)
            found = compare_runs(package, outputs, leaves=leaves, models=(chosen, chosen), seed=seed, limits=limits)
    if as_json:
        print_json(found.to_tree())
    else:
        print_lines(found.lines())
    return int(not found.same)


def _pairs(old: Package, new: Package, models: tuple[str, ...]) -> dict[str, str]:
    """Program of the old file -> that of the new one, as they are asked for: "a=b", or "a" for those of one name."""
    pairs = {}
    for text in models:
        one, sign, other = (text, "", "") if text in old.layout.models else text.rpartition("=")
        if not sign:
            one, other = text, text
        pairs[choose_model(old, one)] = choose_model(new, other)
    return pairs


def _print_whole(file: str) -> int:
    """Print one file as text; where it cannot be read, that is its text: git would show nothing at all."""
    from pt2kit.errors import Pt2Error
    from pt2kit.text.full_program import whole_lines

    try:
        with open_file(file) as package:
            print_lines(whole_lines(package))
    except Pt2Error as error:
        print_lines([f"cannot be read: {error}"])
    return 0


def _show(found: Diff, full: bool, html: Path | None, as_json: bool) -> None:
    from pt2kit.text.changes import diff_lines, headline

    if html is not None:
        from pt2kit.text.changes_html import diff_html

        html.write_text(diff_html(found), encoding="utf-8")
    if as_json:
        print_json(found.to_tree())
    elif html is not None:
        print_lines([headline(found)])
    else:
        columns = None if full else width()
        print_lines((_cut(line, columns) for line in diff_lines(found, full=full)), _style)


def _style(line: str) -> str:
    """A line with the colour of its mark."""
    style = STYLES.get(line[2:4])
    return click.style(line, fg=style) if style else colour(line)


def _cut(line: str, columns: int | None) -> str:
    """A line, cut where the terminal ends if it is a node that only stands around."""
    is_around = line.startswith("    ") and line[4:5] not in (" ", "…")
    return f"{line[: columns - 1]}…" if columns and is_around and len(line) > columns else line
