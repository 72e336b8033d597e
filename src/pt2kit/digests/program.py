"""Digests of a program without its tensors: of its graph, signature, constraints and metadata.

All are of the program's normal form (`canonical.canonicalize`), with the order around nodes that may write kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pt2kit import codec, schema
from pt2kit.canonical.form import graph_digest
from pt2kit.canonical.program import canonicalize, sort_inputs
from pt2kit.digests.hashing import hash_value
from pt2kit.digests.result import DEFINITION
from pt2kit.graph.traversal import graphs


@dataclass(frozen=True, slots=True)
class ProgramParts:
    """Digests of a program's parts, 32 bytes each."""

    graph: bytes
    signature: bytes
    constraints: bytes
    metadata: bytes


def program_parts(
    program: schema.ExportedProgram, unknown: Sequence[codec.Unknown] = (), definition: int = DEFINITION
) -> ProgramParts:
    """Digest a program without its tensors.

    Args:
        program: any program of the current schema version.
        unknown: keys that this build does not know, as they were read with the program. They may mean anything, so
            they count as part of the graph, with the places where they stood.
        definition: the number of the definition to follow.

    Raises:
        GraphError, LimitError: the program has no normal form.

    Cost: linear; 10,000 nodes take half a second.
    """
    form = canonicalize(program, keep_metadata=True, keep_write_order=True, as_reloaded=definition > 2)
    module = form.graph_module
    graph = {
        "graph": graph_digest(module.graph),
        "opset_version": form.opset_version,
        "verifiers": form.verifiers,
        **({"unknown": {str(key): key.value for key in unknown}} if unknown else {}),
    }
    signature = {
        "signature": module.signature,
        "arguments": _arguments(program.graph_module),
        "module_call_graph": module.module_call_graph,
        "treespec_namedtuple_fields": module.treespec_namedtuple_fields,
    }
    constraints = {"range_constraints": form.range_constraints, "guards_code": form.guards_code}
    metadata = {
        "nodes": [[node.metadata for node in scope.graph.nodes] for scope in graphs(form)],
        "metadata": program.graph_module.metadata,
        "torch_version": form.torch_version,
    }
    return ProgramParts(
        hash_value("program graph", graph),
        hash_value("signature", signature),
        hash_value("constraints", constraints),
        hash_value("metadata", metadata),
    )


def _arguments(module: schema.GraphModule) -> list[int]:
    """Return the positions, in the normal form, of the inputs that a caller passes, in the order in which they are
    passed.

    The normal form puts constant inputs behind the others, and so forgets their places.
    """
    place = {position: place for place, position in enumerate(sort_inputs(module))}
    return [
        place[position]
        for position, spec in enumerate(module.signature.input_specs)
        if spec.type in ("user_input", "constant_input")
    ]
