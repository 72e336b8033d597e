"""A live ExportedProgram -> `schema.ExportedProgram`: everything but its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from pt2kit.bridge.torch_names import SpecViolationError, guards_code, operator_version
from pt2kit.bridge.write.constraints import write_range_constraints
from pt2kit.bridge.write.graph import write_graph, write_scope
from pt2kit.bridge.write.metadata import of_graph_module
from pt2kit.bridge.write.module_calls import write_module_calls
from pt2kit.bridge.write.scope import Shared
from pt2kit.bridge.write.signature import write_signature
from pt2kit.bridge.write.treespecs import TreeSpecs
from pt2kit.bridge.write.values import Values
from pt2kit.errors import GraphError
from pt2kit.schema import CURRENT, ExportedProgram, GraphModule, SchemaVersion


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
