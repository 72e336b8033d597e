"""Replacement of `torch.export.save` and `torch.export.load` in this process by pt2kit's, and their restoration."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import torch

from pt2kit.bridge.load import load
from pt2kit.bridge.save import save


class Installed:
    """Replaced functions of `install`; restored at the end of a `with` block, or when `restore` is called.

    Blocks may overlap in any order, as those of threads do: torch's functions come back when the last one ends.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._install()

    def _install(self) -> None:
        with _LOCK:
            if self in _ACTIVE:
                return
            _ACTIVE.append(self)
            for name, own in _OWN.items():
                if vars(torch.export).get(name) is not own:
                    _REPLACED[name] = getattr(torch.export, name)
                    setattr(torch.export, name, own)

    def restore(self) -> None:
        """Restore the replaced functions, except those that someone else has replaced since, if no other block goes on.

        May be called twice.
        """
        with _LOCK:
            if self in _ACTIVE:
                _ACTIVE.remove(self)
            while _REPLACED and not _ACTIVE:
                name, function = _REPLACED.popitem()
                if vars(torch.export).get(name) is _OWN[name]:
                    setattr(torch.export, name, function)

    def __enter__(self) -> Installed:
        self._install()
        self._depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.restore()


def install() -> Installed:
    """Replace `torch.export.save` and `torch.export.load` by those of pt2kit, in this process.

    Code that calls `torch.export.load(…)` then runs nothing from a file, without being changed. Modules that imported
    the functions by name before (`from torch.export import load`) keep torch's.

    Returns:
        what restores torch's functions: a context manager with a method `restore`. They come back when each call's
        has been restored, in whatever order.
    """
    return Installed()


_OWN: Final[Mapping[str, Any]] = MappingProxyType({"save": save, "load": load})
_LOCK: Final = threading.Lock()
_ACTIVE: Final[list[Installed]] = []
_REPLACED: Final[dict[str, Any]] = {}
"""Functions that were there before: state of the process, as the active installations are, and torch's functions."""
