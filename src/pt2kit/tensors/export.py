"""Export of tensors to `.npy` and `.npz` files, in pieces; the file appears when it is complete.

Neither format has a name for bfloat16, 8-bit floats or complex half: those become float32 and complex64, which hold the
same values exactly in two or four times the bytes, and only if the caller requests it. An `.npz` is a zip of stored
`.npy` files, one per tensor, named after it.

Common parts of all exports are atomic files (`new_file`), and a pass over tensors that reads each storage once
(`Reader`).
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Final, TypeAlias

from pt2kit.errors import UnsupportedError
from pt2kit.messages import listed
from pt2kit.tensors.compound import MetaView, NestedView, QuantizedView, SparseView, SubclassView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.view import TensorView, pieces_of
from pt2kit.zip.chosen_names import encode_name
from pt2kit.zip.reader import Storage
from pt2kit.zip.source import Progress, no_progress
from pt2kit.zip.target import replacing

AnyView: TypeAlias = TensorView | SparseView | QuantizedView | NestedView | MetaView | SubclassView | OpaquePayload
"""Whatever a weight or constant may be."""

_DATE: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o644 << 16


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str], *, fsync: bool = False) -> Iterator[IO[bytes]]:
    """Yield an empty file that replaces `path` at the end, unless an error occurs.

    Args:
        path, fsync: as for `replacing`.

    Raises:
        OSError, ArchiveError: as `replacing`.
        UnsupportedError: `path` exists and is no file (P18).
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise UnsupportedError(f"{os.fspath(path)}: expected a file to write, got a folder or a device", rule="P18")
    with replacing(path, fsync=fsync) as file:
        yield file


class Reader:
    """Reads the storages of some views: each once, and held only until the last view of it is taken.

    Args:
        views: those that will be taken, in any order.
    """

    def __init__(self, views: Iterable[TensorView]) -> None:
        self._left = Counter(view.storage for view in views)
        self._held: dict[Storage, memoryview] = {}

    def take(self, view: TensorView) -> memoryview:
        """Return the bytes of a view's storage."""
        storage = view.storage
        data = self._held.pop(storage, None)
        if data is None:
            data = storage.read(keep=False)
        self._left[storage] -= 1
        if self._left[storage] > 0:
            self._held[storage] = data
        return data


def to_npy(
    view: AnyView, path: str | os.PathLike[str], *, widen: bool = False, progress: Progress = no_progress
) -> None:
    """Write one tensor as a `.npy` file.

    Args:
        view: the tensor; its storage is read once and not kept.
        path: the file, replaced when everything is written.
        widen: write types that NumPy has no name for as float32 or complex64.
        progress: called after each piece of at most 16 MiB.

    Raises:
        OSError: the file cannot be written.
        UnsupportedError: something that is not one array of numbers (P15, P18); a type that NumPy has no name for.
        Pt2Error: the tensor cannot be read.
    """
    tensor = view.dense()
    _check_types({tensor.name: tensor}, widen, os.fspath(path))
    total = _bytes(tensor)
    with new_file(path) as file:
        _write(file, tensor, tensor.storage.read(keep=False), 0, total, progress)
    if not total:
        progress(0, 0)


def to_npz(
    views: Mapping[str, AnyView],
    path: str | os.PathLike[str],
    *,
    widen: bool = False,
    progress: Progress = no_progress,
) -> None:
    """Write tensors as an `.npz` file; tied ones each in full.

    Args:
        views: name -> tensor; storages are read once and held no longer than needed.
        path: the file, replaced when everything is written.
        widen: as in `to_npy`.
        progress: called after each piece of at most 16 MiB.

    Raises:
        OSError: the file cannot be written.
        ArchiveError: a name that cannot be that of a file in a zip (A6).
        UnsupportedError, Pt2Error: as `to_npy`.
    """
    import zipfile

    where = os.fspath(path)
    tensors = {name: view.dense() for name, view in views.items()}
    _check_types(tensors, widen, where)
    for name in tensors:
        encode_name(f"{name}.npy", where)
    reader = Reader(tensors.values())
    total, done = sum(map(_bytes, tensors.values())), 0
    with new_file(path) as new, zipfile.ZipFile(new, "w") as archive:
        for name, tensor in tensors.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _DATE)
            entry.external_attr = _MODE
            with archive.open(entry, "w", force_zip64=_bytes(tensor) >= zipfile.ZIP64_LIMIT >> 1) as file:
                done = _write(file, tensor, reader.take(tensor), done, total, progress)
    if not total:
        progress(0, 0)


def _check_types(tensors: Mapping[str, TensorView], widen: bool, where: str) -> None:
    """Refuse types that would change without the caller's request (P18)."""
    odd = [name for name, tensor in tensors.items() if not DTYPES[tensor.dtype].is_native]
    if odd and not widen:
        types = ", ".join(sorted({DTYPES[tensors[name].dtype].name for name in odd}))
        raise UnsupportedError(
            f"{where}: expected types that NumPy has names for, got {types} ({listed(odd, 3)}): write a .safetensors "
            "file, which has them, or widen them to float32 and complex64 (--widen)",
            rule="P18",
        )


def _bytes(tensor: TensorView) -> int:
    return tensor.numel * int(DTYPES[tensor.dtype].wide[2:])


def _write(file: IO[bytes], tensor: TensorView, data: memoryview, done: int, total: int, progress: Progress) -> int:
    """Write a tensor over the bytes of its storage as a `.npy` file has it, and return the bytes that are done then."""
    from numpy.lib import format as npy

    form = {"descr": DTYPES[tensor.dtype].wide, "fortran_order": False, "shape": tensor.sizes}
    npy.write_array_header_1_0(file, form)
    for piece in pieces_of(tensor, data, wide=True):
        file.write(piece)
        done += piece.nbytes
        progress(done, total)
    return done
