"""Replacement of `torch.export.save` and `torch.export.load` in this process by pt2kit's, and their restoration."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Final

import torch

from pt2kit.bridge.load import load
from pt2kit.bridge.save import save


class Installed:
    """Replaced functions of `install`; restored at the end of a `with` block, or when `restore` is called."""

    def __init__(self) -> None:
        replaced: dict[str, Any] = {}
        for name, own in _OWN.items():
            if vars(torch.export).get(name) is not own:
                replaced[name] = getattr(torch.export, name)
                setattr(torch.export, name, own)
        self._replaced = replaced

    def restore(self) -> None:
        """Restore the replaced functions, except those that someone else has replaced since. May be called twice."""
        for name, function in self._replaced.items():
            if vars(torch.export).get(name) is _OWN[name]:
                setattr(torch.export, name, function)
        self._replaced = {}

    def __enter__(self) -> Installed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()


def install() -> Installed:
    """Replace `torch.export.save` and `torch.export.load` by those of pt2kit, in this process.

    Code that calls `torch.export.load(…)` then runs nothing from a file, without being changed. Modules that imported
    the functions by name before (`from torch.export import load`) keep torch's.

    Returns:
        what restores torch's functions: a context manager with a method `restore`. A second call, and a block inside a
        block, change nothing and restore nothing.
    """
    return Installed()


_OWN: Final[Mapping[str, Any]] = MappingProxyType({"save": save, "load": load})
