"""The type of an operator's parameter -> the arms of `schema.Argument` that fit it.

Wide on purpose: torch converts numbers to tensors and single values to lists when it calls an operator. What is left
out could never be meant, such as a text where a tensor belongs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_TENSORS = frozenset(
    ("as_tensor", "as_tensors", "as_optional_tensor", "as_optional_tensors", "as_nested_tensors", "as_none")
)
_NUMBERS = frozenset(
    (
        "as_int", "as_ints", "as_float", "as_floats", "as_bool", "as_bools", "as_complex", "as_int_lists",
        "as_float_lists", "as_sym_int", "as_sym_ints", "as_sym_float", "as_sym_floats", "as_sym_bool", "as_sym_bools",
        "as_none",
    )
)  # fmt: skip
_ENUMS = frozenset(("as_scalar_type", "as_layout", "as_memory_format", "as_none"))
_TEXTS = frozenset(("as_string", "as_strings", "as_none"))
_EMPTY = frozenset(("as_ints", "as_tensors", "as_floats", "as_bools", "as_strings"))

_BY_TYPE: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Tensor": _TENSORS | _NUMBERS,
        "number": _NUMBERS | _TENSORS,
        "Scalar": _NUMBERS | _TENSORS,
        "int": _NUMBERS | _TENSORS | _ENUMS,
        "SymInt": _NUMBERS | _TENSORS | _ENUMS,
        "float": _NUMBERS | _TENSORS,
        "bool": _NUMBERS | _TENSORS,
        "ScalarType": _ENUMS | _NUMBERS,
        "Layout": _ENUMS | _NUMBERS,
        "MemoryFormat": _ENUMS | _NUMBERS,
        "Device": frozenset(("as_device", "as_none")) | _TEXTS,
        "str": _TEXTS,
    }
)
_WRAPPER: Final = re.compile(r"(Optional|List)\[(.*)\]")


def arms_of(type_text: str) -> frozenset[str] | None:
    """The arms that fit a parameter.

    Args:
        type_text: the type as torch prints it: "Tensor", "Optional[List[SymInt]]".

    Returns:
        The names of the arms, or None where every arm may fit (classes, dictionaries, generators).
    """
    is_list = False
    while match := _WRAPPER.fullmatch(type_text):
        is_list |= match[1] == "List"
        type_text = match[2]
    found = _BY_TYPE.get(type_text)
    return found if found is None or not is_list else found | _EMPTY
