"""Regions of a program: subgraphs that run in a mode, and calls that open and close a mode of the process.

Higher-order operators that only run a subgraph in a mode become functions that do so, without torch's compiler. torch's
own import its compiler when they are called, which takes seconds, to keep it from looking inside. Where the
compiler or another export is at work they are called as they are.

Source: `WrapWithSetGradEnabled` and `WrapWithAutocast` in torch/_higher_order_ops/wrap.py, 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch

from pt2kit.bridge.run.steps import Step, Value
from pt2kit.bridge.torch_names import find_function, find_higher_order
from pt2kit.operators.higher_order import FUNCTIONS, PREDISPATCH

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
"""Callable that is used instead of each operator."""
OPERATORS: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = MappingProxyType(
    {function: operator for operator, function in REGIONS.items()}
)
"""Operator that each of these callables replaces."""

_PARAMETERS: Final = {f"{PREDISPATCH}_exit_dual_level": "level", "torch.amp.autocast_mode._exit_autocast": "mode"}
_CLOSERS: Final[Mapping[Callable[..., Any], tuple[Callable[..., Any], str | None]]] = MappingProxyType(
    {
        opener: (closer, _PARAMETERS.get(name))
        for name, function in FUNCTIONS.items()
        if (opener := find_function(function.opens)) and (closer := find_function(name))
    }
)
"""Callable that closes a region, with its parameter for the value that opening returned, by the one that opens it."""


def close_regions(steps: Iterable[Step], read: Callable[[Value], Any]) -> None:
    """Close the regions that a call opened and did not close because it stopped in between, innermost first.

    Args:
        steps: those that were run. Regions in it are nested (rule X14).
        read: returns a value.
    """
    opened: list[Step] = []
    closers = {closer for closer, _ in _CLOSERS.values()}
    for step in steps:
        if step.target in _CLOSERS:
            opened.append(step)
        elif step.target in closers and opened:
            opened.pop()
    for step in reversed(opened):
        closer, parameter = _CLOSERS[step.target]
        closer(**({} if parameter is None else {parameter: read(step.result) or 0}))
