"""The version of a program is found, and targets are understood."""

from __future__ import annotations

import pytest
from tests.versions.programs import VERSIONS, golden_bytes

from pt2kit.codec import parse
from pt2kit.errors import SchemaError, VersionError
from pt2kit.versions.identify import Found, find_version


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_programs_are_recognised(version):
    """Each by its number, or by its keys."""
    raw = parse(golden_bytes(version), version, bare_literals=True)
    number = version.removesuffix("-traces")
    assert find_version(raw, "x") == Found(number, version)


FOUND = [
    (1, Found("1", "1")),
    (2, Found("2", "2")),
    ({"major": 5, "minor": 0}, Found("5.0", "5.1")),
    ({"major": 5, "minor": 2}, Found("5.2", "5.3")),
    ({"major": 7, "minor": 1}, Found("7.1", "7.3")),
    ({"major": 8, "minor": 0}, Found("8.0", "8.2")),
    ({"major": 8, "minor": 10}, Found("8.10", "8.14")),
    ({"major": 8, "minor": 18}, Found("8.18", "8.20")),
    ({"major": 8, "minor": 99}, Found("8.99", "8.20")),
]


@pytest.mark.parametrize(("stored", "found"), FOUND)
def test_numbers_between_releases(stored, found):
    """A development state is described by the next table; a newer minor by the newest."""
    assert find_version({"schema_version": stored}, "x") == found


UNKNOWN = [
    ({"major": 9, "minor": 0}, "got 9.0, newer than 8.20, the newest that this build reads; upgrade pt2kit"),
    ({"major": 6, "minor": 0}, "got 6.0, which no release of torch wrote"),
    ({"major": 5, "minor": 4}, "got 5.4, which no release of torch wrote"),
    (3, "expected a version of major 1, 2, 5, 7, 8, got 3, which no release"),
    (0, "got 0, which no release"),
]


@pytest.mark.parametrize(("stored", "message"), UNKNOWN)
def test_versions_without_a_table(stored, message):
    """Both numbers are in the message."""
    with pytest.raises(VersionError, match=rf"^x: \$\.schema_version: .*{message}.*\[M4\]$"):
        find_version({"schema_version": stored}, "x")


NOTHING = [
    ([], r"\$: expected an object, got list"),
    ({}, "expected a program, got another JSON object, without keys"),
    ({"schema_version": None}, "got None"),
    ({"schema_version": True}, "got True"),
    ({"schema_version": "8.20"}, "got '8.20'"),
    ({"schema_version": -1}, "got -1"),
    ({"schema_version": {"major": 8}}, "got {'major': 8}"),
    ({"schema_version": {"major": True, "minor": 2}}, "got {'major': True, 'minor': 2}"),
    ({"graph": {}, "parameters": {}}, "with the keys 'graph', 'parameters'"),
    ({"graph_module": {}}, "got none"),
]


@pytest.mark.parametrize(("raw", "message"), NOTHING)
def test_what_is_no_program(raw, message):
    """A record that says no version."""
    with pytest.raises(SchemaError, match=rf"^x: .*{message}.*\[M5\]$"):
        find_version(raw, "x")
