"""An archive of any release -> which records belong to which program, from names alone.

plain zip, 2.1 to 2.7     serialized_exported_program.json, serialized_state_dict.pt, serialized_constants.pt,
                          serialized_example_inputs.pt (from 2.4 on), version, extra_files/; 2.1 and 2.2 call the
                          state dict and the constants .json, 2.1 has no constants
archive, 2.8              models/<name>.json, data/{weights,constants,sample_inputs}/<name>.pt, extra/
archive, 2.9 and later    configs and raw records for weights and constants, the rest as in 2.8
bare JSON                 a program alone
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from pt2kit.errors import ArchiveError
from pt2kit.package import record_names as names
from pt2kit.package.layout import Layout, payload_layout
from pt2kit.zip.reader import Archive

PLAIN_MODEL = "model"
"""The name of the one program of a plain zip, and of a file that is one program."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Full names of the records that belong to one program; None where there is none.

    Args:
        program: the JSON record.
        stored_as: "records" where weights and constants are raw records listed by configs, "torch.save" where each is
            one torch.save file, "program" where the program itself has them or says where they are.
        weights, constants: the config, or the torch.save file.
        sample_inputs: the torch.save file of (args, kwargs).
    """

    program: str
    stored_as: Literal["records", "torch.save", "program"]
    weights: str | None = None
    constants: str | None = None
    sample_inputs: str | None = None


def parts(archive: Archive, layout: Layout, model: str) -> Parts:
    """Say where the parts of one program are, from names alone.

    Args:
        archive, layout: as `package.layout.verify_header` gives the second for the first.
        model: one of `layout.models`.

    Raises:
        ArchiveError, UnsupportedError: weights or constants are missing, or described in two ways (A25).
    """
    records = archive.records

    def first(*candidates: str) -> str | None:
        return next((name for name in map(layout.record, candidates) if name in records), None)

    if layout.kind == "json":
        return Parts(next(iter(records)), "program")
    if layout.kind == "plain-zip":
        weights = first(names.PLAIN_STATE_DICT, names.PLAIN_STATE_DICT_OLD)
        if weights is None:
            raise ArchiveError(
                f"{archive.source.name}: expected a record {names.PLAIN_STATE_DICT} in a plain zip, got none",
                rule="A25",
            )
        constants = first(names.PLAIN_CONSTANTS, names.PLAIN_CONSTANTS_OLD)
        return Parts(names.PLAIN_PROGRAM, "torch.save", weights, constants, first(names.PLAIN_EXAMPLE_INPUTS))
    program = program_record(archive, layout, model)
    if model in layout.methods:
        return Parts(program, "program", sample_inputs=first(names.sample_inputs(model)))
    samples = first(names.sample_inputs(model))
    if payload_layout(records, layout, model, archive.source.name) == "archive":
        weights, constants = layout.record(names.weights_config(model)), layout.record(names.constants_config(model))
        return Parts(program, "records", weights, constants, samples)
    weights, constants = layout.record(names.weights_payload(model)), layout.record(names.constants_payload(model))
    return Parts(program, "torch.save", weights, constants, samples)


def program_record(archive: Archive, layout: Layout, model: str) -> str:
    """The full name of the record that holds a program, whatever else is missing."""
    match layout.kind:
        case "json":
            return next(iter(archive.records))
        case "plain-zip":
            return names.PLAIN_PROGRAM
    home, _ = layout.methods.get(model, (model, ""))
    return layout.record(names.model_json(home))


def sample_inputs_record(archive: Archive, layout: Layout, model: str) -> str | None:
    """The full name of the record that holds a program's sample inputs, if there is one; it may be empty."""
    if layout.kind == "json":
        return None
    plain = layout.kind == "plain-zip"
    record = names.PLAIN_EXAMPLE_INPUTS if plain else layout.record(names.sample_inputs(model))
    return record if record in archive.records else None


def has_payload_records(archive: Archive, layout: Layout, model: str) -> bool:
    """Whether an archive has any record that is named after a model's weights or constants."""
    candidates = (
        names.weights_config(model),
        names.constants_config(model),
        names.weights_payload(model),
        names.constants_payload(model),
    )
    return any(layout.record(name) in archive.records for name in candidates)


def extra_files(archive: Archive, layout: Layout) -> Mapping[str, str]:
    """Name of each file that the user put beside the programs -> full name of its record."""
    if layout.kind == "json":
        return MappingProxyType({})
    name_of = names.plain_extra_name if layout.kind == "plain-zip" else names.extra_name
    relative = {record: record.removeprefix(layout.root) for record in archive.records}
    return MappingProxyType({name: record for record, short in relative.items() if (name := name_of(short))})
