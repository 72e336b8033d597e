"""Write weights to external `.safetensors` files next to the archive, and the list that names them.

A record that one tensor fills has the tensor's name and shape there, as other programs expect it; any other record
(views of one storage, tensors that are not row-major) is stored as its elements in a row, `<name>.storage`. Tied
weights share a record, so they are there once, under the first name. Types that the format lacks remain in the
archive.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Final

from pt2kit import codec
from pt2kit.errors import UnsupportedError
from pt2kit.messages import quote
from pt2kit.package import record_names as names
from pt2kit.package.external_list import Reference
from pt2kit.package.open import Package
from pt2kit.tensors.safetensors_header import arrange, code_of, header_bytes
from pt2kit.tensors.view import TensorView
from pt2kit.zip.beside import path_problem, url_of

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
        dtype = code_of(whole.dtype)
        if dtype is None:
            continue
        name = whole.name if _fills(whole) else f"{whole.name}.storage"
        shape = whole.sizes if _fills(whole) else (whole.storage.nbytes // whole.itemsize,)
        wishes = [name, f"{model}.{name}", *(f"{model}.{name}.{number}" for number in range(2, len(taken) + 3))]
        tensor = next(wish for wish in wishes if wish not in taken and wish != "__metadata__")
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
    order = [by_name[name] for name in arrange({one.tensor: (one.dtype, one.shape, one.nbytes) for one in shard})]
    file.write(header_bytes((one.tensor, one.dtype, one.shape, one.nbytes) for one in order))
    sums = {}
    for piece in order:
        data, total = package.archive.read(piece.record), hashlib.sha256()
        for start in range(0, piece.nbytes, _PIECE):
            part = data[start : start + _PIECE]
            total.update(part)
            file.write(part)
        sums[piece.tensor] = total.hexdigest()
    return sums
