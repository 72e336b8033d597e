"""Tables come from the classes, the history and files; a file can be wrong in many ways."""

from __future__ import annotations

import builtins

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pt2kit import idl, schema
from pt2kit.errors import Pt2Error, SchemaError, UnsupportedError, VersionError
from pt2kit.idl.sources import MAX_FILE, read_table, table, versions
from pt2kit.schema.fieldtable import frozen_table

GOOD = """
schema_version: "9.1"
types:
  A: {kind: struct, fields: {a: {type: int, id: 10, default: "None"}, b: "list[A]"}}
"""


def _read(tmp_path, text):
    path = tmp_path / "schema.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path)


def test_every_version_has_a_table():
    """All of them by name; the current one by default, and it is that of the classes."""
    assert versions()[0] == "draft"
    assert versions()[-1] == schema.CURRENT.number
    assert all(frozen_table(version).version == version for version in versions())
    assert table() == table("current") == table(schema.CURRENT.number)


@pytest.mark.parametrize("version", ["8.19", "", "../8.20", "v8.20"])
def test_other_versions_are_refused(version):
    """The message lists the known ones."""
    with pytest.raises(VersionError, match=r"expected one of draft, 1, 2, .*8\.20.*, got "):
        frozen_table(version)


def test_a_file_in_either_shape_is_read(tmp_path):
    """That of the history, with or without the short form of a field, that of torch, and JSON."""
    ours = _read(tmp_path, GOOD)
    assert (ours.version, ours.definitions["A"].fields["a"].id) == ("9.1", 10)
    theirs = _read(
        tmp_path,
        "A: {kind: struct, fields: {a: {type: int, default: 'None'}, b: {type: 'List[A]'}}}\n"
        "SCHEMA_VERSION: [9, 1]\nTREESPEC_VERSION: 1\n",
    )
    assert theirs.version == "9.1"
    assert idl.changes(ours, theirs) == ()
    path = tmp_path / "schema.json"
    path.write_text('{"types": {"A": {"kind": "enum", "fields": {"x": 1}}}}')
    assert read_table(path).version == ""


BAD = {
    "": "expected types by name, got a NoneType",
    "- 1": "expected types by name, got a list",
    "1: 2": "expected types by name, got a dict",
    "A: 1": "A: expected a kind of struct, union or enum, got 1",
    "types: {1: {}}": "expected the name of a type, got '1'",
    "types: {'a b': {}}": "expected the name of a type, got 'a b'",
    "schema_version: 8.20\ntypes: {}": "expected the version in quotes (8.20 without them is 8.2), got 8.2",
    "schema_version: [1]\ntypes: {}": "expected a version like 8.20, got a list",
    "schema_version: 2024-01-01\ntypes: {}": "expected a version like 8.20, got a date",
    "types: {A: &x {kind: enum, fields: {}}, B: *x}": "not a field table: expected no aliases, got one",
    "types: {A: 1, A: 2}": "not a field table: expected each key once, got 'A' twice",
    "types: {A: !!python/object/apply:os.system [id]}": "not a field table: could not determine a constructor",
    "\t": "not a field table: ",
    "[" * 5000: "not a field table: ",
    "types: {A: {kind: enum, fields: {a: 2024-13-45}}}": "not a field table: ValueError",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:30])
def test_other_files_are_refused(text, tmp_path):
    """With the file's name and what was expected; nothing in it is executed."""
    with pytest.raises(Pt2Error) as caught:
        _read(tmp_path, text)
    assert str(caught.value).startswith(f"schema.yaml: {BAD[text]}")


def test_a_large_file_is_refused(tmp_path):
    """Before it is parsed."""
    with pytest.raises(SchemaError, match=f"expected a field table of at most {MAX_FILE} bytes, got more"):
        _read(tmp_path, b"#" * (MAX_FILE + 1))


def test_a_bad_number_is_refused(tmp_path):
    """A version is one or two numbers."""
    with pytest.raises(
        VersionError, match=r"^schema\.yaml: schema version: expected major\.minor like 8\.20, got 'eight'"
    ):
        _read(tmp_path, 'schema_version: "eight"\ntypes: {}')


def test_without_a_yaml_reader_the_message_says_what_to_install(tmp_path, monkeypatch):
    """Only files need one: the tables of all versions are there without."""
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "yaml":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UnsupportedError, match="needs PyYAML: pip install pyyaml"):
        _read(tmp_path, GOOD)
    assert frozen_table("8.6").version == "8.6"


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60) | st.text(st.sampled_from("types: {}[]A&*!kindstructfields\n-,'\"#"), max_size=60))
def test_no_file_brings_another_error(tmp_path_factory, data):
    """Any bytes are a table or refused with an error of ours."""
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    try:
        read_table(path)
    except Pt2Error as error:
        assert str(error).startswith("fuzz.yaml: ")
