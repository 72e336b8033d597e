"""Compact stack traces: the other schema 5.3, converted from and to 5.3 (torch 2.4).

The development state (field table `5.3-traces.yaml`) kept the source lines of a graph's nodes in one table per graph
and references to it in `stack_trace`; `docs/traces.md` defines both. Constant inputs have no names there, as in 5.1.

Nothing is lost upwards: references are expanded. Lost downwards: names of constant inputs. Both have the number 5.3, so
a program is recognized by its keys: `co_fileinfo_ordered_list` in its graphs.
"""

from __future__ import annotations

from typing import Any

from pt2kit.jsontext import Path
from pt2kit.node_metadata.references import compact, expand_all
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.line.v5_1_v5_3 import name_constants, unname_constants
from pt2kit.versions.rewrite import rewrite

_KEY = "co_fileinfo_ordered_list"


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

    new: Tree = rewrite(unname_constants(tree, log), "5.3", {"Graph": graph})
    return new


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
