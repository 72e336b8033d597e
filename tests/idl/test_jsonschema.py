"""The JSON Schema accepts every real program and refuses broken ones, by a validator that is not ours."""

from __future__ import annotations

import functools
import json

import pytest
from tests.idl.helpers import BROKEN, broken, golden, package, program, programs, table
from tests.samples import RELEASES

from pt2kit import idl
from pt2kit.codec import parse
from pt2kit.idl import jsonschema
from pt2kit.idl.sources import versions


@functools.cache
def _validator(version: str, root: str = ""):
    found = json.loads(jsonschema.emit(table(version)))
    if root:
        found["allOf"] = [{"$ref": f"#/definitions/{root}"}]
    return package("fastjsonschema").compile(found)


@pytest.mark.parametrize("release", RELEASES)
def test_every_program_is_valid(release):
    """A program of any release is valid under the schema of its version. Bare words are read as the floats they are."""
    for name, version, text in programs(release):
        _validator(version)(parse(text, name, bare_literals=True))


def test_every_payload_config_is_valid():
    """The same for the other record with a type of the schema."""
    found = programs(part="_config.json")
    assert len(found) > 100
    for name, version, text in found:
        _validator(version, "PayloadConfig")(parse(text, name))


@pytest.mark.parametrize("version", ["8.6", "8.20"])
def test_every_golden_file_is_valid(version):
    """Those that use everything a version has."""
    assert golden(version)
    for name, root, text in golden(version):
        _validator(version, root)(parse(text, name))


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_programs_are_refused(fault):
    """Each kind of fault is found, in the newest version and in one whose unions hold every key."""
    refused = package("fastjsonschema").JsonSchemaValueException
    for release, version in (("2.13.0", "8.20"), ("2.6.0", "8.2"), ("2.2.2", "2")):
        tree = program("mlp", release)
        if fault == "a list holds null" and version == "2":
            continue
        with pytest.raises(refused, match=r"^data"):
            _validator(version)(broken(fault, tree))


def test_unknown_keys_are_for_newer_minors():
    """An object may hold a key that the schema does not know; a union may not."""
    tree = program("mlp")
    tree["graph_module"]["new_in_8_99"] = {"anything": 1}
    _validator("8.20")(tree)


def test_two_values_in_an_old_union_are_refused():
    """In unions with every key, exactly one must not be null."""
    tree = program("mlp", "2.1.2")
    argument = tree["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"]
    for change in ({"as_int": 1}, dict.fromkeys(argument)):
        changed = {**argument, **change}
        tree["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"] = changed
        with pytest.raises(
            package("fastjsonschema").JsonSchemaValueException, match=r"inputs\[0\]\.arg must be valid exactly by one"
        ):
            _validator("1")(tree)


@pytest.mark.parametrize("version", versions())
def test_every_version_compiles(version):
    """Its definitions are those of the table, and the validator takes the schema."""
    found = json.loads(jsonschema.emit(table(version)))
    assert set(found["definitions"]) == {"float", "bytes", *table(version).definitions}
    _validator(version)


def test_defaults_and_required_keys_agree():
    """A key is either required or has its default in the schema."""
    definitions = json.loads(jsonschema.emit(idl.table()))["definitions"]
    program_keys = definitions["ExportedProgram"]
    assert program_keys["properties"]["torch_version"]["default"] == "<=2.4"
    assert "torch_version" not in program_keys["required"]
    assert "graph_module" in program_keys["required"]
