"""A live ExportedProgram -> `schema.ExportedProgram`: everything but its tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from pt2kit.bridge.torch_export_names import int_oo
from pt2kit.bridge.torch_names import SpecViolationError, guards_code, operator_version
from pt2kit.bridge.write.metadata import of_graph_module
from pt2kit.bridge.write.nodes import write_node
from pt2kit.bridge.write.scope import Scope, Shared
from pt2kit.bridge.write.signature import write_argument_spec, write_signature
from pt2kit.bridge.write.treespecs import TreeSpecs
from pt2kit.bridge.write.values import Values
from pt2kit.errors import GraphError, Pt2Error, at
from pt2kit.schema import (
    CURRENT,
    ExportedProgram,
    Graph,
    GraphModule,
    ModuleCallEntry,
    ModuleCallSignature,
    RangeConstraint,
    SchemaVersion,
)


@dataclass(frozen=True, slots=True)
class Written:
    """A program as data.

    Args:
        program: without tensors.
        objects: script and opaque objects that stand in the graph itself, by the name the graph gives them.
        values: makes further tensor metas; those of the program are reused.
    """

    program: ExportedProgram
    objects: Mapping[str, Any]
    values: Values


def write_program(live: Any, opset_version: Mapping[str, int] | None = None) -> Written:
    """Turn a live program into objects of the schema.

    Args:
        live: a torch.export.ExportedProgram; it is validated, and not changed.
        opset_version: operator namespace -> version, in addition to the version of aten.

    Raises:
        GraphError: the program is not valid.
        Pt2Error: what the format cannot hold, with its place.

    Cost: linear in the number of nodes, about 50 µs each.

    Source: `ExportedProgramSerializer` in torch/_export/serde/serialize.py, 2.13.
    """
    try:
        live.validate()
    except (SpecViolationError, RuntimeError, AssertionError, TypeError) as error:
        raise GraphError(f"expected a valid program, got one that breaks its rules: {error}") from error
    shared, specs = Shared(write_graph, live.constants), TreeSpecs()
    scope = write_scope(live.graph_module, shared)
    major, minor = CURRENT.pair
    program = ExportedProgram(
        GraphModule(
            scope.graph(),
            write_signature(live.graph_signature, scope),
            write_module_calls(live.module_call_graph, specs, scope),
            of_graph_module(live.graph_module.meta),
            specs.fields,
        ),
        _opsets(opset_version),
        write_range_constraints(live.range_constraints),
        SchemaVersion(major, minor),
        [verifier.dialect for verifier in live.verifiers],
        str(torch.__version__),
        guards_code(live),
    )
    return Written(program, shared.objects, shared.values)


def _opsets(given: Mapping[str, int] | None) -> dict[str, int]:
    versions = dict(given or {})
    versions.setdefault("aten", operator_version())
    return versions


_INFINITIES = (sympy.oo, -sympy.oo, int_oo, -int_oo)


def write_range_constraints(ranges: Mapping[Any, Any]) -> dict[str, RangeConstraint]:
    """The ranges by symbol name, in their order.

    Args:
        ranges: sympy symbol -> torch's ValueRanges, inclusive.

    Source: `serialize_range_constraints` in torch/_export/serde/serialize.py, 2.13.
    """
    return {
        str(symbol): RangeConstraint(_bound(span.lower, math.ceil), _bound(span.upper, math.floor))
        for symbol, span in ranges.items()
    }


def _bound(value: Any, whole: Any) -> int | None:
    """One end of a range: a whole number, or None where it is open. A fraction is rounded to the inside."""
    if isinstance(value, (int, sympy.Integer)):
        return int(value)
    return None if value in _INFINITIES else int(whole(value))


def write_graph(module: Any, shared: Shared, depth: int = 0) -> Graph:
    """Write a graph and the graphs inside it.

    Args:
        module: an fx GraphModule.
        shared: what the program's graphs share.
        depth: how many graphs this one is inside of.

    Raises:
        Pt2Error: what the format cannot hold, with its place.
    """
    return write_scope(module, shared, depth).graph()


def write_scope(module: Any, shared: Shared, depth: int = 0) -> Scope:
    """The same, with what was found out on the way."""
    scope = Scope(module, shared, depth)
    for node in module.graph.nodes:
        write_node(node, scope)
    return scope


def write_module_calls(entries: Iterable[Any], specs: TreeSpecs, scope: Scope) -> list[ModuleCallEntry]:
    """Write the module call graph; named tuples in its specs are noted in `specs`.

    Raises:
        Pt2Error: an argument or a spec that the format cannot hold, with its module.

    Source: `serialize_module_call_graph` in torch/_export/serde/serialize.py, 2.13.
    """
    return [ModuleCallEntry(entry.fqn, _signature(entry, specs, scope)) for entry in entries]


def _signature(entry: Any, specs: TreeSpecs, scope: Scope) -> ModuleCallSignature | None:
    live = entry.signature
    if not live:
        return None
    try:
        return ModuleCallSignature(
            [write_argument_spec(spec, scope) for spec in live.inputs],
            [write_argument_spec(spec, scope) for spec in live.outputs],
            specs.text(live.in_spec),
            specs.text(live.out_spec),
            list(live.forward_arg_names) if live.forward_arg_names else None,
        )
    except Pt2Error as error:
        raise at(f"module call graph: {entry.fqn or 'the root'}", error) from error
