"""A decoded program of today's shape -> the program, stamped with the current version; what is stated of it is checked.

Programs of the current major from minor 14 on differ from today's only by fields that may be left out.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.errors import GraphError, SchemaError, VersionError
from pt2kit.jsontext import path_text
from pt2kit.package.stored import StoredProgram
from pt2kit.tensors.bounds import check_device

DIRECT_SINCE: Final = 14
"""The first minor of the current major whose programs are programs of today but for fields that may be left out."""


def is_current_shape(version: Any) -> bool:
    """Whether a `schema_version` is one that the typed pass is for, or that it has to refuse."""
    match version:
        case schema.SchemaVersion(major, minor) | {"major": int(major), "minor": int(minor)}:
            pass
        case _:
            return False
    return major == schema.CURRENT.pair[0] and not 0 <= minor < DIRECT_SINCE


def from_current(decoded: codec.Decoded[schema.ExportedProgram], where: str) -> StoredProgram:
    """A program of today's shape, as the typed pass gives it.

    Raises:
        VersionError, GraphError, UnsupportedError: as `read_program`.
    """
    version = decoded.value.schema_version
    if version.minor < 0:
        raise VersionError(
            f"{where}: $.schema_version: expected a minor from 0 on, got {version.major}.{version.minor}: "
            "this build does not read it"
        )
    check_stated(decoded.value, where)
    return StoredProgram(_raise_minor(decoded.value), f"{version.major}.{version.minor}", decoded.unknown)


def version_trouble(tree: Any, where: str, error: SchemaError) -> VersionError | None:
    """What the version has to do with a record that does not fit the schema; None where it is not a newer one."""
    match tree:
        case {"schema_version": {"major": int(major), "minor": int(minor)}} if bool not in (type(major), type(minor)):
            pass
        case _:
            return None
    if (major, minor) <= schema.CURRENT.pair:
        return None
    return VersionError(
        f"{where}: expected schema {schema.CURRENT.number} or older, got {major}.{minor} with something that came "
        f"later ({error}): upgrade pt2kit"
    )


def check_stated(program: schema.ExportedProgram, where: str) -> None:
    """Check what every reader takes from a program as it is, without looking at its nodes: ranges and devices.

    Raises:
        GraphError: a symbol whose range is empty.
        UnsupportedError: a device that torch does not have (P6).
    """
    for symbol, limits in program.range_constraints.items():
        low, high = limits.min_val, limits.max_val
        if low is not None and high is not None and low > high:
            place = path_text(("range_constraints", symbol))
            raise GraphError(f"{where}: {place}: expected a least value up to the greatest, got {low} and {high}")
    known: set[tuple[str, int | None]] = set()
    values = program.graph_module.graph.tensor_values
    # Thousands of values are some dozens of objects; the first name of each is kept.
    for name in dict(zip(map(id, reversed(values.values())), reversed(values), strict=True)).values():
        device = values[name].device
        if (device.type, device.index) not in known:
            check_device(f"{where}: {path_text(('graph_module', 'graph', 'tensor_values', name))}", device)
            known.add((device.type, device.index))


def _raise_minor(program: schema.ExportedProgram) -> schema.ExportedProgram:
    """Stamp a program of an older minor with the current one: its decoding has set every field that was added since."""
    major, minor = schema.CURRENT.pair
    if program.schema_version.minor >= minor:
        return program
    return replace(program, schema_version=schema.SchemaVersion(major, minor))
