"""`pt2 weights FILE`: list the tensors of a file, or extract them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pt2kit.cli.common import (
    choose_model,
    file_argument,
    json_option,
    model_option,
    open_file,
    print_json,
    print_lines,
    progress,
)
from pt2kit.package import Package, Payload
from pt2kit.tensors.view import TensorView

EPILOG = """\b
Examples:
  pt2 weights model.pt2 'layers.0.*'              list some
  pt2 weights model.pt2 head.weight --stats       read one, print its numbers' statistics
  pt2 weights model.pt2 --to model.safetensors    extract all
"""


@click.command("weights", epilog=EPILOG, short_help="List or extract tensors.")
@file_argument
@click.argument("patterns", metavar="[NAME]...", nargs=-1)
@click.option("--constants", is_flag=True, help="Take lifted constants and non-persistent buffers as well.")
@click.option("--stats", is_flag=True, help="Read the tensors and print least, greatest, mean, deviation, zeros.")
@click.option(
    "--to",
    "target",
    type=click.Path(dir_okay=False),
    help="Extract to a .safetensors, .npz or (one tensor) .npy file.",
)
@model_option
@json_option
def command(
    file: str,
    patterns: tuple[str, ...],
    constants: bool,
    stats: bool,
    target: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """List the parameters and buffers of a program, or extract them. NAME may hold * and ?; without one, all are taken."""
    with open_file(file) as package:
        chosen = choose_model(package, model)
        found = _select(package, chosen, patterns, constants)
        if target is not None:
            _extract(package, found, Path(target))
        elif as_json:
            print_json([_row(name, payload, stats) for name, payload in found.items()])
        else:
            print_lines(_lines(found, stats))


def _select(package: Package, model: str, patterns: tuple[str, ...], constants: bool) -> dict[str, Payload]:
    payloads = {**package.weights(model), **(package.constants(model) if constants else {})}
    if not patterns:
        return payloads
    for pattern in patterns:
        if not fnmatch.filter(payloads, pattern):
            raise click.ClickException(f"{package.name}: {model}: expected a tensor {pattern!r}, got none of that name")
    return {
        name: payload
        for name, payload in payloads.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    }


def _row(name: str, payload: Payload, stats: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "record": payload.record, "bytes": payload.nbytes}
    if not isinstance(payload, TensorView):
        return {**row, "kind": payload.kind}
    row |= {
        "dtype": payload.dtype.name,
        "sizes": payload.sizes,
        "strides": payload.strides,
        "storage_offset": payload.storage_offset,
        "is_param": payload.is_param,
        "requires_grad": payload.requires_grad,
    }
    return {**row, "statistics": asdict(_statistics(payload))} if stats else row


def _statistics(view: TensorView) -> Any:
    from pt2kit.tensors.statistics import statistics

    return statistics(view)


def _lines(found: dict[str, Payload], stats: bool) -> Iterator[str]:
    from pt2kit.text.names import dotted, printable
    from pt2kit.text.quantities import bytes_text, count_text

    width = min(max((len(dotted(name)) for name in found), default=0), 60)
    first: dict[str, str] = {}
    yield f"{count_text(len(found), 'tensor')}, {bytes_text(sum(payload.nbytes for payload in found.values()))}"
    for name, payload in found.items():
        kind = "parameter" if payload.is_param else "buffer"
        owner = first.setdefault(payload.record, name)
        shared = "" if owner == name else f", shares bytes with {dotted(owner)}"
        described = f"{payload.describe():<16}  {bytes_text(payload.nbytes):>8}"
        yield f"  {dotted(name):<{width}}  {described}  {kind}, {printable(payload.record)}{shared}"
        if stats and isinstance(payload, TensorView):
            yield f"  {'':<{width}}  {_statistics_text(_statistics(payload))}"


def _statistics_text(found: Any) -> str:
    numbers = (("min", found.min), ("max", found.max), ("mean", found.mean), ("std", found.std))
    shown = [f"{label} {value:.6g}" for label, value in numbers if value is not None]
    counted = [
        f"{count:,} {label}" for label, count in (("zeros", found.zeros), ("not finite", found.non_finite)) if count
    ]
    return ", ".join(shown + counted) or "no elements"


def _extract(package: Package, found: dict[str, Payload], target: Path) -> None:
    from pt2kit.tensors import export

    views = {name: payload for name, payload in found.items() if isinstance(payload, TensorView)}
    if left := [name for name in found if name not in views]:
        raise click.ClickException(
            f"{package.name}: expected tensors, got objects: {', '.join(left[:5])}; name the tensors"
        )
    writers = {".safetensors": export.to_safetensors, ".npz": export.to_npz}
    with progress(f"writing {target.name}") as report:
        if target.suffix == ".npy":
            if len(views) != 1:
                raise click.ClickException(f"{target}: expected one tensor for a .npy file, got {len(views)}; name it")
            export.to_npy(next(iter(views.values())), target, progress=report)
        elif target.suffix in writers:
            writers[target.suffix](views, target, progress=report)
        else:
            raise click.ClickException(f"{target}: expected a .safetensors, .npz or .npy file, got {target.suffix!r}")
    click.echo(f"{target}: {len(views)} tensors", err=True)
