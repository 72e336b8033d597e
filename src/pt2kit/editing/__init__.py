"""Programs and packages -> changed ones: an editor with def-use both ways, passes, extracting, composing, packing.

editor.py            `edit`, `Editor`: a program and its weights, to be changed and written out again
graphs.py nodes.py   a graph that can be changed; its nodes in order
values.py            values and the places that use them
building.py          an operator's name and plain arguments -> a node; arguments.py, metas.py, filling.py
inference.py         what the results of a call are like, without torch; infer_*.py
interface*.py        what comes in and goes out; calls.py, trees.py: how it is called
weights.py           numbers, payloads and configs; weight_edits.py
assembly.py          records -> a package without a file
soundness.py         what must hold when an editor is left
"""

from pt2kit.editing.composing import compose
from pt2kit.editing.editor import Editor, edit
from pt2kit.editing.extracting import extract
from pt2kit.editing.graphs import Graph
from pt2kit.editing.interface import Input, Output
from pt2kit.editing.metas import tensor_meta
from pt2kit.editing.nodes import Node
from pt2kit.editing.packing import only, pack, unpack, with_extra_files
from pt2kit.editing.values import Value
from pt2kit.editing.weights import read_safetensors

__all__ = [
    "Editor",
    "Graph",
    "Input",
    "Node",
    "Output",
    "Value",
    "compose",
    "edit",
    "extract",
    "only",
    "pack",
    "read_safetensors",
    "tensor_meta",
    "unpack",
    "with_extra_files",
]
