"""Checks of a program's versions, unknown keys and node metadata that torch cannot read (V2 to V5, O1, O2).

Torch's version, dialects, operator sets and unknown keys result in warnings: nothing is read by them, but they tell of
a file that was edited or is newer than this build.

Entries in the metadata of nodes and of the graph module that torch cannot read make loading fail (rule V5). Stack
traces may be any text. Module stacks, functions, origins and custom values have a form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pt2kit import node_metadata, schema
from pt2kit.checks.findings import ProgramContext
from pt2kit.checks.operators import WITHOUT_DIALECT
from pt2kit.errors import Problem, Pt2Error
from pt2kit.jsontext import path_text
from pt2kit.messages import cut, quote
from pt2kit.node_metadata.modules import torch_reads
from pt2kit.versions.opset_changes import EXPECTED

DIALECTS: Final = frozenset(("ATEN", "TRAINING", "EDGE", ""))
"""The dialects of torch's verifiers and of ExecuTorch's; "" stands for ATEN in old files."""

_BEFORE_IT_WAS_STORED: Final = "<=2.4"
_VERSION: Final = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}(?:[a-z.]+\d*)?(?:\+[\w.]+)?", re.ASCII)

_READERS: Final[Mapping[str, tuple[Callable[[str], object], str]]] = MappingProxyType(
    {
        "nn_module_stack": (
            node_metadata.parse_module_stack,
            "entries of three parts (key, path and type of a module)",
        ),
        "source_fn_stack": (
            node_metadata.parse_source_fn_stack,
            "entries of two parts (name of a node and its function)",
        ),
        "from_node": (node_metadata.parse_from_node, "JSON of the nodes that this one comes from"),
        "custom": (node_metadata.parse_custom, "JSON"),
    }
)
"""Key of metadata -> what reads its text as torch does, and the form of the text, for messages."""


def version_problems(context: ProgramContext, *, any_dialect: bool = False) -> Iterator[Problem]:
    """Yield problems of a program's version numbers and dialects.

    Args:
        context: the program.
        any_dialect: accept dialects of any name, as extensions have them.
    """
    program = context.program
    # A converted file keeps the release that exported it, with another schema.
    if program.torch_version != _BEFORE_IT_WAS_STORED and _VERSION.fullmatch(program.torch_version) is None:
        message = f"expected a version such as '2.13.0', got {quote(program.torch_version)}"
        yield Problem(f"{context.record}: $.torch_version", "V2", message, "warning")
    for number, dialect in enumerate(program.verifiers):
        is_known = any_dialect or dialect in DIALECTS
        if not is_known or not (dialect or context.stored_version in WITHOUT_DIALECT):
            message = f"expected a dialect that torch has ({', '.join(sorted(DIALECTS - {''}))}), got {quote(dialect)}"
            yield Problem(f"{context.record}: $.verifiers[{number}]", "V3", message)
    if "aten" not in program.opset_version:
        message = "expected the number of the operator set aten, got none"
        yield Problem(f"{context.record}: $.opset_version", "O2", message)
    for namespace, number in program.opset_version.items():
        place = f"{context.record}: {path_text(('opset_version', cut(namespace)))}"
        if namespace not in EXPECTED:
            message = f"expected an operator set of {', '.join(EXPECTED)}, got one of {quote(namespace)}"
            yield Problem(place, "O2", f"{message}: its operators are taken as they are", "warning")
        elif not 0 < number <= EXPECTED[namespace]:
            yield Problem(place, "O1", f"expected a number from 1 to {EXPECTED[namespace]}, got {number}")


def unknown_key_problems(keys: Iterable[str], stored_version: str) -> Iterator[Problem]:
    """Yield keys that this build's schema does not have; files of a newer minor version may have some.

    Args:
        keys: their places.
        stored_version: the schema version that the program was stored in.
    """
    numbers = stored_version.partition("-")[0].split(".")
    newer = all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) > schema.CURRENT.pair
    for key in keys:
        message = f"expected keys of schema {schema.CURRENT.number}, got one it does not have; it is kept as it is"
        yield Problem(key, "V4", message, "note" if newer else "warning")


def metadata_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield metadata that torch would fail on; a text that several nodes have is reported once.

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
    reader, form = _READERS[key]
    try:
        reader(text)
        is_read = key != "nn_module_stack" or torch_reads(text)
    except Pt2Error:
        is_read = False
    if not is_read:
        yield Problem(place, "V5", f"expected {form}, got {quote(text)}")
