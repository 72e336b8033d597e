"""Paths inside a `.pt2`: names of records, built and parsed by one function each way per kind of record.

All names here are relative to the archive's root folder (`Layout.record` puts it in front). The layouts are in
`layouts/`; `zip/chosen_names.py` decides which text may be a record name at all.

Source: torch/csrc/export/pt2_archive_constants.h (2.13); the plain zip of 2.1 to 2.7 as those releases write it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal

ARCHIVE_FORMAT: Final = "archive_format"
ARCHIVE_VERSION: Final = "archive_version"
BYTEORDER: Final = "byteorder"
DATA_VERSION: Final = ".data/version"
DATA_VERSION_SHORT: Final = "version"
"""Record that torch's zip writer writes instead of `.data/version` when nothing in the archive needs version 6 or
later.
"""
SERIALIZATION_ID: Final = ".data/serialization_id"

MODELS: Final = "models/"
WEIGHTS: Final = "data/weights/"
CONSTANTS: Final = "data/constants/"
SAMPLE_INPUTS: Final = "data/sample_inputs/"
AOTINDUCTOR: Final = "data/aotinductor/"
EXECUTORCH: Final = "data/executorch/"
EXTRA: Final = "extra/"

WEIGHTS_CONFIG_SUFFIX: Final = "_weights_config.json"
CONSTANTS_CONFIG_SUFFIX: Final = "_constants_config.json"

PLAIN_PROGRAM: Final = "serialized_exported_program.json"
PLAIN_STATE_DICT: Final = "serialized_state_dict.pt"
PLAIN_STATE_DICT_OLD: Final = "serialized_state_dict.json"
"""torch 2.1 and 2.2: a torch.save payload in spite of its name."""
PLAIN_CONSTANTS: Final = "serialized_constants.pt"
PLAIN_CONSTANTS_OLD: Final = "serialized_constants.json"
"""torch 2.2: likewise."""
PLAIN_EXAMPLE_INPUTS: Final = "serialized_example_inputs.pt"
PLAIN_VERSION: Final = "version"
PLAIN_EXTRA: Final = "extra_files/"

Kind = Literal[
    "header",
    "program",
    "weights config",
    "constants config",
    "weight",
    "tensor constant",
    "custom object",
    "opaque object",
    "weights payload",
    "constants payload",
    "sample inputs",
    "extra file",
    "compiled code",
    "other",
]

_SAMPLES_STORAGE: Final = re.compile(r"data/sample_inputs/tensor_(?:0|[1-9][0-9]{0,8})")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


_KINDS: Final[dict[Callable[[str], str | int | None], Kind]] = {}
"""Function that takes the name or number out of a record's name -> kind of the records that have one."""


def _pair(
    prefix: str, suffix: str = "", kind: Kind | None = None
) -> tuple[Callable[[str], str], Callable[[str], str | None]]:
    """Return the function that puts a name between a prefix and a suffix, and the one that takes it out again.

    The second one returns None for a record that has no name there; all others are of the kind, if one is passed.
    """

    def build(name: str) -> str:
        return f"{prefix}{name}{suffix}"

    def parse(record: str) -> str | None:
        if record.startswith(prefix) and record.endswith(suffix) and len(record) > len(prefix) + len(suffix):
            return record[len(prefix) : len(record) - len(suffix)]
        return None

    if kind is not None:
        _KINDS[parse] = kind
    return build, parse


def _numbered(prefix: str, kind: Kind) -> tuple[Callable[[int], str], Callable[[str], int | None]]:
    """Return the function that puts a number after a prefix, and the one that takes it out again.

    The second one returns None for a record that has no number there; all others are of the kind.
    """

    def build(number: int) -> str:
        return f"{prefix}{number}"

    def parse(record: str) -> int | None:
        number = record.removeprefix(prefix)
        return int(number) if record != number and _NUMBER.fullmatch(number) else None

    _KINDS[parse] = kind
    return build, parse


weight, weight_index = _numbered(f"{WEIGHTS}weight_", "weight")
"""The storage of weights of a number."""
tensor_constant, tensor_constant_index = _numbered(f"{CONSTANTS}tensor_", "tensor constant")
"""The storage of a constant tensor."""
custom_object, custom_object_index = _numbered(f"{CONSTANTS}custom_obj_", "custom object")
"""A script object (a torchbind pickle)."""
opaque_object, opaque_object_index = _numbered(f"{CONSTANTS}opaque_obj_", "opaque object")
"""An opaque object (a pickle)."""
model_json, model_name = _pair(MODELS, ".json", kind="program")
"""A program: "model" <-> "models/model.json"."""
weights_config, weights_config_model = _pair(WEIGHTS, WEIGHTS_CONFIG_SUFFIX, kind="weights config")
"""The list of the payload of each weight of a program."""
constants_config, constants_config_model = _pair(CONSTANTS, CONSTANTS_CONFIG_SUFFIX, kind="constants config")
"""The list of the payload of each constant of a program."""
weights_payload, weights_payload_model = _pair(WEIGHTS, ".pt", kind="weights payload")
"""The torch.save file with all weights of a program (torch 2.8)."""
constants_payload, constants_payload_model = _pair(CONSTANTS, ".pt", kind="constants payload")
"""The torch.save file with all constants of a program (torch 2.8)."""
sample_inputs, sample_inputs_model = _pair(SAMPLE_INPUTS, ".pt", kind="sample inputs")
"""The torch.save file with the `(args, kwargs)` that a program was exported with."""
samples_index, samples_index_model = _pair(f"{EXTRA}pt2kit/sample_inputs/", ".json")
"""The index of a program's sample inputs without a pickle: "extra/pt2kit/sample_inputs/model.json"."""
extra, extra_name = _pair(EXTRA, kind="extra file")
"""An extra file, as its user named it: "note.txt" <-> "extra/note.txt"."""
plain_extra, plain_extra_name = _pair(PLAIN_EXTRA, kind="extra file")
"""An extra file in a plain zip (torch 2.1 to 2.7)."""

_PLAIN_KINDS: Final[dict[str, Kind]] = {
    PLAIN_PROGRAM: "program",
    PLAIN_STATE_DICT: "weights payload",
    PLAIN_STATE_DICT_OLD: "weights payload",
    PLAIN_CONSTANTS: "constants payload",
    PLAIN_CONSTANTS_OLD: "constants payload",
    PLAIN_EXAMPLE_INPUTS: "sample inputs",
}
PLAIN_RECORDS: Final = frozenset((*_PLAIN_KINDS, PLAIN_VERSION))
"""The records at the top of a plain zip (torch 2.1 to 2.7), besides `extra_files/`."""
_HEADERS: Final = frozenset(
    (ARCHIVE_FORMAT, ARCHIVE_VERSION, BYTEORDER, DATA_VERSION, DATA_VERSION_SHORT, SERIALIZATION_ID)
)


def looked_up(model: str) -> tuple[str, ...]:
    """Return the records that torch reads by their names in an archive: its header, and those of a program."""
    own = (sample_inputs, weights_config, constants_config, weights_payload, constants_payload)
    return (*_HEADERS, *(build(model) for build in own))


def payload_folder(kind: str) -> str:
    """Return the folder of a program's "weights" or "constants"."""
    return WEIGHTS if kind == "weights" else CONSTANTS


def payload_config(model: str, kind: str) -> str:
    """Return the config of a program's "weights" or "constants"."""
    return weights_config(model) if kind == "weights" else constants_config(model)


def samples_storage(number: int) -> str:
    """Return the record of storage number `number` of sample inputs without a pickle."""
    return f"{SAMPLE_INPUTS}tensor_{number}"


PAYLOADS: Final[Mapping[str, Callable[[int], str]]] = MappingProxyType(
    {"weights": weight, "constants": tensor_constant, "samples": samples_storage}
)
"""Kind of tensors -> the function that makes the name of a raw record of them, of its number."""


def is_samples_storage(record: str) -> bool:
    """Return whether a record has bytes of a tensor among the sample inputs."""
    return bool(_SAMPLES_STORAGE.fullmatch(record))


def in_archive(record: str) -> str:
    """Return the name in an archive for a user's own record in a plain zip; any other name unchanged."""
    if record == PLAIN_EXAMPLE_INPUTS:
        return sample_inputs("model")
    name = plain_extra_name(record)
    return record if name is None else extra(name)


def aotinductor(model: str, file: str) -> str:
    """Return the record of a file of compiled code of `model`."""
    return f"{AOTINDUCTOR}{model}/{file}"


def aotinductor_model(record: str) -> str | None:
    """Return the model's name, if `record` belongs to compiled code."""
    model, slash, _ = record.removeprefix(AOTINDUCTOR).partition("/")
    return model if slash and record.startswith(AOTINDUCTOR) else None


def is_plain(record: str) -> bool:
    """Return whether a record at the top of a zip belongs to the plain layout of torch 2.1 to 2.7."""
    return record in PLAIN_RECORDS or record.startswith(PLAIN_EXTRA)


def kind(record: str) -> Kind:
    """Return the kind of a record of an archive or of a plain zip, by its name alone."""
    if record in _HEADERS:
        return "header"
    if record in _PLAIN_KINDS:
        return _PLAIN_KINDS[record]
    if record.startswith(AOTINDUCTOR):
        return "compiled code"
    return next((found for parse, found in _KINDS.items() if parse(record) is not None), "other")
