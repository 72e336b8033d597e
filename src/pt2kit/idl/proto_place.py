"""What both directions of the protobuf mapping need: the types of a table by name, and where in the tree one is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pt2kit.errors import LimitError, SchemaError
from pt2kit.idl.text import enum_numbers
from pt2kit.jsontext import path_text
from pt2kit.schema.fieldtable import Definition, Table
from pt2kit.schema.fieldtypes import Ref, Scalar, Type
from pt2kit.schema.spelling import as_written, spelling

MAX_DEPTH = 100
"""Levels of messages: what protobuf's own parsers accept."""

MAX_DIGITS = 4300
"""Decimal digits of an integer: what the interpreter itself converts without being asked twice."""

MAX_BITS = 14_284
"""The bits of an integer of `MAX_DIGITS` digits."""

INT = Scalar("int")


@dataclass(frozen=True, slots=True)
class Types:
    """The types of a table by name, with what is asked of them for every value."""

    definitions: Mapping[str, Definition]
    enums: Mapping[str, Mapping[int | str, int]]
    null_unions: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the tree: a chain of keys and indices, and how many messages deep."""

    up: Place | None
    step: str | int
    depth: int

    def at(self, step: str | int) -> Place:
        """The place of a key or an index inside this one."""
        return Place(self, step, self.depth)

    def deeper(self) -> Place:
        """The same place, one message further down.

        Raises:
            LimitError: that is too deep.
        """
        if self.depth == MAX_DEPTH:
            raise LimitError(f"{self}: expected at most {MAX_DEPTH} levels of protobuf messages, got more")
        return Place(self.up, self.step, self.depth + 1)

    def refuse(self, expected: str, got: Any) -> NoReturn:
        """Say what was expected here and what is there.

        Raises:
            SchemaError: always.
        """
        raise SchemaError(f"{self}: expected {expected}, got {_brief(got)}")

    def __str__(self) -> str:
        steps: list[str | int] = []
        place: Place | None = self
        while place is not None and place.up is not None:
            steps.append(place.step)
            place = place.up
        return path_text(tuple(reversed(steps)))


ROOT = Place(None, "", 0)


def _brief(value: Any) -> str:
    if value is None or isinstance(value, str | float | bool):
        return repr(value)[:60]
    if isinstance(value, int):
        return str(value) if value.bit_length() < 200 else f"an integer of {value.bit_length()} bits"
    return f"a value of type {type(value).__name__}"


def make_types(table: Table) -> Types:
    """Look up once what is asked of a table for every value."""
    written = as_written(table)
    enums = {
        each.name: {value.value: enum_numbers(each)[value.name] for value in each.members.values()}
        for each in written.definitions.values()
        if each.kind == "enum"
    }
    return Types(written.definitions, enums, spelling(table.version).padded_unions)


def known_type(types: Types, name: str) -> str:
    """The name of a type, if the table has it.

    Raises:
        SchemaError: it has not.
    """
    if name not in types.definitions:
        raise SchemaError(f"expected a message of the table's types, got {name}")
    return name


def is_plain(types: Types, kind: Type) -> bool:
    """Whether a value of the type is a field by itself: a scalar or an enum."""
    return isinstance(kind, Scalar) or (isinstance(kind, Ref) and kind.name in types.enums)
