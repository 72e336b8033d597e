"""Higher-order operators that only run a subgraph in a mode -> functions that do so, without torch's compiler.

torch's own import its compiler when they are called, which takes seconds, to keep it from looking inside. Where the
compiler or another export is at work they are called as they are.

Source: `WrapWithSetGradEnabled` and `WrapWithAutocast` in torch/_higher_order_ops/wrap.py, 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch

from pt2kit.bridge.torch_names import find_higher_order

_GRAD: Final = find_higher_order("wrap_with_set_grad_enabled")
_AUTOCAST: Final = find_higher_order("wrap_with_autocast")


def _in_grad_mode(is_enabled: bool, graph: Callable[..., Any], *args: Any) -> Any:
    if torch.compiler.is_compiling():
        return _GRAD(is_enabled, graph, *args)
    with torch.set_grad_enabled(is_enabled):
        return graph(*args)


def _in_autocast(
    device: str,
    dtype: torch.dtype | None,
    is_enabled: bool,
    caches: bool | None,
    graph: Callable[..., Any],
    *args: Any,
) -> Any:
    if torch.compiler.is_compiling():
        return _AUTOCAST(device, dtype, is_enabled, caches, graph, *args)
    with torch.autocast(device, dtype, is_enabled, caches):
        return graph(*args)


REGIONS: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = MappingProxyType(
    {_GRAD: _in_grad_mode, _AUTOCAST: _in_autocast}
)
"""Operator -> what is called for it."""
OPERATORS: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = MappingProxyType(
    {function: operator for operator, function in REGIONS.items()}
)
"""What is called -> the operator that it stands for."""
