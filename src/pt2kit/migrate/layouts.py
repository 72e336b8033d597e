"""The records of a program of any release -> the program, raised; its torch.save files, as data.

`archive.parts` says which records those are. Raw records, of 2.9 and later, are read by `tensors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pt2kit import codec
from pt2kit.archive.parts import PLAIN_MODEL, Parts, extra_files, parts
from pt2kit.archive.pickle_values import TensorLike
from pt2kit.archive.pickled import read_payload
from pt2kit.archive.reader import Archive
from pt2kit.errors import PayloadError
from pt2kit.migrate.program import Raised, raise_program

__all__ = [
    "PLAIN_MODEL",
    "Parts",
    "extra_files",
    "input_specs",
    "parts",
    "read_bare_program",
    "read_constants",
    "read_program",
    "read_state",
    "read_weights",
]


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
