"""The type of an operator's parameter or result -> the arms of `schema.Argument` that fit it.

Wide on purpose: torch converts numbers to tensors and single values to lists when it calls an operator. What is left
out could never be meant, such as a text where a tensor belongs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_TENSORS: Final = frozenset(
    ("as_tensor", "as_tensors", "as_optional_tensor", "as_optional_tensors", "as_nested_tensors", "as_none")
)
_NUMBERS: Final = frozenset(
    (
        "as_int", "as_ints", "as_float", "as_floats", "as_bool", "as_bools", "as_complex", "as_int_lists",
        "as_float_lists", "as_sym_int", "as_sym_ints", "as_sym_float", "as_sym_floats", "as_sym_bool", "as_sym_bools",
        "as_none",
    )
)  # fmt: skip
_ENUMS: Final = frozenset(("as_scalar_type", "as_layout", "as_memory_format", "as_none"))
_TEXTS: Final = frozenset(("as_string", "as_strings", "as_none"))
_EMPTY_LISTS: Final = frozenset(("as_ints", "as_tensors", "as_floats", "as_bools", "as_strings"))
_ANY_NUMBER: Final = _NUMBERS | _TENSORS

_BY_TYPE: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Tensor": _ANY_NUMBER,
        "number": _ANY_NUMBER,
        "float": _ANY_NUMBER,
        "bool": _ANY_NUMBER,
        "int": _ANY_NUMBER | _ENUMS,
        "complex": _ANY_NUMBER,
        "ScalarType": _ENUMS | _NUMBERS,
        "Layout": _ENUMS | _NUMBERS,
        "MemoryFormat": _ENUMS | _NUMBERS,
        "Device": frozenset(("as_device", "as_none")) | _TEXTS,
        "str": _TEXTS,
    }
)
_RESULTS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Tensor": frozenset(("as_tensor", "as_none", "as_optional_tensor")),
        "List[Tensor]": frozenset(("as_tensors", "as_optional_tensors", "as_none")),
        "int": frozenset(("as_sym_int", "as_int", "as_none")),
        "float": frozenset(("as_sym_float", "as_float", "as_none")),
        "bool": frozenset(("as_sym_bool", "as_bool", "as_none")),
    }
)
_WRAPPER: Final = re.compile(r"(Optional|List)\[(.*)\]")


def parameter_arms(type_text: str) -> frozenset[str] | None:
    """The arms that fit a parameter.

    Args:
        type_text: the type as the table has it: "Tensor", "Optional[List[int]]".

    Returns:
        The names of the arms, or None where every arm may fit (classes, dictionaries, generators).
    """
    is_list = False
    while match := _WRAPPER.fullmatch(type_text):
        is_list |= match[1] == "List"
        type_text = match[2]
    found = _BY_TYPE.get(type_text)
    return found if found is None or not is_list else found | _EMPTY_LISTS


def result_arms(type_text: str) -> frozenset[str] | None:
    """The arms that fit a result; None where every arm may fit."""
    return _RESULTS.get(type_text)
