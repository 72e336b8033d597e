"""The YAML and the Thrift of 8.20 mean the same as the files that are part of torch."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
import torch
import yaml as pyyaml
from tests.idl.helpers import package, plain_table

from pt2kit import idl, treespec
from pt2kit.bridge.torch_names import schema_version

pytestmark = pytest.mark.skipif(schema_version() != (8, 20), reason="this torch has the files of another version")
SERDE = Path(torch.__file__).parent / "_export" / "serde"


def test_the_yaml_means_the_same(tmp_path):
    """Version, types, kinds, fields in their order, types of fields, defaults; torch's YAML has no wire ids."""
    (tmp_path / "ours.yaml").write_text(idl.emit(idl.table("8.20"), "yaml"))
    ours, theirs = idl.read_table(tmp_path / "ours.yaml"), idl.read_table(SERDE / "schema.yaml")
    assert ours.version == theirs.version == "8.20"

    def without_ids(table):
        for name, row in plain_table(table).items():
            fields = row["fields"].items()
            if row["kind"] != "enum":
                fields = [(key, {k: v for k, v in field.items() if k != "id"}) for key, field in fields]
            yield name, (row["kind"], list(fields))

    assert dict(without_ids(ours)) == dict(without_ids(theirs))
    assert idl.changes(ours, theirs) == ()


def test_the_yaml_itself_agrees_without_our_reader():
    """The same by a plain YAML parser: nothing of it depends on how this package reads field tables."""

    def spelled(text):
        text = re.sub(r"\b(List|Dict)\[", lambda found: found[0].lower(), text)
        return re.sub(r"^Optional\[(.*)\]$", r"\1 | None", text)

    def field(row):
        return {**row, "type": spelled(row["type"])} if isinstance(row, dict) else row

    theirs = pyyaml.safe_load((SERDE / "schema.yaml").read_text())
    ours = pyyaml.safe_load(idl.emit(idl.table("8.20"), "yaml"))
    version = theirs.pop("SCHEMA_VERSION")
    assert ours["schema_version"] == ".".join(map(str, version))
    assert theirs.pop("TREESPEC_VERSION") == treespec.PROTOCOL
    assert theirs.keys() == ours["types"].keys()
    for name, row in theirs.items():
        expected = {key: field(value) for key, value in row["fields"].items()}
        found = ours["types"][name]["fields"]
        stripped = {
            key: {k: v for k, v in value.items() if k != "id"} if isinstance(value, dict) else value
            for key, value in found.items()
        }
        assert (row["kind"], expected) == (ours["types"][name]["kind"], stripped), name


def _names(spec):
    """A type of a parsed Thrift file, with its classes by name."""
    if isinstance(spec, type):
        return spec.__name__
    return tuple(map(_names, spec)) if isinstance(spec, tuple) else spec


def _parsed(text, name):
    module = package("thriftpy2.parser").load_fp(StringIO(text), f"{name}_thrift")
    found = {}
    for cls in vars(module).values():
        if isinstance(cls, type) and hasattr(cls, "thrift_spec"):
            found[cls.__name__] = {id: _names(spec) for id, spec in cls.thrift_spec.items()}
        elif isinstance(cls, type) and hasattr(cls, "_NAMES_TO_VALUES"):
            found[cls.__name__] = dict(cls._NAMES_TO_VALUES)
    return found


def test_the_thrift_means_the_same():
    """By a Thrift parser: types, wire ids, names and types of fields, numbers of enums."""
    theirs = _parsed((SERDE / "export_schema.thrift").read_text(), "theirs")
    ours = _parsed(idl.emit(idl.table("8.20"), "thrift"), "ours")
    assert len(theirs) == 55
    assert ours == theirs


def test_the_thrift_has_the_same_kinds_and_optional_fields():
    """Kinds (struct or union) and optional fields, which that parser ignores, are equal, too."""

    def lines(text):
        text = re.sub(r"//.*", "", text)
        bodies = re.findall(r"(enum|struct|union) (\w+) \{([^}]*)\}", text)
        return {name: (kind, re.findall(r"[^\s;,][^;,\n]*(?:<[^;\n]*)?", body)) for kind, name, body in bodies}

    theirs = lines((SERDE / "export_schema.thrift").read_text())
    assert any("optional" in row for _, rows in theirs.values() for row in rows)
    assert lines(idl.emit(idl.table("8.20"), "thrift")) == theirs
