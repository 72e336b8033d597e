"""The record of a program -> the program, raised to the current schema version, with what the stored one was like.

A newer minor version only adds: its fields are kept as unknown keys. A newer major version is refused. What torch 2.9
and later write is decoded in one typed pass; anything older goes through `legacy_programs.py`, which is imported for it
alone.
"""

from __future__ import annotations

from pt2kit import codec, schema
from pt2kit.collector import no_collection
from pt2kit.errors import JsonError, SchemaError
from pt2kit.package.current_programs import check_stated, from_current, is_current_shape
from pt2kit.package.layout import Layout
from pt2kit.package.parts import program_record
from pt2kit.package.stored import ReadContext, StoredProgram
from pt2kit.zip.reader import Archive


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
    return _read_text(archive.read(record), where, layout, model, context or ReadContext())


def _read_text(data: memoryview, where: str, layout: Layout, model: str, context: ReadContext) -> StoredProgram:
    refusal: SchemaError | JsonError | None = None
    if layout.kind != "plain-zip":
        try:
            decoded = codec.decode(data, schema.ExportedProgram, where)
        except (SchemaError, JsonError) as error:
            refusal = error
        else:
            if is_current_shape(decoded.value.schema_version):
                return from_current(decoded, where)
    from pt2kit.package.legacy_programs import read_older

    _, method = layout.methods.get(model, (model, None))
    with no_collection():
        stored = read_older(data, where, context, method, refusal)
    check_stated(stored.program, where)
    return stored
