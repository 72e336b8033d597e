"""The version of a program is found, and targets are understood."""

from __future__ import annotations

import pytest
from tests.versions.programs import VERSIONS, golden_bytes

from pt2kit import schema
from pt2kit.codec import parse
from pt2kit.errors import SchemaError, VersionError
from pt2kit.versions.identify import Found, Target, find_version, parse_target


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


TARGETS = [
    ("8.20", Target("8.20", "2.12", "2.15")),
    ("5.3", Target("5.3", "2.4", "2.4")),
    ("1", Target("1", "2.1", "2.1")),
    ("8.6", Target("8.6", "")),
    ("draft", Target("draft", "")),
    ("5.3-traces", Target("5.3-traces", "")),
    ("torch==2.4", Target("5.3", "2.4", "2.4")),
    ("torch==2.4.1", Target("5.3", "2.4", "2.4")),
    ("torch==2.13", Target("8.20", "2.13", "2.13")),
    ("torch==2.10.0", Target("8.15", "2.10", "2.10")),
    ("torch==2.13.0rc1", Target("8.20", "2.13", "2.13")),
    ("torch==2.13.0+cpu", Target("8.20", "2.13", "2.13")),
    ("torch==2.13.0a0+git12ab", Target("8.20", "2.13", "2.13")),
]


@pytest.mark.parametrize(("text", "target"), TARGETS)
def test_targets(text, target):
    """Versions and releases."""
    assert parse_target(text) == target


def test_every_release_is_a_target():
    """The log and the targets agree."""
    for version in schema.LOG:
        for release in version.releases:
            assert parse_target(f"torch=={release}") == Target(version.number, release, release)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "torch",
        "torch==2",
        "torch==2.0",
        "torch==1.13",
        "8.9",
        "2.4",
        "torch>=2.4",
        "9",
        "torch==2.4.junk",
        "torch==2.4.1.2.3",
        "torch==2.4 ",
    ],
)
def test_unknown_targets(text):
    """The ones there are, are listed."""
    with pytest.raises(
        VersionError, match=rf"draft, 1, 2, .*8\.20, 5\.3-traces.*torch==2\.1 to torch==2\.15, got '{text}'"
    ):
        parse_target(text)


@pytest.mark.parametrize(
    ("text", "release"), [("2.4", "2.4"), ("2.13.0", "2.13"), ("torch-2.5", "2.5"), ("torch>=2.5.1", "2.5")]
)
def test_releases_written_in_another_way(text, release):
    """The message names a release as targets write it; a number alone may be a schema version as well."""
    with pytest.raises(VersionError, match=rf"got '{text}'; that release is torch=={release} \[M4\]"):
        parse_target(text)
