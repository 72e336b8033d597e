"""Read node metadata texts as the values that torch keeps in `node.meta`. Unreadable entries are left out.

Metadata is for people and for passes that match on it; no text in it is worth refusing a program for, and none is
ever run. Functions named in a `source_fn_stack` become live objects only if a closed list of torch's namespaces has
them.
"""

from __future__ import annotations

import operator
import re
import types
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

import torch
from msgspec import to_builtins

from pt2kit import node_metadata
from pt2kit.bridge.operators import resolve
from pt2kit.bridge.read.names import is_quotable
from pt2kit.bridge.torch_names import (
    BUILTIN_NAMESPACES,
    SYMBOLIC,
    NodeSource,
    find_function,
    has_packet,
    node_source,
)
from pt2kit.errors import attempt
from pt2kit.node_metadata.frames import lenient
from pt2kit.operators.higher_order import FUNCTIONS
from pt2kit.schema.names import OPS

_NAMESPACES: Final[Mapping[str, Mapping[str, Any]]] = types.MappingProxyType(
    {
        "_operator": vars(operator),
        **{
            module.__name__: vars(module)
            for module in (
                torch,
                torch.functional,
                torch.nn.functional,
                *BUILTIN_NAMESPACES,
                torch.special,
                torch.linalg,
                torch.fft,
                *(value for value in vars(torch.nn.modules).values() if isinstance(value, types.ModuleType)),
            )
        },
    }
)
_PACKET: Final = re.compile(r"torch\.ops\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)", re.ASCII)
_FUNCTIONS: Final = (type, types.FunctionType, types.BuiltinFunctionType)


class Metadata:
    """Reader of the metadata of one program's nodes; repeated texts are parsed once."""

    def __init__(self) -> None:
        self._stacks: dict[str, dict[str, tuple[str, str]]] = {}
        self._function = cache(_find_function)
        self._readers: Mapping[str, Callable[[str], Any]] = {
            "stack_trace": str,
            "nn_module_stack": self._modules,
            "source_fn_stack": self._source_functions,
            "torch_fn": node_metadata.parse_torch_fn,
            "custom": partial(lenient, node_metadata.parse_custom),
            "from_node": _origins,
        }

    def read(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the entries for `node.meta`: new containers, so that a pass may change them for one node."""
        entries = {}
        for key, read in self._readers.items():
            text = texts.get(key)
            if text:
                value = read(text)
                if value is not None or text == "null":
                    entries[key] = value
        return entries

    def _modules(self, text: str) -> dict[str, tuple[str, str]] | None:
        known = self._stacks.get(text)
        if known is None:
            entries = lenient(node_metadata.parse_module_stack, text)
            if entries is None or not all(is_quotable(f"{entry.key}{entry.path}{entry.type}") for entry in entries):
                return None  # torch makes attribute paths of them when it unflattens a program into its modules
            known = self._stacks[text] = {entry.key: (entry.path, entry.type) for entry in entries}
        return dict(known)

    def _source_functions(self, text: str) -> list[tuple[str, Any]] | None:
        entries = lenient(node_metadata.parse_source_fn_stack, text)
        if entries is None:
            return None
        return [(entry.name, self._function(entry.target)) for entry in entries]


def _find_function(text: str) -> Any:
    """Return the function or class of torch that a text names; else the text."""
    if text in SYMBOLIC or text in FUNCTIONS:
        return SYMBOLIC.get(text) or find_function(text) or text
    if text.startswith(OPS):
        return _find_operator(text)
    namespace, _, name = text.rpartition(".")
    value = _NAMESPACES.get(namespace, {}).get(name)
    return value if isinstance(value, _FUNCTIONS) and not name.startswith("_") else text


def _find_operator(text: str) -> Any:
    packet = _PACKET.fullmatch(text)
    if packet and has_packet(f"{packet[1]}::{packet[2]}"):
        return getattr(getattr(torch.ops, packet[1]), packet[2])
    resolved = attempt(resolve, text)
    return text if resolved is None else resolved.target


def _origins(text: str) -> list[NodeSource] | None:
    sources = lenient(node_metadata.parse_from_node, text)
    return None if sources is None else [node_source(to_builtins(source)) for source in sources]
