"""The record of a program -> the program, raised to the current schema version, with what the stored one was like.

A newer minor version only adds: its fields are kept as unknown keys. A newer major version is refused. What torch 2.9
and later write is decoded in one typed pass; anything older goes through `older.py`, which is imported for it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.collector import no_collection
from pt2kit.errors import GraphError, JsonError, SchemaError, VersionError
from pt2kit.jsontext import path_text
from pt2kit.package.layout import Layout
from pt2kit.package.parts import program_record
from pt2kit.tensors.bounds import check_device
from pt2kit.zip.reader import Archive

if TYPE_CHECKING:
    from pt2kit.pickles.values import PickledTensor
    from pt2kit.versions.conversion_log import Note

DIRECT_SINCE: Final = 14
"""The first minor of the current major whose programs are programs of today but for fields that may be left out."""


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StoredModel:
    """The container of schema 8.6 that a program is one method of.

    Args:
        name: of the model, as it says itself; "" where it says none.
        method: the program's name in it.
        delegates: name of a delegate -> its methods.
        weight_paths: weight name -> path of its record below the root of the archive, or beside the JSON file.
        constant_paths: constant name -> likewise.
        devices: device of the graph ("cuda:0") -> device to use; `pt2kit.load` applies it.
    """

    name: str
    method: str
    delegates: Mapping[str, Mapping[str, schema.ExportedProgram]] = field(default_factory=_nothing)
    weight_paths: Mapping[str, str] = field(default_factory=_nothing)
    constant_paths: Mapping[str, str] = field(default_factory=_nothing)
    devices: Mapping[str, str] = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program as it was read.

    Args:
        program: raised to the current schema version.
        version: the version it was stored in ("8.14"); "draft" for the design draft, "5.3-traces" for the development
            state with tables of source files, whose number is that of another version.
        unknown: keys that this build's schema does not have, with their values.
        notes: what changed on the way to the current version.
        weights: name -> tensor, for versions that keep parameters and buffers inside the program (the draft).
        constants: name -> tensor, or bytes of a torch.save file or custom object, for versions that keep them there.
        model: the container it was in.
        is_raised: whether it was stored in an older form, and not in one of today with fields left out.
    """

    program: schema.ExportedProgram
    version: str
    unknown: tuple[codec.Unknown, ...]
    notes: tuple[Note, ...] = ()
    weights: Mapping[str, PickledTensor] = field(default_factory=_nothing)
    constants: Mapping[str, bytes | PickledTensor] = field(default_factory=_nothing)
    model: StoredModel | None = None
    is_raised: bool = False


@dataclass(frozen=True, slots=True)
class ReadContext:
    """What reading programs of older versions may need.

    Args:
        folder: where the file lies, for what is stored beside it; None where it is no file of this machine.
        namedtuples: class name -> name under which it is registered, for versions that know the class name only.
    """

    folder: str | None = None
    namedtuples: Mapping[str, str] = field(default_factory=_nothing)


def read_program(archive: Archive, layout: Layout, model: str, context: ReadContext | None = None) -> StoredProgram:
    """Read one program of an archive.

    Args:
        archive, layout: where it is.
        model: its name.
        context: what programs of older versions may need.

    Raises:
        ArchiveError: the record is missing or damaged.
        JsonError, SchemaError, LimitError: it is not a program.
        VersionError: it has a version that this build does not read, or something that a newer version brought.
        GraphError: a symbol whose range is empty.
        UnsupportedError: a value of the root graph on a device that torch does not have (P6).
    """
    record = program_record(archive, layout, model)
    where = record.removeprefix(layout.root)
    with archive.reading(record) as data:
        return _read_text(data, where, layout, model, context or ReadContext())


def _read_text(data: memoryview, where: str, layout: Layout, model: str, context: ReadContext) -> StoredProgram:
    refusal: SchemaError | JsonError | None = None
    if layout.kind != "plain-zip":
        try:
            decoded = codec.decode(data, schema.ExportedProgram, where)
        except (SchemaError, JsonError) as error:
            refusal = error
        else:
            if is_current_shape(decoded.value.schema_version):
                return typed(decoded, where)
    from pt2kit.package.legacy_programs import read_older

    _, method = layout.methods.get(model, (model, None))
    with no_collection():
        stored = read_older(data, where, context, method, refusal)
    check_stated(stored.program, where)
    return stored


def is_current_shape(version: Any) -> bool:
    """Whether a `schema_version` is one that the typed pass is for, or that it has to refuse."""
    match version:
        case schema.SchemaVersion(major, minor) | {"major": int(major), "minor": int(minor)}:
            pass
        case _:
            return False
    return major == schema.CURRENT.pair[0] and not 0 <= minor < DIRECT_SINCE


def typed(decoded: codec.Decoded[schema.ExportedProgram], where: str) -> StoredProgram:
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
