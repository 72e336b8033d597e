"""pt2kit: read, write, check, convert and compare PyTorch `.pt2` files, with and without PyTorch.

    pkg = pt2kit.open("model.pt2")          # no torch, no weights read
    pkg.programs["model"]                   # schema.ExportedProgram
    pkg.weights("model")["lin.weight"].numpy()

Names load when they are used: importing pt2kit imports neither torch nor numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door, register

if TYPE_CHECKING:
    from pt2kit.bridge.callables import Extension as Extension
    from pt2kit.bridge.callables import register_extension as register_extension
    from pt2kit.bridge.callables import unregister_extension as unregister_extension
    from pt2kit.bridge.install import install as install
    from pt2kit.bridge.load import deserialize as deserialize
    from pt2kit.bridge.load import load as load
    from pt2kit.bridge.load_weights import load_weights as load_weights
    from pt2kit.bridge.run.load_module import load_module as load_module
    from pt2kit.bridge.save import save as save
    from pt2kit.bridge.save import serialize as serialize
    from pt2kit.canonical.program import canonicalize as canonicalize
    from pt2kit.checks.run import check as check
    from pt2kit.comparing.runs import compare_runs as compare_runs
    from pt2kit.costs.count import cost as cost
    from pt2kit.diffs.changes import Diff as Diff
    from pt2kit.diffs.compute import diff as diff
    from pt2kit.digests.compute import digest as digest
    from pt2kit.digests.result import Digest as Digest
    from pt2kit.editing.composing import compose as compose
    from pt2kit.editing.editor import Editor as Editor
    from pt2kit.editing.editor import edit as edit
    from pt2kit.editing.extracting import extract as extract
    from pt2kit.editing.packing import pack as pack
    from pt2kit.editing.packing import unpack as unpack
    from pt2kit.errors import Problem as Problem
    from pt2kit.errors import Pt2Error as Pt2Error
    from pt2kit.graph.reading import Graph as Graph
    from pt2kit.graph.reading import Node as Node
    from pt2kit.graph.reading import Value as Value
    from pt2kit.package.open import Package as Package
    from pt2kit.package.open import open as open
    from pt2kit.package.write import write as write
    from pt2kit.release.conversion import Report as Report
    from pt2kit.release.conversion import convert as convert
    from pt2kit.runtime.session import Session as Session
    from pt2kit.runtime.session import run as run
    from pt2kit.sanitizing.writing import Sanitized as Sanitized
    from pt2kit.sanitizing.writing import sanitize as sanitize
    from pt2kit.signature.export_signature import ExportGraphSignature as ExportGraphSignature
    from pt2kit.signing.bundle import sign as sign
    from pt2kit.signing.bundle import verify as verify
    from pt2kit.signing.statement import Verified as Verified
    from pt2kit.tensors.view import TensorView as TensorView
    from pt2kit.version import __version__ as __version__
    from pt2kit.viewing.page import view as view

_SUBPACKAGES = (
    "bridge canonical checks codec comparing costs diffs digests editing errors fleet graph idl node_metadata "
    "package pickles release runtime sanitizing schema signature signing symbols tensors text treespec "
    "versions viewing zip"
)

# The only upward imports: each is made when the function is first called.
register(
    {
        "graph of a program": "pt2kit.graph.reading:graph_of",
        "inference with torch": "pt2kit.bridge.inference:infer_with_torch",
        "lines of a diff": "pt2kit.text.diff_report:diff_lines",
        "notebook view of a diff": "pt2kit.viewing.page:diff_view",
        "notebook view of a package": "pt2kit.viewing.page:view",
        "notebook view of a program": "pt2kit.viewing.page:program_html",
        "prove": "pt2kit.comparing.proving:prove",
        "prove_joined": "pt2kit.comparing.proving:prove_joined",
        "prove_part": "pt2kit.comparing.proving:prove_part",
        "rules": "pt2kit.rules:RULES",
    }
)

__getattr__, __dir__, __all__ = front_door(__name__, _SUBPACKAGES)
