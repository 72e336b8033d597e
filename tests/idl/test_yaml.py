"""The YAML reads back to the table it came from, for every version; this is how a version is frozen."""

from __future__ import annotations

from importlib.resources import files

import pytest
from tests.idl.helpers import plain_table, table

from pt2kit import idl
from pt2kit.idl import yaml
from pt2kit.idl.sources import versions
from pt2kit.schema.fieldtable import UNNUMBERED


@pytest.mark.parametrize("version", versions())
def test_the_table_comes_back(version, tmp_path):
    """Types, kinds, fields, their order, ids and defaults, and the version's number."""
    path = tmp_path / "schema.yaml"
    path.write_text(yaml.emit(table(version)))
    back = idl.read_table(path)
    assert plain_table(back) == plain_table(table(version))
    assert [each.name for each in back.definitions.values()] == [
        each.name for each in table(version).definitions.values()
    ]
    assert [f.name for d in back.definitions.values() for f in d.fields.values()] == [
        f.name for d in table(version).definitions.values() for f in d.fields.values()
    ]
    assert back.version == version.removesuffix("-traces")


@pytest.mark.parametrize("version", [version for version in versions() if version not in UNNUMBERED])
def test_it_is_the_frozen_file(version):
    """Comments aside, line by line."""

    def lines(text):
        return [line for line in text.splitlines() if not line.startswith("#")]

    frozen = (files("pt2kit.schema") / "history" / f"{version}.yaml").read_text()
    assert lines(yaml.emit(table(version))) == lines(frozen)
