"""Functions and tables of higher layers that lower layers use, such as the notebook display of a package.

Imports go down only. What a lower layer needs from above is named here, and the top layer (`pt2kit/__init__`)
registers where they are defined. They are imported on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

_TARGETS: dict[str, str] = {}
"""Name -> "module:attribute". Filled once, while pt2kit is imported."""


def register(targets: Mapping[str, str]) -> None:
    """Register functions and tables by name, each as "module:attribute"."""
    _TARGETS.update(targets)


def registered(name: str) -> Any:
    """Return what was registered under a name, importing its module if necessary."""
    module, _, attribute = _TARGETS[name].partition(":")
    return getattr(import_module(module), attribute)
