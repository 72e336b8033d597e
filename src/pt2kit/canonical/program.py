"""Normal form of a program: the same for every order of its nodes and every naming of its values.

Inputs are sorted by kind, then by the name that the module has for them, then by position; outputs likewise; nodes come
in the order of `form.node_order`; everything that is a set or a map is sorted.

Source: torch/_export/serde/serialize.py (canonicalize), torch 2.13. What differs from torch, which reads its own result
as it reads this one:

- ties between nodes, which torch leaves in stored order, are broken by what the nodes are and how they are used
  (`canonical_labeling.py`), those between outputs that belong to user inputs by the order of these inputs;
- names of nodes go, as they repeat the names of values; calls of modules and custom objects follow the new names;
- `as_optional_tensor`, `as_string_to_argument`, symbolic truth values and custom objects of users are understood, too;
- the fields of named tuples stay, as they say how the program is called; entries of value tables without a value go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from pt2kit import schema
from pt2kit.canonical.expressions import input_symbols, renamed_words
from pt2kit.canonical.facts import Names, refuse_subgraph, rename, slots
from pt2kit.canonical.form import Form, Keep, Reloading, check_free, normal_form
from pt2kit.graph.argument_values import argument_names, arguments
from pt2kit.graph.traversal import Meta, tables
from pt2kit.package.open import Package, opened
from pt2kit.schema import Argument, ExportedProgram, GraphModule, GraphSignature, InputSpec, OutputSpec
from pt2kit.schema.names import target_of
from pt2kit.signature.consistency import check_counts
from pt2kit.zip.listing import FileLike

INPUT_KINDS: Final = ("token", "parameter", "buffer", "tensor_constant", "custom_obj", "user_input", "constant_input")
"""The kinds of inputs, in the order of the normal form."""

OUTPUT_RANKS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "token": 0,
        "parameter_mutation": 1,
        "buffer_mutation": 2,
        "user_input_mutation": 3,
        "user_output": 4,
        "loss_output": 4,
        "gradient_to_parameter": 5,
        "gradient_to_user_input": 6,
    }
)
"""Kind of output -> its rank in the order of the normal form."""

Spec = TypeVar("Spec", InputSpec, OutputSpec)


def canonicalize(
    program: ExportedProgram | Package | FileLike,
    model: str | None = None,
    *,
    keep_metadata: bool = False,
    keep_write_order: bool = False,
    keep_symbols: bool = False,
    as_reloaded: bool = False,
) -> ExportedProgram:
    """Convert a program to the format's normal form.

    Two programs that differ in the order of nodes, as far as arguments and results leave it open, in the names of
    values, nodes, subgraphs and symbols of inputs, in the order of maps, or in node metadata, have one normal form. The
    normal form of a normal form is itself.

    The order of nodes that write into their arguments is not visible in arguments and results, so torch's normal form
    loses it: compare it, but don't run it. `keep_write_order` keeps it.

    Args:
        program: any program of the current schema version, whose nodes may be stored in any order; or a package, or
            whatever `pt2kit.open` takes.
        model: which program of a package; by default the only one, or "model".
        keep_metadata: keep the metadata of nodes.
        keep_write_order: move no node from one side of a node that may write to the other. The nodes of the program
            must then be in an order in which it can run.
        keep_symbols: keep the names of symbols, as torch does.
        as_reloaded: drop what loading and saving with torch changes: storage offsets in descriptions of values, how
            expressions are written, ranges of symbols without a use, process addresses in metadata.

    Returns:
        a new program; descriptions of values, constants and specs are shared with the one given.

    Raises:
        GraphError: the graph contradicts itself or its signature, in a way that leaves no normal form.
        OSError, Pt2Error: no such program, or a file that cannot be read.
        LimitError: subgraphs or dicts of arguments nest too deep (G11).

    Cost: linear in the arguments, times the logarithm of how many nodes are ready together; 100,000 nodes take seconds.

    Source: torch/_export/serde/serialize.py, torch 2.13.
    """
    if not isinstance(program, ExportedProgram):
        with opened(program) as package:
            program = package.programs[package.choose(model)]
    module, where = program.graph_module, "$.graph_module"
    reloading = Reloading() if as_reloaded else None
    graph = module.graph if reloading is None else reloading.graph(module.graph)
    check_counts(module, where)
    input_order = sort_inputs(module)
    output_order = _sort_outputs(module, input_order)
    symbols = {} if keep_symbols else input_symbols(_described(graph, input_order))
    keep = Keep(keep_metadata, keep_write_order, symbols, reloading)
    form = normal_form(
        graph,
        [graph.inputs[position] for position in input_order],
        [graph.outputs[position] for position in output_order],
        f"{where}.graph",
        keep,
    )
    signature = GraphSignature(
        [_spec(module.signature.input_specs[position], form, f"{where}.signature") for position in input_order],
        [_spec(module.signature.output_specs[position], form, f"{where}.signature") for position in output_order],
    )
    ranges = program.range_constraints if reloading is None else reloading.ranges(program)
    return replace(
        program,
        graph_module=GraphModule(
            graph=form.graph,
            signature=signature,
            module_call_graph=_module_calls(module, form.names, where),
            treespec_namedtuple_fields=dict(sorted(module.treespec_namedtuple_fields.items())),
        ),
        opset_version=dict(sorted(program.opset_version.items())),
        range_constraints=dict(sorted((renamed_words(name, symbols), row) for name, row in ranges.items())),
        guards_code=sorted(renamed_words(guard, symbols) for guard in program.guards_code),
    )


def _described(graph: schema.Graph, order: Sequence[int]) -> Iterator[Meta]:
    """Yield the metas of the inputs of a graph, in an order."""
    known = {name: meta for table in tables(graph).values() for name, meta in table.items()}
    for position in order:
        yield from (known[name] for name in slots(graph.inputs[position]) if name in known)


def sort_inputs(module: GraphModule) -> list[int]:
    """Return the positions of a graph's inputs in the order of the normal form: by kind, then by the name of the
    weight, constant or placeholder."""

    def key(position: int) -> tuple[int, str, int]:
        spec = module.signature.input_specs[position]
        return INPUT_KINDS.index(spec.type), str(target_of(spec) or getattr(spec.value, "name", "")), position

    return sorted(range(len(module.signature.input_specs)), key=key)


def _sort_outputs(module: GraphModule, input_order: Sequence[int]) -> list[int]:
    """Return the positions of a graph's outputs likewise; those of user inputs come in the order of these."""
    specs = module.signature.output_specs
    places = {
        name: place
        for place, position in enumerate(input_order)
        for name in slots(module.graph.inputs[position])
        if name is not None
    }

    def key(position: int) -> tuple[int, str, int, int]:
        rank, target = OUTPUT_RANKS[specs[position].type], target_of(specs[position]) or ""
        if hasattr(specs[position].value, "user_input_name"):
            return rank, "", places.get(target, len(places)), position
        return rank, target, 0, position

    return sorted(range(len(specs)), key=key)


def _spec(spec: Spec, form: Form, where: str) -> Spec:
    """Return a spec under the new names."""
    value: Any = spec.value
    changes: dict[str, Any] = {}
    kept = set(argument_names(spec))
    argument = getattr(value, "arg", None)
    if isinstance(argument, Argument):
        changes["arg"] = _renamed(argument, form.names, f"{where}: {spec.type}")
    elif argument is not None:
        changes["arg"] = replace(argument, name=form.names.get(argument.name, argument.name))
    if hasattr(value, "user_input_name"):
        changes["user_input_name"] = form.names.get(value.user_input_name, value.user_input_name)
        kept.add(value.user_input_name)
    # A name that stays must not come to mean a value.
    check_free(frozenset(kept - form.names.keys()), form.names, f"{where}: {spec.type}")
    return spec.__class__(**{spec.type: replace(value, **changes)})


def _module_calls(module: GraphModule, names: Names, where: str) -> list[schema.ModuleCallEntry]:
    """Return the calls of modules under the new names, sorted by module."""
    calls = []
    for entry in sorted(module.module_call_graph, key=lambda entry: entry.fqn):
        if (call := entry.signature) is None:
            calls.append(entry)
            continue
        kept = {name for argument in (*call.inputs, *call.outputs) for name in arguments(argument)}
        check_free(frozenset(kept - names.keys()), names, f"{where}.module_call_graph")
        inputs = [_renamed(argument, names, f"{where}.module_call_graph") for argument in call.inputs]
        outputs = [_renamed(argument, names, f"{where}.module_call_graph") for argument in call.outputs]
        calls.append(replace(entry, signature=replace(call, inputs=inputs, outputs=outputs)))
    return calls


def _renamed(argument: Argument, names: Names, where: str) -> Argument:
    refuse_subgraph(argument, where)
    return rename(argument, names, iter(()))
