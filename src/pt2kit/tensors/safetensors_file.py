"""Write tensors as a `.safetensors` file, by the safetensors library, and read them as views.

The format has no strides and no sharing: tensors become row-major, and tied ones are written once per name or once
in all, as the caller chooses. Bytes that a mapped file stores as the format requires go from there to the new file;
all others (fetched, inflated, strided) pass through a temporary file next to it, so that memory never holds more
than one storage.

For reading, by name, of a file or of the index of sharded ones, only headers are read. Files are mapped and remain so
as long as a view of them is used.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import IO, Any, Final, Literal

from pt2kit import codec
from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.messages import quote
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import check_copy
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.export import AnyView, Reader, check_is_file
from pt2kit.tensors.safetensors_header import METADATA, Row, read_header, view_of
from pt2kit.tensors.view import TensorView, stored_array
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.directory import Record
from pt2kit.zip.end_record import STORED
from pt2kit.zip.reader import Archive, Sum
from pt2kit.zip.source import DEFAULT_LIMITS, Progress, Source, no_progress, open_bytes, open_path

_MISSING_TYPES: Final = frozenset({"complex32", "complex128"})
"""Element types that the format has no name for."""

SUFFIXES = (".safetensors", ".json")
"""Endings of the names of such files, and of indexes."""


def to_safetensors(
    views: Mapping[str, AnyView],
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str] | None = None,
    tied: Literal["copy", "once"] = "copy",
    progress: Progress = no_progress,
) -> None:
    """Write tensors as a `.safetensors` file.

    Args:
        views: name -> tensor; storages are read once and held no longer than needed.
        path: the file, replaced when everything is written.
        metadata: texts for the header, besides `format: pt`, which identifies a state dict of PyTorch.
        tied: "copy" writes tensors that are the same bytes in full under each name, so that every reader finds them;
            "once" writes the first and notes `other name: first name` in the metadata, as `save_model` of safetensors
            does.
        progress: called after each tensor is ready, and when the file is written.

    Raises:
        OSError: the file cannot be written.
        UnsupportedError: a type, name or kind of tensor that the format lacks (P15, P18), or no safetensors 0.8 is
            installed.
        Pt2Error: a tensor cannot be read.
    """
    from tempfile import TemporaryFile  # Costs more to import than all the rest here.

    library = _library()
    tensors = {name: view.dense() for name, view in views.items()}
    notes = {"format": "pt", **(metadata or {})}
    if tied == "once":
        notes.update(_drop_tied(tensors))
    for name, tensor in tensors.items():
        _check(name, tensor)
    total = sum(tensor.nbytes for tensor in tensors.values())
    check_is_file(path)
    with _beside(path) as temporary, TemporaryFile(dir=os.path.dirname(temporary)) as spool:
        buffers = _gather(tensors, spool, progress, total)
        specs = {name: _spec(library, tensor, buffers[name]) for name, tensor in tensors.items()}
        try:
            library.serialize_file(specs, temporary, metadata=notes)
        except (library.SafetensorError, UnicodeEncodeError, TypeError) as error:
            raise UnsupportedError(
                f"{os.fspath(path)}: expected names, texts and a disk that can hold a safetensors file, got: {error}",
                rule="P18",
            ) from error
    progress(total, total)


@contextlib.contextmanager
def _beside(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the path of an empty file next to `path` that replaces it at the end, unless an error occurs.

    The library accepts no file, but a path, and creates the file there anew: so it has a name while it is written,
    and gets its permissions at the end.
    """
    final = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(final), f".pt2kit-{os.urandom(8).hex()}.tmp")
    with open(temporary, "xb") as file:
        mode = os.fstat(file.fileno()).st_mode
    try:
        yield temporary
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(final).st_mode
        os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, final)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _library() -> Any:
    try:
        import safetensors
    except ImportError as error:
        raise UnsupportedError(
            "expected the package safetensors, which is not installed: pip install 'pt2kit[safetensors]'", rule="P18"
        ) from error
    if not hasattr(safetensors, "TensorSpec"):
        raise UnsupportedError(
            f"expected safetensors 0.8 or later, got {getattr(safetensors, '__version__', 'an older one')}; "
            "upgrade it: pip install -U safetensors",
            rule="P18",
        )
    return safetensors


def _check(name: str, tensor: TensorView) -> None:
    row = DTYPES[tensor.dtype]
    if row.name in _MISSING_TYPES:
        raise UnsupportedError(
            f"{tensor.where}: expected a type that safetensors has, got {row.name}; write .npz instead", rule="P18"
        )
    if name == METADATA:
        raise UnsupportedError(
            f"{tensor.where}: expected a name that safetensors does not use itself, got {name!r}", rule="P18"
        )
    check_copy(tensor.where, tensor.nbytes, tensor.storage.nbytes)


def _drop_tied(tensors: dict[str, TensorView]) -> dict[str, str]:
    """Remove every tensor whose elements another one has already; return its name and the other's."""
    first: dict[Any, str] = {}
    notes = {}
    for name, view in list(tensors.items()):
        key = (view.storage, view.dtype, view.sizes, view.strides, view.storage_offset, view.conj, view.neg)
        kept = first.setdefault(key, name)
        if kept != name:
            notes[name] = kept
            del tensors[name]
    return notes


def _gather(
    tensors: Mapping[str, TensorView], spool: IO[bytes], progress: Progress, total: int
) -> dict[str, memoryview]:
    """Return the row-major bytes of each tensor, from their storage or from `spool`, which is mapped."""
    import mmap

    reader = Reader(tensors.values())
    buffers: dict[str, memoryview] = {}
    spooled: dict[str, int] = {}
    done = 0
    for name, tensor in tensors.items():
        data = reader.take(tensor)
        if tensor.storage.in_place and tensor.is_contiguous and not (tensor.conj or tensor.neg):
            buffers[name] = arrays.raw_bytes(stored_array(tensor, data))
        elif tensor.nbytes:
            spooled[name] = spool.tell()
            for piece in tensor.iter_bytes(data):
                spool.write(piece)
        done += tensor.nbytes
        if done < total:
            progress(done, total)
    if spooled:
        spool.flush()
        mapped = memoryview(mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ))
        for name, start in spooled.items():
            buffers[name] = mapped[start : start + tensors[name].nbytes]
    return {name: buffers.get(name, memoryview(b"")) for name in tensors}


def _spec(library: Any, tensor: TensorView, buffer: memoryview) -> Any:
    """Return the library's description of a tensor; `buffer` must outlive its use."""
    import numpy as np

    # The address of no bytes at all may be null, which the library must not see.
    data = np.frombuffer(buffer if buffer.nbytes else b"\0", np.uint8)
    return library.TensorSpec(
        dtype=DTYPES[tensor.dtype].name, shape=list(tensor.sizes), data_ptr=data.ctypes.data, data_len=buffer.nbytes
    )


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, TensorView]:
    """Return the tensors of a file, or of all files that an index (`….index.json`, as Hugging Face writes it) names.

    Args:
        path: of the file or the index; the files of an index are next to it.

    Raises:
        PayloadError: a file contradicts itself or was cut short, or lacks a tensor of the index (B4).
        UnsupportedError: a tensor of a type that the schema lacks (P4).
        OSError: a file cannot be opened.
    """
    return {name: view_of(name, row, source) for name, (row, source) in _rows(path).items()}


class SafetensorsArchive(Archive):
    """Tensors of such files as records of an archive, for readers of records in pieces.

    Args:
        path: as for `read_safetensors`.

    Attributes:
        views: name -> tensor.

    Raises: as `read_safetensors`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(open_bytes(b"", name=os.fspath(path)), (), DEFAULT_LIMITS)
        rows = _rows(path)
        self.views = {name: view_of(name, row, source) for name, (row, source) in rows.items()}
        self._places = {self.views[name].record: (source, row.start) for name, (row, source) in rows.items()}
        self._records = MappingProxyType(
            {
                view.record: Record(view.record, view.nbytes, view.nbytes, STORED, 0, 0, 0, 0)
                for view in self.views.values()
            }
        )

    def read(self, name: str, *, verify: bool = True) -> memoryview:
        """Return the bytes of a tensor; there is no checksum."""
        del verify
        source, start = self._places[name]
        return source.read(start, self._records[name].size)

    def place_of(self, name: str) -> tuple[Source, int]:
        """Return the file of a tensor, and its offset there."""
        return self._places[name]

    def is_in_place(self, name: str) -> bool:
        """Return whether reading copies nothing."""
        return self._places[name][0].is_local

    def sum_of(self, name: str) -> Sum:
        """Return a sum that is compared with nothing."""
        return Sum(lambda piece, total: total, lambda total: None, lambda first, second, nbytes: 0)


def _rows(path: str | os.PathLike[str]) -> dict[str, tuple[Row, Source]]:
    """Return the location of each tensor, and its file, by name."""
    where, folder = os.fspath(path), os.path.dirname(os.fspath(path))
    source = open_path(path)
    if not where.endswith(".json"):
        return {name: (row, source) for name, row in read_header(source).items()}
    placed = _placed(codec.parse(source.read(0, source.size), where), where)
    sources = {file: open_path(os.path.join(folder, file)) for file in dict.fromkeys(placed.values())}
    rows = {file: read_header(source) for file, source in sources.items()}
    for name, file in placed.items():
        if name not in rows[file]:
            raise PayloadError(
                f"{where}: {show_name(name)}: expected it in {file}, as the index says, got none of that name",
                rule="B4",
            )
    return {name: (rows[file][name], sources[file]) for name, file in placed.items()}


def _placed(index: Any, where: str) -> dict[str, str]:
    """Return the file of each tensor by name, from an index."""
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise PayloadError(f"{where}: expected an index with a weight_map, got {quote(str(index))}", rule="B4")
    for name, file in weight_map.items():
        if not isinstance(file, str) or file != os.path.basename(file) or file in ("", ".", ".."):
            raise PayloadError(
                f"{where}: {show_name(name)}: expected the name of a file next to the index, got {quote(str(file))}",
                rule="B2",
            )
    return weight_map
