"""Passes over a program that is being edited, one file for each kind; each returns the number of places it changed.

    from pt2kit.editing import passes
    with pt2kit.edit(file) as editor:
        passes.dce(editor)

`PASSES` has those that need no arguments, by the names that `pt2 edit --pass` takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.editing.passes.dynamic import make_dynamic as make_dynamic
    from pt2kit.editing.passes.replacing import PASSES as PASSES
    from pt2kit.editing.passes.replacing import cast_weights as cast_weights
    from pt2kit.editing.passes.replacing import compute_in as compute_in
    from pt2kit.editing.passes.replacing import convert_weights as convert_weights
    from pt2kit.editing.passes.replacing import move as move
    from pt2kit.editing.passes.replacing import rename_operators as rename_operators
    from pt2kit.editing.passes.simplify import cse as cse
    from pt2kit.editing.passes.simplify import dce as dce
    from pt2kit.editing.passes.simplify import drop_assertions as drop_assertions
    from pt2kit.editing.passes.simplify import fold_shapes as fold_shapes
    from pt2kit.editing.passes.simplify import identities as identities
    from pt2kit.editing.passes.simplify import strip_metadata as strip_metadata

__getattr__, __dir__, __all__ = front_door(__name__)
