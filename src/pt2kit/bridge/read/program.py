"""A schema program and its payloads -> a live `torch.export.ExportedProgram`.

Everything that can be refused without torch is refused first, then operators and containers that this process lacks;
then the payloads are opened, the graph is built over them, and torch checks the whole once more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

import torch
from msgspec import UNSET
from torch.export import ExportedProgram

from pt2kit import node_metadata, schema, treespec
from pt2kit import signature as twin
from pt2kit.bridge.operators import resolve_all
from pt2kit.bridge.read.actual_sizes import check_actual_sizes
from pt2kit.bridge.read.adapt import adapt_named_tuples
from pt2kit.bridge.read.call_checks import check_printing, check_provenance, check_regions, check_sizes
from pt2kit.bridge.read.devices import Devices
from pt2kit.bridge.read.graph import read_graph, read_subgraph
from pt2kit.bridge.read.guards import can_be_guarded, check_guards
from pt2kit.bridge.read.metadata import Metadata
from pt2kit.bridge.read.missing import missing_classes, raise_missing
from pt2kit.bridge.read.module_calls import live_module_calls, parse_specs
from pt2kit.bridge.read.module_inputs import lend_modules
from pt2kit.bridge.read.names import check_apart, check_argument, check_path
from pt2kit.bridge.read.scope import Shared
from pt2kit.bridge.read.shapes import Shapes
from pt2kit.bridge.read.signature import live_signature
from pt2kit.bridge.read.treespecs import TreeSpecs
from pt2kit.bridge.read.uninitialized import check_initialised
from pt2kit.bridge.read.values import Values
from pt2kit.bridge.scalars import LAYOUTS
from pt2kit.bridge.torch_names import SpecViolationError, Verifier, find_verifier, set_guards_code
from pt2kit.errors import GraphError, JsonError, SchemaError, UnsupportedError
from pt2kit.graph.argument_values import leaves
from pt2kit.graph.traversal import Scope, graphs, node_label

WHERE: Final = "$.graph_module"
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Payloads:
    """What a program holds beside its graph, live.

    Args:
        state_dict: parameters and persistent buffers.
        constants: lifted constants, non-persistent buffers and custom objects.
        example_inputs: arguments and keyword arguments of the export, or None.
    """

    state_dict: dict[str, Any]
    constants: dict[str, Any]
    example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What opening the payloads needs to know of the program.

    Args:
        values: makes fake tensors.
        in_spec: the live structure of the inputs.
        sources: where its leaves are in the file's structure; None where the two are the same.
    """

    values: Values
    in_spec: Any
    sources: tuple[int | None, ...] | None


OpenPayloads = Callable[[Context], Payloads]
"""What opens the payloads."""


def build_program(
    program: schema.ExportedProgram, devices: Devices, open_payloads: OpenPayloads, trust: Set[str] = frozenset()
) -> ExportedProgram:
    """Build a live program.

    Args:
        program: of the current schema version.
        devices: where its tensors go.
        open_payloads: called once, after everything that can be checked before it was.
        trust: rules and operators that are not refused, and names of classes that may be imported.

    Returns:
        A program in the state that `torch.export.load` leaves one in. It shares nothing with `program`.

    Raises:
        GraphError, SchemaError, ExpressionError: a program that contradicts itself.
        OperatorError: operators that are unknown, refused or called wrongly.
        UnsupportedError: containers that are not registered, or something that torch has no live form of.
        LimitError: a stated limit was passed.
        Pt2Error: whatever `open_payloads` raises.
    """
    module = program.graph_module
    signature = twin.from_schema(module)
    parsed = parse_specs(module.module_call_graph, signature)
    adapted = adapt_named_tuples(program)
    if adapted.program is not program:
        module = adapted.program.graph_module
        signature = twin.from_schema(module)
        parsed = parse_specs(module.module_call_graph, signature)
    verifiers = [_verifier(name) for name in program.verifiers]
    guards = list(program.guards_code) if "X4" in trust else check_guards(program.guards_code)
    fields = {name: tuple(given.field_names) for name, given in module.treespec_namedtuple_fields.items()}
    specs = TreeSpecs(fields, trust)
    scopes = list(graphs(program))
    operators, missing = resolve_all(_targets(scopes), trust)
    raise_missing(missing, specs.missing(parsed), missing_classes(scopes))
    assumed = {} if "X11" in trust else check_initialised(scopes[0], operators)
    for scope in scopes:
        if "X12" not in trust:
            check_printing(scope)
        if "X14" not in trust:
            check_regions(scope)
        check_sizes(scope, unbounded="T9" in trust)
    check_provenance(scopes, operators, trust)
    calls = live_module_calls(module.module_call_graph, parsed, specs)
    shapes = Shapes(program.range_constraints)
    values = Values(shapes, devices)
    payloads = open_payloads(Context(values, calls[0].signature.in_spec, adapted.sources))
    _check_payloads(signature, payloads, module.graph)
    examples = payloads.example_inputs
    if examples is not None and not can_be_guarded(examples, signature.input_specs):
        _LOG.warning("example inputs are left out: torch could not write guards from their keys or constants")
        examples = None
    shared = Shared(operators, shapes, values, Metadata(), devices, payloads.constants, read_subgraph, assumed)
    names = [spec.arg.name for spec in signature.input_specs]
    built = read_graph(module.graph, shared, f"{WHERE}.graph", 0, names)
    targets = [spec.target for spec in signature.input_specs if spec.target]
    check_apart([*targets, *payloads.state_dict, *payloads.constants], built.subgraphs, f"{WHERE}.signature")
    for name in shared.inner.difference(spec.target for spec in signature.input_specs if spec.target):
        del payloads.constants[name]  # It stands in the graph, and is no constant of the live program.
    if examples is not None:
        lend_modules([call.signature.in_spec for call in calls if call.signature], examples)
    try:
        live = ExportedProgram(
            root=built.module,
            graph=built.graph,
            graph_signature=live_signature(signature),
            state_dict=payloads.state_dict,
            range_constraints=shapes.constraints(),
            module_call_graph=calls,
            example_inputs=examples,
            constants=payloads.constants,
            verifiers=verifiers,
        )
    except (SpecViolationError, AssertionError, RuntimeError, ValueError, SyntaxError) as error:
        raise GraphError(f"{WHERE}: expected a program that torch takes, got: {error}") from error
    _check_arguments(module.module_call_graph[0], live.graph_module)
    check_actual_sizes(live.graph_module, trust)
    set_guards_code(live, guards)
    live.graph_module.meta.update(_module_metadata(module))
    return live


def _verifier(name: str) -> type[Verifier]:
    found = find_verifier(name or "ATEN")
    if found is None:
        raise SchemaError(f"$.verifiers: expected the dialect of a verifier (ATEN, TRAINING), got {name[:80]!a}")
    return found


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


def _check_payloads(signature: twin.ExportGraphSignature, payloads: Payloads, graph: schema.Graph) -> None:
    """Refuse a signature whose parameters, buffers and constants are not there, and names that cannot be attributes.

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
        _check_layout(
            payloads.state_dict.get(name, payloads.constants.get(name)), graph.tensor_values.get(spec.arg.name), where
        )
        stored = name in payloads.state_dict
        if spec.kind is twin.InputKind.PARAMETER:
            if not isinstance(payloads.state_dict.get(name), torch.nn.Parameter):
                raise GraphError(f"{where}: expected a parameter {name!a} among the weights, got none of that name")
        elif spec.kind is twin.InputKind.BUFFER and spec.persistent:
            if not stored and name not in payloads.constants:
                raise GraphError(f"{where}: expected a buffer {name!a} among the weights, got none of that name")
        elif name not in payloads.constants:
            raise GraphError(f"{where}: expected {name!a} among the constants, got none of that name")
        elif stored and spec.kind is twin.InputKind.BUFFER:
            raise GraphError(
                f"{where}: expected the buffer {name!a}, which is not persistent, among the constants only"
            )
    for name in (*payloads.state_dict, *payloads.constants):
        check_path(name, "payload names")


def _check_layout(value: Any, meta: schema.TensorMeta | None, where: str) -> None:
    if isinstance(value, torch.Tensor) and meta is not None and value.layout is not LAYOUTS.get(meta.layout):
        raise UnsupportedError(f"{where}: layout: expected {meta.layout.name} as in the graph, got {value.layout}")


def _check_arguments(entry: schema.ModuleCallEntry, module: torch.fx.GraphModule) -> None:
    """Refuse names of arguments that would hide what the source uses which `ExportedProgram.module()` generates."""
    if entry.signature is None:
        return
    where = f"{WHERE}.module_call_graph[0].signature"
    for name in entry.signature.forward_arg_names or ():
        check_argument(name, module.code, f"{where}.forward_arg_names")
    for name in treespec.split_call(treespec.parse(entry.signature.in_spec))[1]:
        check_argument(name, module.code, f"{where}.in_spec")


def _module_metadata(module: schema.GraphModule) -> Mapping[str, Any]:
    """What `graph_module.meta` holds."""
    found: dict[str, Any] = {}
    if module.metadata.get("custom"):
        try:
            found["custom"] = node_metadata.parse_custom(module.metadata["custom"], f"{WHERE}.metadata.custom")
        except JsonError as error:
            raise SchemaError(str(error)) from error
    fields = module.treespec_namedtuple_fields
    found["treespec_namedtuple_fields"] = {name: list(given.field_names) for name, given in fields.items()}
    return found
