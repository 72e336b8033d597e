"""Plain tables become typed ones and back; malformed ones are refused; those read at run time are the frozen ones."""

from __future__ import annotations

from importlib.resources import files

import pytest
import yaml
from tests.idl.helpers import plain_table, table
from tools import history_tables

from pt2kit import schema
from pt2kit.errors import SchemaError, VersionError
from pt2kit.idl.sources import versions
from pt2kit.schema.fieldtable import (
    NAMES,
    UNNUMBERED,
    default_value,
    frozen_table,
    frozen_tables,
    make_table,
    type_text,
)

HISTORY = files("pt2kit.schema") / "history"


def _make(types):
    return make_table("9.1", types, "here", docs={}, since={})


@pytest.mark.parametrize("version", versions())
def test_a_table_comes_back(version):
    """Nothing is lost on the way to a typed table."""
    assert plain_table(table(version)) == frozen_tables()[version]


def test_the_current_table_is_that_of_the_classes():
    """With a sentence on every type, and the version that brought each field."""
    current = table(schema.CURRENT.number)
    assert plain_table(current) == schema.field_table()
    assert all(definition.doc for definition in current.definitions.values())
    fields = {field.name: field.since for field in current.definitions["Node"].fields.values()}
    assert (fields["name"], fields["target"]) == ("8.17", "1")
    values = {value.name: value.since for value in current.definitions["ScalarType"].members.values()}
    assert values["UINT64"] == "8.20"


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"A": []}, "here: A: expected a kind of struct, union or enum, got a list"),
        ({"A": {"kind": "class"}}, "here: A: expected a kind of struct, union or enum, got a dict"),
        ({"A": {"kind": "struct"}}, "here: A: expected fields by name, got None"),
        ({"A": {"kind": "struct", "fields": {"a b": "int"}}}, "here: A: expected fields by name"),
        ({"A": {"kind": "struct", "fields": {"a": 1}}}, "here: A.a: expected a type, got 1"),
        ({"A": {"kind": "struct", "fields": {"a": {"type": "B"}}}}, "here: A.a: expected a type of the table, got B"),
        ({"A": {"kind": "struct", "fields": {"a": {"type": "int", "id": 0}}}}, "here: A.a: expected a wire id from 1"),
        ({"A": {"kind": "struct", "fields": {"a": {"type": "int", "id": True}}}}, "here: A.a: expected a wire id"),
        ({"A": {"kind": "struct", "fields": {"a": {"type": "int", "default": 0}}}}, "here: A.a: expected the text"),
        ({"A": {"kind": "enum", "fields": {"a": 1.5}}}, "here: A.a: expected the number of an enum value, got 1.5"),
        ({"A": {"kind": "enum", "fields": {"a": 1, "b": "1"}}}, "here: A: expected numbers for all values of the enum"),
        ({"A": {"kind": "enum", "members": "ab"}}, "here: A: expected fields by name, got None"),
    ],
)
def test_a_malformed_table_is_refused(types, message):
    """With the place and what was expected."""
    with pytest.raises(SchemaError) as caught:
        _make(types)
    assert str(caught.value).startswith(message)


def test_defaults_are_values():
    """The text of a default as the tree that an absent key means; new on each call."""
    fields = {
        ("Graph", "custom_obj_values"): {},
        ("Graph", "is_single_tensor_return"): False,
        ("Node", "name"): None,
        ("ExportedProgram", "verifiers"): [],
        ("ExportedProgram", "torch_version"): "<=2.4",
    }
    for (name, key), expected in fields.items():
        field = table("8.20").definitions[name].fields[key]
        assert default_value(field) == expected
        assert not isinstance(expected, dict | list) or default_value(field) is not default_value(field)
    made = _make({"A": {"kind": "struct", "fields": {"a": {"type": "int", "default": "-3"}}}})
    assert default_value(made.definitions["A"].fields["a"]) == -3
    made = _make({"A": {"kind": "struct", "fields": {"a": {"type": "int", "default": "os.getpid()"}}}})
    with pytest.raises(SchemaError, match=r"a: expected a default like None, False, \[\] or a number, got 'os\.getpid"):
        default_value(made.definitions["A"].fields["a"])


@pytest.mark.parametrize("version", versions())
def test_every_default_of_every_version_is_understood(version):
    """A generator or mapping never meets one that it can't read."""
    for definition in table(version).definitions.values():
        for field in definition.fields.values():
            if field.default is not None:
                default_value(field)


def test_versions_that_only_have_a_name_have_a_root():
    """The draft's whole program is a GraphModule; everybody else's an ExportedProgram."""
    assert {version: table(version).root for version in UNNUMBERED} == {
        "draft": "GraphModule",
        "5.3-traces": "ExportedProgram",
    }


def test_the_json_file_is_made_from_the_yaml_files():
    """A new table is listed by the tool."""
    assert (HISTORY / "tables.json").read_text(encoding="utf-8") == history_tables.text()


@pytest.mark.parametrize("name", NAMES)
def test_a_table_says_what_its_file_says(name):
    """Kinds, fields in order, types, defaults and members are those of the YAML file."""
    written = yaml.safe_load((HISTORY / f"{name}.yaml").read_text())["types"]
    read = frozen_table(name).definitions
    assert list(read) == list(written)
    for key, row in written.items():
        assert read[key].kind == row["kind"]
        if row["kind"] == "enum":
            members = row.get("fields") or {member: member for member in row["members"]}
            assert {member.name: member.value for member in read[key].members.values()} == members
            continue
        for field, described in row["fields"].items():
            text = described if isinstance(described, str) else described["type"]
            assert type_text(read[key].fields[field].type) == text
            assert (read[key].fields[field].default is not None) == (
                "default" in described and not isinstance(described, str)
            )
        assert list(read[key].fields) == list(row["fields"])


def test_an_unknown_table_is_refused():
    """All tables are named."""
    with pytest.raises(VersionError, match=r"expected one of draft, 1, .*8\.20, got '9'"):
        frozen_table("9")
