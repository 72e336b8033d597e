"""An operator's schema -> the little that writing its calls needs: names, order, and the kinds of lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_ELEMENTS = {
    "BoolType": "bool",
    "IntType": "int",
    "SymIntType": "int",
    "FloatType": "float",
    "NumberType": "number",
    "StringType": "str",
    "TensorType": "Tensor",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operator.

    Args:
        name: as the schema has it.
        keyword_only: it stands after the "*".
        element: what a list passed for it holds: "int", "float", "Tensor", …; with one "[]" per further level of lists;
            None where the parameter takes no list, or one of a kind that has no empty form in the format.
    """

    name: str
    keyword_only: bool
    element: str | None


@dataclass(frozen=True, slots=True)
class Operator:
    """What the schema of an operator says.

    Args:
        target: its name in the format.
        parameters: in the schema's order.
        returns: the kind of each result, from the schema: "Tensor", "Tensor[]", …
    """

    target: str
    parameters: tuple[Parameter, ...]
    returns: tuple[str, ...]


def describe_schema(target: str, schema: Any) -> Operator:
    """Read a `torch.FunctionSchema`."""
    parameters = tuple(Parameter(arg.name, arg.kwarg_only, _element(arg.type)) for arg in schema.arguments)
    return Operator(target, parameters, tuple(_kind(value.real_type) for value in schema.returns))


def _element(jit_type: Any) -> str | None:
    """What a list of this type holds."""
    text = _kind(jit_type)
    return text[:-2] if text.endswith("[]") else None


def _kind(jit_type: Any) -> str:
    """A type as a short text; optional ones as what they hold."""
    name: str = jit_type.kind()
    if name == "OptionalType":
        return _kind(jit_type.getElementType())
    if name == "ListType":
        return f"{_kind(jit_type.getElementType())}[]"
    return _ELEMENTS.get(name, name)
