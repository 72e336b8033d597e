"""Versions of programs: older minors are raised, newer minors kept whole, newer majors refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests import samples
from tests.packages import edited

import pt2kit
from pt2kit import schema
from pt2kit.errors import GraphError, Pt2Error, SchemaError, UnsupportedError, VersionError

MLP = samples.sample("2.13.0", "mlp")
MAJOR, MINOR = schema.CURRENT.pair


def _version(major: Any, minor: Any):
    def change(tree: Any) -> None:
        tree["schema_version"] = {"major": major, "minor": minor}

    return change


def _read(data: bytes) -> schema.ExportedProgram:
    with pt2kit.open(data) as package:
        return package.programs["model"]


def test_an_older_minor_is_raised() -> None:
    """A program of an older minor is stamped with the current version; what came later has its default."""
    with pt2kit.open(samples.sample("2.9.1", "mlp")) as package:
        program = package.programs["model"]
        assert package.stored["model"].version == "8.14"
    assert program.schema_version == schema.SchemaVersion(MAJOR, MINOR)
    assert {node.name for node in program.graph_module.graph.nodes} == {None}


def test_a_newer_minor_is_kept_as_it_is() -> None:
    """A program of a newer minor keeps its version; keys that this build does not know are listed, with values."""

    def change(tree: Any) -> None:
        _version(MAJOR, MINOR + 1)(tree)
        tree["novelty"] = {"a": [1, None]}
        tree["graph_module"]["graph"]["nodes"][1]["colour"] = "red"

    with pt2kit.open(edited(MLP, change)) as package:
        stored = package.stored["model"]
        assert package.stored_schema_version == f"{MAJOR}.{MINOR + 1}"
        assert stored.program.schema_version.minor == MINOR + 1
        assert {str(key): key.value for key in stored.unknown} == {
            "$.novelty": {"a": [1, None]},
            "$.graph_module.graph.nodes[1].colour": "red",
        }
        assert package.unknown() == (
            "models/model.json: $.graph_module.graph.nodes[1].colour",
            "models/model.json: $.novelty",
        )


def test_unknown_keys_of_configs_are_reported() -> None:
    """Keys of a weights config that this build does not know are listed too."""

    def change(tree: Any) -> None:
        next(iter(tree["config"].values()))["compression"] = "zstd"

    with pt2kit.open(edited(MLP, change, "data/weights/model_weights_config.json")) as package:
        [place] = package.unknown()
        assert place.startswith("data/weights/model_weights_config.json: $.config[")
        assert place.endswith("].compression")
        assert next(iter(package.weights().values())).numpy().size


def test_what_a_newer_minor_cannot_say_here() -> None:
    """Something that a newer minor brought and this build cannot hold is a matter of versions, and says what to do."""

    def change(tree: Any) -> None:
        _version(MAJOR, MINOR + 1)(tree)
        tree["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"] = {"as_novelty": 1}

    with pytest.raises(VersionError) as caught:
        _read(edited(MLP, change))
    text = str(caught.value)
    assert text.startswith(f"models/model.json: expected schema {MAJOR}.{MINOR} or older, got {MAJOR}.{MINOR + 1}")
    assert "as_novelty" in text
    assert text.endswith("upgrade pt2kit")


@pytest.mark.parametrize(
    ("major", "minor", "error", "text"),
    [
        (
            MAJOR + 1,
            0,
            VersionError,
            f"$.schema_version: expected a version of major 1, 2, 5, 7, {MAJOR}, got {MAJOR + 1}.0, "
            f"newer than {MAJOR}.{MINOR}, the newest that this build reads; upgrade pt2kit [M4]",
        ),
        (2**70, 0, VersionError, "upgrade pt2kit"),
        (0, 0, VersionError, "got 0.0, which no release of torch wrote (the oldest is 1)"),
        (6, 0, VersionError, "got 6.0, which no release of torch wrote (the oldest is 1)"),
        (MAJOR, -1, VersionError, f"got {MAJOR}.-1"),
        ("8", 0, SchemaError, "$.schema_version.major: expected int, got str"),
        (True, 0, SchemaError, "$.schema_version.major"),
        (None, 0, SchemaError, "$.schema_version.major"),
    ],
)
def test_other_versions(major: Any, minor: Any, error: type[Pt2Error], text: str) -> None:
    """A version that is not read is refused by number, with what to do; one that is no version is an error."""
    with pytest.raises(error) as caught:
        _read(edited(MLP, _version(major, minor)))
    assert text in str(caught.value)
    assert str(caught.value).startswith("models/model.json: ")


def test_another_major_is_told_before_its_misfits() -> None:
    """A program of a newer major that has another shape is refused for its version, not for its shape."""

    def change(tree: Any) -> None:
        tree.clear()
        _version(MAJOR + 1, 3)(tree)
        tree["program"] = []

    with pytest.raises(VersionError, match=rf"got {MAJOR + 1}\.3, newer than .* upgrade pt2kit"):
        _read(edited(MLP, change))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        pytest.param(
            lambda tree: tree["range_constraints"].update(s0={"min_val": 9, "max_val": 2}),
            GraphError,
            "models/model.json: $.range_constraints.s0: expected a least value up to the greatest, got 9 and 2",
            id="empty range",
        ),
        pytest.param(
            lambda tree: tree["graph_module"]["graph"]["tensor_values"]["linear"]["device"].update(type="evil\x1b"),
            UnsupportedError,
            "models/model.json: $.graph_module.graph.tensor_values.linear: device: expected a device type of torch "
            "(cpu, cuda, mps, xpu, …), got 'evil\\x1b' [P6]",
            id="device",
        ),
    ],
)
def test_what_a_program_states(change, error: type[Pt2Error], text: str) -> None:
    """Ranges that hold nothing and devices that no torch has are refused with their place."""
    with pytest.raises(error) as caught:
        _read(edited(MLP, change))
    assert str(caught.value) == text
