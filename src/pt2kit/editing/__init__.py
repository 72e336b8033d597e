"""Editing of programs and packages: an editor with def-use chains in both directions, passes, extraction, composition,
packing.

editor.py            `edit`, `Editor`: a program and its weights, to be changed and written out again
state.py             what an editor holds; the functions that edit it are in the files below
graphs.py            a graph that can be changed: its nodes in order, values and their uses; ordered.py, naming.py
building.py          the signatures that built calls are checked against; arguments.py, metas.py
inference.py         what the results of a call are like, without torch
interface*.py        what comes in and goes out; calls.py, trees.py: how it is called
weights.py           numbers, payloads and configs; weight_edits.py
assembly.py          records -> a package without a file
soundness.py         what must hold when an editor is left
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.editing.composing import compose as compose
    from pt2kit.editing.editor import Editor as Editor
    from pt2kit.editing.editor import PackageEditor as PackageEditor
    from pt2kit.editing.editor import ProgramEditor as ProgramEditor
    from pt2kit.editing.editor import edit as edit
    from pt2kit.editing.extracting import extract as extract
    from pt2kit.editing.graphs import Graph as Graph
    from pt2kit.editing.graphs import Node as Node
    from pt2kit.editing.graphs import Value as Value
    from pt2kit.editing.interface import Input as Input
    from pt2kit.editing.interface import Output as Output
    from pt2kit.editing.metas import tensor_meta as tensor_meta
    from pt2kit.editing.packing import only as only
    from pt2kit.editing.packing import pack as pack
    from pt2kit.editing.packing import unpack as unpack
    from pt2kit.editing.packing import with_extra_files as with_extra_files

__getattr__, __dir__, __all__ = front_door(
    __name__,
    {
        "composing": "compose",
        "editor": "Editor PackageEditor ProgramEditor edit",
        "extracting": "extract",
        "graphs": "Graph Node Value",
        "interface": "Input Output",
        "metas": "tensor_meta",
        "packing": "only pack unpack with_extra_files",
    },
    "passes",
)
