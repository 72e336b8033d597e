"""Outputs of a graph that are new values of tensors -> calls that write them, and outputs for the caller alone.

Source: `_insert_copy_for_mutations` in torch/export/_unlift.py, 2.13.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

from pt2kit import schema
from pt2kit import signature as twin
from pt2kit.bridge.run.steps import Origin, Step, Steps, Value
from pt2kit.errors import GraphError
from pt2kit.signature.specs import InputKind, OutputKind

_MUTATIONS: Final = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION)


def with_mutations(steps: Steps, graph: schema.Graph, signature: twin.ExportGraphSignature) -> Steps:
    """The steps of a whole program.

    Args:
        steps: of its root graph.
        graph: the root graph.
        signature: says which outputs are what.

    Returns:
        Steps that write what the signature calls a mutation, and give the user's outputs. An output that is the new
        value of a tensor is that tensor, as in torch.

    Raises:
        GraphError: something is to be written that is no input.
    """
    inputs = _inputs(signature)
    values = steps.inputs + len(steps.steps)
    added: list[Step] = []
    written: dict[Value, Value] = {}
    outputs: list[Any] = []
    for output, spec in zip(steps.outputs, signature.output_specs, strict=True):
        if spec.kind in _MUTATIONS:
            target = inputs.get((spec.kind is OutputKind.USER_INPUT_MUTATION, spec.target))
            if target is None:
                raise GraphError(
                    f"$.graph_module.signature: expected an input that is written, got {str(spec.target)[:80]!a}"
                )
            result = Value(values + len(added))
            origin = Origin(f"write back {spec.target}", "")
            added.append(Step(torch.ops.aten.copy_.default, (target, output), {}, result, origin))
            if isinstance(output, Value):
                written[output] = result
        elif spec.kind is not OutputKind.TOKEN:
            outputs.append(output)
    outputs = [written.get(output, output) if isinstance(output, Value) else output for output in outputs]
    return Steps(steps.inputs, [*steps.steps, *added], outputs)


def _inputs(signature: twin.ExportGraphSignature) -> Mapping[tuple[bool, str | None], Value]:
    """(whether the user passes it, its name there) -> the input."""
    inputs = {}
    for number, spec in enumerate(signature.input_specs):
        is_user = spec.kind is InputKind.USER_INPUT
        inputs[is_user, spec.arg.name if is_user else spec.target] = Value(number)
    return inputs
