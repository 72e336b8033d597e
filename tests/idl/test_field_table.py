"""Plain tables become typed ones and back; malformed ones are refused."""

from __future__ import annotations

import pytest
from tests.idl.helpers import table

from pt2kit import schema
from pt2kit.errors import SchemaError
from pt2kit.idl.field_table import as_written, default_value, make_table, plain_table
from pt2kit.idl.sources import UNNUMBERED, frozen_tables, versions
from pt2kit.idl.typetext import AnyOf, Scalar


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
    assert all(definition.doc for definition in current.definitions)
    fields = {field.name: field.since for field in current.by_name["Node"].fields}
    assert (fields["name"], fields["target"]) == ("8.17", "1")
    values = {value.name: value.since for value in current.by_name["ScalarType"].values}
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
        ({"A": {"kind": "enum", "members": "ab"}}, "here: A: expected fields by name, got None"),
    ],
)
def test_a_malformed_table_is_refused(types, message):
    """With the place and what was expected."""
    with pytest.raises(SchemaError) as caught:
        _make(types)
    assert str(caught.value).startswith(message)


def test_as_written_fills_in_ids_and_what_writers_did():
    """Only where there are none, only in the versions that need it; the table itself stays."""
    old = table("5.3")
    written = as_written(old).by_name
    assert [field.id for field in written["Node"].fields] == [10, 20, 30, 40]
    assert old.by_name["Node"].fields[0].id is None
    assert written["RangeConstraint"].fields[0].type == AnyOf((Scalar("int"), Scalar("float")))
    assert written["ConstantValue"].fields[1].type == AnyOf((Scalar("int"), Scalar("bool")))
    assert as_written(table("8.20")) == table("8.20")


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
        (field,) = (field for field in table("8.20").by_name[name].fields if field.name == key)
        assert default_value(field) == expected
        assert not isinstance(expected, dict | list) or default_value(field) is not default_value(field)
    made = _make({"A": {"kind": "struct", "fields": {"a": {"type": "int", "default": "-3"}}}})
    assert default_value(made.definitions[0].fields[0]) == -3
    made = _make({"A": {"kind": "struct", "fields": {"a": {"type": "int", "default": "os.getpid()"}}}})
    with pytest.raises(SchemaError, match=r"a: expected a default like None, False, \[\] or a number, got 'os\.getpid"):
        default_value(made.definitions[0].fields[0])


@pytest.mark.parametrize("version", versions())
def test_every_default_of_every_version_is_understood(version):
    """A generator or mapping never meets one that it can't read."""
    for definition in table(version).definitions:
        for field in definition.fields:
            if field.default is not None:
                default_value(field)


def test_versions_that_only_have_a_name_have_a_root():
    """The draft's whole program is a GraphModule; everybody else's an ExportedProgram."""
    assert {version: table(version).root for version in UNNUMBERED} == {
        "draft": "GraphModule",
        "5.3-traces": "ExportedProgram",
    }
