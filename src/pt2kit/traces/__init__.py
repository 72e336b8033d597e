"""Node metadata as data: every text of the format's metadata <-> what it says, and back to the identical text.

    modules.py     nn_module_stack, in the styles of all releases
    functions.py   source_fn_stack, source_fn, torch_fn
    origin.py      from_node, custom
    frames.py      stack_trace
    references.py  stack traces <-> references into a table (schema 5.3, docs/traces.md)
    scrub.py       less metadata; no machine paths
    tree.py        the module tree of a program
    escapes.py     separators inside names

Parsers raise `Pt2Error`s; a viewer that shows what it can wraps them in `lenient`.
"""

from collections.abc import Callable
from typing import TypeVar

from pt2kit.errors import Pt2Error
from pt2kit.traces.escapes import decode_name, encode_name
from pt2kit.traces.frames import Frame, StackTrace, dump_stack_trace, frame_text, parse_stack_trace
from pt2kit.traces.functions import (
    SourceFn,
    dump_source_fn_stack,
    dump_torch_fn,
    parse_source_fn_stack,
    parse_torch_fn,
)
from pt2kit.traces.modules import ModuleEntry, Style, dump_module_stack, module_stack_style, parse_module_stack
from pt2kit.traces.origin import NodeSource, dump_custom, dump_from_node, parse_custom, parse_from_node
from pt2kit.traces.references import compact, expand, expand_all, is_reference
from pt2kit.traces.scrub import (
    METADATA_KEYS,
    PROVENANCE_KEYS,
    STACK_TRACE_KEYS,
    hide_paths,
    scrub_paths,
    strip_metadata,
)
from pt2kit.traces.tree import ModuleNode, module_fqn, module_tree

T = TypeVar("T")


def lenient(parse: Callable[[str], T], text: str) -> T | None:
    """`parse(text)`, or None where the text can't be read: `lenient(parse_module_stack, text)`."""
    try:
        return parse(text)
    except Pt2Error:
        return None


__all__ = [
    "ModuleEntry", "Style", "parse_module_stack", "dump_module_stack", "module_stack_style",
    "SourceFn", "parse_source_fn_stack", "dump_source_fn_stack", "parse_torch_fn", "dump_torch_fn",
    "NodeSource", "parse_from_node", "dump_from_node", "parse_custom", "dump_custom",
    "Frame", "StackTrace", "parse_stack_trace", "dump_stack_trace", "frame_text",
    "compact", "expand", "expand_all", "is_reference",
    "METADATA_KEYS", "PROVENANCE_KEYS", "STACK_TRACE_KEYS", "strip_metadata", "scrub_paths", "hide_paths",
    "ModuleNode", "module_fqn", "module_tree",
    "encode_name", "decode_name", "lenient",
]  # fmt: skip
