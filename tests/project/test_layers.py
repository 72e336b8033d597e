"""Imports go down only: the floors of `docs/layout.md`, and what each room may take from outside."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "pt2kit"
FLOORS = [
    {"errors", "collector", "version"},
    {"front_door", "rules", "messages", "jsontext"},
    {"zip", "codec", "schema", "symbols", "treespec", "node_metadata"},
    {"pickles", "idl"},
    {"tensors", "versions"},
    {"package"},
    {"graph", "signature"},
    {"checks", "canonical", "release"},
    {"digests"},
    {"sanitizing", "editing", "diffs", "signing"},
    {"text"},
    {"bridge", "viewing"},
    {"fleet"},
    {"cli", "integrations", "testing"},
    {"__init__", "__main__"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
THIRD_PARTY = {
    "zip": {"fsspec", "msgspec"},
    "pickles": {"msgspec"},
    "codec": {"msgspec"},
    "schema": {"msgspec"},
    "versions": {"msgspec"},
    "package": {"msgspec"},
    "graph": {"msgspec"},
    "signature": {"msgspec"},
    "checks": {"msgspec", "numpy"},
    "canonical": {"msgspec"},
    "release": {"msgspec"},
    "sanitizing": {"msgspec"},
    "signing": {"model_signing", "cryptography", "OpenSSL", "sigstore"},
    "editing": {"msgspec", "numpy"},
    "tensors": {"numpy", "ml_dtypes", "safetensors"},
    "idl": {"yaml"},
    "digests": {"numpy", "msgspec"},
    "diffs": {"numpy", "msgspec"},
    "text": {"msgspec"},
    "bridge": {"torch", "sympy", "numpy", "msgspec"},
    "viewing": {"numpy"},
    "fleet": {"bokeh", "dask", "distributed", "fsspec", "msgspec", "psutil", "pyarrow"},
    "cli": {"click", "rich"},
    "integrations": {"modelscan", "mlflow"},
}
STDLIB = sys.stdlib_module_names


def room(path: Path) -> str:
    """The room a file belongs to: its folder below the package, or its own name."""
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imports(path: Path, *, top_level: bool = False):
    """The absolute names a file imports; only those outside functions where `top_level`."""
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)}:{node.lineno}: expected an absolute import"
            if node.module == "pt2kit":
                yield from (f"pt2kit.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


FILES = sorted(SRC.rglob("*.py"))


def test_every_room_has_a_floor():
    """A new file or folder is placed on a floor before it lands."""
    assert {room(path) for path in FILES} <= set(FLOOR)


def test_imports_go_down_only():
    """A room imports rooms on lower floors, itself, and the third-party packages that its floor allows."""
    bad = []
    for path in FILES:
        here = room(path)
        for name in imports(path):
            top, *rest = name.split(".")
            if top == "pt2kit":
                there = rest[0] if rest and rest[0] in FLOOR else "__init__"
                if there != here and FLOOR[there] >= FLOOR[here]:
                    bad.append(f"{path.relative_to(SRC)} imports {name}")
            elif top not in STDLIB and top not in THIRD_PARTY.get(here, ()):
                bad.append(f"{path.relative_to(SRC)} imports {name}")
    assert not bad, "\n".join(bad)


def test_names_come_from_the_modules_that_define_them():
    """No module goes through the `__init__` of a room for a name: those tables are for users of the package."""
    rooms = {path.parent.relative_to(SRC).as_posix().replace("/", ".") for path in SRC.rglob("__init__.py")}
    bad = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom):
                continue
            module = node.module or ""
            inner = module.removeprefix("pt2kit.")
            if module.startswith("pt2kit.") and inner in rooms and inner not in ("schema", "codec"):
                folder = SRC / inner.replace(".", "/")
                names = [
                    a.name for a in node.names if not ((folder / a.name).is_dir() or (folder / f"{a.name}.py").exists())
                ]
                bad += [f"{path.relative_to(SRC)}: from {module} import {name}" for name in names]
    assert not bad, "\n".join(bad)


def test_heavy_packages_are_imported_inside_functions():
    """Outside the bridge, nobody pays for numpy, fsspec or safetensors before using them."""
    heavy = {
        "numpy",
        "ml_dtypes",
        "fsspec",
        "safetensors",
        "yaml",
        "pyarrow",
        "bokeh",
        "dask",
        "model_signing",
        "sigstore",
    }
    for path in FILES:
        if room(path) != "bridge":
            found = {name.split(".")[0] for name in imports(path, top_level=True)} & heavy
            assert not found, f"{path.relative_to(SRC)} imports {', '.join(found)} at import time"


def test_the_layout_page_shows_the_same_floors():
    """The table in `docs/layout.md` names, floor by floor, the rooms that this test holds."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", (ROOT / "docs" / "layout.md").read_text(), re.MULTILINE)
    shown = {int(number): set(re.findall(r"`([\w]+)`", rooms)) for number, rooms in rows}
    assert shown == dict(enumerate(FLOORS))
