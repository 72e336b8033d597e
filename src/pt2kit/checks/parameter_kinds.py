"""Types of operators' parameters and results, and the arguments that torch accepts for them.

Source: `toIValue` in torch/csrc/jit/python/pybind_utils.cpp, and `should_allow_numbers_as_tensors`, torch 2.13, both
measured by calling operators with every kind of value for every kind of parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit import schema
from pt2kit.messages import kind_of
from pt2kit.schema.operators import COMPLETE as COMPLETE
from pt2kit.schema.operators import (
    ValueType,
)
from pt2kit.schema.operators import nearest as nearest

IsSingle = Callable[[str], bool]
"""The name of a value -> whether it is a tensor of one element, or a number."""

_NUMBERS: Final = frozenset(("as_int", "as_float", "as_bool", "as_sym_int", "as_sym_float", "as_sym_bool"))
_INTS: Final = frozenset(("as_int", "as_bool", "as_sym_int", "as_sym_bool"))
_ENUMS: Final = frozenset(("as_scalar_type", "as_layout", "as_memory_format"))
_LISTS_OF_NUMBERS: Final = frozenset(
    ("as_ints", "as_floats", "as_bools", "as_sym_ints", "as_sym_floats", "as_sym_bools", "as_tensors")
)
_LISTS_OF_INTS: Final = _LISTS_OF_NUMBERS - {"as_floats", "as_sym_floats"}
_LISTS: Final = _LISTS_OF_NUMBERS | {
    *("as_strings", "as_optional_tensors", "as_nested_tensors", "as_int_lists", "as_float_lists"),
}

_ONE: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Tensor": frozenset(("as_tensor",)),
        "int": _INTS | _ENUMS,
        "SymInt": _INTS,
        "float": _NUMBERS,
        "bool": _NUMBERS | {"as_complex", "as_none"},
        "Scalar": _NUMBERS | {"as_complex"},
        "complex": _NUMBERS | {"as_complex"},
        "str": frozenset(("as_string",)),
        "Device": frozenset(("as_device", "as_string")),
        "ScalarType": frozenset(("as_scalar_type", "as_int")),
        "Layout": frozenset(("as_layout", "as_int")),
        "MemoryFormat": frozenset(("as_memory_format", "as_int")),
        "Generator": frozenset[str](),
    }
)
"""Type -> the arms that a single value of it comes in."""

_MANY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Tensor[]": frozenset(("as_tensors", "as_optional_tensors")),
        "Tensor?[]": frozenset(("as_tensors", "as_optional_tensors")),
        "Tensor[][]": frozenset(("as_nested_tensors",)),
        "int[]": _LISTS_OF_INTS,
        "SymInt[]": _LISTS_OF_INTS,
        "int[][]": frozenset(("as_int_lists",)),
        "float[]": _LISTS_OF_NUMBERS,
        "float[][]": frozenset(("as_float_lists", "as_int_lists")),
        "bool[]": _LISTS_OF_NUMBERS,
        "Scalar[]": _LISTS_OF_NUMBERS,
        "str[]": frozenset(("as_strings",)),
    }
)
"""Type of a list -> the arms that it comes in, besides empty lists of any arm."""

_OF_ONE_ELEMENT: Final = frozenset(("int", "SymInt", "float", "bool", "complex", "ScalarType", "Layout"))
"""Types whose value may be taken out of a tensor of one element."""

_SIZED: Final = frozenset(("int", "float", "bool"))
"""Types of which a list with a length may be given as a single value. Those of `SymInt` may not."""

_RESULTS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Tensor": frozenset(("as_tensor", "as_none", "as_optional_tensor")),
        "Tensor[]": frozenset(("as_tensors", "as_optional_tensors", "as_none")),
        "int": frozenset(("as_sym_int", "as_int", "as_none")),
        "SymInt": frozenset(("as_sym_int", "as_int", "as_none")),
        "float": frozenset(("as_sym_float", "as_float", "as_none")),
        "bool": frozenset(("as_sym_bool", "as_bool", "as_none")),
    }
)

_INT64: Final = range(-(1 << 63), 1 << 63)
_UINT64: Final = range(-(1 << 63), 1 << 64)


def _listed(kind: ValueType) -> str:
    """Return a type without its own optional mark: "Tensor?[]" for "Tensor?[]?"."""
    return kind.base + kind.suffix.removesuffix("?")


def _is_known(kind: ValueType) -> bool:
    """Return whether the tables above have a type; unknown types accept any argument (classes, dictionaries)."""
    return kind.base in _ONE and (not kind.is_list or _listed(kind) in _MANY)


def _is_sized(kind: ValueType) -> bool:
    """Return whether a single value is accepted instead of the list."""
    return kind.length > 0 and kind.base in _SIZED


def parameter_arms(kind: ValueType, *, numbers_as_tensors: bool = True) -> frozenset[str] | None:
    """Return the arms of `schema.Argument` that a type accepts; None if it accepts every arm.

    Args:
        kind: the type of the parameter.
        numbers_as_tensors: whether the operator accepts numbers for a Tensor.
    """
    if not _is_known(kind):
        return None
    if kind.is_list:
        arms = _MANY[_listed(kind)] | _LISTS | (_ONE[kind.base] if _is_sized(kind) else frozenset())
    else:
        arms = _ONE[kind.base]
    arms |= {"as_none"} if kind.is_optional else frozenset()
    arms |= _NUMBERS | {"as_complex"} if kind.base == "Tensor" and numbers_as_tensors else frozenset()
    return arms | ({"as_tensor"} if kind.base in _OF_ONE_ELEMENT else frozenset())


def misfit(argument: schema.Argument, kind: ValueType, is_single: IsSingle, *, numbers_as_tensors: bool) -> str | None:
    """Return the error of an argument of a parameter.

    Args:
        argument: the argument.
        kind: the type of the parameter.
        is_single: of a value, whether it is one number or one element.
        numbers_as_tensors: whether the operator takes numbers for parameters of type Tensor.

    Returns:
        The error, for a message; None if torch accepts the argument, or if that is not known.
    """
    if not _is_known(kind):
        return None
    arm, value = argument.type, argument.value
    if arm == "as_none" and kind.is_optional:
        return None
    if kind.is_list and arm in _LISTS:
        fits = not value or (arm in _MANY[_listed(kind)] and _entries_fit(arm, value, kind, is_single))
        return (None if fits else arm) or _too_large(arm, value, kind)
    if kind.is_list and not _is_sized(kind):
        return arm
    if arm not in _ONE[kind.base] and not _converted(argument, kind, is_single, numbers_as_tensors):
        return arm
    if arm in _ENUMS and int(value) == 0:
        return f"{arm} 0, which is none"
    return _too_large(arm, value, kind)


def _converted(argument: schema.Argument, kind: ValueType, is_single: IsSingle, numbers_as_tensors: bool) -> bool:
    """Return whether torch converts one to the other: an element of a tensor to a number, a number to a tensor."""
    if kind.base == "Tensor":
        return numbers_as_tensors and (argument.type in _NUMBERS or argument.type == "as_complex")
    tensor = argument.value
    return kind.base in _OF_ONE_ELEMENT and isinstance(tensor, schema.TensorArgument) and is_single(tensor.name)


def _entries_fit(arm: str, entries: list[Any], kind: ValueType, is_single: IsSingle) -> bool:
    if arm == "as_optional_tensors" and _listed(kind) == "Tensor[]":
        return all(entry.type == "as_tensor" for entry in entries)
    # torch also writes lists of symbolic numbers as lists of tensors.
    return arm != "as_tensors" or kind.base == "Tensor" or all(is_single(entry.name) for entry in entries)


def _too_large(arm: str, value: Any, kind: ValueType) -> str | None:
    """Return the error of a number that does not fit into its C++ type."""
    if kind.base not in ("int", "SymInt", "Scalar", "Tensor"):
        return None
    is_index = kind.base in ("int", "SymInt")
    for number in _plain(arm, value):
        if number not in (_INT64 if is_index else _UINT64):
            return f"{kind_of(number)}, which {'63' if is_index else '64'} bits cannot hold"
    return None


def _plain(arm: str, value: Any) -> list[int]:
    """Return the plain ints of an argument."""
    if arm == "as_int":
        return [value]
    if arm == "as_ints":
        return list(value)
    if arm == "as_int_lists":
        return [number for row in value for number in row]
    if arm in ("as_sym_int", "as_sym_ints"):
        entries = value if isinstance(value, list) else [value]
        return [entry.as_int for entry in entries if isinstance(entry.as_int, int)]
    return []


def result_arms(kind: ValueType) -> frozenset[str] | None:
    """Return the arms that match a result; None if every arm does."""
    return _RESULTS.get(_listed(kind))
