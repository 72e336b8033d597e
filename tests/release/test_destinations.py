"""Names of targets -> versions, releases, layouts and records."""

from __future__ import annotations

import pytest

from pt2kit.errors import VersionError
from pt2kit.release.destinations import find_destination
from pt2kit.schema import LOG

PLAIN = [
    ("torch==2.1", "1", "serialized_state_dict.json", "", ""),
    ("torch==2.2", "2", "serialized_state_dict.json", "serialized_constants.json", ""),
    ("torch==2.3", "5.1", "serialized_state_dict.pt", "serialized_constants.pt", ""),
    *(
        (target, version, "serialized_state_dict.pt", "serialized_constants.pt", "serialized_example_inputs.pt")
        for target, version in (("5.3-traces", "5.3-traces"), ("torch==2.4", "5.3"), ("8.2", "8.2"), ("8.7", "8.7"))
    ),
]


@pytest.mark.parametrize(("target", "version", "state", "constants", "inputs"), PLAIN)
def test_plain_zips(target: str, version: str, state: str, constants: str, inputs: str) -> None:
    """Each release has its own names for the records of a plain zip."""
    found = find_destination(target)
    assert (found.version, found.layout.kind) == (version, "plain-zip")
    assert tuple(found.pickles("model").values()) == tuple(filter(None, (state, constants)))
    assert found.sample_inputs("model") == inputs
    assert not found.layout.is_archive


@pytest.mark.parametrize(
    ("target", "kind"),
    [("draft", "json"), ("8.6", "model"), ("8.8", "archive-2.8"), ("torch==2.8", "archive-2.8"), ("8.14", "archive")],
)
def test_other_layouts(target: str, kind: str) -> None:
    """The draft, the containers and the archives."""
    found = find_destination(target)
    assert found.layout.kind == kind
    assert found.layout.is_archive == (kind != "json")
    assert found.keeps_all_buffers == found.has_constants_inside == (target == "draft")


def test_every_version_and_release_is_a_target() -> None:
    """A version stands for the first release that wrote it."""
    for row in LOG:
        assert find_destination(row.number).release == (row.releases[0] if row.releases else "")
        for release in row.releases:
            found = find_destination(f"torch=={release}.1")
            assert (found.version, found.release) == (row.number, release)
    with pytest.raises(VersionError, match="M4"):
        find_destination("3")


TARGETS = [
    ("8.20", ("8.20", "2.12", "2.15")),
    ("5.3", ("5.3", "2.4", "2.4")),
    ("1", ("1", "2.1", "2.1")),
    ("8.6", ("8.6", "", "")),
    ("draft", ("draft", "", "")),
    ("5.3-traces", ("5.3-traces", "", "")),
    ("torch==2.4", ("5.3", "2.4", "2.4")),
    ("torch==2.4.1", ("5.3", "2.4", "2.4")),
    ("torch==2.13", ("8.20", "2.13", "2.13")),
    ("torch==2.10.0", ("8.15", "2.10", "2.10")),
    ("torch==2.13.0rc1", ("8.20", "2.13", "2.13")),
    ("torch==2.13.0+cpu", ("8.20", "2.13", "2.13")),
    ("torch==2.13.0a0+git12ab", ("8.20", "2.13", "2.13")),
]


@pytest.mark.parametrize(("text", "target"), TARGETS)
def test_targets(text, target):
    """Versions and releases."""
    found = find_destination(text)
    assert (found.version, found.release, found.operators) == target


def test_every_release_is_a_target():
    """The log and the targets agree."""
    for version in LOG:
        for release in version.releases:
            found = find_destination(f"torch=={release}")
            assert (found.version, found.release, found.operators) == (version.number, release, release)


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
        find_destination(text)


@pytest.mark.parametrize(
    ("text", "release"), [("2.4", "2.4"), ("2.13.0", "2.13"), ("torch-2.5", "2.5"), ("torch>=2.5.1", "2.5")]
)
def test_releases_written_in_another_way(text, release):
    """The message names a release as targets write it; a number alone may be a schema version as well."""
    with pytest.raises(VersionError, match=rf"got '{text}'; that release is torch=={release} \[M4\]"):
        find_destination(text)
