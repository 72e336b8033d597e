"""Names of targets -> layouts and records."""

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
