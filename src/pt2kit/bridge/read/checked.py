"""A schema program -> the same, with everything refused that can be refused before anything live is built.

What comes out is what both ways of building go on with: operators, containers, guards and tree specs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

import torch
from msgspec import UNSET

from pt2kit import node_metadata, schema
from pt2kit import signature as twin
from pt2kit.bridge.operators import Operator, resolve_all
from pt2kit.bridge.read.adapt import adapt_named_tuples
from pt2kit.bridge.read.call_checks import check_printing, check_provenance, check_regions, check_sizes
from pt2kit.bridge.read.guards import check_guards
from pt2kit.bridge.read.missing import missing_classes, raise_missing
from pt2kit.bridge.read.module_calls import Specs, parse_specs
from pt2kit.bridge.read.names import check_path
from pt2kit.bridge.read.treespecs import TreeSpecs
from pt2kit.bridge.read.uninitialized import check_initialised
from pt2kit.bridge.scalars import LAYOUTS
from pt2kit.bridge.torch_names import Verifier, find_verifier
from pt2kit.checks.memory_findings import Assumed
from pt2kit.checks.stored_numbers import Tables, stored_inputs
from pt2kit.errors import GraphError, JsonError, SchemaError, UnsupportedError
from pt2kit.graph.argument_values import leaves
from pt2kit.graph.traversal import Scope, graphs, node_label

WHERE: Final = "$.graph_module"


@dataclass(frozen=True, slots=True)
class Checked:
    """A program that may be built.

    Args:
        module: the program for the named tuples of today.
        signature: its signature.
        sources: where the leaves of its `in_spec` are in the file's; None where the two are the same.
        specs: in_spec and out_spec of each module call, as data.
        tree_specs: builds the live ones.
        guards: conditions on the inputs, proven to be no more.
        scopes: its graphs, the root first.
        operators: target -> operator, for every target in it.
        assumed: id of a graph -> the values whose declared sizes something depends on.
        verifiers: what checks programs of its dialects.
        metadata: what `graph_module.meta` holds.
    """

    module: schema.GraphModule
    signature: twin.ExportGraphSignature
    sources: tuple[int | None, ...] | None
    specs: Sequence[Specs]
    tree_specs: TreeSpecs
    guards: list[str]
    scopes: Sequence[Scope]
    operators: Mapping[str, Operator]
    assumed: Mapping[int, Assumed]
    verifiers: Sequence[type[Verifier]]
    metadata: Mapping[str, Any]


def check_program(program: schema.ExportedProgram, tables: Tables, trust: Set[str] = frozenset()) -> Checked:
    """Refuse what can be refused without building anything.

    Args:
        program: of the current schema version.
        tables: gives its payloads, those that are the file's.
        trust: rules and operators that are not refused, and names of classes that may be imported.

    Raises:
        GraphError, SchemaError, ExpressionError: a program that contradicts itself.
        OperatorError: operators that are unknown or refused.
        UnsupportedError: containers that are not registered.
        LimitError: a stated limit was passed.
    """
    module = program.graph_module
    signature = twin.from_schema(module)
    parsed = parse_specs(module.module_call_graph, signature)
    adapted = adapt_named_tuples(program)
    if adapted.program is not program:
        program = adapted.program
        module = program.graph_module
        signature = twin.from_schema(module)
        parsed = parse_specs(module.module_call_graph, signature)
    guards = list(program.guards_code) if "X4" in trust else check_guards(program.guards_code)
    fields = {name: tuple(definition.field_names) for name, definition in module.treespec_namedtuple_fields.items()}
    specs = TreeSpecs(fields, trust)
    scopes = list(graphs(program))
    operators, missing = resolve_all(_targets(scopes), trust)
    raise_missing(missing, specs.missing(parsed), missing_classes(scopes))
    assumed = {} if "X11" in trust else check_initialised(scopes[0], operators, lambda: stored_inputs(module, tables))
    for scope in scopes:
        if "X12" not in trust:
            check_printing(scope)
        if "X14" not in trust:
            check_regions(scope)
        check_sizes(scope, unbounded="T9" in trust)
    check_provenance(module, scopes, operators, tables, trust)
    return Checked(
        module, signature, adapted.sources, parsed, specs, guards, scopes, operators, assumed,
        [_verifier(name) for name in program.verifiers], _module_metadata(module),
    )  # fmt: skip


def _verifier(name: str) -> type[Verifier]:
    verifier = find_verifier(name or "ATEN")
    if verifier is None:
        raise SchemaError(f"$.verifiers: expected the dialect of a verifier (ATEN, TRAINING), got {name[:80]!a}")
    return verifier


def _module_metadata(module: schema.GraphModule) -> Mapping[str, Any]:
    """What `graph_module.meta` holds.

    Raises:
        SchemaError: metadata of the user that is no JSON.
    """
    metadata: dict[str, Any] = {}
    if module.metadata.get("custom"):
        try:
            metadata["custom"] = node_metadata.parse_custom(module.metadata["custom"], f"{WHERE}.metadata.custom")
        except JsonError as error:
            raise SchemaError(str(error)) from error
    fields = module.treespec_namedtuple_fields
    metadata["treespec_namedtuple_fields"] = {name: list(definition.field_names) for name, definition in fields.items()}
    return metadata


def _targets(scopes: Sequence[Scope]) -> dict[str, str]:
    """Every operator that the program names, as a call or as an argument -> where it does first."""
    places: dict[str, str] = {}
    for graph in scopes:
        for number, node in enumerate(graph.graph.nodes):
            if node.target in places and node.target.startswith("torch.ops.aten."):
                continue
            place = f"{graph.where}.nodes[{number}]: node {node_label(node, number)}"
            places.setdefault(node.target, place)
            for named in node.inputs:
                for _, leaf in leaves(named.arg):
                    if leaf.as_operator is not UNSET:
                        places.setdefault(leaf.as_operator, place)
    return places


def check_payloads(
    signature: twin.ExportGraphSignature,
    state_dict: Mapping[str, Any],
    constants: Mapping[str, Any],
    graph: schema.Graph,
) -> None:
    """Refuse a signature whose parameters, buffers and constants are not there, and names that cannot be attributes.

    Args:
        signature: of the program.
        state_dict: parameters and persistent buffers, live.
        constants: everything else that is live.
        graph: the root graph.

    Raises:
        GraphError: the first that is missing, in the wrong place, or of the wrong kind.
        UnsupportedError: a tensor that is stored in one layout and declared in another.
    """
    for index, spec in enumerate(signature.input_specs):
        name = spec.target
        if name is None:
            continue
        where = f"{WHERE}.signature.input_specs[{index}]"
        check_path(name, where)
        _check_layout(state_dict.get(name, constants.get(name)), graph.tensor_values.get(spec.arg.name), where)
        stored = name in state_dict
        if spec.kind is twin.InputKind.PARAMETER:
            if not isinstance(state_dict.get(name), torch.nn.Parameter):
                raise GraphError(f"{where}: expected a parameter {name!a} among the weights, got none of that name")
        elif spec.kind is twin.InputKind.BUFFER and spec.persistent:
            if not stored and name not in constants:
                raise GraphError(f"{where}: expected a buffer {name!a} among the weights, got none of that name")
        elif name not in constants:
            raise GraphError(f"{where}: expected {name!a} among the constants, got none of that name")
        elif stored and spec.kind is twin.InputKind.BUFFER:
            raise GraphError(
                f"{where}: expected the buffer {name!a}, which is not persistent, among the constants only"
            )
    checked = {spec.target for spec in signature.input_specs}
    for name in (*state_dict, *constants):
        if name not in checked:
            check_path(name, "payload names")


def _check_layout(value: Any, meta: schema.TensorMeta | None, where: str) -> None:
    if isinstance(value, torch.Tensor) and meta is not None and value.layout is not LAYOUTS.get(meta.layout):
        raise UnsupportedError(f"{where}: layout: expected {meta.layout.name} as in the graph, got {value.layout}")
