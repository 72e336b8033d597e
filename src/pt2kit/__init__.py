"""pt2kit: read, write, check, convert and compare PyTorch `.pt2` files, with and without PyTorch.

    pkg = pt2kit.open("model.pt2")          # no torch, no weights read
    pkg.programs["model"]                   # schema.ExportedProgram
    pkg.weights("model")["lin.weight"].numpy()

Names load when they are used: importing pt2kit imports neither torch nor numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.bridge.extensions import Extension as Extension
    from pt2kit.bridge.extensions import register_extension as register_extension
    from pt2kit.bridge.extensions import unregister_extension as unregister_extension
    from pt2kit.bridge.load import deserialize as deserialize
    from pt2kit.bridge.load import load as load
    from pt2kit.bridge.save import save as save
    from pt2kit.bridge.save import serialize as serialize
    from pt2kit.canonical.program import canonicalize as canonicalize
    from pt2kit.checks.run import check as check
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
    from pt2kit.package.open import Package as Package
    from pt2kit.package.open import open as open
    from pt2kit.package.write import write as write
    from pt2kit.release.conversion import convert as convert
    from pt2kit.release.report import Report as Report
    from pt2kit.sanitizing.writing import Sanitized as Sanitized
    from pt2kit.sanitizing.writing import sanitize as sanitize
    from pt2kit.signature.export_signature import ExportGraphSignature as ExportGraphSignature
    from pt2kit.signing.files import sign as sign
    from pt2kit.signing.files import verify as verify
    from pt2kit.signing.verified import Verified as Verified
    from pt2kit.tensors.view import TensorView as TensorView
    from pt2kit.version import __version__ as __version__
    from pt2kit.viewing.notebook import view as view

_HOMES = {
    "bridge.extensions": "Extension register_extension unregister_extension",
    "bridge.load": "deserialize load",
    "bridge.save": "save serialize",
    "canonical.program": "canonicalize",
    "checks.run": "check",
    "diffs.changes": "Diff",
    "diffs.compute": "diff",
    "digests.compute": "digest",
    "digests.result": "Digest",
    "editing.composing": "compose",
    "editing.editor": "Editor edit",
    "editing.extracting": "extract",
    "editing.packing": "pack unpack",
    "errors": "Problem Pt2Error",
    "package.open": "Package open",
    "package.write": "write",
    "release.conversion": "convert",
    "release.report": "Report",
    "sanitizing.writing": "Sanitized sanitize",
    "signature.export_signature": "ExportGraphSignature",
    "signing.files": "sign verify",
    "signing.verified": "Verified",
    "tensors.view": "TensorView",
    "version": "__version__",
    "viewing.notebook": "view",
}
_ROOMS = (
    "bridge canonical checks codec diffs digests editing errors fleet graph idl node_metadata package pickles release "
    "sanitizing schema signature signing symbols tensors text treespec versions viewing zip"
)

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES, _ROOMS)
