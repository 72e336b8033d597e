"""The record of a program -> the program, raised to the current schema version, with what the stored one was like.

A newer minor version only adds: its fields are kept as unknown keys. A newer major version is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.archive import names
from pt2kit.archive.layout import Layout
from pt2kit.archive.reader import Archive
from pt2kit.errors import GraphError, SchemaError, VersionError
from pt2kit.tensors.bounds import check_device


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program as it was read.

    Args:
        program: raised to the current schema version.
        version: the version it was stored in ("8.14").
        unknown: keys that this build's schema does not have, with their values.
    """

    program: schema.ExportedProgram
    version: str
    unknown: tuple[codec.Unknown, ...]


def read_program(archive: Archive, layout: Layout, model: str) -> StoredProgram:
    """Read one program of an archive.

    Raises:
        ArchiveError: the record is missing or damaged.
        JsonError, SchemaError, LimitError: it is not a program.
        VersionError: it has a version that this build does not read, or something that a newer version brought.
        GraphError: a symbol whose range is empty.
        UnsupportedError: a value of the root graph on a device that torch does not have (P6).
    """
    where = names.model_json(model)
    data = archive.read(layout.record(where))
    try:
        decoded = codec.decode(data, schema.ExportedProgram, where)
    except SchemaError as error:
        raise _version_trouble(data, where, error) or error from None
    version = decoded.value.schema_version
    if trouble := _unreadable(version.major, version.minor, where):
        raise trouble
    _check_stated(decoded.value, where)
    return StoredProgram(_raise_minor(decoded.value), f"{version.major}.{version.minor}", decoded.unknown)


def _unreadable(major: int, minor: int, where: str) -> VersionError | None:
    newest, _ = schema.CURRENT.pair
    if major == newest and minor >= 0:
        return None
    what_to_do = "upgrade pt2kit" if major > newest else "this build does not read it"
    return VersionError(f"{where}: $.schema_version: expected major {newest}, got {major}.{minor}: {what_to_do}")


def _version_trouble(data: memoryview, where: str, error: SchemaError) -> VersionError | None:
    """What the version has to do with a record that does not fit the schema; None where it is not a newer one."""
    match codec.parse(data, where):
        case {"schema_version": {"major": int(major), "minor": int(minor)}} if bool not in (type(major), type(minor)):
            pass
        case _:
            return None
    if trouble := _unreadable(major, minor, where):
        return trouble
    if (major, minor) <= schema.CURRENT.pair:
        return None
    return VersionError(
        f"{where}: expected schema {schema.CURRENT.number} or older, got {major}.{minor} with something that came "
        f"later ({error}): upgrade pt2kit"
    )


def _check_stated(program: schema.ExportedProgram, where: str) -> None:
    """Check what every reader takes from a program as it is, without looking at its nodes: ranges and devices."""
    for symbol, limits in program.range_constraints.items():
        low, high = limits.min_val, limits.max_val
        if low is not None and high is not None and low > high:
            place = codec.path_text(("range_constraints", symbol))
            raise GraphError(f"{where}: {place}: expected a least value up to the greatest, got {low} and {high}")
    known: set[tuple[str, int | None]] = set()
    for name, meta in program.graph_module.graph.tensor_values.items():
        device = meta.device
        if (device.type, device.index) not in known:
            check_device(f"{where}: {codec.path_text(('graph_module', 'graph', 'tensor_values', name))}", device)
            known.add((device.type, device.index))


def _raise_minor(program: schema.ExportedProgram) -> schema.ExportedProgram:
    """Stamp a program of an older minor with the current one: its decoding has set every field that was added since."""
    major, minor = schema.CURRENT.pair
    if program.schema_version.minor >= minor:
        return program
    return replace(program, schema_version=schema.SchemaVersion(major, minor))
