"""Names that are imported on first use: the public API of a package (PEP 562), and functions of higher layers.

The public names are for users of pt2kit; its own modules import a name from the module that defines it.

Imports go down only. What a lower layer needs from above is named here, and the top layer (`pt2kit/__init__`)
registers where they are defined. They are imported on first use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from types import CodeType
from typing import Any, Final, NoReturn

_RESULTS: Final = ("__getattr__", "__dir__", "__all__")

OPTIONAL: Final = {"torch": "torch", "sympy": "torch"}  # Read only.
"""Optional dependency -> the extra of pt2kit that installs it."""


def front_door(package: str, modules: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a package whose names are defined in its modules.

    The names are those that the package imports for type checkers, as `public_names` finds them.

    Args:
        package: the `__name__` of the package that calls.
        modules: modules of the package that are attributes without being imported, separated by blanks.
    """
    subpackages = frozenset(modules.split())
    caller = sys._getframe(1)
    table = public_names(caller.f_code, caller.f_globals)

    def load(name: str) -> Any:
        if name in subpackages:
            try:
                return import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name not in OPTIONAL:
                    raise
                raise AttributeError(instructions(f"{package}.{name}", OPTIONAL[error.name]), name=name) from error
        if name not in table:
            from pt2kit.messages import suggestion

            # With a name and without an object, Python adds no suggestion of its own to ours.
            message = f"module {package!r} has no attribute {name!r}{suggestion(name, sorted({*table, *subpackages}))}"
            raise AttributeError(message, name=name)
        # Not above: `import pt2kit` imports no other module of it.
        from pt2kit.collector import no_collection

        try:
            # Imported objects live on: collecting garbage among them and torch's takes as long as the import.
            with no_collection():
                value = getattr(import_module(table[name]), name)
        except ModuleNotFoundError as error:
            if error.name not in OPTIONAL:
                raise
            return _missing(package, name, OPTIONAL[error.name])
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*table, *subpackages}), sorted(table)


def public_names(package: CodeType, defined: Collection[str] = ()) -> Mapping[str, str]:
    """Return the names that the code of a package imports from modules, each with its module.

    Statements under `if TYPE_CHECKING` do not run, but they are compiled: the names in the code are in the order of the
    statements, what is imported after its module.

    Args:
        package: the code.
        defined: the names that are not imported on first use.
    """
    module, locations = "", {}
    for name in package.co_names:
        if name.startswith("pt2kit."):
            module = name
        elif module and name not in defined and name not in _RESULTS:
            locations[name] = module
    return locations


def _missing(package: str, name: str, extra: str) -> Callable[..., NoReturn]:
    """Return the placeholder of a function or class whose optional dependency is missing: using it raises.

    The name exists for `from pt2kit import *`, `hasattr`, `pydoc` and `inspect`, which do not use it.
    """
    text = instructions(f"{package}.{name}", extra)

    def refuse(*args: Any, **keywords: Any) -> NoReturn:
        raise ModuleNotFoundError(text, name=extra)

    refuse.__doc__ = f"Not available: {text}."
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = package
    if name[0].islower():
        return refuse
    return type(name, (), {"__new__": refuse, "__init_subclass__": refuse, "__doc__": refuse.__doc__})


def instructions(name: str, extra: str) -> str:
    """Return the error message for a name whose optional dependency is not installed."""
    return f"{name}: expected the package {extra}, which is not installed: pip install 'pt2kit[{extra}]'"


_TARGETS: dict[str, str] = {}
"""Name -> "module:attribute". Filled once, while pt2kit is imported."""


def register(targets: Mapping[str, str]) -> None:
    """Register functions and tables by name, each as "module:attribute"."""
    _TARGETS.update(targets)


def registered(name: str) -> Any:
    """Return what was registered under a name, importing its module if necessary."""
    module, _, attribute = _TARGETS[name].partition(":")
    return getattr(import_module(module), attribute)
