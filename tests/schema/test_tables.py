"""The tables that are read at run time are the frozen ones, and their types are understood."""

from __future__ import annotations

from importlib.resources import files

import pytest
import yaml
from tools import history_tables

from pt2kit.errors import VersionError
from pt2kit.schema.tables import NAMES, Shape, parse_shape, table

HISTORY = files("pt2kit.schema") / "history"
LEAF = {name: Shape("leaf", name) for name in ("str", "int", "float", "bool", "bytes")}
SHAPES = {
    "str": LEAF["str"],
    "SymInt": Shape("type", "SymInt"),
    "list[SymInt]": Shape("list", inner=(Shape("type", "SymInt"),)),
    "dict[str, bytes]": Shape("dict", inner=(LEAF["bytes"],)),
    "int | None": Shape("optional", inner=(LEAF["int"],)),
    "tuple[()]": Shape("tuple"),
    "tuple[str, int]": Shape("tuple", inner=(LEAF["str"], LEAF["int"])),
    "list[list[float]]": Shape("list", inner=(Shape("list", inner=(LEAF["float"],)),)),
    "Buffer or ExternalBuffer": Shape("either", inner=(Shape("type", "Buffer"), Shape("type", "ExternalBuffer"))),
}


def test_the_json_file_is_made_from_the_yaml_files():
    """Whoever adds a table runs the tool."""
    assert (HISTORY / "tables.json").read_text(encoding="utf-8") == history_tables.text()


@pytest.mark.parametrize("name", NAMES)
def test_a_table_says_what_its_file_says(name):
    """Kinds, fields in order, types, defaults and members are those of the YAML file."""
    written = yaml.safe_load((HISTORY / f"{name}.yaml").read_text())["types"]
    read = table(name)
    assert list(read) == list(written)
    for key, row in written.items():
        assert read[key].kind == row["kind"]
        if row["kind"] == "enum":
            members = row.get("fields") or {member: member for member in row["members"]}
            assert dict(read[key].members) == members
            continue
        for field, described in row["fields"].items():
            text = described if isinstance(described, str) else described["type"]
            assert read[key].fields[field].type == text
            assert read[key].fields[field].has_default == ("default" in described and not isinstance(described, str))
        assert list(read[key].fields) == list(row["fields"])


def test_defaults_are_values():
    """A default is a value of its type, not the text of one."""
    graph = table("8.20")["Graph"].fields
    assert graph["is_single_tensor_return"].default is False
    assert graph["custom_obj_values"].default == {}
    program = table("8.20")["ExportedProgram"].fields
    assert program["torch_version"].default == "<=2.4"
    assert program["verifiers"].default == []
    assert table("8.20")["Device"].fields["index"].default is None


@pytest.mark.parametrize("text", SHAPES)
def test_types_are_parsed(text):
    """Every form of type that the tables use."""
    assert parse_shape(text) == SHAPES[text]


def test_nested_types_are_parsed():
    """The two deep ones of schema 1."""
    (pairs,) = parse_shape("list[tuple[tuple[str, int], tuple[str, int]]]").inner
    assert [inner.kind for inner in pairs.inner] == ["tuple", "tuple"]
    (call,) = parse_shape("tuple[list[bytes], dict[str, bytes]] | None").inner
    assert [inner.kind for inner in call.inner] == ["list", "dict"]


def test_trailing_text_is_refused():
    """A type's text is read to its end."""
    with pytest.raises(ValueError, match="expected the end"):
        parse_shape("int int")


def test_an_unknown_table_is_refused():
    """The tables that there are, are named."""
    with pytest.raises(VersionError, match=r"expected one of draft, 1, .*8\.20, got '9'"):
        table("9")
