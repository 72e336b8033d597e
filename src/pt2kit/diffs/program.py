"""Comparison of two programs: changes of inputs, outputs, nodes, module calls, constraints, versions and metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.canonical.arguments import rename
from pt2kit.canonical.form import Reloading
from pt2kit.diffs.changes import Change, Detail, ModelPair
from pt2kit.diffs.fingerprints import ModuleNames, Symbols, is_of_another_kind
from pt2kit.diffs.graphs import DiffOptions, GraphDiff, Names, value_details
from pt2kit.diffs.input_roles import Pairs, input_role, match_inputs, match_outputs, output_name
from pt2kit.errors import GraphError
from pt2kit.graph.argument_values import arguments


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
    reloading = Reloading(), Reloading()
    before, after = (
        replace(program.graph_module, graph=side.graph(program.graph_module.graph))
        for side, program in zip(reloading, (old, new), strict=True)
    )
    for module, which in ((before, "old"), (after, "new")):
        _check_counts(module, which)
    inputs = match_inputs(before, after)
    outputs = match_outputs(before, after, inputs)
    symbols = Symbols()
    graphs = GraphDiff(model, ModuleNames(old), ModuleNames(new), symbols, options, reloading)
    matching = graphs.compare(old.graph_module.graph, new.graph_module.graph, inputs, outputs)
    names = Names(matching, symbols)
    changes = [
        *_inputs(before, after, inputs, names, model),
        *_outputs(before, after, outputs, names, model),
        *graphs.changes,
        *_module_calls(before, after, names, model),
        *_constraints(old, new, reloading, symbols, model, options),
        *_around(old, new, model, options),
    ]
    return changes, ModelPair(old, new, tuple(graphs.graphs))


def _check_counts(module: schema.GraphModule, which: str) -> None:
    for specs, edges, what, rule in (
        (module.signature.input_specs, module.graph.inputs, "input", "S1"),
        (module.signature.output_specs, module.graph.outputs, "output", "S2"),
    ):
        if len(specs) != len(edges):
            expected = f"expected as many {what}_specs as graph {what}s, {len(edges)}"
            raise GraphError(f"{which} $.graph_module.signature: {expected}, got {len(specs)}", rule=rule)


def _inputs(
    old: schema.GraphModule, new: schema.GraphModule, pairs: Pairs, names: Names, model: str
) -> Iterator[Change]:
    """Yield inputs that were added, removed or replaced, or whose metas changed."""
    taken_old, taken_new = {one for one, _ in pairs}, {other for _, other in pairs}
    for position in range(len(old.graph.inputs)):
        if position not in taken_old:
            yield Change("removed", "input", model, _input_text(old, position), old=position)
    for position in range(len(new.graph.inputs)):
        if position not in taken_new:
            yield Change("added", "input", model, _input_text(new, position), new=position)
    calls = _call_places(old), _call_places(new)
    shared = [place for place in calls[0] if place in taken_old], [place for place in calls[1] if place in taken_new]
    order_old = {position: place for place, position in enumerate(shared[0])}
    order_new = {position: place for place, position in enumerate(shared[1])}
    for one, other in pairs:
        details = list(_input_details(old, new, one, other, names))
        if order_old.get(one) != order_new.get(other):
            details.append(Detail("place in the call", calls[0].index(one), calls[1].index(other)))
        if details:
            name = _input_text(new, other)
            yield Change("modified", "input", model, name, old=one, new=other, details=tuple(details))


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
    if before.type != after.type:
        yield Detail("kind", before.type, after.type)
    if before.type != "user_input" and input_role(old, one) != input_role(new, other):
        yield Detail("name", input_role(old, one)[1], input_role(new, other)[1])
    held_old: Any = before.value
    held_new: Any = after.value
    for field in ("persistent", "value"):
        if codec.to_tree(getattr(held_old, field, None)) != codec.to_tree(getattr(held_new, field, None)):
            yield Detail(field, getattr(held_old, field, None), getattr(held_new, field, None))
    details = list(value_details(old.graph, new.graph, old.graph.inputs[one], new.graph.inputs[other], names))
    yield from details
    if not any(detail.what == "argument" for detail in details):
        yield from _spec_details(before, after, names)


def _spec_details(
    old: schema.InputSpec | schema.OutputSpec, new: schema.InputSpec | schema.OutputSpec, names: Names
) -> Iterator[Detail]:
    """Yield the values that specs name: those that the graph has at their positions, in a sound program."""
    first, second = (_spec_values(spec) for spec in (old, new))
    if [names.values.get(name, name) for name in first] != second:
        yield Detail("spec", first, second)


def _spec_values(spec: schema.InputSpec | schema.OutputSpec) -> list[str]:
    value: Any = spec.value
    argument = getattr(value, "arg", None)
    if isinstance(argument, schema.Argument):
        return list(arguments(argument))
    return [argument.name] if argument is not None else []


def _outputs(
    old: schema.GraphModule, new: schema.GraphModule, pairs: Pairs, names: Names, model: str
) -> Iterator[Change]:
    taken_old, taken_new = {one for one, _ in pairs}, {other for _, other in pairs}
    for position, spec in enumerate(old.signature.output_specs):
        if position not in taken_old:
            yield Change("removed", "output", model, _output_text(spec, position), old=position)
    for position, spec in enumerate(new.signature.output_specs):
        if position not in taken_new:
            yield Change("added", "output", model, _output_text(spec, position), new=position)
    for one, other in pairs:
        first, second = old.graph.outputs[one], new.graph.outputs[other]
        if names.same_argument(first, second):
            specs = old.signature.output_specs[one], new.signature.output_specs[other]
            details = list(_spec_details(*specs, names))
        else:
            details = [Detail("argument", first, second)]
        if details:
            name = _output_text(new.signature.output_specs[other], other)
            yield Change("modified", "output", model, name, "", one, other, tuple(details))
    if old.graph.is_single_tensor_return != new.graph.is_single_tensor_return:
        flags = old.graph.is_single_tensor_return, new.graph.is_single_tensor_return
        yield Change("modified", "output", model, "outputs", details=(Detail("single tensor return", *flags),))


def _output_text(spec: schema.OutputSpec, position: int) -> str:
    name = output_name(spec)
    return f"{spec.type} {name}" if name else f"{spec.type} {position}"


def _module_calls(old: schema.GraphModule, new: schema.GraphModule, names: Names, model: str) -> Iterator[Change]:
    before = {entry.fqn: entry for entry in old.module_call_graph}
    after = {entry.fqn: entry for entry in new.module_call_graph}
    yield from _added_and_removed(before, after, "module call", model)
    for fqn, entry in after.items():
        if fqn in before and (details := tuple(_call_details(before[fqn].signature, entry.signature, names))):
            yield Change("modified", "module call", model, fqn, details=details)
    rows_old = {name: row.field_names for name, row in old.treespec_namedtuple_fields.items()}
    rows_new = {name: row.field_names for name, row in new.treespec_namedtuple_fields.items()}
    for name in sorted(rows_old.keys() | rows_new.keys()):
        if rows_old.get(name) != rows_new.get(name):
            details = (Detail(f"fields of {name}", rows_old.get(name), rows_new.get(name)),)
            yield Change("modified", "module call", model, name, details=details)


def _added_and_removed(before: Mapping[str, Any], after: Mapping[str, Any], area: Any, model: str) -> Iterator[Change]:
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
        if getattr(old, field) != getattr(new, field):
            yield Detail(field, getattr(old, field), getattr(new, field))
    for field in ("inputs", "outputs"):
        first, second = getattr(old, field), getattr(new, field)
        renamed = [rename(argument, names.values, iter(())) for argument in first]
        if codec.encode(renamed) != codec.encode(second):
            yield Detail(field, first, second)


def _constraints(
    old: schema.ExportedProgram,
    new: schema.ExportedProgram,
    reloading: tuple[Reloading, Reloading],
    symbols: Symbols,
    model: str,
    options: DiffOptions,
) -> Iterator[Change]:
    before = {symbols.new_name(symbol): row for symbol, row in reloading[0].ranges(old).items()}
    after = reloading[1].ranges(new)
    for one, other in sorted(symbols.renamed.items()):
        if options.names or is_of_another_kind(one, other):
            yield Change("modified", "constraint", model, other, details=(Detail("name", one, other),))
    for symbol, row in before.items():
        if symbol not in after:
            yield Change("removed", "constraint", model, symbol, details=(Detail("range", row, None),))
        elif row != after[symbol]:
            yield Change("modified", "constraint", model, symbol, details=(Detail("range", row, after[symbol]),))
    for symbol, row in after.items():
        if symbol not in before:
            yield Change("added", "constraint", model, symbol, details=(Detail("range", None, row),))
    guards_old, guards_new = set(map(symbols.guard, old.guards_code)), set(new.guards_code)
    yield from (Change("removed", "guard", model, guard) for guard in sorted(guards_old - guards_new))
    yield from (Change("added", "guard", model, guard) for guard in sorted(guards_new - guards_old))


def _around(
    old: schema.ExportedProgram, new: schema.ExportedProgram, model: str, options: DiffOptions
) -> Iterator[Change]:
    """Yield changes of program fields: operator set and verifiers, which have a meaning, and metadata."""
    for field in ("opset_version", "verifiers"):
        if getattr(old, field) != getattr(new, field):
            details = (Detail(field, getattr(old, field), getattr(new, field)),)
            yield Change("modified", "program", model, field, details=details)
    if not options.metadata:
        return
    if old.torch_version != new.torch_version:
        details = (Detail("torch_version", old.torch_version, new.torch_version),)
        yield Change("modified", "metadata", model, "torch_version", details=details)
    before, after = old.graph_module.metadata, new.graph_module.metadata
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            details = (Detail(key, before.get(key), after.get(key)),)
            yield Change("modified", "metadata", model, key, details=details)
