"""Weights in another element type, with a cast in the graph where it expects the old one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from pt2kit import schema
from pt2kit.editing.calling import like
from pt2kit.editing.editor import Editor
from pt2kit.editing.interface import Input
from pt2kit.editing.metas import scalar_type
from pt2kit.editing.weights import Entry
from pt2kit.errors import GraphError
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import contiguous_strides
from pt2kit.tensors.dtypes import DTYPES, numpy_dtype
from pt2kit.tensors.storage import Storage
from pt2kit.tensors.view import TensorView


def cast_weights(editor: Editor, dtype: Any, names: Collection[str] | None = None) -> int:
    """Store weights in another element type, and cast them back in front of their first use.

    What the program writes to stays what it is.

    Args:
        editor: the program.
        dtype: "bf16", "float16", a numpy type.
        names: the parameters and buffers to cast; all parameters and buffers of floats where it is None.

    Returns:
        how many weights changed.

    Raises:
        GraphError: a type that is none of floats, a name that the program does not have, or only a program.
    """
    edit = f"cast_weights({dtype})"
    target = scalar_type(dtype)
    if DTYPES[target].kind != "float":
        raise GraphError(f"{edit}: expected an element type of floats, got {DTYPES[target].name}")
    if not editor.has_weights:
        raise GraphError(f"{edit}: expected a package, got a program alone, which has no weights")
    targets = {one.target for one in editor.inputs if one.target is not None}
    if names is not None and (odd := [name for name in names if name not in targets]):
        raise GraphError(f"{edit}: expected names of weights of the program, got {odd[0]!r}")
    written = {output.target for output in editor.outputs}
    done: dict[Any, Storage] = {}
    count = 0
    for name in sorted(targets):
        if (name in names if names is not None else True) and name not in written:
            count += _cast(editor, name, target, done, is_asked=names is not None)
    return count


def _cast(editor: Editor, name: str, target: schema.ScalarType, done: dict[Any, Storage], *, is_asked: bool) -> bool:
    inputs = [one for one in editor.inputs if one.target == name]
    if not is_asked and any(one.kind not in ("parameter", "buffer") for one in inputs):
        return False
    table = editor.weights if name in editor.weights.entries else editor.constants
    entry = table.entries.get(name)
    view = entry.payload if entry is not None else None
    if entry is None or not isinstance(view, TensorView) or DTYPES[view.dtype].kind != "float" or view.dtype == target:
        return False
    if any(one.value is not None and (one.value.is_output or any(u.writes for u in one.value.users)) for one in inputs):
        return False
    table.entries[name] = Entry(_converted(view, target, done), None, table.kind)
    for one in inputs:
        _insert_cast(editor, one, target)
    return True


def _converted(view: TensorView, target: schema.ScalarType, done: dict[Any, Storage]) -> TensorView:
    """The numbers in another type, row-major, computed when they are read; tied weights stay tied."""
    key = (view.storage, view.storage_offset, view.sizes, view.strides, view.dtype)
    nbytes = view.numel * DTYPES[target].itemsize

    def compute() -> memoryview:
        array = view.numpy().astype(numpy_dtype(target))
        return arrays.raw_bytes(array)

    if key not in done:
        done[key] = Storage(f"<{view.name}>", nbytes, compute)
    return replace(view, dtype=target, strides=contiguous_strides(view.sizes), storage_offset=0, storage=done[key])


def _insert_cast(editor: Editor, one: Input, target: schema.ScalarType) -> None:
    """State the new type of an input, and let its users get it cast back."""
    value = one.value
    if value is None:
        return
    old = value.meta
    value.meta = like(old, old.sizes, dtype=target)
    if not value.users:
        return
    node = editor.graph.prepend(
        "aten.to.dtype", value, old.dtype, meta=like(old, old.sizes, dtype=old.dtype), name=f"{value.name}_cast"
    )
    editor.graph.replace_uses(value, node.output)
