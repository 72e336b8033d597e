"""Read the record of a program: decoded in one typed pass, and upgraded to the current schema version.

A newer minor version only adds: its fields are kept as unknown keys. A newer major version is refused. Programs of the
current major from minor 14 on differ from current ones only by fields that may be left out; anything older goes through
`legacy_programs`, which is imported for it alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.collector import no_collection
from pt2kit.errors import GraphError, JsonError, SchemaError, VersionError
from pt2kit.jsontext import path_text
from pt2kit.package.json_record import check_nodes, read_json
from pt2kit.package.stored import StoredProgram
from pt2kit.tensors.bounds import check_device, is_device

if TYPE_CHECKING:
    from pt2kit.zip.reader import Archive

ReadOlder: TypeAlias = "Callable[[memoryview, str, SchemaError | JsonError | None], StoredProgram]"
"""(JSON, the record's name, why it does not have the current form) -> a program of an older schema."""
DIRECT_SINCE: Final = 14
"""First minor of the current major whose programs are current ones, except fields that may be left out."""


def read_program(
    archive: Archive,
    record: str,
    where: str,
    read_older: ReadOlder,
    *,
    is_older: bool = False,
) -> StoredProgram:
    """Read one program of an archive.

    Args:
        archive: where it is.
        record: its full name.
        where: the record's name, for messages.
        read_older: reads a program of an older schema.
        is_older: whether it is certainly of an older schema.

    Raises:
        ArchiveError: the record is missing or damaged.
        JsonError, SchemaError, LimitError: it is not a program.
        VersionError: it has a version that this build does not read, or something that a newer version added.
        GraphError: a symbol whose range is empty.
        UnsupportedError: a value of the root graph on a device that torch does not have (P6).
    """
    data = read_json(archive, record, where)
    stored = _read_text(data, where, read_older, is_older)
    check_nodes(stored.program, archive.records[record].compressed_size, data.nbytes, where)
    return stored


def _read_text(data: memoryview, where: str, read_older: ReadOlder, is_older: bool) -> StoredProgram:
    refusal: SchemaError | JsonError | None = None
    if not is_older:
        try:
            decoded = codec.decode(data, schema.ExportedProgram, where)
        except (SchemaError, JsonError) as error:
            refusal = error
        else:
            if is_current_shape(decoded.value.schema_version):
                return from_current(decoded, where)
    with no_collection():
        stored = read_older(data, where, refusal)
    check_stated(stored.program, where)
    return stored


def is_current_shape(version: Any) -> bool:
    """Return whether a `schema_version` is one that the typed pass is for, or that it has to refuse."""
    match version:
        case schema.SchemaVersion(major, minor) | {"major": int(major), "minor": int(minor)}:
            pass
        case _:
            return False
    return major == schema.CURRENT.pair[0] and not 0 <= minor < DIRECT_SINCE


def from_current(decoded: codec.Decoded[schema.ExportedProgram], where: str) -> StoredProgram:
    """Return a program of the current form, stamped with the current version.

    Args:
        decoded: as the typed pass returns it: every field that was added since has its default.
        where: the record's name, for messages.

    Raises:
        VersionError, GraphError, UnsupportedError: as `read_program`.
    """
    program = decoded.value
    version = program.schema_version
    if version.minor < 0:
        raise VersionError(
            f"{where}: $.schema_version: expected a minor from 0 on, got {version.major}.{version.minor}: "
            "this build does not read it"
        )
    check_stated(program, where)
    major, minor = schema.CURRENT.pair
    if version.minor < minor:
        program = replace(program, schema_version=schema.SchemaVersion(major, minor))
    return StoredProgram(program, f"{version.major}.{version.minor}", decoded.unknown)


def version_error(tree: Any, where: str, error: SchemaError) -> VersionError | None:
    """Return the error for a record of a newer version that does not fit the schema; None if it is not newer."""
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
    """Check what every reader uses of a program without looking at its nodes: ranges and devices.

    Raises:
        GraphError: a symbol whose range is empty.
        UnsupportedError: a device that torch does not have (P6).
    """
    for symbol, limits in program.range_constraints.items():
        low, high = limits.min_val, limits.max_val
        if low is not None and high is not None and low > high:
            place = path_text(("range_constraints", symbol))
            raise GraphError(f"{where}: {place}: expected a least value up to the greatest, got {low} and {high}")
    values = program.graph_module.graph.tensor_values
    # Thousands of values are some dozens of objects; the first name of each is kept.
    for name in dict(zip(map(id, reversed(values.values())), reversed(values), strict=True)).values():
        if not is_device(values[name].device):
            place = path_text(("graph_module", "graph", "tensor_values", name))
            check_device(f"{where}: {place}", values[name].device)
