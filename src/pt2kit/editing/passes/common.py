"""Nodes that compute the same from the same -> one of them."""

from __future__ import annotations

from typing import Any

from pt2kit.editing.editor import Editor
from pt2kit.editing.graphs import Graph
from pt2kit.editing.passes.cleaning import has_effect, is_shared
from pt2kit.editing.values import Slot, Value
from pt2kit.graph.view import operator_namespace


def cse(editor: Editor) -> int:
    """Use the results of the first of several nodes that call the same operator with the same arguments.

    Nodes that write, draw random numbers, or see or show memory that something writes are left alone.
    """
    return sum(_one(graph) for graph in list(editor.graph.walk()))


def _one(graph: Graph) -> int:
    if any(node.writes for node in graph.nodes):
        return 0  # two tensors that are equal now may not be when one was written to
    known: dict[Any, Any] = {}
    count = 0
    for node in list(graph.nodes):
        if has_effect(node) or node.subgraphs or operator_namespace(node.target) not in ("aten", "_operator", "torch"):
            continue
        key = (node.target, tuple((slot.name, _key(slot)) for slot in node.slots))
        first = known.setdefault(key, node)
        if first is node or [_result(v) for v in first.outputs] != [_result(v) for v in node.outputs]:
            continue
        if any(map(is_shared, node.outputs)):
            continue  # outputs lie in memory of their own, which a caller may write to
        for old, new in zip(node.outputs, first.outputs, strict=True):
            graph.replace_uses(old, new)
        node.erase()
        count += 1
    return count


def _result(value: Value) -> Any:
    return value.kind, repr(value.meta)


def _key(slot: Slot) -> Any:
    """An argument by what it is, with values by identity."""
    marks = tuple(id(value) for value in slot.values)
    return marks, slot.template.type, _shape(slot)


def _shape(slot: Slot) -> str:
    from pt2kit.editing.filling import fill

    return repr(fill(slot.template, iter(["v"] * len(slot.values)), iter(())))
