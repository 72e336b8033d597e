"""Editing of programs and packages: an editor with def-use chains in both directions, passes, extraction, composition,
packing.

    editor.py           `edit`, `Editor`: a program and its weights, to be changed and written out again
    state.py            the state of an editor, which the functions that edit it read and change; its verification
    graphs.py           an editable graph: ordered nodes, values and their uses
    structures.py       names that are taken, and new ones; a list of nodes that knows which of two comes first
    building.py         calls: the signatures that they are checked against, Python values as arguments
    metas.py            metadata of values, from any accepted form or inferred without torch
    sizes.py            arithmetic on sizes
    interface.py        inputs and outputs: specs, slots in the graph, and trees
    interface_edits.py  edits of inputs and outputs
    calls.py            call signatures of the program and its modules
    sample_inputs.py    sample inputs, adapted to the new call
    weights.py          weights and constants: payloads and configs
    weight_edits.py     edits of weights and constants
    passes/             simplification, dynamic shapes, replacement of element types, devices and operators
    extracting.py       a part of a program, as a program of its own
    composing.py        two programs as one
    packing.py          several programs in one archive; extra files
    assembly.py         a package from records, without a file
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

__getattr__, __dir__, __all__ = front_door(__name__, "passes")
