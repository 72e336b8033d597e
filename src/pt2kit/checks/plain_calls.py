"""A node that calls an operator -> its arguments by name: plain Python values, and the names of values.

`Call` is what the rules about memory look at (`following.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.shadows import Sizes, are_ints
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Step
from pt2kit.schema.operator_text import Operator


class Call(NamedTuple):
    """One call of an operator with a schema.

    Args:
        step: the node.
        operator: "aten.add".
        name: "add".
        overload: "Tensor".
        signature: what the schema says.
        plain: the arguments that hold no tensors, as Python values; symbols are their names.
        values: parameter -> names of the values that it gets.
        results: names of what it gives.
    """

    step: Step
    operator: str
    name: str
    overload: str
    signature: Operator
    plain: Mapping[str, Any]
    values: Mapping[str, list[str]]
    results: list[str]

    @property
    def numbers(self) -> Iterator[list[str]]:
        """The values that go to parameters that are no tensors."""
        for name, values in self.values.items():
            parameter = self.signature.parameters.get(name)
            if parameter is None or "Tensor" not in parameter.type.base:
                yield values


def call_of(step: Step, parts: Sequence[str], signature: Operator) -> Call:
    """A node as a call.

    Args:
        step: the node.
        parts: of its target.
        signature: what the schema of the operator says.
    """
    plain, values = {}, {}
    for named in step.node.inputs:
        plain[named.name] = _plain(named.arg)
        if names := list(arguments(named.arg)):
            values[named.name] = names
    results = [name for output in step.node.outputs for name in arguments(output)]
    return Call(step, f"{parts[2]}.{parts[3]}", parts[3], parts[4], signature, plain, values, results)


def argument_of(call: Call, name: str) -> schema.Argument | None:
    """An argument as it stands in the file; None where the call has none of that name."""
    return next((named.arg for named in call.step.node.inputs if named.name == name), None)


def _plain(argument: schema.Argument) -> Any:
    """An argument as a Python value; symbols are their names."""
    value = argument.value
    if argument.as_none is not UNSET:
        return None
    if argument.as_sym_int is not UNSET:
        return _number(argument.as_sym_int)
    if argument.as_sym_ints is not UNSET:
        return [_number(entry) for entry in argument.as_sym_ints]
    return value


def _number(value: schema.SymIntArgument) -> Any:
    return value.as_name if value.as_name is not UNSET else value.as_int


def declared(meta: schema.TensorMeta | None) -> Sizes | None:
    """The declared sizes of a value; None for symbols."""
    if meta is None:
        return None
    return tuple(size.as_int if type(size.as_int) is int else None for size in meta.sizes)


def names_of(given: Iterable[schema.Argument]) -> list[str]:
    """The values that arguments name."""
    return [name for argument in given for name in arguments(argument)]


def asked_sizes(plain: Mapping[str, Any]) -> Sizes | None:
    """The sizes that a call asks for; None for symbols, and None as a whole where it asks for none."""
    asked = plain.get("size", plain.get("shape"))
    if not isinstance(asked, list):
        return None
    return tuple(size if type(size) is int and size >= 0 else None for size in asked)


def permuted_strides(sizes: Sizes, layout: Any) -> list[int] | None:
    """The strides of a tensor whose dimensions lie in memory in another order."""
    if not are_ints(layout) or sorted(layout) != list(range(len(sizes))):
        return None
    strides, step = [0] * len(sizes), 1
    for dim in reversed(layout):
        strides[dim] = step
        step *= sizes[dim] or 1
    return strides
