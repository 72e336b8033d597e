"""Operators by other names."""

from __future__ import annotations

from collections.abc import Mapping

from pt2kit.editing.building import full_target
from pt2kit.editing.editor import Editor


def rename_operators(editor: Editor, names: Mapping[str, str]) -> int:
    """Call other operators with the same arguments: `{"aten::relu": "aten::gelu"}`, subgraphs included.

    Args:
        editor: the program.
        names: operator -> operator, with or without "torch.ops." and overload; without one "default", or the only one.

    Raises:
        GraphError: no operator, or one that does not take the arguments that the other was given.
    """
    targets = {_target(old): new for old, new in names.items()}
    count = 0
    for node in list(editor.nodes):
        if node.target in targets:
            node.retarget(targets[node.target])
            count += 1
    return count


def _target(operator: str) -> str:
    """The whole name of an operator that a program may have, whether or not torch still does."""
    name = operator.replace("::", ".")
    if name.startswith("torch.ops.") and name.count(".") >= 4:
        return name
    return full_target(operator, "rename_operators")
