"""Write a package as a new `.pt2` file, with some of its programs replaced; its weights inside, external, or left out.

Everything else is copied unchanged, including records that are unknown to this build. Weights are stored, so that
the new file can be mapped; JSON of the format is deflated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import IO, Final

from pt2kit import codec, schema
from pt2kit.errors import SchemaError, UnsupportedError
from pt2kit.package import external_list
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, open_package
from pt2kit.package.programs import DIRECT_SINCE
from pt2kit.package.write_external import SHARD_BYTES, Outside, check_name, plan, raw_weights, write_files
from pt2kit.zip.listing import FileLike, is_url
from pt2kit.zip.target import not_while_reading, replacing
from pt2kit.zip.writer import ArchiveWriter

_DEFLATED: Final = frozenset(("program", "weights config", "constants config"))


def write_package(
    package: Package | FileLike,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    programs: Mapping[str, schema.ExportedProgram] | None = None,
    external: str | None = None,
    shard_bytes: int = SHARD_BYTES,
    skeleton: bool = False,
    fsync: bool = False,
    compress: bool = True,
) -> None:
    """Write a package as a new file: the same records in the same order, with some programs replaced.

    Weights that were external to the package's file are in the new one, unless `external` is passed.

    Args:
        package: the source: an open package, or anything that `pt2kit.open` accepts.
        target: a path, replaced whole or not at all, a URL that fsspec can write to, or a binary file object; it may be
            the package's own file.
        programs: model name -> program to write instead. A program that is not the one that was read loses the keys
            unknown to this build, so that is refused if there are any.
        external: a `.safetensors` file, by its path relative to the new file, that weights are written to instead;
            the new file names it, with the SHA-256 of each weight. Stock torch does not read such a file; writing it
            again, or converting it, makes it whole.
        shard_bytes: about how many bytes of weights one such file holds; more are written as shards, named
            `model-00001-of-00002.safetensors`, with the index `model.safetensors.index.json`.
        skeleton: omit weight data; constants are kept. Such weights load on the meta device.
        fsync: wait for the disk also if no file is replaced; replacing one always does.
        compress: deflate the JSON; False stores it, for readers in other languages that accept stored records only.

    Raises:
        ArchiveError: a program for a name that the package does not have.
        SchemaError: keys unknown to this build would be lost.
        UnsupportedError: the package is a JSON file, or a program to replace is stored in an older form, or weights to
            leave out are, which `pt2kit.convert` upgrades first; an unfit name for `external`, or a target that has
            no folder for adjacent files (B2).
        ArchiveError: a record is damaged.
        OSError: the target cannot be written.

    Cost: every record is read and written once.
    """
    with ExitStack() as stack:
        if not isinstance(package, Package):
            package = stack.enter_context(open_package(package))
        changed, outside = _planned(package, target, programs or {}, external, skeleton)
        file = stack.enter_context(not_while_reading(package.archive.source, target))
        root = package.layout.root.rstrip("/")
        writer = stack.enter_context(ArchiveWriter(file, root=root, fsync=fsync, compress=compress))
        if external is not None and outside:
            # Finished before the archive is, which names them.
            references = write_files(
                package,
                outside,
                external,
                shard_bytes,
                lambda path: stack.enter_context(_new_beside(target, path, fsync)),
            )
            writer.write(external_list.RECORD, external_list.encode(references), deflate=True)
        _write_records(package, writer, changed, {piece.record for piece in outside})


def _planned(
    package: Package,
    target: str | os.PathLike[str] | IO[bytes],
    programs: Mapping[str, schema.ExportedProgram],
    external: str | None,
    skeleton: bool,
) -> tuple[dict[str, bytes], list[Outside]]:
    """Return the records that have another content in the new file, and those that go into external files."""
    if package.layout.is_text:
        raise UnsupportedError(
            f"{package.name}: expected an archive, got {package.layout.releases}; pt2kit.convert makes one of it"
        )
    changed: dict[str, bytes] = {
        package.layout.program_record(package.choose(model)): _encode_program(package, model, new)
        for model, new in programs.items()
    }
    if skeleton:
        if external is not None:
            raise UnsupportedError("skeleton: expected it without external, got both")
        changed |= dict.fromkeys(raw_weights(package), b"")
    if external is None:
        return changed, []
    check_name(external, target)
    return changed, plan(package)


def _write_records(package: Package, writer: ArchiveWriter, changed: Mapping[str, bytes], left_out: set[str]) -> None:
    """Write the records that are in the archive."""
    is_archive = package.layout.is_archive  # readers of a plain zip expect everything stored
    for record in package.records:
        relative = package.relative(record)
        if record in left_out or ((changed or left_out) and relative == names.SERIALIZATION_ID):
            continue  # torch distinguishes files by that id, and this is another file; it may be missing.
        data = changed[record] if record in changed else package.archive.read(record)
        writer.write(relative, data, deflate=is_archive and names.kind(relative) in _DEFLATED)


@contextmanager
def _new_beside(target: str | os.PathLike[str] | IO[bytes], path: str, fsync: bool) -> Iterator[IO[bytes]]:
    """Yield a file next to a target, which appears when the block ends without an error."""
    if isinstance(target, str) and is_url(target):
        from pt2kit.zip.remote import create_beside

        with create_beside(target, path) as file:
            yield file
        return
    folder = os.path.dirname(os.path.realpath(os.fspath(target)))  # type: ignore[arg-type]
    with replacing(os.path.join(folder, path), fsync=fsync) as file:
        yield file


def _encode_program(package: Package, model: str, new: schema.ExportedProgram) -> bytes:
    stored = package.stored[model]
    if stored.is_raised:
        raise UnsupportedError(
            f"{package.name}: {model}: expected a program of schema {schema.CURRENT.pair[0]}.{DIRECT_SINCE} or later "
            f"to replace, got {stored.version}; convert the file first (pt2kit.convert)"
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


write = write_package  # its name in the package's public API
