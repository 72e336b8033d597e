"""Node metadata between releases: names of keys, and the style of module stacks.

    1           source_fn, one entry; nn_module_stack as key:(path,type);…
    from 2      source_fn_stack, entries joined by ";"; nn_module_stack as key,path,type;…

A text that cannot be read is kept unchanged: metadata never decides whether a program can be read.
"""

from __future__ import annotations

import functools
import re

from pt2kit.jsontext import Path
from pt2kit.node_metadata.frames import lenient
from pt2kit.node_metadata.modules import Style, dump_module_stack, module_stack_style, parse_module_stack
from pt2kit.versions.conversion_log import ConversionLog, Tree

Metadata = dict[str, str]


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
        log.lost("source_fn_stack", "all but the innermost function", (*path, "source_fn_stack"))
    if stack := converted.get("nn_module_stack", ""):
        converted["nn_module_stack"] = _restyled(stack, ("comma", "escaped", "no_commas"), "paren")
    return converted if converted != metadata else metadata


def repaired(node: Tree) -> Tree:
    """Return a node with separators inside names of its module stack escaped where torch could not read the text back.

    Source: `metadata_split` in torch/_export/serde/serialize.py (2.13) wants three parts at commas outside brackets.
    """
    return _with_stack(node, ("comma", "no_commas"), "escaped")


def without_commas(node: Tree, ignored: str = "(?!)") -> Tree:
    """Return a node with the commas inside names of its module stack escaped if there are any.

    Args:
        node: of a program.
        ignored: a pattern; commas in texts that match it are no reason.
    """
    read = re.sub(ignored, "", node["metadata"].get("nn_module_stack", ""))
    if read.count(",") <= 2 * read.count(";") + 2:
        return node
    return _with_stack(node, ("comma", "escaped"), "no_commas")


def _with_stack(node: Tree, styles: tuple[Style, ...], style: Style) -> Tree:
    stack = node["metadata"].get("nn_module_stack", "")
    text = _restyled(stack, styles, style)
    return node if text == stack else {**node, "metadata": {**node["metadata"], "nn_module_stack": text}}


# Nodes of one module follow each other and have the same stack. A pure function of a text; few texts are remembered.
@functools.lru_cache(maxsize=64)
def _restyled(stack: str, styles: tuple[Style, ...], style: Style) -> str:
    """Return a module stack in a style, if it is in one of some styles and can be read; else unchanged."""
    if module_stack_style(stack) in styles and (entries := lenient(parse_module_stack, stack)):
        return dump_module_stack(entries, style)
    return stack
