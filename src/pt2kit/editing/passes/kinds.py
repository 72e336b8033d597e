"""Parameters, buffers and constants -> one another."""

from __future__ import annotations

from collections.abc import Collection

from pt2kit.editing.editor import Editor


def convert_weights(editor: Editor, old: str, new: str, names: Collection[str] | None = None) -> int:
    """Make parameters, buffers or constants of one kind those of another.

    What the program writes to stays what it is.

    Args:
        editor: the program.
        old, new: "parameter", "buffer", "constant".
        names: those to convert; all of the kind where it is None.

    Raises:
        GraphError: no such kind, or one that `names` asks for and the program writes.
    """
    kind = "tensor_constant" if old == "constant" else old
    written = {output.target for output in editor.outputs if output.target is not None}
    in_place = {
        one.target for one in editor.inputs if one.value is not None and any(user.writes for user in one.value.users)
    }
    count = 0
    for target in dict.fromkeys(one.target for one in editor.inputs if one.kind == kind):
        if target is None or (names is not None and target not in names):
            continue
        if names is None and (target in written or target in in_place):
            continue
        editor.convert_weight(target, new)
        count += 1
    return count
