"""Reading and writing of signatures: `schema.GraphModule` to a verified `ExportGraphSignature`, and back to
`schema.GraphSignature`."""

from __future__ import annotations

from pt2kit import schema
from pt2kit.errors import GraphError
from pt2kit.signature.consistency import DEFAULT_WHERE, read_specs
from pt2kit.signature.convert import schema_input_spec, schema_output_spec
from pt2kit.signature.export_signature import ExportGraphSignature
from pt2kit.signature.specs import InputSpec, OutputSpec


def from_schema(graph_module: schema.GraphModule, where: str = DEFAULT_WHERE) -> ExportGraphSignature:
    """Read the signature of a graph module, and prove that it fits the graph (rules S1 to S14).

    Args:
        graph_module: the graph and its signature.
        where: the place of the graph module, for messages ("models/model.json: $.graph_module").

    Returns:
        The signature; it shares nothing that can change with `graph_module`.

    Cost: linear in the specs.

    Raises:
        GraphError: the first contradiction, with its place.
    """
    inputs: dict[int, InputSpec] = {}
    outputs: dict[int, OutputSpec] = {}
    for problem in read_specs(graph_module, where, inputs, outputs):
        if problem.kind == "error":
            raise GraphError(f"{problem.loc}: {problem.message}", rule=problem.rule)
    return ExportGraphSignature(list(inputs.values()), list(outputs.values()))


def to_schema(signature: ExportGraphSignature) -> schema.GraphSignature:
    """Write a signature as the schema has it: the exact inverse of `from_schema`.

    Raises:
        UnsupportedError: a constant that the schema cannot hold where it stands.
    """
    return schema.GraphSignature(
        [schema_input_spec(spec) for spec in signature.input_specs],
        [schema_output_spec(spec) for spec in signature.output_specs],
    )
