"""The names that a room offers to its users -> loaded from the modules that define them when they are first asked for.

Inside the house nobody uses these: a module imports from the module that defines a name. They are what users import,
and they are late (PEP 562) so that importing a room costs next to nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final, NoReturn

_OPTIONAL: Final = {"torch": "torch", "sympy": "torch"}  # Read only.
"""A package that need not be there -> the extra of pt2kit that brings it."""


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
            try:
                return import_module(f"{room}.{name}")
            except ModuleNotFoundError as error:
                if error.name not in _OPTIONAL:
                    raise
                raise AttributeError(instructions(f"{room}.{name}", _OPTIONAL[error.name]), name=name) from error
        if name not in table:
            raise AttributeError(f"module {room!r} has no attribute {name!r}{_suggestion(name, {*table, *rooms})}")
        # Not above: `import pt2kit` imports nothing else of the house.
        from pt2kit.collector import no_collection

        module, attribute = table[name]

        try:
            # What is imported stays: searching it, and all that torch has made before, takes as long as the import.
            with no_collection():
                value = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name not in _OPTIONAL:
                raise
            return _missing(room, name, _OPTIONAL[error.name])
        setattr(sys.modules[room], name, value)
        return value

    return load, lambda: sorted({*table, *rooms, *vars(sys.modules[room])}), sorted(table)


def _missing(room: str, name: str, extra: str) -> Callable[..., NoReturn]:
    """What stands in the place of a function or class whose package is not there: it says so when it is used.

    The name itself is there for `from pt2kit import *`, `hasattr`, `pydoc` and `inspect`, which use nothing.
    """
    text = instructions(f"{room}.{name}", extra)

    def refuse(*args: Any, **keywords: Any) -> NoReturn:
        raise ModuleNotFoundError(text, name=extra)

    refuse.__doc__ = f"Not available: {text}."
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = room
    if name[0].islower():
        return refuse
    return type(name, (), {"__new__": refuse, "__init_subclass__": refuse, "__doc__": refuse.__doc__})


def instructions(name: str, extra: str) -> str:
    """The error message of a name whose package is not installed."""
    return f"{name}: expected the package {extra}, which is not installed: pip install 'pt2kit[{extra}]'"


def _suggestion(name: str, names: Iterable[str]) -> str:
    """The names that are close to one that does not exist, as the end of a message; "" where none is."""
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(names), n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(close)}?" if close else ""
