"""Calls against what they state of their result: element type, sizes, dimensions (rules T8, T11 and T12).

What a call says by itself ("to this type", "along this dimension") must agree with the value tables, whatever the
operator computes. Symbols agree with everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pt2kit import schema
from pt2kit.checks import schemas
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem
from pt2kit.graph.traversal import Step
from pt2kit.schema.operator_text import Operator

_DIMENSIONS: Final = frozenset(("dim", "dim0", "dim1", "dims", "start_dim", "end_dim"))
"""Names of parameters that count dimensions of the first tensor."""

_ONE_MORE: Final = frozenset(("unsqueeze", "unsqueeze_", "unsqueeze_copy"))
"""Operators whose dimension is one of the result."""

_RESHAPING: Final[Mapping[str, str]] = {
    "torch.ops.aten.view.default": "size",
    "torch.ops.aten._unsafe_view.default": "size",
    "torch.ops.aten.reshape.default": "shape",
    "torch.ops.aten.expand.default": "size",
    "torch.ops.aten.view_copy.default": "size",
    "torch.ops.aten.expand_copy.default": "size",
}
"""Target -> the parameter that holds the sizes of the result, -1 where they follow from the rest."""

_OTHERWISE: Final = frozenset(("_assert_tensor_metadata", "linalg_vector_norm", "norm", "linalg_norm"))
"""Operators whose `dtype` is not that of the result, or not always."""

_Call = Mapping[str, schema.Argument]
_Values = Mapping[str, schema.TensorMeta]


def stated_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate calls whose result is declared otherwise than they state it.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for step in context.steps():
        parts = step.node.target.split(".")
        if parts[:2] != ["torch", "ops"] or len(parts) != 5 or parts[2] not in ("aten", "prims"):
            continue
        operator = schemas.find(step.node.target, context.release)
        if operator is None:
            continue
        call = {named.name: named.arg for named in step.node.inputs}
        values = step.scope.graph.tensor_values
        yield from _type(step, call, values, parts[3])
        yield from _dimensions(step, call, values, operator, parts[3])
        yield from _reshaped(step, call, values)
        if parts[3] == "_assert_tensor_metadata":
            yield from _asserted(step, call, values)


def _result(node: schema.Node, values: _Values) -> schema.TensorMeta | None:
    value = node.outputs[0].value if len(node.outputs) == 1 else None
    return values.get(value.name) if isinstance(value, schema.TensorArgument) else None


def _meta(argument: schema.Argument | None, values: _Values) -> schema.TensorMeta | None:
    value = argument.value if argument is not None else None
    return values.get(value.name) if isinstance(value, schema.TensorArgument) else None


def _type(step: Step, call: _Call, values: _Values, name: str) -> Iterator[Problem]:
    asked = call["dtype"].as_scalar_type if "dtype" in call else None
    result = _result(step.node, values)
    if result is None or not isinstance(asked, schema.ScalarType) or name in _OTHERWISE or asked is result.dtype:
        return
    message = f"expected a result of the type that is asked for, {asked.name}, got {result.dtype.name} declared"
    yield Problem(step.where, "T11", message)


def _dimensions(step: Step, call: _Call, values: _Values, found: Operator, name: str) -> Iterator[Problem]:
    first = next(iter(found.parameters.values()), None)
    meta = _meta(call.get(first.name), values) if first is not None else None
    if meta is None or name.endswith("_backward"):
        return
    rank = max(1, len(meta.sizes) + (name in _ONE_MORE))
    for parameter, argument in call.items():
        numbers = argument.value if argument.type == "as_ints" else [argument.value]
        if parameter in _DIMENSIONS and argument.type in ("as_int", "as_ints"):
            wrong = next((number for number in numbers if not -rank <= number < rank), None)
            if wrong is not None:
                message = f"expected dimensions from {-rank} to {rank - 1} as {parameter}, got {str(wrong)[:24]}"
                yield Problem(step.where, "T12", message)
            elif name == "permute" and sorted(number % rank for number in numbers) != list(range(len(meta.sizes))):
                message = f"expected each of {len(meta.sizes)} dimensions once, got {numbers[:12]}"
                yield Problem(step.where, "T12", message)


def _reshaped(step: Step, call: _Call, values: _Values) -> Iterator[Problem]:
    argument = call.get(_RESHAPING.get(step.node.target, ""))
    result = _result(step.node, values)
    if argument is None or result is None or argument.type not in ("as_ints", "as_sym_ints"):
        return
    numbers: list[int | schema.SymIntArgument] = argument.value
    asked = [number if isinstance(number, int) else number.as_int for number in numbers]
    declared = [size.as_int for size in result.sizes]
    rows = zip(asked, declared, strict=False)
    if len(asked) == len(declared) and all(
        not isinstance(want, int) or not isinstance(got, int) or want in (-1, got) for want, got in rows
    ):
        return
    shown = [", ".join(str(n)[:24] if isinstance(n, int) else "?" for n in row[:12]) for row in (asked, declared)]
    message = f"expected a result of the sizes that are asked for, [{shown[0]}], got [{shown[1]}] declared"
    yield Problem(step.where, "T8", message)


def _asserted(step: Step, call: _Call, values: _Values) -> Iterator[Problem]:
    """What the call asserts of a tensor, and the tables say otherwise."""
    meta = _meta(call.get("a"), values)
    if meta is None:
        return
    facts = {"dtype": meta.dtype, "layout": meta.layout}
    for parameter, known in facts.items():
        argument = call.get(parameter)
        if argument is not None and argument.type != "as_none" and argument.value != known:
            message = f"expected the assertion of {parameter} to hold, {known.name}, got {argument.value!r:.60}"
            yield Problem(step.where, "T11", message)
