"""pt2kit: read, write, check, convert and compare PyTorch `.pt2` files, with and without PyTorch.

    pkg = pt2kit.open("model.pt2")          # no torch, no weights read
    pkg.programs["model"]                   # schema.ExportedProgram
    pkg.weights("model")["lin.weight"].numpy()

Names load when they are used: importing pt2kit imports neither torch nor numpy.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pt2kit.bridge.extensions import Extension as Extension
    from pt2kit.bridge.extensions import register_extension as register_extension
    from pt2kit.bridge.extensions import unregister_extension as unregister_extension
    from pt2kit.bridge.load import deserialize as deserialize
    from pt2kit.bridge.load import load as load
    from pt2kit.bridge.save import save as save
    from pt2kit.bridge.save import serialize as serialize
    from pt2kit.canonical import canonicalize as canonicalize
    from pt2kit.checks import check as check
    from pt2kit.diffs import Diff as Diff
    from pt2kit.diffs import diff as diff
    from pt2kit.digests import Digest as Digest
    from pt2kit.digests import digest as digest
    from pt2kit.editing import Editor as Editor
    from pt2kit.editing import compose as compose
    from pt2kit.editing import edit as edit
    from pt2kit.editing import extract as extract
    from pt2kit.editing import pack as pack
    from pt2kit.editing import unpack as unpack
    from pt2kit.errors import Problem as Problem
    from pt2kit.errors import Pt2Error as Pt2Error
    from pt2kit.package.open import Package as Package
    from pt2kit.package.open import open_package as open
    from pt2kit.package.write import write_package as write
    from pt2kit.release.conversion import convert as convert
    from pt2kit.release.report import Report as Report
    from pt2kit.sanitizing import Sanitized as Sanitized
    from pt2kit.sanitizing import sanitize as sanitize
    from pt2kit.signature import ExportGraphSignature as ExportGraphSignature
    from pt2kit.tensors.view import TensorView as TensorView
    from pt2kit.view.notebook import view as view

__version__ = "0.1.0.dev0"

_PUBLIC = MappingProxyType(
    {
        "open": ("package", "open_package"),
        "write": ("package", "write_package"),
        "Package": ("package", "Package"),
        "TensorView": ("tensors.view", "TensorView"),
        "ExportGraphSignature": ("signature", "ExportGraphSignature"),
        "Problem": ("errors", "Problem"),
        "Pt2Error": ("errors", "Pt2Error"),
        "save": ("bridge.save", "save"),
        "load": ("bridge.load", "load"),
        "serialize": ("bridge.save", "serialize"),
        "deserialize": ("bridge.load", "deserialize"),
        "register_extension": ("bridge.extensions", "register_extension"),
        "unregister_extension": ("bridge.extensions", "unregister_extension"),
        "Extension": ("bridge.extensions", "Extension"),
        "canonicalize": ("canonical", "canonicalize"),
        "check": ("checks", "check"),
        "convert": ("conversion", "convert"),
        "Report": ("conversion", "Report"),
        "digest": ("digests", "digest"),
        "Digest": ("digests", "Digest"),
        "sanitize": ("sanitizing", "sanitize"),
        "Sanitized": ("sanitizing", "Sanitized"),
        "diff": ("diffs", "diff"),
        "edit": ("editing", "edit"),
        "Editor": ("editing", "Editor"),
        "extract": ("editing", "extract"),
        "compose": ("editing", "compose"),
        "pack": ("editing", "pack"),
        "unpack": ("editing", "unpack"),
        "Diff": ("diffs", "Diff"),
    }
)
_ROOMS = frozenset(
    [
        "archive",
        "bridge",
        "canonical",
        "checks",
        "codec",
        "conversion",
        "diffs",
        "digests",
        "editing",
        "errors",
        "graph",
        "idl",
        "migrate",
        "package",
        "sanitizing",
        "schema",
        "signature",
        "symbols",
        "tensors",
        "text",
        "traces",
        "treespec",
        "view",
    ]
)

__all__ = [
    "Diff",
    "Digest",
    "Editor",
    "ExportGraphSignature",
    "Extension",
    "Package",
    "Problem",
    "Pt2Error",
    "Report",
    "Sanitized",
    "TensorView",
    "__version__",
    "canonicalize",
    "check",
    "compose",
    "convert",
    "deserialize",
    "diff",
    "digest",
    "edit",
    "extract",
    "load",
    "open",
    "pack",
    "register_extension",
    "sanitize",
    "save",
    "serialize",
    "unpack",
    "unregister_extension",
    "view",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        module, attribute = _PUBLIC[name]
        return getattr(importlib.import_module(f"pt2kit.{module}"), attribute)
    if name in _ROOMS:
        return importlib.import_module(f"pt2kit.{name}")
    raise AttributeError(f"module 'pt2kit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
