"""`pt2 weights FILE`: list the tensors of a file, or extract them."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pt2kit.cli.common import Refusal, choose_model, chosen_models, open_file, progress, write_result
from pt2kit.cli.completion import complete_weights
from pt2kit.cli.frame import (
    Result,
    ResultOptions,
    argument,
    by_program,
    external_option,
    model_option,
    option,
    print_result,
)
from pt2kit.messages import count_text, printable, suggestion
from pt2kit.package.open import Package
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.view import TensorView
from pt2kit.text.payloads import Entry, entries_of, payload_lines, payload_row, statistics_lines

if TYPE_CHECKING:
    from pt2kit.tensors.export import AnyView
    from pt2kit.tensors.summary import Statistics

SUFFIXES = (".safetensors", ".npz", ".npy")


@dataclass(frozen=True, slots=True)
class Options(ResultOptions):
    """Options of `pt2 weights`."""

    file: str = argument("FILE")
    patterns: tuple[str, ...] = argument("[NAME]...", shell_complete=complete_weights, type=None)
    constants: bool = option("Include lifted constants and non-persistent buffers.")
    stats: bool = option("Read the tensors and print minimum, maximum, mean, deviation, zeros.")
    widen: bool = option("With --output: write types that .npz and .npy lack as float32 or complex64.")
    source: str | None = option("Replace weights by those of a .safetensors, index or .pt2 file.", "--from", "SOURCE")
    output: str | None = option(
        "Extract to a .safetensors, .npz or (one tensor) .npy file; with --from: the .pt2 file to write.",
        "--output",
        "-o",
        "--to",
        "OUT",
    )
    partial: bool = option("With --from: SOURCE may have other names, and lack some.")
    external: str | None = external_option()
    model: str | None = model_option("; all by default")


def run(options: Options) -> int:
    """List the parameters and buffers of a model, extract or replace them.

    NAME may contain * and ?; without NAME, all are used.

    Examples:
      pt2 weights model.pt2 'layers.0.*'              list some
      pt2 weights model.pt2 head.weight --stats       read one, print its numbers' statistics
      pt2 weights model.pt2 --to model.safetensors    extract all
      pt2 weights model.pt2 --from tuned.safetensors -o tuned.pt2
                                                      put others in

    Exit codes: 0 fine, 2 could not be read or written.
    """
    source, output, patterns, constants = options.source, options.output, options.patterns, options.constants
    if (source is not None and output is None) or (source is None and (options.partial or options.external)):
        raise click.UsageError("expected --from SOURCE and --output OUT, and --partial and --external with them alone")
    if source is not None and (patterns or constants or options.stats or options.widen or options.as_json):
        raise click.UsageError("expected --from with --output, --partial, --external and --model alone, got more")
    if output is not None and (options.stats or options.as_json):
        raise click.UsageError("expected --output alone, got it with --stats or --json")
    if options.widen and output is None:
        raise click.UsageError("expected --widen with --output, got it alone")
    target = Path(output) if output is not None and source is None else None
    if target is not None and target.suffix not in SUFFIXES:
        raise click.UsageError(
            f"--output: expected a file named {', '.join(SUFFIXES)}, got {printable(target.name)}; "
            "to write a .pt2 with other weights, pass --from SOURCE"
        )
    with open_file(options.file) as package:
        if source is not None:
            _replace(package, choose_model(package, options.model), source, str(output), options)
            return 0
        if target is not None:
            model = choose_model(package, options.model)
            _extract(package, _select(package, [model], patterns, constants)[model], target, options.widen)
            return 0
        chosen = _select(package, chosen_models(package, options.model), patterns, constants)
        found = {one: _statistics(entries) if options.stats else {} for one, entries in chosen.items()}
        lines = {
            one: statistics_lines(entries, found[one]) if options.stats else payload_lines(entries)
            for one, entries in chosen.items()
        }
        return print_result(Result(by_program(lines), lambda: _rows(chosen, found)), options.as_json)


def _rows(chosen: dict[str, list[Entry]], found: dict[str, dict[int, Statistics]]) -> list[dict[str, Any]]:
    """Return the tensors as data, each with its program if there are several."""
    return [
        {**({"model": model} if len(chosen) > 1 else {}), **payload_row(entry, found[model].get(number))}
        for model, entries in chosen.items()
        for number, entry in enumerate(entries)
    ]


def _select(
    package: Package, models: Sequence[str], patterns: Sequence[str], constants: bool
) -> dict[str, list[Entry]]:
    """Return program -> its tensors that the patterns name, of the programs that have some for every pattern.

    Raises:
        Refusal: there is no such program.
    """
    chosen: dict[str, list[Entry]] = {}
    refusals = []
    for model in models:
        entries = entries_of(package, model, constants=constants)
        names = [entry.name for entry in entries]
        missing = [pattern for pattern in patterns if not any(_matches(name, pattern) for name in names)]
        if not missing:
            wanted = {name for name in names if not patterns or any(_matches(name, pattern) for pattern in patterns)}
            chosen[model] = [entry for entry in entries if entry.name in wanted]
            continue
        hint = suggestion(missing[0], names) or ("" if constants else "; constants are listed with --constants")
        refusals.append(f"{package.name}: {model}: expected a tensor {missing[0]!r}, got none of that name{hint}")
    if not chosen:
        raise Refusal(refusals[0])
    return chosen


def _matches(name: str, pattern: str) -> bool:
    """Return whether a pattern means a name, which may contain the characters of patterns itself."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


def _statistics(entries: list[Entry]) -> dict[int, Statistics]:
    from pt2kit.tensors.compound import QuantizedView, SparseView
    from pt2kit.tensors.summary import statistics

    total = sum(entry.payload.nbytes for entry in entries)
    by_number, done = {}, 0
    with progress("reading") as report:
        for number, entry in enumerate(entries):
            if isinstance(entry.payload, TensorView | SparseView | QuantizedView):
                by_number[number] = statistics(entry.payload)
            done += entry.payload.nbytes
            report(done, total)
    return by_number


def _extract(package: Package, entries: list[Entry], target: Path, widen: bool) -> None:
    from pt2kit.tensors.export import to_npy, to_npz
    from pt2kit.tensors.safetensors_file import to_safetensors

    pickled = [entry.name for entry in entries if isinstance(entry.payload, OpaquePayload)]
    if pickled:
        raise Refusal(
            f"{package.name}: expected tensors, got pickles, which take code to rebuild: "
            f"{', '.join(map(printable, pickled[:5]))}{', …' if len(pickled) > 5 else ''}; name the tensors"
        )
    named = [pair for entry in entries for pair in _tensors(entry)]
    views = dict(named)
    if len(views) != len(named):
        raise Refusal(f"{package.name}: expected each name once, got weights and constants of one name")
    with progress(f"writing {target.name}") as report:
        if target.suffix == ".npz":
            to_npz(views, target, widen=widen, progress=report)
        elif target.suffix == ".safetensors":
            to_safetensors(views, target, progress=report)
        elif len(views) == 1:
            to_npy(named[0][1], target, widen=widen, progress=report)
        else:
            raise Refusal(f"{target}: expected one tensor for a .npy file, got {len(views)}; name it")
    click.echo(f"{printable(str(target))}: {count_text(len(views), 'tensor')}", err=True)


def _tensors(entry: Entry) -> list[tuple[str, AnyView]]:
    """Return what is written for a payload: itself, or the parts of a tensor of torchao (`lin.weight.qdata`)."""
    from pt2kit.tensors.compound import SubclassView

    if isinstance(entry.payload, SubclassView):
        return [(f"{entry.name}.{name}", part) for name, part in entry.payload.parts.items()]
    return [(entry.name, entry.payload)]


def _replace(package: Package, model: str, source: str, output: str, options: Options) -> None:
    """Write the file with other weights."""
    from pt2kit.editing.editor import edit

    with edit(package, model) as editor:
        names = editor.load_weights(source, strict=not options.partial)
    write_result(editor.result, output, external=options.external)
    click.echo(f"{printable(output)}: {count_text(len(names), 'weight')} replaced", err=True)
