"""Objects of the schema -> which parts of the schema occur in them: fields, arms of unions, members of enums."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from msgspec import UNSET, Struct

from pt2kit import schema


def all_parts() -> set[str]:
    """Every part of the current schema: "Node.name", "Argument.as_int", "ScalarType.FLOAT"."""
    parts: set[str] = set()
    for cls in schema.TYPES:
        members = [member.name for member in cls] if issubclass(cls, IntEnum) else cls.__struct_fields__
        parts |= {f"{cls.__name__}.{member}" for member in members}
    return parts


def parts_in(value: Any) -> set[str]:
    """The parts that occur in an object: a field occurs where it holds something other than None, [] and {}."""
    found: set[str] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if isinstance(current, Struct):
            for name in current.__struct_fields__:
                held = getattr(current, name)
                if held is not UNSET and held is not None and held not in ([], {}):
                    found.add(f"{type(current).__name__}.{name}")
                    stack.append(held)
        elif isinstance(current, IntEnum):
            found.add(f"{type(current).__name__}.{current.name}")
        elif isinstance(current, dict):
            stack += current.values()
        elif isinstance(current, list):
            stack += current
    return found
