"""The outputs that a node declares -> the names of the values in them, one by one or in lists."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import UNSET

from pt2kit import schema

LISTS: Final = frozenset(("as_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools", "as_optional_tensors"))
"""The arms of results that are lists."""


def single_name(outputs: list[schema.Argument]) -> str | None:
    """The name of the one value that a node with these outputs is; None if it has none, several, or a list."""
    return value_name(outputs[0]) if len(outputs) == 1 else None


def result_entries(output: schema.Argument) -> list[schema.Argument]:
    """The entries of a list of results, as outputs of their own."""
    arm = output.type
    if arm == "as_tensors":
        return [schema.Argument(as_tensor=item) for item in output.as_tensors]  # type: ignore[union-attr]
    if arm == "as_optional_tensors":
        return [
            schema.Argument(as_none=True) if item.as_tensor is UNSET else schema.Argument(as_tensor=item.as_tensor)
            for item in output.as_optional_tensors  # type: ignore[union-attr]
        ]
    return [schema.Argument(**{_SINGLE[arm]: item}) for item in getattr(output, arm)]


_SINGLE: Final[Mapping[str, str]] = MappingProxyType(
    {"as_sym_ints": "as_sym_int", "as_sym_floats": "as_sym_float", "as_sym_bools": "as_sym_bool"}
)


def value_name(output: schema.Argument) -> str | None:
    """The name of the value that an output is, or None where it names none."""
    if output.as_tensor is not UNSET:
        return output.as_tensor.name
    if output.as_custom_obj is not UNSET:
        return output.as_custom_obj.name
    for symbolic in (output.as_sym_int, output.as_sym_bool, output.as_sym_float):
        if symbolic is not UNSET:
            return None if symbolic.as_name is UNSET else symbolic.as_name
    if output.as_optional_tensor is not UNSET and output.as_optional_tensor.as_tensor is not UNSET:
        return output.as_optional_tensor.as_tensor.name
    return None
