"""Parser of operator schemas as torch prints them: parameters and results; no torch.

    aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)

A type is a name ("Tensor", "SymInt", "Dict(str, Tensor)"), then "?" for None, "[]" for a list and "[2]" for a list
that a single value may replace, from the inside out. Brackets after it declare aliases: "(a)" is a view, "(a!)" is
written to, "(a -> *)" goes into something else.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_SCHEMA: Final = re.compile(r"(?P<name>\w+::[\w.]+)\((?P<parameters>.*)\) -> (?P<results>.*)")
_ITEM: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\]|[^,"()\[])+')
_BASE: Final = re.compile(r"(?:Dict|Future|RRef|Await)\([^()]*\)|\([^()]*\)|[\w.]+")
_ALIAS: Final = re.compile(r"\(([^()]*)\)")
_DECLARATION: Final = re.compile(r"(?P<type>.+?) (?P<name>\w+)(?:=(?P<default>.*))?")
_WRAPPER: Final = re.compile(r"(Optional|List)\[(.*)\]")
_OPEN: Final = "..."


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a parameter or a result.

    Args:
        base: of the single value: "Tensor", "SymInt", "ScalarType", "Dict(str, t)".
        suffix: its modifiers, from the inside out: "" a value, "?" or None, "[]" a list, "?[]" a list with Nones.
        length: of a list that a single value may replace ("int[2]"), else 0.
        alias: the memory it shares: "a" with other values of that name, "a!" which is written to; "" with nothing.
    """

    base: str
    suffix: str
    length: int
    alias: str

    @property
    def is_written(self) -> bool:
        """Return whether the operator writes into it."""
        return "!" in self.alias

    @property
    def is_list(self) -> bool:
        """Return whether it is a list of anything."""
        return "[]" in self.suffix

    @property
    def is_optional(self) -> bool:
        """Return whether None may replace the whole."""
        return self.suffix.endswith("?")

    def __str__(self) -> str:
        return self.base + (self.suffix.replace("[]", f"[{self.length}]", 1) if self.length else self.suffix)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operator.

    Args:
        name: as a call names it.
        type: of its value.
        default: its default as torch prints it ("1", "None", "[0, 1]", '"none"'); None if it is required.
        is_keyword_only: it comes after the "*".
    """

    name: str
    type: ValueType
    default: str | None
    is_keyword_only: bool

    @property
    def is_required(self) -> bool:
        """Return whether every call must pass it."""
        return self.default is None


@dataclass(frozen=True, slots=True)
class Operator:
    """Schema of an operator.

    Args:
        name: "aten.add.Tensor"; the overload without a name is "default".
        parameters: name -> parameter, in order.
        results: the type of each result.
        is_open: it accepts, or returns, any number of further values.
    """

    name: str
    parameters: Mapping[str, Parameter]
    results: tuple[ValueType, ...]
    is_open: bool

    @property
    def is_view(self) -> bool:
        """Return whether some result shares memory with an argument that is not written."""
        return any(result.alias and not result.is_written for result in self.results)


def operator_name(text: str) -> str:
    """Return the name that a schema's text begins with, as targets have it: "aten.add.Tensor", "aten.relu.default"."""
    name = text.partition("(")[0].replace("::", ".")
    return name if name.count(".") > 1 else f"{name}.default"


# A pure function; programs call the same few operators over and over.
@functools.lru_cache(maxsize=4096)
def parse_operator(text: str) -> Operator:
    """Read the text of one schema.

    Raises:
        ValueError: it is not the text of a schema.
    """
    if not (match := _SCHEMA.fullmatch(text)):
        raise ValueError(f"schema of an operator: expected name(parameters) -> results, got {text[:80]!r}")
    parameters: dict[str, Parameter] = {}
    is_open = is_keyword_only = False
    for item in _items(match["parameters"]):
        if item == _OPEN:
            is_open = True
        elif item == "*":
            is_keyword_only = True
        else:
            parameter = _parameter(item, is_keyword_only)
            parameters[parameter.name] = parameter
    results = _items(_unwrapped(match["results"]))
    return Operator(
        operator_name(text),
        MappingProxyType(parameters),
        tuple(_result(item) for item in results if item != _OPEN),
        is_open or _OPEN in results,
    )


def _items(text: str) -> list[str]:
    """Split a list at its commas; those inside quotes and brackets do not count."""
    return [item.strip() for item in _ITEM.findall(text)]


def _unwrapped(results: str) -> str:
    """Return results without the brackets around several of them.

    A tuple that is one result has brackets of its own.
    """
    return results[1:-1] if results.startswith("(") and results.endswith(")") else results


def _parameter(item: str, is_keyword_only: bool) -> Parameter:
    if not (match := _DECLARATION.fullmatch(item)):
        raise ValueError(f"schema of an operator: expected a type and a name, got {item[:80]!r}")
    return Parameter(match["name"], parse_type(match["type"]), match["default"], is_keyword_only)


def _result(item: str) -> ValueType:
    match = _DECLARATION.fullmatch(item)
    return parse_type(match["type"] if match and not item.endswith(")") else item)


# Types repeat; there are some two hundred.
@functools.lru_cache(maxsize=1024)
def parse_type(text: str) -> ValueType:
    """Read a type as a schema has it ("int[2]?"), or as torch prints one by itself ("Optional[List[int]]").

    The second does not show whether a single value may replace a list; the length is then 1.

    Raises:
        ValueError: it is not the text of a type.
    """
    text = _as_in_schemas(text)
    if not (match := _BASE.match(text)):
        raise ValueError(f"schema of an operator: expected a type, got {text[:80]!r}")
    behind = text[match.end() :]
    alias = alias_match[1] if (alias_match := _ALIAS.search(behind)) else ""
    suffix = _ALIAS.sub("", behind)
    length = re.search(r"\[(\d+)\]", suffix)
    return ValueType(match[0], re.sub(r"\d+", "", suffix), int(length[1]) if length else 0, alias)


def _as_in_schemas(text: str) -> str:
    """Return the spelling of schemas: "int[1]?" for "Optional[List[int]]"."""
    suffix = ""
    while match := _WRAPPER.fullmatch(text):
        suffix = ("?" if match[1] == "Optional" else "[1]") + suffix
        text = match[2]
    return ("Scalar" if text == "number" else text) + suffix
