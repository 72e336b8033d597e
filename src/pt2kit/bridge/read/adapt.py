"""Adaptation of programs to named tuples whose fields have changed since the program was saved.

The file states the fields of each named tuple. If the registered class has others, inputs and outputs are put in
the class's order by name. A field that the class gained becomes an input that is not looked at, or an output with the
class's default; one that it lost takes its input with it, which must not be used, or its output.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from msgspec.structs import replace

from pt2kit import schema, treespec
from pt2kit.errors import GraphError
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.def_use import index
from pt2kit.signature.consistency import DEFAULT_WHERE as WHERE
from pt2kit.signature.specs import ConstantArgument, schema_argument
from pt2kit.symbols.guards import parse_guard
from pt2kit.treespec.containers import NAMEDTUPLE, FieldTable
from pt2kit.treespec.spec import TreeSpec


@dataclass(frozen=True, slots=True)
class _Gained:
    """A leaf that the file does not have: a field of a class, and the defaults of its fields."""

    field: str
    defaults: Mapping[str, Any]


_Leaf = int | _Gained


def adapt_named_tuples(
    program: schema.ExportedProgram, stored: FieldTable, changed: Mapping[str, Any]
) -> tuple[schema.ExportedProgram, tuple[int | None, ...]]:
    """Rewrite a program for the named tuples that are registered now.

    Args:
        program: a program whose signature fits its graph and its tree specs.
        stored: the fields of named tuples that the program states.
        changed: registered name -> class, of those that have other fields now.

    Returns:
        the program; and for each leaf of its `in_spec` the leaf of the file's that it is, None for one that the file
        does not have.

    Raises:
        GraphError: a class lost a field that the program uses, or gained one without default that it would return.
    """
    module = program.graph_module
    entries, leaves = zip(*(_entry(entry, stored, changed) for entry in module.module_call_graph), strict=True)
    inputs, outputs = leaves[0]
    graph, signature = _graph(module.graph, module.signature, inputs, outputs)
    current = {name: schema.NamedTupleDef(list(kind._fields)) for name, kind in changed.items()}
    fields = {**module.treespec_namedtuple_fields, **current}
    adapted = replace(
        module, graph=graph, signature=signature, module_call_graph=list(entries), treespec_namedtuple_fields=fields
    )
    sources = tuple(leaf if isinstance(leaf, int) else None for leaf in inputs)
    known = {field for kind in changed.values() for field in kind._fields}
    guards = [text for text in program.guards_code if _still_holds(text, known)]
    return replace(program, graph_module=adapted, guards_code=guards), sources


def _still_holds(guard: str, fields: Collection[str]) -> bool:
    """Return whether everything a guard refers to still exists: by names that the classes have, never by an index."""
    steps = [step for source in parse_guard(guard).sources for step in source.path[1:]]
    return all(step[0] in fields if isinstance(step, tuple) else isinstance(step, str) for step in steps)


def _rewrite(spec: TreeSpec, stored: FieldTable, changed: Mapping[str, Any]) -> tuple[TreeSpec, list[_Leaf]]:
    """Return a spec for the current classes, and the old leaf of each of its leaves."""

    def leaf(position: int) -> tuple[TreeSpec, list[_Leaf]]:
        return treespec.LEAF, [position]

    def node(old: TreeSpec, children: list[tuple[TreeSpec, list[_Leaf]]]) -> tuple[TreeSpec, list[_Leaf]]:
        name = treespec.namedtuple_name(old) if old.type == NAMEDTUPLE else None
        if name is not None and name in changed:
            known = dict(zip(stored[name], children, strict=True))
            kind = changed[name]
            children = [
                known[field] if field in known else (treespec.LEAF, [_Gained(field, kind._field_defaults)])
                for field in kind._fields
            ]
        leaves = [leaf for _, inner in children for leaf in inner]
        return TreeSpec(old.type, old.context, tuple(child for child, _ in children)), leaves

    return treespec.fold(spec, leaf, node)


def _entry(
    entry: schema.ModuleCallEntry, stored: FieldTable, changed: Mapping[str, Any]
) -> tuple[schema.ModuleCallEntry, tuple[list[_Leaf], list[_Leaf]]]:
    """Return an entry for the current classes, and the old leaf of each leaf of its inputs and outputs."""
    call = entry.signature
    if call is None:
        return entry, ([], [])
    in_spec, inputs = _rewrite(treespec.parse(call.in_spec), stored, changed)
    out_spec, outputs = _rewrite(treespec.parse(call.out_spec), stored, changed)
    rewritten = replace(
        call,
        in_spec=treespec.dump(in_spec),
        out_spec=treespec.dump(out_spec),
        inputs=_arguments(call.inputs, inputs),
        outputs=_arguments(call.outputs, outputs),
    )
    return replace(entry, signature=rewritten), (inputs, outputs)


def _arguments(old: Sequence[schema.Argument], leaves: Sequence[_Leaf]) -> list[schema.Argument]:
    """Return the arguments of a module call in the order of the new leaves; the root's are empty in files."""
    if not old:
        return []
    return [old[leaf] if isinstance(leaf, int) else schema.Argument(as_none=True) for leaf in leaves]


def _graph(
    graph: schema.Graph, signature: schema.GraphSignature, inputs: Sequence[_Leaf], outputs: Sequence[_Leaf]
) -> tuple[schema.Graph, schema.GraphSignature]:
    """Return the graph and its signature with the user's inputs and outputs in the new order."""
    input_at = [i for i, spec in enumerate(signature.input_specs) if spec.type in ("user_input", "constant_input")]
    output_at = [i for i, spec in enumerate(signature.output_specs) if spec.type in ("user_output", "loss_output")]
    lost = [input_at[leaf] for leaf in range(len(input_at)) if leaf not in inputs]
    dropped = _dropped(graph, lost)
    new_inputs = _reordered(
        list(zip(graph.inputs, signature.input_specs, strict=True)), input_at, inputs, _unseen(graph, signature)
    )
    new_outputs = _reordered(
        list(zip(graph.outputs, signature.output_specs, strict=True)), output_at, outputs, _constant_output
    )
    tensors = {name: meta for name, meta in graph.tensor_values.items() if name not in dropped}
    numbers = {name: value for name, value in graph.sym_int_values.items() if name not in dropped}
    return (
        replace(
            graph,
            inputs=[argument for argument, _ in new_inputs],
            outputs=[argument for argument, _ in new_outputs],
            tensor_values=tensors,
            sym_int_values=numbers,
        ),
        schema.GraphSignature([spec for _, spec in new_inputs], [spec for _, spec in new_outputs]),
    )


def _reordered(pairs: list[Any], places: Sequence[int], leaves: Sequence[_Leaf], make: Any) -> list[Any]:
    """Replace the pairs at `places` by those of the leaves; the others keep their positions."""
    if not places and not leaves:
        return pairs
    first = places[0] if places else len(pairs)
    chosen = [pairs[places[leaf]] if isinstance(leaf, int) else make(leaf) for leaf in leaves]
    rest = [pair for position, pair in enumerate(pairs) if position not in set(places)]
    return [*rest[:first], *chosen, *rest[first:]]


def _unseen(graph: schema.Graph, signature: schema.GraphSignature) -> Any:
    """Return a function that makes an unused input."""
    taken = {*graph.tensor_values, *graph.sym_int_values, *graph.sym_float_values, *graph.sym_bool_values}
    taken |= {spec.constant_input.name for spec in signature.input_specs if spec.type == "constant_input"}

    def make(gained: _Gained) -> tuple[schema.Argument, schema.InputSpec]:
        name = next(name for n in count() if (name := f"{gained.field}_{n}_not_used") not in taken)
        taken.add(name)
        constant = schema.InputToConstantInputSpec(name, schema.ConstantValue(as_none=True))
        return schema.Argument(as_none=True), schema.InputSpec(constant_input=constant)

    return make


def _constant_output(gained: _Gained) -> tuple[schema.Argument, schema.OutputSpec]:
    if gained.field not in gained.defaults:
        raise GraphError(
            f"{WHERE}: expected the fields that a named tuple of an output gained to have defaults, "
            f"got {gained.field!r} without one; the file does not have it"
        )
    value = gained.defaults[gained.field]
    if type(value) not in (bool, int, float, str, type(None)):
        raise GraphError(
            f"{WHERE}: expected the default of the field {gained.field!r} to be a number, a text or None, "
            f"got a {type(value).__name__}"
        )
    argument = schema_argument(ConstantArgument("", value))
    return argument, schema.OutputSpec(user_output=schema.UserOutputSpec(argument))


def _dropped(graph: schema.Graph, lost: Sequence[int]) -> set[str]:
    """Return the names of the inputs that are removed with a lost field.

    Raises:
        GraphError: the program uses one.
    """
    uses = index(graph, f"{WHERE}.graph").uses
    names = [name for position in lost for name in arguments(graph.inputs[position])]
    for name in names:
        if uses[name]:
            raise GraphError(
                f"{WHERE}: expected the named tuples of the inputs to have the fields that the program uses, "
                f"got one without that of the input {name!r}"
            )
    return set(names)
