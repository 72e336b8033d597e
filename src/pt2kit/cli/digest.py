"""`pt2 digest FILE...`: SHA-256 digests of what programs mean; comparison with expected ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from pt2kit import codec
from pt2kit.cli.common import Refusal, choose_model, chosen_models, open_file, progress
from pt2kit.cli.frame import Result, argument, by_program, option
from pt2kit.cli.several import FilesOptions, chosen_files, run_task
from pt2kit.digests.result import FORMAT, PARTS, TABLES, read_expected, read_programs
from pt2kit.messages import count_text, printable
from pt2kit.package.open import Package

MAX_EXPECTED: Final = 1 << 28
"""Bytes of a file of expected digests."""


@dataclass(frozen=True, slots=True)
class Options(FilesOptions):
    """Options of `pt2 digest`."""

    files: tuple[str, ...] = argument("FILE...")
    only: tuple[str, ...] = option(f"Compute only some of {', '.join(PARTS)}.", "PART")
    tensors: bool = option("List the digest of every weight and constant as well.")
    verify: str | None = option("Compare with a file that --json wrote, or with sha256:….", "EXPECTED")
    tensor: tuple[str, ...] = option("With --verify: compare one tensor, read no other.", "NAME")


def run(options: Options) -> int:
    """Print digests of what programs mean, independent of packing, value names and node order.

    Examples:
      pt2 digest model.pt2                                 program digest and its parts
      pt2 digest model.pt2 --json > model.digest.json      with the digest of every tensor
      pt2 digest model.pt2 --verify model.digest.json      compare everything
      pt2 digest model.pt2 --verify model.digest.json --tensor head.weight
      pt2 digest model.pt2 --only program --verify sha256:d150…
      pt2 digest models/ --jobs 2                          a line for each program of each file

    Exit codes: 0 fine, 1 something is not as expected, 2 could not be read.
    """
    if unknown := [part for part in options.only if part not in PARTS]:
        raise click.UsageError(f"--only: expected one of {', '.join(PARTS)}, got {unknown[0]!r}")
    if options.tensor and options.verify is None:
        raise click.UsageError("expected --tensor with --verify, got it alone")
    chosen, several = chosen_files(options.files)
    if several and options.verify is not None:
        raise click.UsageError("expected one file with --verify, got several")
    task = partial(_digest if options.verify is None else _verify, options, several)
    return run_task(chosen, several, task, options, head={"format": FORMAT})


def _digest(options: Options, several: bool, file: str) -> Result:
    """Digest one file; of several, print a line for each program as sha256sum does, or a block if more is needed."""
    in_lines = several and len(options.only) <= 1 and not options.tensors
    parts = options.only or (("program",) if in_lines and not options.as_json else PARTS)
    with open_file(file) as package:
        found = {model: _digests(package, model, parts) for model in chosen_models(package, options.model)}
    if in_lines:
        names = {model: f"  {printable(model)}" if len(found) > 1 else "" for model in found}
        lines = [f"{digests[parts[0]]}  {printable(file)}{names[model]}" for model, digests in found.items()]
    else:
        texts = {model: _lines(digests, options.tensors) for model, digests in found.items()}
        lines = [printable(file, 1000), *by_program(texts, named=True), ""] if several else list(by_program(texts))
    alone = {"format": FORMAT, **(next(iter(found.values())) if len(found) == 1 else {"programs": found})}
    return Result(lines, lambda: {"programs": found} if several else alone)


def _digests(package: Package, model: str, parts: tuple[str, ...]) -> dict[str, Any]:
    """Return some digests of a program, with the tables of tensors, in the order of `PARTS`."""
    from pt2kit.digests.compute import digest_parts

    with progress(f"digesting {package.name}") as report:
        digests = digest_parts(package, parts, model, progress=report)
    return {key: digests[key] for key in (*filter(parts.__contains__, PARTS), *TABLES) if key in digests}


def _lines(found: Mapping[str, Any], show_tensors: bool) -> Iterator[str]:
    from pt2kit.text.format import dotted

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
    """Return the expected digests: one, of the program or of the part that `--only` names, or those in a file."""
    if text.startswith("sha256:"):
        if len(parts) > 1:
            raise click.UsageError(f"--verify: expected one --only with one digest, got {len(parts)}")
        return {parts[0] if parts else "program": text}
    path = Path(text)
    if path.stat().st_size > MAX_EXPECTED:
        raise Refusal(f"{text}: expected at most {MAX_EXPECTED} bytes of digests, got {path.stat().st_size}")
    return codec.parse(path.read_bytes(), text)


def _verify(options: Options, several: bool, file: str) -> Result:
    """Compare one program with its digests, or all with those that `--json` wrote of several."""
    with open_file(file) as package:
        expected = _expected(str(options.verify), options.only)
        programs = read_programs(expected, "--verify")
        if programs is None:
            chosen = {choose_model(package, options.model): expected}
        else:
            names = dict.fromkeys((*programs, *package.layout.models))
            wanted = [choose_model(package, options.model)] if options.model else list(names)
            chosen = {one: programs.get(one, {}) for one in wanted}
            if odd := sorted(set(programs) ^ set(package.layout.models)):
                there = "in the file" if odd[0] in package.layout.models else "in the digests"
                raise Refusal(
                    f"{package.name}: expected the programs of the digests, got {printable(odd[0])} {there} alone"
                )
        rows: list[dict[str, Any]] = []
        lines: list[str] = []
        for one, tree in chosen.items():
            differences, text = _verify_program(package, one, tree, options.only, options.tensor)
            rows += [{"program": one, **row} if len(chosen) > 1 else row for row in differences]
            lines += [f"program {printable(one)}", *text] if len(chosen) > 1 else text
    return Result(lines, lambda: {"as_expected": not rows, "differences": rows}, int(bool(rows)))


def _verify_program(
    package: Package, model: str, expected: Any, parts: tuple[str, ...], names: tuple[str, ...]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the differences of one program, as data and as lines."""
    from pt2kit.digests.compute import verify

    tree = read_expected(expected, "--verify")
    wanted = parts or (None if not names else ())
    with progress(f"verifying {package.name}") as report:
        differences = verify(package, expected, model, parts=wanted, tensors=names or None, progress=report)
    differs = {one.what for one in differences}
    compared = [part for part in PARTS if part in (wanted if wanted is not None else tree)]
    lines = [f"{part:<13} {'differs' if part in differs else 'as expected'}" for part in compared]
    lines += map(str, differences)
    if not compared and not differences:
        lines.append(f"{count_text(len(names), 'tensor')} as expected")
    return [{"what": one.what, "expected": one.expected, "got": one.got} for one in differences], lines
