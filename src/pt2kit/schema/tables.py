"""The frozen field tables of every version -> typed rows, without a YAML reader at run time.

`history/tables.json` holds the same as the YAML files beside it; `tools/history_tables.py` makes it, and a test keeps
the two equal. The draft writes its tables in a shorter form; it is given the form of the others here: an enum of the
draft maps each member's name to itself.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, Literal

from pt2kit.errors import VersionError

NAMES: Final = (
    "draft", "1", "2", "5.1", "5.3-traces", "5.3", "7.3", "8.2", "8.6", "8.7", "8.8", "8.14", "8.15", "8.17", "8.20",
)  # fmt: skip
"""The tables there are, oldest first."""

Kind = Literal["enum", "struct", "union"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the text of a field's type says.

    Args:
        kind: "leaf" for str, int, float, bool, bytes and None; "type" for a type of the table; "list", "dict",
            "tuple", "optional" and "either" for what holds others.
        name: of the leaf or type; "" for the others.
        inner: what it holds: the entries of a list, the values of a dict (its keys are str), the places of a tuple,
            the alternatives of the last two.
    """

    kind: Literal["leaf", "type", "list", "dict", "tuple", "optional", "either"]
    name: str = ""
    inner: tuple[Shape, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, or one arm of a union.

    Args:
        type: as the table writes it ("dict[str, SymInt]").
        shape: the same, parsed.
        has_default: whether a file may leave it out.
        default: the value it then has, as a plain tree; make a copy before putting it anywhere.
    """

    type: str
    shape: Shape
    has_default: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class Type:
    """One type: its fields or arms by name, or the numbers (names, in the draft) of an enum's members."""

    kind: Kind
    fields: Mapping[str, Field]
    members: Mapping[str, int | str]


Table = Mapping[str, Type]
"""Type name -> type, in the order of the frozen file."""

_LEAVES: Final = frozenset({"str", "int", "float", "bool", "bytes", "None"})
_TOKEN: Final = re.compile(r"\s*([A-Za-z_]\w*|[\[\](),|])")
_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType({"None": None, "False": False, "{}": {}, "[]": []})


# A memo of a pure function over a file of the package, which never changes.
@functools.cache
def table(name: str) -> Table:
    """The frozen table of one version.

    Args:
        name: one of `NAMES` ("8.7", "draft").

    Raises:
        VersionError: there is no such table.
    """
    if name not in NAMES:
        raise VersionError(f"schema version: expected one of {', '.join(NAMES)}, got {name!r}")
    return MappingProxyType({key: _type(row) for key, row in _rows()[name].items()})


@functools.cache
def _rows() -> dict[str, dict[str, Any]]:
    text = (files("pt2kit.schema") / "history" / "tables.json").read_text(encoding="utf-8")
    rows: dict[str, dict[str, Any]] = json.loads(text)
    return rows


def _type(row: Mapping[str, Any]) -> Type:
    if row["kind"] == "enum":
        return Type("enum", MappingProxyType({}), MappingProxyType(row["fields"]))
    fields = {name: _field(field) for name, field in row["fields"].items()}
    return Type(row["kind"], MappingProxyType(fields), MappingProxyType({}))


def _field(row: Mapping[str, Any]) -> Field:
    shape = parse_shape(row["type"])
    if "default" not in row:
        return Field(row["type"], shape)
    return Field(row["type"], shape, True, _DEFAULTS.get(row["default"], row["default"]))


# The tables use some ninety texts, thousands of times.
@functools.cache
def parse_shape(text: str) -> Shape:
    """Read the text of a field's type: "dict[str, SymInt]", "int | None", "tuple[()]", "Buffer or ExternalBuffer".

    Raises:
        ValueError: no such text; the tables hold none.
    """
    tokens = _TOKEN.findall(text.replace(" or ", " | "))
    shape, rest = _alternatives(tokens)
    if rest:
        raise ValueError(f"type {text!r}: expected the end, got {rest[0]!r}")
    return shape


def _alternatives(tokens: list[str]) -> tuple[Shape, list[str]]:
    first, rest = _single(tokens)
    found = [first]
    while rest and rest[0] == "|":
        following, rest = _single(rest[1:])
        found.append(following)
    if len(found) == 1:
        return first, rest
    others = tuple(shape for shape in found if shape.name != "None")
    if len(others) == len(found):
        return Shape("either", inner=others), rest
    return Shape("optional", inner=others), rest


def _single(tokens: list[str]) -> tuple[Shape, list[str]]:
    name, *rest = tokens
    if not rest or rest[0] != "[":
        return Shape("leaf" if name in _LEAVES else "type", name), rest
    inner: list[Shape] = []
    rest = rest[1:]
    if rest[:2] == ["(", ")"]:
        rest = rest[2:]
    while rest[0] != "]":
        shape, rest = _alternatives(rest)
        inner.append(shape)
        rest = rest[1:] if rest[0] == "," else rest
    if name == "dict":
        return Shape("dict", inner=(inner[1],)), rest[1:]
    if name == "list":
        return Shape("list", inner=(inner[0],)), rest[1:]
    return Shape("tuple", inner=tuple(inner)), rest[1:]
