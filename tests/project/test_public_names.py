"""Public names, their parameters and attributes do not change unnoticed."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import itertools
from pathlib import Path

import pytest
from tests.project.public_names import TABLE, lines

import pt2kit
from pt2kit.front_door import public_names

STORED = TABLE.read_text(encoding="utf-8").splitlines()
ROOT = Path(pt2kit.__file__).parent
PACKAGES = {
    ".".join(("pt2kit", *path.parent.relative_to(ROOT).parts)): text
    for path in sorted(ROOT.rglob("__init__.py"))
    if "front_door(__name__" in (text := path.read_text(encoding="utf-8"))
}
CODE = compile(PACKAGES["pt2kit"], "pt2kit", "exec")
NEED_TORCH = {name for name, module in public_names(CODE).items() if module.startswith("pt2kit.bridge.")}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_public_names_are_those_imported_for_type_checkers(package: str) -> None:
    """The table that is read from the compiled code has what the statements say, and nothing else."""
    block = next(node for node in ast.parse(PACKAGES[package]).body if isinstance(node, ast.If))
    wanted: dict[str, str | None] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        wanted |= {one.name: node.module for one in node.names if one.asname == one.name}
    module = importlib.import_module(package)
    assert module.__all__ == sorted(wanted)
    found = public_names(compile(PACKAGES[package], package, "exec"), vars(module).keys() - wanted.keys())
    assert found == wanted


@pytest.mark.parametrize("name", sorted(set(pt2kit.__all__) - NEED_TORCH))
def test_the_public_names_are_those_of_the_table(name: str) -> None:
    """A name has the parameters and attributes of the table; `docs/stability.md` says what a change of them means."""
    assert list(lines([name])) == _stored(name)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="these names load with torch")
@pytest.mark.parametrize("name", sorted(NEED_TORCH))
def test_the_names_that_need_torch_are_those_of_the_table(name: str) -> None:
    """The same for names of the bridge."""
    assert list(lines([name])) == _stored(name)


def test_the_table_has_no_other_names() -> None:
    """A name that went is noticed, too."""
    stored = {line.removeprefix("class ").split("(")[0].split(":")[0] for line in STORED if not line.startswith(" ")}
    assert stored == set(pt2kit.__all__)


def _stored(name: str) -> list[str]:
    """The lines of a name: its own, and the indented ones below it."""
    heads = [number for number, line in enumerate(STORED) if not line.startswith(" ")] + [len(STORED)]
    for first, last in itertools.pairwise(heads):
        if STORED[first].removeprefix("class ").startswith((f"{name}(", f"{name}:")):
            return STORED[first:last]
    return []
