"""The public API of `import pt2kit`: few names, in one grammar, nothing heavy."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import pt2kit

FUNCTIONS = {
    *("open", "write", "save", "load", "load_module", "load_weights", "serialize", "deserialize"),
    *("canonicalize", "convert", "digest", "diff"),
    *("check", "sanitize", "view", "register_extension", "unregister_extension", "install"),
    *("edit", "extract", "compose", "pack", "unpack"),
    *("sign", "verify"),
    *("run", "compare_runs", "cost"),
}
"""Verbs, in pairs: open/write a file, save/load a live program, the same in memory."""
CLASSES = {
    "Diff",
    "Digest",
    "Editor",
    "Extension",
    "Graph",
    "Node",
    "Value",
    "Package",
    "Report",
    "Session",
    "TensorView",
    "ExportGraphSignature",
    "Problem",
    "Pt2Error",
    "Sanitized",
    "Verified",
}
"""Classes that functions return or raise."""
NEED_TORCH = {
    *("save", "load", "load_module", "load_weights", "serialize", "deserialize"),
    *("register_extension", "unregister_extension", "Extension", "install"),
}
HEAVY = ("torch", "numpy", "rich", "msgspec", "click", "fsspec", "ml_dtypes")


def test_the_public_names_are_these() -> None:
    """A new public name is a decision: it is added here, too."""
    assert set(pt2kit.__all__) == FUNCTIONS | CLASSES | {"__version__"}
    assert pt2kit.__all__ == sorted(pt2kit.__all__)


@pytest.mark.parametrize("name", sorted((FUNCTIONS | CLASSES) - NEED_TORCH))
def test_names_have_docstrings(name: str) -> None:
    """Every public name loads, says what it is, and every parameter and result of a function has a type."""
    found = getattr(pt2kit, name)
    assert inspect.getdoc(found)
    assert inspect.isclass(found) == (name in CLASSES)
    if name in FUNCTIONS:
        signature = inspect.signature(found)
        assert all(row.annotation is not row.empty for row in signature.parameters.values())
        assert signature.return_annotation is not signature.empty


def test_names_are_named_by_their_kind() -> None:
    """Functions are verbs in lower case, with what they act on where that is no file or program; classes nouns."""
    assert all(
        name.islower() and name.partition("_")[2] in ("", "extension", "module", "runs", "weights")
        for name in FUNCTIONS
    )
    assert all(name[0].isupper() and "_" not in name for name in CLASSES)


def test_subpackages_can_be_reached() -> None:
    """`pt2kit.schema` works without importing it by name, and `dir` lists it."""
    for subpackage in (
        "checks",
        "codec",
        "errors",
        "graph",
        "package",
        "schema",
        "signature",
        "symbols",
        "text",
        "zip",
    ):
        assert inspect.ismodule(getattr(pt2kit, subpackage))
        assert subpackage in dir(pt2kit)
    assert set(pt2kit.__all__) <= set(dir(pt2kit))


def test_other_names_are_attribute_errors() -> None:
    """A missing name is an AttributeError that names it."""
    with pytest.raises(AttributeError, match="module 'pt2kit' has no attribute 'nope'"):
        _ = pt2kit.nope


def test_importing_is_cheap() -> None:
    """`import pt2kit` imports none of the packages that it may use later, and no subpackage of its own."""
    code = f"""
import sys, pt2kit
heavy = [name for name in {HEAVY!r} if name in sys.modules]
allowed = ("pt2kit.front_door", "pt2kit.front_door")
subpackages = [name for name in sys.modules if name.startswith("pt2kit.") and name not in allowed]
sys.exit(f"imported {{heavy + subpackages}}" if heavy + subpackages else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("ask", ["open", "Package", "write", "schema", "checks"])
def test_looking_imports_no_torch(ask: str) -> None:
    """The names that read files import neither torch nor numpy."""
    code = (
        f"import sys, pt2kit; pt2kit.{ask}; sys.exit(bool({{'torch', 'numpy', 'rich', 'fsspec'}} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0


SUBPACKAGES = sorted(
    path
    for path in Path(pt2kit.__file__).parent.rglob("__init__.py")
    if any(getattr(node, "module", None) == "pt2kit.front_door" for node in ast.parse(path.read_text()).body)
)


@pytest.mark.parametrize("path", SUBPACKAGES, ids=lambda path: path.parent.name)
def test_type_checkers_see_the_names_that_load(path: Path) -> None:
    """Type checkers see the names that a subpackage loads; and no module hides a name by defining it itself."""
    [block] = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.If)]
    shown = {
        alias.asname or alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    name = ".".join(["pt2kit", *path.relative_to(Path(pt2kit.__file__).parent).parts[:-1]])
    subpackage = importlib.import_module(name)
    assert shown == set(subpackage.__all__)
    modules = {file.stem for file in path.parent.glob("*.py")} | {f.name for f in path.parent.iterdir() if f.is_dir()}
    assert not modules & shown
    if name != "pt2kit":
        assert all(getattr(subpackage, shown_name) is not None for shown_name in shown)
