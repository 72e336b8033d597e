"""Imports go down only: the layers of `docs/architecture.md`, and what each subpackage may import from outside."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from tests.project.sources import FILES, ROOT, SRC, parsed

LAYERS = [
    {"collector", "data_files", "messages", "version"},
    {"front_door"},
    {"errors"},
    {"rules", "jsontext"},
    {"zip", "codec", "schema", "symbols", "treespec", "node_metadata"},
    {"pickles", "idl"},
    {"tensors", "versions"},
    {"package"},
    {"graph", "signature", "operators"},
    {"dataflow", "canonical"},
    {"checks", "costs", "release", "runtime"},
    {"digests"},
    {"sanitizing", "editing", "diffs", "signing"},
    {"text", "comparing"},
    {"bridge", "viewing"},
    {"fleet"},
    {"cli", "integrations", "testing"},
    {"__init__", "__main__"},
]
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
THIRD_PARTY = {
    "zip": {"fsspec", "msgspec"},
    "pickles": {"msgspec"},
    "codec": {"msgspec"},
    "schema": {"msgspec"},
    "versions": {"msgspec"},
    "package": {"msgspec"},
    "graph": {"msgspec"},
    "operators": {"msgspec"},
    "signature": {"msgspec"},
    "dataflow": {"msgspec"},
    "checks": {"msgspec", "numpy"},
    "canonical": {"msgspec"},
    "release": {"msgspec"},
    "comparing": {"numpy"},
    "runtime": {"jax", "msgspec", "ml_dtypes", "numpy", "scipy"},
    "sanitizing": {"msgspec"},
    "signing": {"model_signing", "cryptography", "OpenSSL", "sigstore"},
    "editing": {"msgspec", "numpy"},
    "tensors": {"numpy", "ml_dtypes"},
    "idl": {"yaml"},
    "digests": {"numpy", "msgspec"},
    "diffs": {"numpy", "msgspec"},
    "text": {"msgspec"},
    "bridge": {"torch", "sympy", "numpy", "msgspec"},
    "viewing": {"numpy"},
    "fleet": {"dask", "distributed", "fsspec", "msgspec", "psutil", "pyarrow"},
    "cli": {"click", "rich"},
    "integrations": {"modelscan", "mlflow"},
}
TYPES_ONLY = {("package/open.py", "pt2kit.graph.reading")}
"""Imports for annotations of functions that `registered` finds; they are never run."""

STDLIB = sys.stdlib_module_names


def subpackage(path: Path) -> str:
    """Return the subpackage that a file belongs to: its folder below the package, or its own name."""
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def module(path: Path) -> str:
    """Return the full name of a file's module."""
    return ".".join(("pt2kit", *path.relative_to(SRC).with_suffix("").parts)).removesuffix(".__init__")


def imports(path: Path, *, top_level: bool = False):
    """Yield the absolute names that a file imports; only those outside functions if `top_level`."""
    tree = parsed(path)
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)}:{node.lineno}: expected an absolute import"
            if node.module == "pt2kit":
                yield from (f"pt2kit.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


MODULES = {module(path): path for path in FILES}


def test_every_subpackage_has_a_layer():
    """A new file or folder is placed in a layer before it lands."""
    assert {subpackage(path) for path in FILES} <= set(LAYER)


def test_imports_go_down_only():
    """A subpackage imports lower layers, itself, and the third-party packages that it may use."""
    bad = []
    for path in FILES:
        here = subpackage(path)
        for name in imports(path):
            top, *rest = name.split(".")
            if top == "pt2kit":
                there = rest[0] if rest and rest[0] in LAYER else "__init__"
                where = path.relative_to(SRC).as_posix()
                if there != here and LAYER[there] >= LAYER[here] and (where, name) not in TYPES_ONLY:
                    bad.append(f"{path.relative_to(SRC)} imports {name}")
            elif top not in STDLIB and top not in THIRD_PARTY.get(here, ()):
                bad.append(f"{path.relative_to(SRC)} imports {name}")
    assert not bad, "\n".join(bad)


def test_names_of_modules_in_strings_go_down_only():
    """An import by name goes down, too; only the top layer registers functions of higher layers (`register`)."""
    bad = []
    for path in FILES:
        here = subpackage(path)
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                there = re.fullmatch(r"pt2kit\.(\w+)[\w.:]*", node.value)
                if there and there[1] != here and LAYER.get(there[1], -1) >= LAYER[here]:
                    bad.append(f"{path.relative_to(SRC)}:{node.lineno}: {node.value}")
    assert not bad, "\n".join(bad)


def test_modules_do_not_import_each_other_in_circles():
    """No cycle of imports between modules, those inside functions and for type checking included."""
    graph: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        graph[name] = set()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                full = (f"{node.module}.{alias.name}" for alias in node.names)
                graph[name].update(there if there in MODULES else node.module for there in full)
            elif isinstance(node, ast.Import):
                graph[name].update(alias.name for alias in node.names)
        types_only = {there for here, there in TYPES_ONLY if SRC / here == path}
        graph[name] = (graph[name] & set(MODULES)) - {name} - types_only
    reached = {name: _reachable(graph, name) for name in graph}
    cycles = {tuple(sorted(there for there in reached[name] if name in reached[there])) for name in graph}
    assert not (found := sorted(filter(None, cycles))), "\n".join(", ".join(cycle) for cycle in found)


def _reachable(graph: dict[str, set[str]], name: str) -> set[str]:
    found: set[str] = set()
    left = [name]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def test_names_come_from_the_modules_that_define_them():
    """No module imports a name from the `__init__` of a subpackage: those tables are for users of the package."""
    subpackages = {path.parent.relative_to(SRC).as_posix().replace("/", ".") for path in SRC.rglob("__init__.py")}
    bad = []
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.ImportFrom):
                continue
            module = node.module or ""
            inner = module.removeprefix("pt2kit.")
            if module.startswith("pt2kit.") and inner in subpackages and inner not in ("schema", "codec"):
                folder = SRC / inner.replace(".", "/")
                names = [
                    a.name for a in node.names if not ((folder / a.name).is_dir() or (folder / f"{a.name}.py").exists())
                ]
                bad += [f"{path.relative_to(SRC)}: from {module} import {name}" for name in names]
    assert not bad, "\n".join(bad)


def test_heavy_packages_are_imported_inside_functions():
    """Outside the bridge and the NumPy runtime, nobody pays for numpy or fsspec before using them."""
    heavy = {
        "numpy",
        "ml_dtypes",
        "fsspec",
        "yaml",
        "pyarrow",
        "bokeh",
        "dask",
        "model_signing",
        "sigstore",
    }
    for path in FILES:
        if subpackage(path) not in ("bridge", "runtime", "comparing"):
            found = {name.split(".")[0] for name in imports(path, top_level=True)} & heavy
            assert not found, f"{path.relative_to(SRC)} imports {', '.join(found)} at import time"


def test_the_page_shows_the_same_layers():
    """The table in `docs/architecture.md` names the subpackages of each layer."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    shown = {int(number): set(re.findall(r"`(\w+)`", names)) for number, names in rows}
    assert shown == dict(enumerate(LAYERS))
