"""Node metadata between releases: names of keys, the style of module stacks, and compact stack traces.

    1           source_fn, one entry; nn_module_stack as key:(path,type);…
    from 2      source_fn_stack, entries joined by ";"; nn_module_stack as key,path,type;…

A text that cannot be read is kept unchanged: metadata never decides whether a program can be read.

Compact stack traces are the other schema 5.3, converted from and to 5.3 (torch 2.4). That development state (field
table `5.3-traces.yaml`) kept the source lines of a graph's nodes in one table per graph and references to it in
`stack_trace`; `docs/traces.md` defines both. Constant inputs have no names there, as in 5.1. Nothing is lost upwards:
references are expanded. Lost downwards: names of constant inputs. Both have the number 5.3, so a program is recognized
by its keys: `co_fileinfo_ordered_list` in its graphs.
"""

from __future__ import annotations

import functools
from typing import Any

from pt2kit.jsontext import Path
from pt2kit.node_metadata.frames import compact, expand_all, lenient
from pt2kit.node_metadata.modules import Style, dump_module_stack, module_stack_style, parse_module_stack
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.line.v5_1_v5_3 import name_constants, unname_constants
from pt2kit.versions.rewrite import rewrite

Metadata = dict[str, str]

_KEY = "co_fileinfo_ordered_list"


def from_2_1(metadata: Metadata) -> Metadata:
    """Return the metadata of a node of 2.1, as 2.2 writes it."""
    converted = {"source_fn_stack" if key == "source_fn" else key: text for key, text in metadata.items()}
    if stack := converted.get("nn_module_stack", ""):
        converted["nn_module_stack"] = _restyled(stack, ("paren",), "escaped")
    return converted if converted != metadata else metadata


def to_2_1(metadata: Metadata, path: Path, log: ConversionLog) -> Metadata:
    """Return the metadata of a node of 2.2 as 2.1 writes it: only the innermost function is kept."""
    converted = {"source_fn" if key == "source_fn_stack" else key: text for key, text in metadata.items()}
    if ";" in (functions := converted.get("source_fn", "")):
        converted["source_fn"] = functions.rpartition(";")[2]
        log.lost("source_fn_stack", "all but the innermost function", (*path, "source_fn_stack"), "2")
    if stack := converted.get("nn_module_stack", ""):
        converted["nn_module_stack"] = _restyled(stack, ("comma", "escaped"), "paren")
    return converted if converted != metadata else metadata


def repair(metadata: Metadata) -> Metadata:
    """Escape separators inside names of a module stack where torch could not read the text back.

    Source: `metadata_split` in torch/_export/serde/serialize.py (2.13) wants three parts at commas outside brackets.
    """
    stack = metadata.get("nn_module_stack", "")
    text = _restyled(stack, ("comma",), "escaped")
    return metadata if text == stack else {**metadata, "nn_module_stack": text}


# Nodes of one module follow each other and have the same stack. A pure function of a text; few texts are remembered.
@functools.lru_cache(maxsize=64)
def _restyled(stack: str, styles: tuple[Style, ...], style: Style) -> str:
    """Return a module stack in a style, if it is in one of some styles and can be read; else unchanged."""
    if module_stack_style(stack) in styles and (entries := lenient(parse_module_stack, stack)):
        return dump_module_stack(entries, style)
    return stack


def upgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Upgrade a program with compact stack traces to the released 5.3.

    Raises:
        SchemaError: a reference to a file or line that the table does not have.
        LimitError: traces that expand to too much text.
    """

    def graph(value: Any, path: Path) -> Any:
        where = log.place((*path, "nodes"))
        texts = expand_all(_traces(value), value[_KEY], where)
        if value[_KEY]:
            log.changed("stack traces were expanded", (*path, _KEY))
        return {key: field for key, field in _with_traces(value, texts).items() if key != _KEY}

    return name_constants(rewrite(tree, "5.3-traces", {"Graph": graph}), log)


def downgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Downgrade a 5.3 program to one with its stack traces in tables."""

    def graph(value: Any, path: Path) -> Any:
        files, texts = compact(_traces(value))
        if files:
            log.changed("stack traces were moved into a table", (*path, _KEY))
        return {**_with_traces(value, texts), _KEY: files}

    return rewrite(unname_constants(tree, log), "5.3", {"Graph": graph})


def _traces(graph: Tree) -> list[str]:
    return [node["metadata"]["stack_trace"] for node in graph["nodes"] if "stack_trace" in node["metadata"]]


def _with_traces(graph: Tree, texts: list[str]) -> Tree:
    remaining = iter(texts)
    nodes = []
    for node in graph["nodes"]:
        if "stack_trace" in node["metadata"]:
            node = {**node, "metadata": {**node["metadata"], "stack_trace": next(remaining)}}
        nodes.append(node)
    return {**graph, "nodes": nodes}
