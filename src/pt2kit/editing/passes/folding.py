"""Arithmetic on sizes that are known -> the numbers themselves."""

from __future__ import annotations

from pt2kit import schema
from pt2kit.editing.editor import Editor
from pt2kit.editing.inference import infer_meta
from pt2kit.editing.interface_edits import put_number
from pt2kit.editing.values import Value
from pt2kit.errors import GraphError


def fold_shapes(editor: Editor) -> int:
    """Put numbers in the place of sizes that are known, and erase the nodes that computed them.

    Sizes become known when a symbol is specialized or an input frozen; metas of what is computed from them follow.
    """
    count = 0
    for graph in list(editor.graph.walk()):
        for node in list(graph.nodes):
            values = node.outputs
            if len(values) != 1 or values[0].kind != "sym_int" or node.writes:
                continue
            number = _known(values[0], node)
            if number is None or values[0].is_output or _in_module_calls(values[0]):
                continue
            put_number(editor, values[0], number, "fold_shapes")
            node.erase()
            count += 1
    return count


def _known(value: Value, node: object) -> int | None:
    if isinstance(value.meta, schema.SymInt) and isinstance(value.meta.as_int, int):
        return value.meta.as_int
    try:
        meta = infer_meta(node.target, node.slots, None, "fold_shapes")  # type: ignore[attr-defined]
    except GraphError:
        return None
    return meta.as_int if isinstance(meta, schema.SymInt) and isinstance(meta.as_int, int) else None


def _in_module_calls(value: Value) -> bool:
    """Whether a higher-order operator gets the value, whose subgraph takes a value and no number."""
    return any(user.subgraphs for user in value.users)
