"""`pt2 digest FILE`: what a program is, as SHA-256; and whether it is what it should be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from pt2kit import codec
from pt2kit.cli.common import Refusal, choose_model, file_argument, json_option, model_option, open_file, progress
from pt2kit.cli.output import print_json, print_lines
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

\b
Exit codes: 0 fine, 1 something is not as expected, 2 could not be read.
"""


@click.command("digest", epilog=EPILOG, short_help="What a program is, as SHA-256.")
@file_argument
@click.option("--only", "parts", metavar="PART", multiple=True, help=f"Take only some of {', '.join(PARTS)}.")
@click.option("--tensors", "show_tensors", is_flag=True, help="List the digest of every weight and constant as well.")
@click.option(
    "--verify", "expected", metavar="EXPECTED", help="Compare with a file that --json wrote, or with sha256:…."
)
@click.option(
    "--tensor", "names", metavar="NAME", multiple=True, help="With --verify: compare one tensor, read no other."
)
@model_option
@json_option
def command(
    file: str,
    parts: tuple[str, ...],
    show_tensors: bool,
    expected: str | None,
    names: tuple[str, ...],
    model: str | None,
    as_json: bool,
) -> int:
    """Print the digests of a program: the same however it is packed, its values are named and its nodes are ordered."""
    if unknown := [part for part in parts if part not in PARTS]:
        raise click.UsageError(f"--only: expected one of {', '.join(PARTS)}, got {unknown[0]!r}")
    if names and expected is None:
        raise click.UsageError("expected --tensor with --verify, got it alone")
    with open_file(file) as package:
        chosen = choose_model(package, model)
        if expected is not None:
            return _verify(package, chosen, _expected(expected, parts), parts, names, as_json)
        found = _digests(package, chosen, parts)
    if as_json:
        from pt2kit.digests.result import FORMAT

        print_json({"format": FORMAT, **found})
    else:
        print_lines(_lines(found, show_tensors))
    return 0


def _digests(package: Package, model: str, parts: tuple[str, ...]) -> dict[str, Any]:
    """The digests that were asked for, with the tables of tensors, in the order of `PARTS`."""
    from pt2kit.digests.compute import digest_parts
    from pt2kit.digests.result import TABLES

    with progress(f"digesting {package.name}") as report:
        found = digest_parts(package, parts or PARTS, model, progress=report)
    return {key: found[key] for key in (*(part for part in PARTS if part in (parts or PARTS)), *TABLES) if key in found}


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
    package: Package, model: str, expected: Any, parts: tuple[str, ...], names: tuple[str, ...], as_json: bool
) -> int:
    from pt2kit.digests.compute import verify
    from pt2kit.digests.result import read_expected

    tree = read_expected(expected, "--verify")
    wanted = parts or (None if not names else ())
    with progress(f"verifying {package.name}") as report:
        found = verify(package, tree, model, parts=wanted, tensors=names or None, progress=report)
    if as_json:
        rows = [{"what": one.what, "expected": one.expected, "got": one.got} for one in found]
        print_json({"as_expected": not found, "differences": rows})
        return int(bool(found))
    differs = {one.what for one in found}
    compared = [part for part in PARTS if part in (wanted if wanted is not None else tree)]
    print_lines(f"{part:<13} {'differs' if part in differs else 'as expected'}" for part in compared)
    print_lines(str(one) for one in found)
    if not compared and not found:
        print_lines([f"{len(names)} tensor{'' if len(names) == 1 else 's'} as expected"])
    return int(bool(found))
