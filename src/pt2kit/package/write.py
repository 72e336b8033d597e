"""Write a package as a new `.pt2` file, with some of its programs replaced; its weights inside, external, or left out.

Everything else is copied unchanged, including records that are unknown to this build. Weights are stored, so that
the new file can be mapped; JSON of the format is deflated.

External weights are written to `.safetensors` files next to the archive, with a list that names them. A record that one
tensor fills has the tensor's name and shape there, as other programs expect it; any other record (views of one storage,
tensors that are not row-major) is stored as its elements in a row, `<name>.storage`. Tied weights share a record, so
they are there once, under the first name. Types that the format lacks remain in the archive.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any, Final

from pt2kit import codec, schema
from pt2kit.errors import SchemaError, UnsupportedError
from pt2kit.messages import quote
from pt2kit.package import record_names as names
from pt2kit.package.external_list import RECORD as EXTERNAL_RECORD
from pt2kit.package.external_list import Reference
from pt2kit.package.external_list import encode as encode_references
from pt2kit.package.open import Package, opened
from pt2kit.package.programs import DIRECT_SINCE
from pt2kit.tensors.safetensors_header import CODES, METADATA, header
from pt2kit.tensors.view import TensorView
from pt2kit.zip.adjacent import path_problem, url_of
from pt2kit.zip.listing import FileLike
from pt2kit.zip.target import not_while_reading, replacing
from pt2kit.zip.writer import ArchiveWriter

SHARD_BYTES: Final = 5_000_000_000
"""Bytes of weights in one file by default, as Hugging Face has it."""
SUFFIX: Final = ".safetensors"

_PIECE: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Outside:
    """One payload record that goes into an external file.

    Args:
        record: its full name.
        tensor: its name in the file.
        dtype, shape, nbytes: of it there.
    """

    record: str
    tensor: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


def check_name(external: str, target: Any) -> None:
    """Refuse a name that no file next to the archive can have.

    Raises:
        UnsupportedError: it is no relative path, not named `….safetensors`, or the target is no path.
    """
    problem = path_problem(external)
    if problem is None and not external.endswith(SUFFIX):
        problem = f"does not end with {SUFFIX}"
    if problem:
        raise UnsupportedError(
            f"external: expected a file next to the archive such as 'model{SUFFIX}', got {quote(external)}, which "
            f"{problem}",
            rule="B2",
        )
    if not isinstance(target, str | os.PathLike):
        raise UnsupportedError(
            f"external: expected a path or URL to write to, so that {external} can be written next to it, got a "
            f"{type(target).__name__}",
            rule="B2",
        )


def raw_weights(package: Package) -> dict[str, list[tuple[str, TensorView]]]:
    """Return the weights in each raw record: full name -> (model, weight) of all of them.

    Raises:
        UnsupportedError: a package of an older layout, which has none.
        Pt2Error: the weights cannot be listed.
    """
    if not package.layout.has_configs:
        raise UnsupportedError(
            f"{package.name}: expected weights as records of their own, got the layout of {package.layout.releases}; "
            "convert the file first (pt2kit.convert)"
        )
    views_by_record: dict[str, list[tuple[str, TensorView]]] = {}
    for model in package.layout.models:
        for view in package.weights(model).values():
            if isinstance(view, TensorView) and names.weight_index(package.relative(view.record)) is not None:
                views_by_record.setdefault(view.record, []).append((model, view))
    return {record: views for record, views in views_by_record.items() if package.records[record].size}


def plan(package: Package) -> list[Outside]:
    """Return the records to write to external files, in the order of the configs.

    Raises: as `raw_weights`.
    """
    taken: set[str] = set()
    pieces = []
    for record, views in raw_weights(package).items():
        model, whole = next(((model, view) for model, view in views if _fills(view)), views[0])
        dtype = CODES.get(whole.dtype)
        if dtype is None:
            continue
        name = whole.name if _fills(whole) else f"{whole.name}.storage"
        shape = whole.sizes if _fills(whole) else (whole.storage.nbytes // whole.itemsize,)
        candidates = [name, f"{model}.{name}", *(f"{model}.{name}.{number}" for number in range(2, len(taken) + 3))]
        tensor = next(one for one in candidates if one not in taken and one != METADATA)
        taken.add(tensor)
        pieces.append(Outside(record, tensor, dtype, shape, whole.storage.nbytes))
    return pieces


def _fills(view: TensorView) -> bool:
    """Return whether a tensor is all of its storage, row-major."""
    return view.is_contiguous and view.storage_offset == 0 and view.nbytes == view.storage.nbytes


def write_files(
    package: Package, pieces: list[Outside], external: str, shard_bytes: int, create: Callable[[str], IO[bytes]]
) -> dict[str, Reference]:
    """Write the files, and the index of several.

    Args:
        package: the source of the bytes; each record is read once.
        pieces: their contents.
        external: the path of the file, relative to the archive; shards and their index are named after it.
        shard_bytes: about how many bytes of weights one file holds; a larger tensor has one for itself.
        create: path relative to the archive -> a new file, which the caller finishes.

    Returns:
        name of each record below the root folder -> its location.

    Raises:
        Pt2Error: a record cannot be read.
        OSError: a file cannot be written.
    """
    shards = list(_shards(pieces, shard_bytes))
    stem, count = external.removesuffix(SUFFIX), len(shards)
    references: dict[str, Reference] = {}
    placed: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        path = external if count == 1 else f"{stem}-{number:05d}-of-{count:05d}{SUFFIX}"
        sums = _write_shard(package, shard, create(path))
        for piece in shard:
            row = Reference(url_of(path), piece.tensor, piece.dtype, piece.shape, sums[piece.tensor])
            references[package.relative(piece.record)] = row
            placed[piece.tensor] = path.rpartition("/")[2]
    if count > 1:
        total = sum(piece.nbytes for piece in pieces)
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(placed.items()))}
        create(f"{external}.index.json").write(codec.encode(index))
    return references


def _shards(pieces: Iterable[Outside], shard_bytes: int) -> Iterator[list[Outside]]:
    shard: list[Outside] = []
    size = 0
    for piece in pieces:
        if shard and size + piece.nbytes > shard_bytes:
            yield shard
            shard, size = [], 0
        shard.append(piece)
        size += piece.nbytes
    yield shard


def _write_shard(package: Package, shard: list[Outside], file: IO[bytes]) -> dict[str, str]:
    """Write one file; the SHA-256 of each tensor in it."""
    by_name = {piece.tensor: piece for piece in shard}
    head, order = header({one.tensor: (one.dtype, one.shape, one.nbytes) for one in shard})
    file.write(head)
    sums = {}
    for piece in map(by_name.__getitem__, order):
        data, total = package.archive.read(piece.record), hashlib.sha256()
        for start in range(0, piece.nbytes, _PIECE):
            part = data[start : start + _PIECE]
            total.update(part)
            file.write(part)
        sums[piece.tensor] = total.hexdigest()
    return sums


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
        package = stack.enter_context(opened(package))
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
                lambda path: stack.enter_context(replacing(target, sibling=path, fsync=fsync)),  # type: ignore[arg-type]
            )
            writer.write(EXTERNAL_RECORD, encode_references(references), deflate=True)
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
