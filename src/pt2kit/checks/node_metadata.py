"""Checks of metadata of nodes and of the graph module: entries that torch cannot read, so that loading fails (rule V5).

Stack traces may be any text. Module stacks, functions, origins and custom values have a form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pt2kit import node_metadata
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem, Pt2Error
from pt2kit.jsontext import path_text
from pt2kit.messages import cut, quote
from pt2kit.node_metadata.modules import torch_reads

_READERS: Final[Mapping[str, Callable[[str], object]]] = MappingProxyType(
    {
        "nn_module_stack": node_metadata.parse_module_stack,
        "source_fn_stack": node_metadata.parse_source_fn_stack,
        "from_node": node_metadata.parse_from_node,
        "custom": node_metadata.parse_custom,
    }
)
"""Key of metadata -> what reads its text as torch does."""


def metadata_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate metadata that torch would fail on; a text that several nodes have is reported once.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    seen: set[tuple[str, str]] = set()
    for step in context.steps():
        for key, text in step.node.metadata.items():
            if key in _READERS and (key, text) not in seen:
                seen.add((key, text))
                yield from _read(key, text, f"{step.where}.metadata{path_text((cut(key),))[1:]}")
    custom = context.program.graph_module.metadata.get("custom")
    if custom:
        yield from _read("custom", custom, f"{context.record}: $.graph_module.metadata.custom")


def _read(key: str, text: str, place: str) -> Iterator[Problem]:
    if not text:
        return  # torch passes over empty texts.
    try:
        _READERS[key](text)
        is_read = key != "nn_module_stack" or torch_reads(text)
    except Pt2Error:
        is_read = False
    if not is_read:
        yield Problem(place, "V5", f"expected {_FORMS[key]}, got {quote(text)}")


_FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "nn_module_stack": "entries of three parts (key, path and type of a module)",
        "source_fn_stack": "entries of two parts (name of a node and its function)",
        "from_node": "JSON of the nodes that this one comes from",
        "custom": "JSON",
    }
)
