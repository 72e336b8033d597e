"""protoc takes the definition of every version, and reads in it what the table says."""

from __future__ import annotations

import pytest
from tests.idl.helpers import table
from tests.idl.protos import description

from pt2kit import idl
from pt2kit.errors import UnsupportedError
from pt2kit.idl import proto
from pt2kit.idl.sources import versions
from pt2kit.schema.fieldtable import Table, make_table
from pt2kit.schema.wire import as_written


@pytest.mark.parametrize("version", versions())
def test_protoc_reads_what_the_table_says(version):
    """Every type is there, every field under its wire id, every enum value under its number."""
    file = description(version)
    messages = {message.name: {field.name: field.number for field in message.field} for message in file.message_type}
    enums = {enum.name: {value.number for value in enum.value} for enum in file.enum_type}
    for definition in as_written(table(version)).definitions.values():
        if definition.kind == "enum":
            assert enums[definition.name] == {
                value.value if isinstance(value.value, int) else place
                for place, value in enumerate(definition.members.values())
            }
        else:
            found = {name: id for name, id in messages[definition.name].items() if not name.endswith("_digits")}
            assert found == {field.name: field.id for field in definition.fields.values()}


def test_wire_ids_last_within_a_major():
    """Fields of 8.2 and 8.20 are the same on the wire, so one reads what the other wrote."""
    old, new = (
        {
            (m.name, f.name): (f.number, f.type, f.label, f.type_name)
            for m in description(v).message_type
            for f in m.field
        }
        for v in ("8.2", "8.20")
    )
    assert description("8.2").package == description("8.20").package == "pt2.v8"
    shared = old.keys() & new.keys()
    assert len(shared) > 100
    assert {key: old[key] for key in shared} == {key: new[key] for key in shared}


def _made(**types) -> Table:
    return make_table("9.1", types, "test", docs={}, since={})


def test_null_inside_a_list_is_refused():
    """Messages have no null in a list; the refusal says where null may be."""
    types = _made(A={"kind": "struct", "fields": {"x": {"type": "list[int | None]", "id": 10}}})
    with pytest.raises(UnsupportedError, match="expected null as a field of a struct only"):
        proto.emit(types)


def test_a_type_with_the_name_of_a_wrapper_is_refused():
    """A list in a union needs a message; its name must be free."""
    types = _made(
        A={"kind": "union", "fields": {"x": {"type": "list[int]", "id": 10}}},
        IntList={"kind": "struct", "fields": {}},
    )
    with pytest.raises(UnsupportedError, match="expected no type named IntList"):
        proto.emit(types)


def test_an_enum_without_zero_gets_one():
    """proto3 wants a zero first."""
    types = _made(E={"kind": "enum", "fields": {"B": 2, "A": 1}})
    assert "  E_UNSPECIFIED = 0;\n  E_B = 2;  // since 9.1\n  E_A = 1;" in proto.emit(types)


def test_the_ids_that_are_made_up_are_announced():
    """A version without wire ids says that its numbers are positions; one with them says nothing."""
    assert "Schema 7.3 has no wire ids" in " ".join(proto.emit(table("7.3")).replace("// ", "").split())
    assert "no wire ids" not in proto.emit(idl.table())
