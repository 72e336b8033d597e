"""The golden files: one set per version of the whole log, complete, readable, and what the tools would write today."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.versions.programs import golden
from tools import golden_packages

import pt2kit
from pt2kit import schema
from pt2kit.schema.fieldtable import NAMES, AnyOf, DictOf, ListOf, Nullable, Ref, Scalar, TupleOf, Type, frozen_table
from pt2kit.versions import encoding
from pt2kit.versions.check import canonical_type, check_tree

VERSIONS = NAMES
FOLDER = golden_packages.FOLDER
MANIFEST = json.loads((FOLDER / "manifest.json").read_text())
PACKAGES = [name for name in MANIFEST if not name.endswith("types.json")]
MISSING = {
    ("1", "ExportedProgram.example_inputs"): "no release wrote any: the exporter of 2.1 left it empty",
    ("1", "ExportedProgram.equality_constraints"): "lists of names and dimensions, whose form tests of v1_v2 cover",
}
"""Parts that no golden file has, and why."""


def test_the_log_is_covered() -> None:
    """Every version of the log, the draft and the side branch have golden programs and packages."""
    assert {row.number for row in schema.LOG} | {"draft", "5.3-traces"} == set(VERSIONS)
    assert {Path(name).parent.name for name in MANIFEST} == set(VERSIONS)


def test_manifest() -> None:
    """It names every file, and says what is in it."""
    found = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}
    assert found == {*MANIFEST, "manifest.json"}
    for name, wanted in MANIFEST.items():
        data = (FOLDER / name).read_bytes()
        if name.endswith(".pt2"):
            assert golden_packages.records(data) == wanted
        else:
            assert {"": hashlib.sha256(data).hexdigest()} == wanted


def test_the_tool_would_write_the_same() -> None:
    """The writers of every version write what they wrote when the files were made."""
    stale = [name for name, data in golden_packages.files().items() if not golden_packages.same(FOLDER / name, data)]
    assert not stale, "if this is meant, run `python -m tools.golden_packages`"


@pytest.mark.parametrize("name", PACKAGES)
def test_packages(name: str) -> None:
    """A package of any version opens, says its version, goes up, and comes back with the same records."""
    version = Path(name).parent.name
    with pt2kit.open(FOLDER / name) as package:
        assert package.stored_schema_version == version
        assert package.weights() or package.constants()
        up, down = io.BytesIO(), io.BytesIO()
        pt2kit.convert(package, up, target=schema.CURRENT.number)
    pt2kit.convert(up.getvalue(), down, target=version, allow=golden_packages.ALLOWED)
    if name.endswith(".json"):
        assert down.getvalue() == (FOLDER / name).read_bytes()
    else:
        assert _without_id(golden_packages.records(down.getvalue())) == _without_id(MANIFEST[name])


def _without_id(records: dict[str, str]) -> dict[str, str]:
    """Records below the root; what follows from all others left out, and torch.save files inside a program."""
    return {
        name.rpartition("archive/")[2]: digest for name, digest in records.items() if "serialization_id" not in name
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_coverage(version: str) -> None:
    """Every field, arm and member of every version occurs in one of its golden files, but for a few with a reason."""
    found = set(parts(golden(version), version, frozen_table(version).root))
    for name, values in _other_types(version).items():
        for value in values:
            found |= set(parts(value, version, name))
    types = frozen_table(version).definitions.items()
    known = {f"{name}.{part}" for name, row in types for part in (row.members if row.kind == "enum" else row.fields)}
    missing = known - found
    assert missing == {part for where, part in MISSING if where == version}
    assert found <= known


@pytest.mark.parametrize("version", VERSIONS)
def test_other_types(version: str) -> None:
    """Values of the other types fit their table, and writing them gives what was read."""
    for name, values in _other_types(version).items():
        for value in values:
            check_tree(value, version, name, root=name)
    path = FOLDER / version / "types.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    for name, values in stored.items():
        for raw in values:
            again = encoding.to_wire(encoding.from_wire(raw, version, name, root=name), version, name, root=name)
            assert again == raw


def _other_types(version: str) -> dict[str, list[Any]]:
    path = FOLDER / version / "types.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    return {
        name: [encoding.from_wire(raw, version, name, root=name) for raw in values] for name, values in stored.items()
    }


def parts(value: Any, version: str, root: str) -> Iterator[str]:
    """The parts of a version that occur in a canonical tree: a field where it says something, an arm, a member."""
    types = frozen_table(version).definitions
    stack: list[tuple[Any, Type]] = [(value, Ref(root))]
    while stack:
        held, kind = stack.pop()
        match kind, held:
            case Ref(name), dict():
                row = types[name]
                for key, inner in held.items():
                    if key not in row.fields:  # of another of several types that may stand here
                        continue
                    if row.kind == "union" or inner not in (None, [], {}):
                        yield f"{name}.{key}"
                    stack.append((inner, canonical_type(name, row.fields[key])))
            case Ref(name), _:
                yield from (f"{name}.{key}" for key, member in types[name].members.items() if member.value == held)
            case ListOf(item), list():
                stack += [(entry, item) for entry in held]
            case DictOf(item), dict():
                stack += [(entry, item) for entry in held.values()]
            case TupleOf(items), list():
                stack += list(zip(held, items, strict=True))
            case Nullable(inner), _ if held is not None:
                stack.append((held, inner))
            case AnyOf(arms), _:
                stack += [(held, arm) for arm in arms if not isinstance(arm, Scalar)]
