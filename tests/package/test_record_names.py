"""Paths inside a `.pt2`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.package import record_names as names

PAIRS = {
    "model": (names.model_json, names.model_name, "models/model.json"),
    "weights config": (names.weights_config, names.weights_config_model, "data/weights/model_weights_config.json"),
    "constants config": (
        names.constants_config,
        names.constants_config_model,
        "data/constants/model_constants_config.json",
    ),
    "weights payload": (names.weights_payload, names.weights_payload_model, "data/weights/model.pt"),
    "constants payload": (names.constants_payload, names.constants_payload_model, "data/constants/model.pt"),
    "sample inputs": (names.sample_inputs, names.sample_inputs_model, "data/sample_inputs/model.pt"),
    "extra": (names.extra, names.extra_name, "extra/model"),
    "plain extra": (names.plain_extra, names.plain_extra_name, "extra_files/model"),
}

KINDS = {
    "archive_format": "header",
    "archive_version": "header",
    "byteorder": "header",
    ".data/version": "header",
    "version": "header",
    ".data/serialization_id": "header",
    "models/a/b.json": "program",
    "data/weights/model_weights_config.json": "weights config",
    "data/weights/weight_12": "weight",
    "data/weights/weight_x": "other",
    "data/weights/model.pt": "weights payload",
    "data/constants/model_constants_config.json": "constants config",
    "data/constants/tensor_0": "tensor constant",
    "data/constants/custom_obj_0": "custom object",
    "data/constants/opaque_obj_3": "opaque object",
    "data/constants/model.pt": "constants payload",
    "data/constants/weird_0": "other",
    "data/sample_inputs/model.pt": "sample inputs",
    "data/aotinductor/model/x.so": "compiled code",
    "extra/models/model.json": "extra file",
    "models/model.txt1": "other",
    "models/.json": "other",
    "README": "other",
}


@pytest.mark.parametrize(("build", "recognise", "example"), PAIRS.values(), ids=PAIRS)
def test_pairs(build: Callable[[str], str], recognise: Callable[[str], str | None], example: str) -> None:
    """The name that one function builds, the other takes apart, and nothing else."""
    assert build("model") == example
    assert recognise(example) == "model"
    assert recognise("x" + example) is None
    assert recognise(build("")) is None


@given(st.text(min_size=1))
def test_any_model_name_comes_back(model: str) -> None:
    """A program's name may hold anything, the words of the format included."""
    assert names.model_name(names.model_json(model)) == model
    assert names.weights_config_model(names.weights_config(model)) == model
    assert names.sample_inputs_model(names.sample_inputs(model)) == model


def test_numbers() -> None:
    """Payload records are numbered in decimal."""
    assert names.weight_index(names.weight(17)) == 17
    assert names.weight_index("data/weights/weight_") is None
    assert names.weight_index("data/weights/weight_1x") is None
    assert names.weight_index("data/weights/weight_" + "9" * 30) is None
    assert names.tensor_constant_index(names.tensor_constant(3)) == 3
    assert names.custom_object_index(names.custom_object(4)) == 4
    assert names.opaque_object_index(names.opaque_object(5)) == 5
    assert names.tensor_constant_index(names.opaque_object(5)) is None
    assert names.tensor_constant_index("tensor_5") is None


def test_compiled_code() -> None:
    """Compiled code lies in a folder per model."""
    assert names.aotinductor_model(names.aotinductor("m", "a/b.so")) == "m"
    assert names.aotinductor_model("data/aotinductor/m") is None
    assert names.aotinductor_model("data/weights/m/x") is None


@pytest.mark.parametrize("record", KINDS)
def test_kinds(record: str) -> None:
    """Every record has a kind, by its name alone."""
    assert names.kind(record) == KINDS[record]


def test_plain_records() -> None:
    """The records of a plain zip are known by name."""
    assert names.is_plain("serialized_state_dict.pt")
    assert names.is_plain("extra_files/a/b")
    assert not names.is_plain("m/version")


@pytest.mark.parametrize(
    ("record", "kind", "today"),
    [
        (names.PLAIN_PROGRAM, "program", names.PLAIN_PROGRAM),
        (names.PLAIN_STATE_DICT_OLD, "weights payload", names.PLAIN_STATE_DICT_OLD),
        (names.PLAIN_CONSTANTS, "constants payload", names.PLAIN_CONSTANTS),
        (names.PLAIN_EXAMPLE_INPUTS, "sample inputs", "data/sample_inputs/model.pt"),
        (names.plain_extra("a/b.txt"), "extra file", "extra/a/b.txt"),
        ("extra/a/b.txt", "extra file", "extra/a/b.txt"),
    ],
)
def test_kinds_of_a_plain_zip(record: str, kind: str, today: str) -> None:
    """Records of the plain zip have kinds; archives rename the user's own."""
    assert names.kind(record) == kind
    assert names.in_archive(record) == today
