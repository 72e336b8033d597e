"""Passes over a program that is being edited, one file for each kind; each returns the number of places it changed.

    from pt2kit.editing import passes
    with pt2kit.edit(file) as editor:
        passes.dce(editor)

`PASSES` has those that need no arguments, by the names that `pt2 edit --pass` takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from pt2kit.editing.editor import Editor
from pt2kit.editing.passes.dynamic import make_dynamic
from pt2kit.editing.passes.replacing import cast_weights, compute_in, convert_weights, move, rename_operators
from pt2kit.editing.passes.simplify import cse, dce, drop_assertions, fold_shapes, identities, strip_metadata

PASSES: Final[Mapping[str, Callable[[Editor], int]]] = MappingProxyType(
    {
        "dce": dce,
        "cse": cse,
        "identities": identities,
        "fold-shapes": fold_shapes,
        "drop-assertions": drop_assertions,
        "strip-metadata": strip_metadata,
        "buffers-to-constants": lambda editor: convert_weights(editor, "buffer", "constant"),
        "parameters-to-constants": lambda editor: convert_weights(editor, "parameter", "constant"),
        "parameters-to-buffers": lambda editor: convert_weights(editor, "parameter", "buffer"),
        "constants-to-buffers": lambda editor: convert_weights(editor, "constant", "buffer"),
        "buffers-to-parameters": lambda editor: convert_weights(editor, "buffer", "parameter"),
    }
)
"""Name -> pass, of those that need no arguments."""

__all__ = [
    "PASSES",
    "cast_weights",
    "compute_in",
    "convert_weights",
    "cse",
    "dce",
    "drop_assertions",
    "fold_shapes",
    "identities",
    "make_dynamic",
    "move",
    "rename_operators",
    "strip_metadata",
]
