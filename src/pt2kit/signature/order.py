"""Order of a signature's inputs and outputs, which decides the order of a call's arguments and results.

Source: torch/export/exported_program.py, torch 2.13, which calls a graph with the state first and the user's inputs
after it; torch/_export/verifier.py, which counts tokens, mutations and user outputs off in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pt2kit.errors import Problem
from pt2kit.messages import quote
from pt2kit.signature.specs import InputKind, InputSpec, OutputKind, OutputSpec

INPUT_ORDER: Final[Mapping[InputKind, int]] = MappingProxyType(
    {
        InputKind.TOKEN: 0,
        InputKind.PARAMETER: 1,
        InputKind.BUFFER: 1,
        InputKind.CONSTANT_TENSOR: 1,
        InputKind.CUSTOM_OBJ: 1,
        InputKind.USER_INPUT: 2,
    }
)
"""Kind -> its group; groups stand in this order. Within a group any order is right."""

OUTPUT_ORDER: Final[Mapping[OutputKind, int]] = MappingProxyType(
    {
        OutputKind.TOKEN: 0,
        OutputKind.BUFFER_MUTATION: 1,
        OutputKind.PARAMETER_MUTATION: 1,
        OutputKind.USER_INPUT_MUTATION: 1,
        OutputKind.USER_OUTPUT: 2,
        OutputKind.LOSS_OUTPUT: 2,
        OutputKind.GRADIENT_TO_PARAMETER: 3,
        OutputKind.GRADIENT_TO_USER_INPUT: 3,
    }
)
"""Kind -> its group; groups stand in this order. Within a group any order is right."""

_INPUTS_EXPECTED = "expected tokens, then parameters, buffers, constants and custom objects, then user inputs"
_OUTPUTS_EXPECTED = "expected tokens, then mutations, then user outputs and the loss, then gradients"


def order_problems(inputs: Mapping[int, InputSpec], outputs: Mapping[int, OutputSpec], where: str) -> Iterator[Problem]:
    """Iterate specs in the wrong group (S5, S6), and every loss after the first (S9).

    Args:
        inputs: position -> spec, in order; positions may be missing.
        outputs: position -> spec, likewise.
        where: the place of the signature, for messages.
    """
    last: InputSpec | None = None
    for position, spec in inputs.items():
        if last is not None and INPUT_ORDER[spec.kind] < INPUT_ORDER[last.kind]:
            yield Problem(f"{where}.input_specs[{position}]", "S5", f"{_INPUTS_EXPECTED}, got {_after(spec, last)}")
        else:
            last = spec
    latest: OutputSpec | None = None
    loss: OutputSpec | None = None
    for position, output in outputs.items():
        place = f"{where}.output_specs[{position}]"
        if latest is not None and OUTPUT_ORDER[output.kind] < OUTPUT_ORDER[latest.kind]:
            yield Problem(place, "S6", f"{_OUTPUTS_EXPECTED}, got {_after(output, latest)}")
        else:
            latest = output
        if output.kind is OutputKind.LOSS_OUTPUT:
            if loss is not None:
                expected = f"expected one loss, {quote(loss.arg.name)}"
                yield Problem(place, "S9", f"{expected}, got a second one, {quote(output.arg.name)}")
            loss = loss or output


def _after(spec: InputSpec | OutputSpec, last: InputSpec | OutputSpec) -> str:
    first, second = quote(spec.arg.name), quote(last.arg.name)
    return f"{spec.kind.name} {first} after {last.kind.name} {second}"
