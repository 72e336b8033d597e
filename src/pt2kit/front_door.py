"""The names that a room offers to its users -> loaded from the modules that define them when they are first asked for.

Inside the house nobody uses these: a module imports from the module that defines a name. They are what users import,
and they are late (PEP 562) so that importing a room costs next to nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def front_door(
    room: str, homes: Mapping[str, str], modules: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package whose names live in its modules.

    Args:
        room: the package's `__name__`.
        homes: module -> its names, separated by blanks; `name=attribute` where the module calls it otherwise. A module
            is one of the package, or has a full name.
        modules: modules of the package that are attributes without being imported, separated by blanks.
    """
    table = {}
    for module, names in homes.items():
        for entry in names.split():
            name, _, attribute = entry.partition("=")
            table[name] = (module if module.startswith("pt2kit.") else f"{room}.{module}", attribute or name)
    rooms = frozenset(modules.split())

    def load(name: str) -> Any:
        if name in rooms:
            return import_module(f"{room}.{name}")
        if name not in table:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module, attribute = table[name]
        value = getattr(import_module(module), attribute)
        setattr(sys.modules[room], name, value)
        return value

    return load, lambda: sorted({*table, *rooms, *vars(sys.modules[room])}), sorted(table)
