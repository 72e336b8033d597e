"""`pt2 digest FILE...`: what programs are, as SHA-256; and whether one is what it should be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from pt2kit import codec
from pt2kit.cli.common import Refusal, choose_model, chosen_models, json_option, model_option, open_file, progress
from pt2kit.cli.output import print_json, print_lines
from pt2kit.cli.several import Result, chosen_files, files_argument, jobs_option, run_task
from pt2kit.messages import printable
from pt2kit.package.open import Package

PARTS: Final = ("program", "graph", "signature", "constraints", "weights", "constants", "metadata")
MAX_EXPECTED: Final = 1 << 28
"""Bytes of a file of expected digests."""

EPILOG = """\b
Examples:
  pt2 digest model.pt2                                 program digest and its parts
  pt2 digest model.pt2 --json > model.digest.json      with the digest of every tensor
  pt2 digest model.pt2 --verify model.digest.json      compare everything
  pt2 digest model.pt2 --verify model.digest.json --tensor head.weight
  pt2 digest model.pt2 --only program --verify sha256:d150…
  pt2 digest models/ --jobs 2                          a line for each program of each file

\b
Exit codes: 0 fine, 1 something is not as expected, 2 could not be read.
"""


@click.command("digest", epilog=EPILOG)
@files_argument
@click.option("--only", metavar="PART", multiple=True, help=f"Compute only some of {', '.join(PARTS)}.")
@click.option("--tensors", "show_tensors", is_flag=True, help="List the digest of every weight and constant as well.")
@click.option(
    "--verify", "expected", metavar="EXPECTED", help="Compare with a file that --json wrote, or with sha256:…."
)
@click.option(
    "--tensor", "names", metavar="NAME", multiple=True, help="With --verify: compare one tensor, read no other."
)
@model_option
@jobs_option
@json_option
def command(
    files: tuple[str, ...],
    only: tuple[str, ...],
    show_tensors: bool,
    expected: str | None,
    names: tuple[str, ...],
    model: str | None,
    jobs: int,
    as_json: bool,
) -> int:
    """Print digests of what programs mean, independent of packing, value names and node order."""
    if unknown := [part for part in only if part not in PARTS]:
        raise click.UsageError(f"--only: expected one of {', '.join(PARTS)}, got {unknown[0]!r}")
    if names and expected is None:
        raise click.UsageError("expected --tensor with --verify, got it alone")
    chosen, several = chosen_files(files)
    if several and expected is not None:
        raise click.UsageError(f"expected one file with --verify, got {len(chosen)} and more to come")
    if several:
        from pt2kit.digests.result import FORMAT

        task = partial(_task, only, model, show_tensors, as_json)
        return run_task(chosen, task, jobs=jobs, as_json=as_json, head={"format": FORMAT})
    [file] = chosen
    if expected is not None:
        with open_file(file) as package:
            return _verify(package, model, _expected(expected, only), only, names, as_json)
    digests_by_model = _file_digests(only, model, file)
    if as_json:
        print_json(_tree(digests_by_model))
    elif len(digests_by_model) == 1:
        print_lines(_lines(next(iter(digests_by_model.values())), show_tensors))
    else:
        print_lines(_blocks(digests_by_model, show_tensors))
    return 0


def _file_digests(parts: tuple[str, ...], model: str | None, file: str) -> dict[str, dict[str, Any]]:
    """Program -> its digests, of one program or all."""
    with open_file(file) as package:
        return {chosen: _digests(package, chosen, parts) for chosen in chosen_models(package, model)}


def _tree(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The digests of a file as JSON has them: of one program as they are, of several by their names."""
    from pt2kit.digests.result import FORMAT

    return {"format": FORMAT, **(next(iter(found.values())) if len(found) == 1 else {"programs": found})}


def _task(parts: tuple[str, ...], model: str | None, show_tensors: bool, as_json: bool, file: str) -> Result:
    """Digest one of several files: a line for each program, like those of sha256sum; a block if more is asked for."""
    in_lines = len(parts) <= 1 and not show_tensors
    wanted = parts or (("program",) if in_lines and not as_json else PARTS)
    found = _file_digests(wanted, model, file)
    if in_lines:
        name = printable(file)
        several = len(found) > 1
        lines = [
            f"{digests[wanted[0]]}  {name}{f'  {printable(one)}' if several else ''}" for one, digests in found.items()
        ]
    else:
        lines = [printable(file, 1000), *_blocks(found, show_tensors), ""]
    return Result({"programs": found}, lines)


def _blocks(found: Mapping[str, Mapping[str, Any]], show_tensors: bool) -> Iterator[str]:
    for number, (model, digests) in enumerate(found.items()):
        yield from [""] if number else []
        yield f"program {printable(model)}"
        yield from _lines(digests, show_tensors)


def _digests(package: Package, model: str, parts: tuple[str, ...]) -> dict[str, Any]:
    """The digests that were asked for, with the tables of tensors, in the order of `PARTS`."""
    from pt2kit.digests.compute import digest_parts
    from pt2kit.digests.result import TABLES

    with progress(f"digesting {package.name}") as report:
        digests = digest_parts(package, parts or PARTS, model, progress=report)
    return {
        key: digests[key] for key in (*(part for part in PARTS if part in (parts or PARTS)), *TABLES) if key in digests
    }


def _lines(found: Mapping[str, Any], show_tensors: bool) -> Iterator[str]:
    from pt2kit.text.names import dotted

    for part in PARTS:
        if part in found:
            indent = "" if part in ("program", "metadata") else "  "
            yield f"{indent + part:<13} {found[part]}"
    for table, title in (("tensors", "weights"), ("constant_tensors", "constants")):
        if show_tensors and found.get(table):
            yield title
            width = min(60, max(len(dotted(name)) for name in found[table]))
            yield from (f"  {dotted(name):<{width}}  {one}" for name, one in found[table].items())


def _expected(text: str, parts: tuple[str, ...]) -> Any:
    """The expected digests: one, of the program or of the one part asked for, or those in a file."""
    if text.startswith("sha256:"):
        if len(parts) > 1:
            raise click.UsageError(f"--verify: expected one --only with one digest, got {len(parts)}")
        return {parts[0] if parts else "program": text}
    path = Path(text)
    if path.stat().st_size > MAX_EXPECTED:
        raise Refusal(f"{text}: expected at most {MAX_EXPECTED} bytes of digests, got {path.stat().st_size}")
    return codec.parse(path.read_bytes(), text)


def _verify(
    package: Package, model: str | None, expected: Any, parts: tuple[str, ...], names: tuple[str, ...], as_json: bool
) -> int:
    """Compare one program with its digests, or all with those that `--json` wrote of several."""
    from pt2kit.digests.result import read_programs

    programs = read_programs(expected, "--verify")
    if programs is None:
        chosen = {choose_model(package, model): expected}
    else:
        wanted = [choose_model(package, model)] if model else list(dict.fromkeys((*programs, *package.layout.models)))
        chosen = {one: programs.get(one, {}) for one in wanted}
        if odd := sorted(set(programs) ^ set(package.layout.models)):
            there = "in the file" if odd[0] in package.layout.models else "in the digests"
            raise Refusal(
                f"{package.name}: expected the programs of the digests, got {printable(odd[0])} {there} alone"
            )
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    for one, tree in chosen.items():
        differences, text = _verify_program(package, one, tree, parts, names)
        rows += [{"program": one, **row} if len(chosen) > 1 else row for row in differences]
        lines += [f"program {printable(one)}", *text] if len(chosen) > 1 else text
    if as_json:
        print_json({"as_expected": not rows, "differences": rows})
    else:
        print_lines(lines)
    return int(bool(rows))


def _verify_program(
    package: Package, model: str, expected: Any, parts: tuple[str, ...], names: tuple[str, ...]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the differences of one program, as data and as lines."""
    from pt2kit.digests.compute import verify
    from pt2kit.digests.result import read_expected

    tree = read_expected(expected, "--verify")
    wanted = parts or (None if not names else ())
    with progress(f"verifying {package.name}") as report:
        differences = verify(package, expected, model, parts=wanted, tensors=names or None, progress=report)
    differs = {one.what for one in differences}
    compared = [part for part in PARTS if part in (wanted if wanted is not None else tree)]
    lines = [f"{part:<13} {'differs' if part in differs else 'as expected'}" for part in compared]
    lines += map(str, differences)
    if not compared and not differences:
        lines.append(f"{len(names)} tensor{'' if len(names) == 1 else 's'} as expected")
    return [{"what": one.what, "expected": one.expected, "got": one.got} for one in differences], lines
