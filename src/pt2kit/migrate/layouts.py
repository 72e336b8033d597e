"""An archive of any release -> where the parts of each program are; those that are torch.save files, read as data.

    plain zip, 2.1 to 2.7     serialized_exported_program.json, serialized_state_dict.pt, serialized_constants.pt,
                              serialized_example_inputs.pt (from 2.4 on), version, extra_files/; 2.1 and 2.2 call the
                              state dict and the constants .json, 2.1 has no constants
    archive, 2.8              models/<name>.json, data/{weights,constants,sample_inputs}/<name>.pt, extra/
    archive, 2.9 and later    configs and raw records for weights and constants, the rest as in 2.8
    bare JSON                 a program alone

The records of 2.9 and later are read by `tensors`; `stored_as` says which kind a program has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from pt2kit import codec
from pt2kit.archive import names
from pt2kit.archive.layout import Layout, payload_layout
from pt2kit.archive.pickle_values import TensorLike
from pt2kit.archive.pickled import read_payload
from pt2kit.archive.reader import Archive
from pt2kit.errors import ArchiveError, PayloadError
from pt2kit.migrate.program import Raised, raise_program

PLAIN_MODEL = "model"
"""The name of the one program of a plain zip."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Full names of the records that belong to one program; None where there is none.

    Args:
        program: the JSON record.
        stored_as: "records" where weights and constants are raw records listed by configs, "torch.save" where each is
            one torch.save file.
        weights, constants: the config, or the torch.save file.
        sample_inputs: the torch.save file of (args, kwargs).
    """

    program: str
    stored_as: Literal["records", "torch.save"]
    weights: str | None
    constants: str | None
    sample_inputs: str | None


def parts(archive: Archive, layout: Layout, model: str) -> Parts:
    """Say where the parts of one program are, from names alone.

    Args:
        archive, layout: as `archive.layout.verify_header` gives the second for the first.
        model: one of `layout.models`.

    Raises:
        ArchiveError, UnsupportedError: weights or constants are missing, or described in two ways (A25).
    """
    records = archive.records

    def first(*candidates: str) -> str | None:
        return next((name for name in map(layout.record, candidates) if name in records), None)

    if layout.kind == "plain-zip":
        weights = first(names.PLAIN_STATE_DICT, names.PLAIN_STATE_DICT_OLD)
        if weights is None:
            raise ArchiveError(
                f"{archive.source.name}: expected a record {names.PLAIN_STATE_DICT} in a plain zip, got none",
                rule="A25",
            )
        constants = first(names.PLAIN_CONSTANTS, names.PLAIN_CONSTANTS_OLD)
        return Parts(names.PLAIN_PROGRAM, "torch.save", weights, constants, first(names.PLAIN_EXAMPLE_INPUTS))
    program, samples = layout.record(names.model_json(model)), first(names.sample_inputs(model))
    if payload_layout(records, layout, model, archive.source.name) == "archive":
        weights, constants = layout.record(names.weights_config(model)), layout.record(names.constants_config(model))
        return Parts(program, "records", weights, constants, samples)
    weights, constants = layout.record(names.weights_payload(model)), layout.record(names.constants_payload(model))
    return Parts(program, "torch.save", weights, constants, samples)


def extra_files(archive: Archive, layout: Layout) -> Mapping[str, str]:
    """Name of each file that the user put beside the programs -> full name of its record."""
    name_of = names.plain_extra_name if layout.kind == "plain-zip" else names.extra_name
    relative = {record: record.removeprefix(layout.root) for record in archive.records}
    return MappingProxyType({name: record for record, short in relative.items() if (name := name_of(short))})


def read_program(
    archive: Archive, where: str, *, record: str | None = None, namedtuples: Mapping[str, str] | None = None
) -> Raised:
    """Read the program of a record, of whatever version, and raise it to the current one.

    Args:
        archive: open.
        where: the record's name; what messages call it.
        record: its full name, if that is another.
        namedtuples: as in `raise_program`.

    Raises:
        ArchiveError: no such record, or a damaged one.
        JsonError: no JSON document.
        Pt2Error: as `raise_program`.
    """
    return read_bare_program(archive.read(record or where), where, namedtuples=namedtuples)


def read_bare_program(data: bytes | memoryview, where: str, *, namedtuples: Mapping[str, str] | None = None) -> Raised:
    """Read the JSON text of a program, of whatever version, and raise it to the current one.

    Raises:
        JsonError: no JSON document.
        Pt2Error: as `raise_program`.
    """
    return raise_program(codec.parse(data, where, bare_literals=True), where, namedtuples=namedtuples)


def read_state(archive: Archive, record: str | None) -> Mapping[str, Any]:
    """Read a state dict, or the constants beside it, from a torch.save file; no tensor bytes.

    Args:
        archive: open.
        record: the file, from `Parts`; None and an empty record hold nothing.

    Returns:
        name -> description: a `TensorLike` of `archive.pickle_values`, or another plain value where a constant is none.

    Raises:
        ArchiveError: a damaged record.
        UnsupportedError: it holds more than data; the message names what.
        PayloadError: no dict from names to values.
        LimitError: it costs too much.
    """
    data = archive.read(record) if record is not None else b""
    if record is None or not data:
        return MappingProxyType({})
    value = read_payload(data, record)
    if not isinstance(value, Mapping):
        raise PayloadError(f"{record}: expected a dict from names to tensors, got {type(value).__name__}")
    for key in value:
        if not isinstance(key, str):
            raise PayloadError(f"{record}: expected names as keys, got {str(key)[:80]!r} ({type(key).__name__})")
    return MappingProxyType(dict(value))


def read_weights(archive: Archive, place: Parts) -> Mapping[str, TensorLike]:
    """Read the state dict of a program that is stored as a torch.save file; no tensor bytes.

    Raises:
        PayloadError: an entry that is no tensor.
        Pt2Error: as `read_state`.
    """
    found = read_state(archive, place.weights)
    for name, value in found.items():
        if not isinstance(value, TensorLike):
            raise PayloadError(f"{place.weights}: {name!r}: expected a tensor, got {type(value).__name__}")
    return found


def read_constants(archive: Archive, place: Parts, program: Raised) -> Mapping[str, Any]:
    """Read the constants of a program that are in a torch.save file, or, for schema 1, inside the program.

    Returns:
        name -> description, as `read_state`; the bytes of a custom object of schema 1 as they are.

    Raises:
        Pt2Error: as `read_state`.
    """
    found = dict(read_state(archive, place.constants))
    objects = {spec["custom_obj"]["custom_obj_name"] for spec in input_specs(program.tree) if "custom_obj" in spec}
    for name, data in program.constants.items():
        if isinstance(data, bytes) and name not in objects:
            found[name] = read_payload(data, f"{place.program}: constant {name!r}")
        else:
            found[name] = data
    return MappingProxyType(found)


def input_specs(tree: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The input specs of a program of schema 2 or later."""
    specs: list[dict[str, Any]] = tree["graph_module"]["signature"]["input_specs"]
    return specs
