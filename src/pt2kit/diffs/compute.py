"""Computation of a `Diff` of two packages: model by model, then the records that belong to none."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Any, Final

from pt2kit.diffs.changes import Area, Change, Detail, Diff, ModelPair
from pt2kit.diffs.graphs import DiffOptions
from pt2kit.diffs.input_roles import renamed_payloads
from pt2kit.diffs.program import compare_programs
from pt2kit.diffs.tensors import compare_payloads
from pt2kit.digests.compute import digest_parts, payloads_of, unknown_in_configs
from pt2kit.errors import Pt2Error
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, open_package
from pt2kit.zip.listing import FileLike
from pt2kit.zip.source import Progress, no_progress

COMPARED_RECORDS: Final = frozenset(("sample inputs", "extra file", "compiled code", "other"))
"""The kinds of records that are compared as bytes; the others hold what is compared by its meaning."""


def diff(
    old: Package | FileLike,
    new: Package | FileLike,
    *,
    models: Mapping[str, str] | None = None,
    tensors: bool = True,
    metadata: bool = True,
    names: bool = False,
    order: bool = False,
    progress: Progress = no_progress,
) -> Diff:
    """Compare two packages: programs by what they do, tensors by their numbers, everything else by its bytes.

    Names of values, of nodes and of symbols and the order of nodes make no difference unless they are asked for: nodes
    correspond by what they do and how they are connected. With the files exchanged, the same is
    told the other way round.

    Args:
        old, new: open packages, or files, which are opened and closed.
        models: program of the old file -> that of the new one to compare it with; nothing else is compared then. By
            default those of one name, the only ones, and of the others those that mean the same.
        tensors: compare the bytes of weights and constants; their types and shapes are compared in any case.
        metadata: compare node metadata.
        names: compare the names of nodes, values and symbols.
        order: compare the order of nodes.
        progress: called with the bytes of tensors done and in all, for weights and for constants.

    Raises:
        ArchiveError: `models` names a program that is not there.
        OSError, Pt2Error: a file cannot be read, or a program contradicts itself.

    Cost: linear in the programs; 10,000 nodes take a second or two. With `tensors`, reads all tensors of both files.
    """
    with ExitStack() as stack:
        before, after = (
            one if isinstance(one, Package) else stack.enter_context(open_package(one)) for one in (old, new)
        )
        options = DiffOptions(metadata=metadata, names=names, order=order)
        changes: list[Change] = []
        compared: dict[str, ModelPair] = {}
        pairs = _pair_models(before, after, tensors) if models is None else _asked_for(before, after, models)
        for one, other in pairs:
            if one is None or other is None:
                changes.append(Change("added" if one is None else "removed", "model", "", one or other or ""))
                continue
            program_changes, compared[other] = compare_programs(
                before.programs[one], after.programs[other], other, options
            )
            if one != other:
                changes.append(Change("modified", "model", "", other, details=(Detail("name", one, other),)))
            changes += program_changes
            changes += _unknown(before, after, one, other)
            changes += _payloads(before, after, one, other, tensors, progress)
        if models is None:
            renamed = {one: other for one, other in pairs if one is not None and other is not None}
            changes += _records(before, after, renamed)
        return Diff(before.name, after.name, tuple(changes), compared, tensors)


def _asked_for(old: Package, new: Package, models: Mapping[str, str]) -> list[tuple[str | None, str | None]]:
    """Return the requested pairs of models; raise as `diff` for a missing one."""
    for package, asked in ((old, models.keys()), (new, models.values())):
        for name in asked:
            package.choose(name)
    return list(models.items())


def _pair_models(old: Package, new: Package, tensors: bool) -> list[tuple[str | None, str | None]]:
    """Return the models that correspond: by name, or the only ones, or by equal digests."""
    before, after = old.layout.models, new.layout.models
    if len(before) == len(after) == 1:
        return [(before[0], after[0])]
    left = [name for name in before if name not in after]
    same = _same_meaning(old, left, new, [name for name in after if name not in before], tensors)
    removed: list[tuple[str | None, str | None]] = [(name, None) for name in left if name not in same.values()]
    return [*removed, *((name if name in before else same.get(name), name) for name in after)]


def _same_meaning(old: Package, before: list[str], new: Package, after: list[str], tensors: bool) -> dict[str, str]:
    """Return new name -> old name of the programs that have one digest; weights are read only if they are to be
    compared."""
    if not before or not after:
        return {}
    parts = ("program",) if tensors else ("graph", "signature")

    def digests(package: Package, models: list[str]) -> Iterator[tuple[tuple[str, ...], str]]:
        for model in models:
            with suppress(Pt2Error):  # what is wrong with it is said where it is compared
                by_part = digest_parts(package, parts, model)
                yield tuple(by_part[part] for part in parts), model

    known: dict[tuple[str, ...], list[str]] = {}
    for digest, model in digests(old, before):
        known.setdefault(digest, []).append(model)
    return {model: known[digest].pop(0) for digest, model in digests(new, after) if known.get(digest)}


def _payloads(
    old: Package, new: Package, before: str, after: str, values: bool, progress: Progress
) -> Iterator[Change]:
    areas: tuple[tuple[Area, Any, Any], ...] = (
        ("weight", payloads_of(old, before, "weights"), payloads_of(new, after, "weights")),
        ("constant", payloads_of(old, before, "constants"), payloads_of(new, after, "constants")),
    )
    renamed = renamed_payloads(old.programs[before].graph_module, new.programs[after].graph_module)
    for area, one, other in areas:
        yield from compare_payloads(one, other, area, after, renamed=renamed, values=values, progress=progress)


def _unknown(old: Package, new: Package, before: str, after: str) -> Iterator[Change]:
    """Yield unknown keys of this build: those of one program alone, and those with other values."""
    one, other = _unknown_keys(old, before), _unknown_keys(new, after)
    for place in sorted(one.keys() | other.keys()):
        if (place in one, one.get(place)) != (place in other, other.get(place)):
            details = (Detail("unknown key", one.get(place), other.get(place)),)
            yield Change("modified", "program", after, place, details=details)


def _unknown_keys(package: Package, model: str) -> dict[str, Any]:
    """Return path -> value of this build's unknown keys, in the program and in the configs of its tensors."""
    by_place = {str(key): key.value for key in package.stored[model].unknown}
    for kind, keys in unknown_in_configs(package, model).items():
        by_place |= {f"{kind}: {key}": value for key, value in keys.items()}
    return by_place


def _records(old: Package, new: Package, renamed: Mapping[str, str]) -> Iterator[Change]:
    """Yield the records outside of programs that were added, removed or changed; a program's extra records use its new
    name."""
    moved = {names.sample_inputs(one): names.sample_inputs(other) for one, other in renamed.items()}
    before = {moved.get(name, name): row for name, row in _compared_records(old).items()}
    after = _compared_records(new)
    yield from (Change("removed", "record", "", name) for name in before if name not in after)
    for name, row in after.items():
        if name not in before:
            yield Change("added", "record", "", name)
        elif before[name] != row:
            sizes, crcs = (Detail(what, a, b) for what, a, b in zip(("bytes", "crc32"), before[name], row, strict=True))
            details = tuple(detail for detail in (sizes, crcs) if detail.old != detail.new)
            yield Change("modified", "record", "", name, details=details)


def _compared_records(package: Package) -> dict[str, tuple[int, str]]:
    """Return name -> bytes of the records that are compared, and their CRC-32, which an edited package does not
    store."""
    by_name = {package.relative(name): record for name, record in package.records.items()}
    kept = {name: record for name, record in by_name.items() if names.kind(name) in COMPARED_RECORDS}
    return {
        names.in_archive(name): (record.size, f"{record.crc32 or zlib.crc32(package.archive.read(record.name)):08x}")
        for name, record in kept.items()
    }
