"""`import pt2kit` -> a text with every public name: signatures of functions, public attributes of classes.

PYTHONPATH=. python -m tests.project.public_names       writes the text that a test compares; a change is a decision
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pt2kit

TABLE = Path(__file__).parent / "data" / "public_names.txt"


def lines(names: list[str]) -> Iterator[str]:
    """A line for each function, class, method, property and field that is public."""
    for name in sorted(names):
        found = getattr(pt2kit, name)
        if inspect.isclass(found):
            yield f"class {name}({', '.join(base.__name__ for base in found.__bases__)}){_signature(found)}"
            yield from _members(name, found)
        elif callable(found):
            yield f"{name}{_signature(found)}"
        else:
            yield f"{name}: {type(found).__name__}"


def _members(name: str, found: type) -> Iterator[str]:
    fields = {key for base in found.__mro__ if base.__module__.startswith("pt2kit") for key in _own_fields(base)}
    for key in sorted({*fields, *(key for key in dir(found) if not key.startswith("_"))}):
        owner = next((base for base in found.__mro__ if key in vars(base)), found)
        if not owner.__module__.startswith("pt2kit"):
            continue
        value = inspect.getattr_static(found, key, None)
        kind = type(value).__name__
        if isinstance(value, classmethod | staticmethod):
            yield f"  {name}.{key}{_signature(value.__func__)}  # {kind}"
        elif inspect.isfunction(value):
            yield f"  {name}.{key}{_signature(value)}"
        else:
            yield f"  {name}.{key}"


def _own_fields(base: type) -> list[str]:
    return [key for key in vars(base).get("__annotations__", {}) if not key.startswith("_")]


def _signature(found: Any) -> str:
    """The parameters: names, kinds, and whether they have a default; types are for type checkers."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return "(…)"
    star = False
    parts = []
    for row in parameters:
        if row.kind is row.VAR_POSITIONAL:
            star = True
            parts.append(f"*{row.name}")
        elif row.kind is row.VAR_KEYWORD:
            parts.append(f"**{row.name}")
        else:
            if row.kind is row.KEYWORD_ONLY and not star:
                star = True
                parts.append("*")
            slash = ", /" if row.kind is row.POSITIONAL_ONLY else ""
            parts.append(row.name + ("" if row.default is row.empty else "=…") + slash)
    return f"({', '.join(parts)})"


def main() -> None:
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines(pt2kit.__all__)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
