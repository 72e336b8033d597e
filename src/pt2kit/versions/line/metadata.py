"""Node metadata between releases: the names of keys and the style of module stacks.

    1           source_fn, one entry; nn_module_stack as key:(path,type);…
    from 2      source_fn_stack, entries joined by ";"; nn_module_stack as key,path,type;…

A text that cannot be read is kept unchanged: metadata never decides whether a program can be read.
"""

from __future__ import annotations

import functools

from pt2kit.jsontext import Path
from pt2kit.node_metadata.lenience import lenient
from pt2kit.node_metadata.modules import dump_module_stack, module_stack_style, parse_module_stack
from pt2kit.versions.conversion_log import ConversionLog

Metadata = dict[str, str]


def from_2_1(metadata: Metadata) -> Metadata:
    """Return the metadata of a node of 2.1, as 2.2 writes it."""
    converted = {"source_fn_stack" if key == "source_fn" else key: text for key, text in metadata.items()}
    if stack := converted.get("nn_module_stack", ""):
        converted["nn_module_stack"] = _from_paren(stack)
    return converted if converted != metadata else metadata


def to_2_1(metadata: Metadata, path: Path, log: ConversionLog) -> Metadata:
    """Return the metadata of a node of 2.2 as 2.1 writes it: only the innermost function is kept."""
    converted = {"source_fn" if key == "source_fn_stack" else key: text for key, text in metadata.items()}
    if ";" in (functions := converted.get("source_fn", "")):
        converted["source_fn"] = functions.rpartition(";")[2]
        log.lost("source_fn_stack", "all but the innermost function", (*path, "source_fn_stack"), "2")
    if stack := converted.get("nn_module_stack", ""):
        converted["nn_module_stack"] = _to_paren(stack)
    return converted if converted != metadata else metadata


def repair(metadata: Metadata) -> Metadata:
    """Escape separators inside names of a module stack where torch could not read the text back.

    Source: `metadata_split` in torch/_export/serde/serialize.py (2.13) wants three parts at commas outside brackets.
    """
    stack = metadata.get("nn_module_stack", "")
    text = _mended(stack) if stack else stack
    return metadata if text == stack else {**metadata, "nn_module_stack": text}


# Nodes of one module follow each other and have the same stack. Pure functions of a text; few texts are remembered.
_remembered = functools.lru_cache(maxsize=64)


@_remembered
def _from_paren(stack: str) -> str:
    if module_stack_style(stack) == "paren" and (entries := lenient(parse_module_stack, stack)):
        return dump_module_stack(entries)
    return stack


@_remembered
def _to_paren(stack: str) -> str:
    if module_stack_style(stack) != "paren" and (entries := lenient(parse_module_stack, stack)):
        return dump_module_stack(entries, "paren")
    return stack


@_remembered
def _mended(stack: str) -> str:
    if module_stack_style(stack) == "comma" and (entries := lenient(parse_module_stack, stack)):
        return dump_module_stack(entries)
    return stack
