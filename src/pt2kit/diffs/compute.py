"""Computation of a `Diff` of two packages: model by model, then the records that belong to none.

Of two programs, inputs, outputs, nodes, module calls, constraints, versions and metadata are compared.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.canonical.facts import rename
from pt2kit.diffs.changes import Area, Change, Detail, Diff, Kind, ModelPair, differing
from pt2kit.diffs.fingerprints import ProgramSide, Symbols, is_of_another_kind
from pt2kit.diffs.graphs import DiffOptions, GraphDiff, Names, value_details
from pt2kit.diffs.input_roles import Pairs, input_role, match_inputs, match_outputs, renamed_payloads
from pt2kit.diffs.tensors import compare_payloads
from pt2kit.digests.compute import digest_parts, payloads_of, unknown_in_configs
from pt2kit.errors import Pt2Error
from pt2kit.graph.argument_values import argument_names
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, opened
from pt2kit.schema.names import target_of
from pt2kit.signature.consistency import DEFAULT_WHERE, check_counts
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
    with opened(old) as before, opened(new) as after:
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
            unknown = _unknown_keys(before, one), _unknown_keys(after, other)
            changes += _entries("program", other, *unknown, "unknown key")
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
    renamed = renamed_payloads(old.programs[before].graph_module, new.programs[after].graph_module)
    areas: tuple[Area, ...] = ("weight", "constant")
    for area in areas:
        one, other = payloads_of(old, before, f"{area}s"), payloads_of(new, after, f"{area}s")
        yield from compare_payloads(one, other, area, after, renamed=renamed, values=values, progress=progress)


def _entries(
    area: Area, model: str, before: Mapping[str, Any], after: Mapping[str, Any], what: str = "{}"
) -> Iterator[Change]:
    """Yield a change for each entry that one of two mappings alone has, or that differs; `what` is its detail's."""
    for key in sorted(before.keys() | after.keys()):
        if key not in before or key not in after or before[key] != after[key]:
            detail = Detail(what.format(key), before.get(key), after.get(key))
            yield Change("modified", area, model, key, details=(detail,))


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
            facts = zip(("bytes", "crc32"), before[name], row, strict=True)
            details = tuple(Detail(what, one, other) for what, one, other in facts if one != other)
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


def compare_programs(
    old: schema.ExportedProgram, new: schema.ExportedProgram, model: str, options: DiffOptions
) -> tuple[list[Change], ModelPair]:
    """Compare two programs without their tensors.

    Args:
        old, new: programs of the current schema version.
        model: what to call them.
        options: what is compared.

    Raises:
        GraphError, LimitError: one of them contradicts itself.
    """
    sides = ProgramSide("old", old), ProgramSide("new", new)
    modules = [side.program.graph_module for side in sides]
    before, after = (
        replace(module, graph=side.reloading.graph(module.graph)) for side, module in zip(sides, modules, strict=True)
    )
    for side, module in zip(sides, modules, strict=True):
        check_counts(module, f"{side.which} {DEFAULT_WHERE}")
    inputs = match_inputs(before, after)
    outputs = match_outputs(before, after, inputs)
    symbols = Symbols()
    graphs = GraphDiff(model, sides, symbols, options)
    matching = graphs.compare(old.graph_module.graph, new.graph_module.graph, inputs, outputs)
    names = Names(matching, symbols)
    changes = [
        *_inputs(before, after, inputs, names, model),
        *_outputs(before, after, outputs, names, model),
        *graphs.changes,
        *_module_calls(before, after, names, model),
        *_constraints(*sides, symbols, model, options),
        *_around(old, new, model, options),
    ]
    return changes, ModelPair(old, new, tuple(graphs.graphs))


def _inputs(
    old: schema.GraphModule, new: schema.GraphModule, pairs: Pairs, names: Names, model: str
) -> Iterator[Change]:
    """Yield inputs that were added, removed or replaced, or whose metas changed."""
    before, after = (
        [_input_text(module, position) for position in range(len(module.graph.inputs))] for module in (old, new)
    )
    yield from _unpaired("input", model, before, after, pairs)
    taken_old, taken_new = {one for one, _ in pairs}, {other for _, other in pairs}
    calls = _call_places(old), _call_places(new)
    shared = [place for place in calls[0] if place in taken_old], [place for place in calls[1] if place in taken_new]
    order_old = {position: place for place, position in enumerate(shared[0])}
    order_new = {position: place for place, position in enumerate(shared[1])}
    for one, other in pairs:
        details = list(_input_details(old, new, one, other, names))
        if order_old.get(one) != order_new.get(other):
            details.append(Detail("place in the call", calls[0].index(one), calls[1].index(other)))
        if details:
            yield Change("modified", "input", model, after[other], old=one, new=other, details=tuple(details))


def _unpaired(area: Area, model: str, old: list[str], new: list[str], pairs: Pairs) -> Iterator[Change]:
    """Yield the inputs or outputs, by their texts, that were removed or added."""
    taken_old, taken_new = {one for one, _ in pairs}, {other for _, other in pairs}
    yield from (Change("removed", area, model, text, old=n) for n, text in enumerate(old) if n not in taken_old)
    yield from (Change("added", area, model, text, new=n) for n, text in enumerate(new) if n not in taken_new)


def _call_places(module: schema.GraphModule) -> list[int]:
    """Return the positions of the inputs that a caller passes, in the order of the call."""
    specs = module.signature.input_specs
    return [position for position, spec in enumerate(specs) if spec.type in ("user_input", "constant_input")]


def _input_text(module: schema.GraphModule, position: int) -> str:
    kind, name = input_role(module, position)
    return name or f"{kind} {position}"


def _input_details(
    old: schema.GraphModule, new: schema.GraphModule, one: int, other: int, names: Names
) -> Iterator[Detail]:
    before, after = old.signature.input_specs[one], new.signature.input_specs[other]
    yield from differing("kind", before.type, after.type)
    if before.type != "user_input" and input_role(old, one) != input_role(new, other):
        yield Detail("name", input_role(old, one)[1], input_role(new, other)[1])
    for field in ("persistent", "value"):
        held_old, held_new = (getattr(spec.value, field, None) for spec in (before, after))
        if codec.to_tree(held_old) != codec.to_tree(held_new):
            yield Detail(field, held_old, held_new)
    details = list(value_details(old.graph, new.graph, old.graph.inputs[one], new.graph.inputs[other], names))
    yield from details
    if not any(detail.what == "argument" for detail in details):
        yield from _spec_details(before, after, names)


def _spec_details(
    old: schema.InputSpec | schema.OutputSpec, new: schema.InputSpec | schema.OutputSpec, names: Names
) -> Iterator[Detail]:
    """Yield the values that specs name: those that the graph has at their positions, in a sound program."""
    first, second = argument_names(old), argument_names(new)
    if [names.values.get(name, name) for name in first] != second:
        yield Detail("spec", first, second)


def _outputs(
    old: schema.GraphModule, new: schema.GraphModule, pairs: Pairs, names: Names, model: str
) -> Iterator[Change]:
    specs = old.signature.output_specs, new.signature.output_specs
    before, after = ([f"{spec.type} {target_of(spec) or place}" for place, spec in enumerate(side)] for side in specs)
    yield from _unpaired("output", model, before, after, pairs)
    for one, other in pairs:
        first, second = old.graph.outputs[one], new.graph.outputs[other]
        if names.same_argument(first, second):
            details = list(_spec_details(specs[0][one], specs[1][other], names))
        else:
            details = [Detail("argument", first, second)]
        if details:
            yield Change("modified", "output", model, after[other], "", one, other, tuple(details))
    flag_old, flag_new = ({"outputs": module.graph.is_single_tensor_return} for module in (old, new))
    yield from _entries("output", model, flag_old, flag_new, "single tensor return")


def _module_calls(old: schema.GraphModule, new: schema.GraphModule, names: Names, model: str) -> Iterator[Change]:
    before = {entry.fqn: entry for entry in old.module_call_graph}
    after = {entry.fqn: entry for entry in new.module_call_graph}
    yield from _added_and_removed(before, after, "module call", model)
    for fqn, entry in after.items():
        if fqn in before and (details := tuple(_call_details(before[fqn].signature, entry.signature, names))):
            yield Change("modified", "module call", model, fqn, details=details)
    rows_old = {name: row.field_names for name, row in old.treespec_namedtuple_fields.items()}
    rows_new = {name: row.field_names for name, row in new.treespec_namedtuple_fields.items()}
    yield from _entries("module call", model, rows_old, rows_new, "fields of {}")


def _added_and_removed(before: Collection[str], after: Collection[str], area: Area, model: str) -> Iterator[Change]:
    yield from (Change("removed", area, model, name) for name in before if name not in after)
    yield from (Change("added", area, model, name) for name in after if name not in before)


def _call_details(
    old: schema.ModuleCallSignature | None, new: schema.ModuleCallSignature | None, names: Names
) -> Iterator[Detail]:
    if old is None or new is None:
        if old is not new:
            yield Detail("signature", old, new)
        return
    for field in ("in_spec", "out_spec", "forward_arg_names"):
        yield from differing(field, getattr(old, field), getattr(new, field))
    for field in ("inputs", "outputs"):
        first, second = getattr(old, field), getattr(new, field)
        renamed = [rename(argument, names.values, iter(())) for argument in first]
        if codec.encode(renamed) != codec.encode(second):
            yield Detail(field, first, second)


def _constraints(
    old: ProgramSide, new: ProgramSide, symbols: Symbols, model: str, options: DiffOptions
) -> Iterator[Change]:
    before = {symbols.new_name(symbol): row for symbol, row in old.reloading.ranges(old.program).items()}
    after = new.reloading.ranges(new.program)
    for one, other in sorted(symbols.renamed.items()):
        if options.names or is_of_another_kind(one, other):
            yield Change("modified", "constraint", model, other, details=(Detail("name", one, other),))
    for symbol in dict.fromkeys((*before, *after)):
        detail = Detail("range", before.get(symbol), after.get(symbol))
        if detail.old != detail.new:
            kind: Kind = "removed" if detail.new is None else "added" if detail.old is None else "modified"
            yield Change(kind, "constraint", model, symbol, details=(detail,))
    guards = dict.fromkeys(sorted(map(symbols.guard, old.program.guards_code)))
    yield from _added_and_removed(guards, dict.fromkeys(sorted(new.program.guards_code)), "guard", model)


def _around(
    old: schema.ExportedProgram, new: schema.ExportedProgram, model: str, options: DiffOptions
) -> Iterator[Change]:
    """Yield changes of program fields: operator set and verifiers, which have a meaning, and metadata."""
    before, after = ({"opset_version": one.opset_version, "verifiers": one.verifiers} for one in (old, new))
    yield from _entries("program", model, before, after)
    if options.metadata:
        torch_old, torch_new = ({"torch_version": one.torch_version} for one in (old, new))
        yield from _entries("metadata", model, torch_old, torch_new)
        yield from _entries("metadata", model, old.graph_module.metadata, new.graph_module.metadata)
