"""Shared by tests of generated definitions: programs of every version, broken ones, toolchains."""

from __future__ import annotations

import copy
import functools
import importlib
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.samples import CURRENT_LAYOUT, DATA, RELEASES, corpus, sample

from pt2kit import idl, schema
from pt2kit.codec import parse
from pt2kit.schema.fieldtable import DictOf, Field, ListOf, Nullable, Ref, Table, Type, default_value, type_text

VERSION_OF = {
    release: next(version.number for version in schema.LOG if release.rpartition(".")[0] in version.releases)
    for release in RELEASES
}
"""Release of the sample files -> the schema version that it writes."""


def require(found: Any, what: str) -> Any:
    """Skip a test whose toolchain is missing; fail instead where the environment says that all must be there."""
    if not found:
        if os.environ.get("PT2KIT_TOOLCHAINS") == "required":
            pytest.fail(f"{what} is missing, and PT2KIT_TOOLCHAINS=required")
        pytest.skip(f"needs {what}")
    return found


def package(name: str) -> Any:
    """A Python package of a toolchain."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return require(None, f"the Python package {name.partition('.')[0]}")


def compiler() -> str:
    """A C++ compiler with nlohmann/json."""
    header = any(Path(base, "nlohmann", "json.hpp").exists() for base in ("/usr/include", "/usr/local/include"))
    return require(shutil.which("g++") if header else None, "g++ and the Debian package nlohmann-json3-dev")


def typescript() -> str:
    """The TypeScript compiler: on the path, or installed next to Python with npm --prefix."""
    side_inputs = Path(sys.prefix, "node_modules", ".bin", "tsc")
    return require(
        shutil.which("tsc") or (side_inputs.exists() and str(side_inputs)), "tsc, the npm package typescript"
    )


@functools.cache
def table(version: str) -> Table:
    """The table of a version."""
    return idl.table(version)


def plain_table(types: Table) -> dict[str, Any]:
    """A table as plain data, in the shape of `schema.field_table()`."""

    def row(field: Field) -> dict[str, Any]:
        rest = {"id": field.id, "default": field.default}
        return {"type": type_text(field.type), **{key: value for key, value in rest.items() if value is not None}}

    return {
        name: {
            "kind": each.kind,
            "fields": {key: member.value for key, member in each.members.items()}
            if each.kind == "enum"
            else {key: row(field) for key, field in each.fields.items()},
        }
        for name, each in types.definitions.items()
    }


def texts(path: Path, part: str = "models/") -> list[tuple[str, bytes]]:
    """(Name, text) of the JSON records of a sample file: its programs, or with "_config.json" its payload configs."""
    with zipfile.ZipFile(path) as archive:
        wanted = [name for name in archive.namelist() if name.endswith(".json") and part in name]
        if part == "models/":
            wanted += [name for name in archive.namelist() if name == "serialized_exported_program.json"]
        return [(f"{path.parent.name}/{path.stem}/{Path(name).stem}", archive.read(name)) for name in wanted]


def programs(*releases: str, part: str = "models/") -> list[tuple[str, str, bytes]]:
    """(Name, schema version, text) of every program of some releases, or of those with today's layout."""
    return [
        (name, VERSION_OF[path.parent.name], text)
        for path in corpus(*(releases or CURRENT_LAYOUT))
        for name, text in texts(path, part)
    ]


def golden(version: str) -> list[tuple[str, str, bytes]]:
    """(Name, type at the root, text) of the golden files of a version: made up, but using every part of the schema."""
    paths = sorted((DATA.parent / "golden" / version).glob("*.json"))
    return [(f"golden/{version}/{path.name}", path.stem, path.read_bytes()) for path in paths]


def program(name: str, release: str = "2.13.0") -> Any:
    """The tree of one program."""
    ((_, text),) = texts(sample(release, name))
    return parse(text, name, bare_literals=True)


def complete(tree: Any, types: Table, kind: Type | None = None) -> Any:
    """The tree with the defaults of the keys that were left out, in the order of the table."""
    match kind or Ref(types.root):
        case ListOf(item):
            return [complete(one, types, item) for one in tree]
        case DictOf(value):
            return {key: complete(one, types, value) for key, one in tree.items()}
        case Nullable(inner):
            return None if tree is None else complete(tree, types, inner)
        case Ref(name):
            definition = types.definitions[name]
            if definition.kind == "struct":
                return {field.name: _completed(tree, field, types) for field in definition.fields.values()}
            if definition.kind == "union":
                arms = {field.name: field.type for field in definition.fields.values()}
                return {key: None if one is None else complete(one, types, arms[key]) for key, one in tree.items()}
    return tree


def _completed(tree: Any, field: Field, types: Table) -> Any:
    return complete(tree[field.name], types, field.type) if field.name in tree else default_value(field)


def _meta(tree: Any) -> Any:
    return next(iter(tree["graph_module"]["graph"]["tensor_values"].values()))


def _argument(tree: Any) -> Any:
    return tree["graph_module"]["graph"]["nodes"][0]["inputs"][0]


def _node(tree: Any) -> Any:
    return tree["graph_module"]["graph"]["nodes"][0]


BROKEN: MappingProxyType[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "a required key is missing": lambda tree: tree.pop("graph_module"),
        "a required key is missing inside": lambda tree: _node(tree).pop("target"),
        "a union has two keys": lambda tree: _argument(tree)["arg"].update(as_int=1),
        "a union has no key": lambda tree: _argument(tree).update(arg={}),
        "a union has an unknown key": lambda tree: _argument(tree).update(arg={"as_evil": 1}),
        "a union is a list": lambda tree: _argument(tree).update(arg=[]),
        "an enum has an unknown number": lambda tree: _meta(tree).update(dtype=99),
        "an enum is a name": lambda tree: _meta(tree).update(dtype="FLOAT"),
        "a list is an object": lambda tree: _meta(tree).update(sizes={}),
        "an object is a list": lambda tree: tree["graph_module"]["graph"].update(tensor_values=[]),
        "a truth value is a number": lambda tree: _meta(tree).update(requires_grad=1),
        "an integer is text": lambda tree: tree["opset_version"].update(aten="10"),
        "an integer has a fraction": lambda tree: tree["opset_version"].update(aten=10.5),
        "text is null": lambda tree: _node(tree).update(target=None),
        "a float is an unknown word": lambda tree: _argument(tree).update(arg={"as_float": "infinity"}),
        "a list holds null": lambda tree: tree.update(verifiers=[None]),
    }
)
"""Fault -> a change of a good program, in place, that makes it."""


def broken(name: str, good: Any) -> Any:
    """A copy of a good program with one of the faults of `BROKEN`."""
    tree = copy.deepcopy(good)
    BROKEN[name](tree)
    return tree
