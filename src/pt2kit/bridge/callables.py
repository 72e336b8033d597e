"""Names in a live graph, as the format spells them: callables, and nodes that torch's reader renames.

torch's reader names a node without a result after its operator ("_assert_unused"), whatever its name in the file. A
live program has that name, as torch sets it, and remembers the file's (`StoredName`), so that it can be written again.
"""

from __future__ import annotations

import builtins
import inspect
import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

from pt2kit.errors import UnsupportedError
from pt2kit.symbols.functions import TARGETS

_MODULES = {"_operator": operator, "builtins": builtins, "math": math, "torch": torch}

SYMBOLIC_FUNCTIONS: frozenset[Callable[..., Any]] = frozenset(
    vars(_MODULES[module])[name]
    for module, name in (target.rsplit(".", 1) for target in TARGETS)
    if not name.startswith("_") and name in vars(_MODULES[module])
)
"""Functions over symbolic numbers that export puts into a graph, but for private ones.

Source: `Verifier.allowed_builtin_ops` in torch/_export/verifier.py, 2.13, and the functions that follow it there.
"""


def target_text(target: Any) -> str:
    """Return the name of a callable in the format: "torch.ops.aten.add.Tensor", "_operator.mul", "torch.sym_max".

    Args:
        target: an operator, a function, or a text, which is its own name.

    Raises:
        UnsupportedError: an object without a module and a name of its own.

    Source: `serialize_operator` in torch/_export/serde/serialize.py, 2.13.
    """
    if isinstance(target, str):
        return target
    module, name = getattr(target, "__module__", None), getattr(target, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        raise UnsupportedError(f"expected a callable with a module and a name, got {type(target).__name__}")
    return f"{_public(module)}.{name}"


def describe(target: Any) -> str:
    """Return the name of any callable, for metadata and messages; never fails."""
    try:
        return target_text(target)
    except UnsupportedError:
        owner = getattr(target, "__objclass__", None) or type(target)
        name = getattr(target, "__name__", None) if hasattr(target, "__objclass__") else None
        return ".".join(part for part in (owner.__module__, owner.__qualname__, name) if isinstance(part, str))


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a plain function's parameters, in order; empty if Python does not have them."""
    try:
        return tuple(inspect.signature(function).parameters)
    except ValueError:  # builtins without a text signature
        return ()


def _public(module: str) -> str:
    """Return the public attribute for a generated module `torch._ops.<namespace>` that holds operators."""
    return f"torch.ops{module[len('torch._ops') :]}" if module.startswith("torch._ops") else module


PLAIN_FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {target_text(function): function for function in SYMBOLIC_FUNCTIONS}
)
"""Text -> function for each of `SYMBOLIC_FUNCTIONS`: the only plain functions over numbers that a file may name."""


class StoredName(str):
    """Name of a live node that also stores its name in the file.

    Attributes:
        stored: the file's name.
    """

    __slots__ = ("stored",)
    stored: str

    def __new__(cls, name: str, stored: str) -> StoredName:
        """Create the name `name`, with `stored` as its name in the file."""
        made = super().__new__(cls, name)
        made.stored = stored
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.stored


def stored_name(node: Any) -> str:
    """Return the name to write for a node: its stored one, unless another node of its graph has that one now."""
    name: str = node.name
    if not isinstance(name, StoredName):
        return name
    return str(name) if any(other.name == name.stored for other in node.graph.nodes) else name.stored
