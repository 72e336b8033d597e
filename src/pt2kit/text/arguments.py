"""Text of node arguments: `%x`, `[1, 2]`, `dtype.f32`, `@true_graph`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from pt2kit.messages import printable
from pt2kit.schema import (
    Argument,
    ComplexValue,
    ConstantValue,
    NamedArgument,
    OptionalTensorArgument,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
)
from pt2kit.text.names import value_name
from pt2kit.text.values import device_text, dtype_text
from pt2kit.treespec.callsig import show_name

MAX_DEPTH = 32
MAX_STRING = 80
_PLAIN = {"as_int": "int", "as_float": "float", "as_bool": "bool", "as_string": "str"}


def argument_text(argument: Argument | ConstantValue, depth: int = 0) -> str:
    """Return one argument as text; nesting deeper than `MAX_DEPTH` is shown as `…`."""
    if depth > MAX_DEPTH:
        return "…"
    kind, value = argument.type, argument.value
    if kind == "as_string_to_argument":
        return f"{{{', '.join(f'{_quoted(key)}: {argument_text(item, depth + 1)}' for key, item in value.items())}}}"
    return _ARMS[kind](value)


def named_text(named: NamedArgument) -> str:
    """Return an argument with its parameter's name: `dim=1`."""
    text = argument_text(named.arg)
    return f"{show_name(named.name)}={text}" if named.name else text


def constant_text(constant: Argument | ConstantValue) -> str:
    """Return a constant of the calling convention with its type: `int = 3`."""
    text = argument_text(constant)
    return text if constant.type == "as_none" else f"{_PLAIN.get(constant.type, constant.type)} = {text}"


def _quoted(text: str) -> str:
    shown = text if len(text) <= MAX_STRING else f"{text[:MAX_STRING]}…"
    return printable(repr(shown), 4 * MAX_STRING)


def _value(value: Any) -> str:
    return value_name(value.name)


def _number_or_name(value: SymIntArgument | SymFloatArgument | SymBoolArgument) -> str:
    return value_name(value.value) if value.type == "as_name" else str(value.value)


def _optional(value: OptionalTensorArgument) -> str:
    return "None" if value.type == "as_none" else _value(value.value)


def _complex(value: ComplexValue) -> str:
    return str(complex(float(value.real), float(value.imag)))


def _list_of(inner: Callable[[Any], str]) -> Callable[[Iterable[Any]], str]:
    return lambda values: f"[{', '.join(map(inner, values))}]"


_ARMS: Mapping[str, Callable[[Any], str]] = MappingProxyType(
    {
        "as_none": lambda _: "None",
        "as_tensor": _value,
        "as_tensors": _list_of(_value),
        "as_int": str,
        "as_ints": _list_of(str),
        "as_float": str,
        "as_floats": _list_of(str),
        "as_string": _quoted,
        "as_strings": _list_of(_quoted),
        "as_sym_int": _number_or_name,
        "as_sym_ints": _list_of(_number_or_name),
        "as_scalar_type": lambda value: f"dtype.{dtype_text(value)}",
        "as_memory_format": lambda value: f"memory_format.{value.name}",
        "as_layout": lambda value: f"layout.{value.name}",
        "as_device": lambda value: f"device({device_text(value)})",
        "as_bool": str,
        "as_bools": _list_of(str),
        "as_sym_bool": _number_or_name,
        "as_sym_bools": _list_of(_number_or_name),
        "as_graph": lambda value: f"@{show_name(value.name)}",
        "as_optional_tensors": _list_of(_optional),
        "as_custom_obj": _value,
        "as_operator": lambda value: f"operator({printable(value)})",
        "as_sym_float": _number_or_name,
        "as_sym_floats": _list_of(_number_or_name),
        "as_optional_tensor": _optional,
        "as_complex": _complex,
        "as_nested_tensors": _list_of(_list_of(_value)),
        "as_int_lists": _list_of(_list_of(str)),
        "as_float_lists": _list_of(_list_of(str)),
    }
)
