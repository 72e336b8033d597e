"""A package, with some of its programs replaced -> a new `.pt2` file.

Everything else goes over as it is, records that this build does not know among it. Weights are stored, so that the new
file can be mapped; JSON of the format is deflated.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, Final

from pt2kit import codec, schema
from pt2kit.errors import SchemaError, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, open_package
from pt2kit.package.parts import program_record
from pt2kit.package.programs import TYPED_SINCE
from pt2kit.zip.opening import FileLike
from pt2kit.zip.target import not_while_reading
from pt2kit.zip.writer import ArchiveWriter

_DEFLATED: Final = frozenset(("program", "weights config", "constants config"))


def write_package(
    package: Package | FileLike,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    programs: Mapping[str, schema.ExportedProgram] | None = None,
    fsync: bool = False,
) -> None:
    """Write a package as a new file: the same records in the same order, with some programs replaced.

    Args:
        package: where everything comes from: an open package, or whatever `pt2kit.open` takes.
        target: a path, replaced whole or not at all, a URL that fsspec can write to, or a binary file object; it may be
            the package's own file.
        programs: model name -> what to write instead. A program that is not the one that was read loses the keys this
            build does not know, so that is refused where there are any.
        fsync: wait for the disk also where no file is replaced; replacing one always does.

    Raises:
        KeyError: a program for a model that the package does not have.
        SchemaError: keys that this build does not know would be lost.
        UnsupportedError: the package is a JSON file, or a program to replace is stored in an older form, which
            `pt2kit.convert` raises first.
        ArchiveError: a record is damaged.
        OSError: the target cannot be written.

    Cost: every record is read and written once.
    """
    if not isinstance(package, Package):
        with open_package(package) as opened:
            write_package(opened, target, programs=programs, fsync=fsync)
        return
    if package.layout.kind == "json":
        raise UnsupportedError(
            f"{package.name}: expected an archive, got {package.layout.releases}; pt2kit.convert makes one of it"
        )
    replaced = {
        program_record(package.archive, package.layout, model): _encode_program(package, model, new)
        for model, new in (programs or {}).items()
    }
    is_archive = package.layout.kind != "plain-zip"  # whose readers expect everything stored
    root = package.layout.root.rstrip("/")
    with (
        not_while_reading(package.archive.source, target) as file,
        ArchiveWriter(file, root=root, fsync=fsync) as writer,
    ):
        for record in package.records:
            relative = package.relative(record)
            if replaced and relative == names.SERIALIZATION_ID:
                continue  # torch tells files apart by it, and this is another file; it may be missing.
            data = replaced[record] if record in replaced else package.archive.read(record)
            writer.write(relative, data, deflate=is_archive and names.kind(relative) in _DEFLATED)


def _encode_program(package: Package, model: str, new: schema.ExportedProgram) -> bytes:
    stored = package.stored[model]
    if stored.is_raised:
        raise UnsupportedError(
            f"{package.name}: {model}: expected a program of schema {schema.CURRENT.pair[0]}.{TYPED_SINCE} or later to "
            f"replace, got {stored.version}; convert the file first (pt2kit.convert)"
        )
    if new is stored.program:
        return codec.encode(new, stored.unknown)
    if stored.unknown:
        shown = ", ".join(map(str, stored.unknown[:3]))
        raise SchemaError(
            f"{names.model_json(model)}: expected no keys of a newer schema, got {len(stored.unknown)} that rewriting "
            f"this program would lose ({shown}{', …' if len(stored.unknown) > 3 else ''}); upgrade pt2kit"
        )
    return codec.encode(new)


write = write_package  # what the package as a whole calls it
