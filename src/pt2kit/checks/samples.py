"""Check of stored sample inputs against the inputs that a graph declares (rule K9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph.argument_values import arguments
from pt2kit.messages import quote
from pt2kit.package.open import Package
from pt2kit.tensors.view import TensorView

_MOST: Final = 1 << 16
"""Values that are looked at."""


def sample_problems(package: Package, model: str, context: ProgramContext) -> Iterator[Problem]:
    """Iterate sample inputs that the program does not take: another number, element type or size.

    Inputs that cannot be read as data are skipped, and so are mappings of several entries: their order is that of the
    tree spec. Raises nothing.
    """
    try:
        samples = package.sample_inputs(model)
        signature = context.program.graph_module.signature
    except Pt2Error:
        return
    values = None if samples is None else _leaves(samples)
    passed = [spec for spec in signature.input_specs if _is_passed(spec)]
    inputs = [None if spec.user_input is UNSET else spec.user_input.arg for spec in passed]
    if values is None or len(values) != len(inputs):
        return
    graph = context.program.graph_module.graph
    for argument, value in zip(inputs, values, strict=True):
        name = next(iter(arguments(argument)), "") if argument is not None else ""
        meta = graph.tensor_values.get(name)
        if meta is None or not isinstance(value, TensorView):
            continue
        declared = [size.as_int if isinstance(size.as_int, int) else None for size in meta.sizes]
        fits = len(declared) == len(value.shape) and all(
            size in (None, got) for size, got in zip(declared, value.shape, strict=True)
        )
        if not fits:
            shown = ", ".join("?" if size is None else str(size)[:24] for size in declared[:12])
            message = f"expected the sizes of the sample input {quote(name)}, {list(value.shape)[:12]}, got [{shown}]"
            yield Problem(f"{context.graph_place}.tensor_values", "K9", message)


def _is_passed(spec: schema.InputSpec) -> bool:
    """Return whether the caller passes an input: a value, or a constant of the calling convention."""
    return spec.user_input is not UNSET or spec.constant_input is not UNSET


def _leaves(held: Any) -> list[Any] | None:
    """Return the values in containers, in order; None if their order is not certain."""
    leaves: list[Any] = []
    stack = [held]
    while stack:
        value = stack.pop()
        if isinstance(value, dict) and len(value) > 1:
            return None
        if isinstance(value, (tuple, list)):
            stack += reversed(value)
        elif isinstance(value, dict):
            stack += value.values()
        else:
            leaves.append(value)
        if len(leaves) > _MOST:
            return None
    return leaves
