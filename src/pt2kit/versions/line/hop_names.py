"""Higher-order operators' target names in each release.

    2.1          torch.ops.map_impl, torch.ops.cond, torch.ops.higher_order.cond
    2.2 to 2.4   torch.ops.higher_order.…; for some that are classes of their own torch._higher_order_ops.<module>.…
    from 2.5     torch.ops.higher_order.…

The releases that have one are in the table of operators (`schema.operators`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pt2kit.schema.names import HIGHER_ORDER_OPS

_MODULES: Final = "torch._higher_order_ops."
_FIRST: Final[Mapping[str, str]] = MappingProxyType({"torch.ops.map_impl": "map_impl", "torch.ops.cond": "cond"})
_IN_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auto_functionalized": "auto_functionalize.auto_functionalized",
        "with_effects": "effects.with_effects",
        "wrap_with_set_grad_enabled": "wrap.wrap_with_set_grad_enabled",
    }
)

FUNCTIONS_SINCE: Final[Mapping[str, str]] = MappingProxyType({"torch._functorch.predispatch.": "8.20"})
"""Beginnings of targets that are Python functions, and the schema of the first release that writes them."""


def is_higher_order(target: str) -> bool:
    """Return whether a target names a higher-order operator, in the spelling of any release."""
    return target.startswith((HIGHER_ORDER_OPS, _MODULES)) or target in _FIRST


def since(target: str) -> str | None:
    """Return the schema version of the first release that writes a Python function; None for one without a history."""
    return next((version for start, version in FUNCTIONS_SINCE.items() if target.startswith(start)), None)


def from_2_1(target: str) -> str:
    """Return the 2.2 name of a target of 2.1."""
    return HIGHER_ORDER_OPS + _FIRST[target] if target in _FIRST else target


def to_2_1(target: str) -> str:
    """Return the 2.1 name of a target of 2.2: only `map_impl` had another name in the files it wrote."""
    return "torch.ops.map_impl" if target == f"{HIGHER_ORDER_OPS}map_impl" else target


def from_2_4(target: str) -> str:
    """Return the 2.5 name of a target of 2.3 or 2.4."""
    return HIGHER_ORDER_OPS + target.rpartition(".")[2] if target.startswith(_MODULES) else target


def to_2_4(target: str) -> str:
    """Return the 2.4 name of a target of 2.5."""
    name = target.removeprefix(HIGHER_ORDER_OPS)
    return _MODULES + _IN_MODULES[name] if target.startswith(HIGHER_ORDER_OPS) and name in _IN_MODULES else target
