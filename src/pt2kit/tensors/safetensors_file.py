"""Write tensors as a `.safetensors` file, and read them as views.

The format has no strides and no sharing: tensors become row-major, and tied ones are written once per name or once
in all, as the caller chooses. They are written piece by piece; memory never holds more than one storage.

For reading, by name, of a file or of the index of sharded ones, only headers are read. Files are mapped and remain so
as long as a view of them is used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from pt2kit import codec
from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.messages import quote
from pt2kit.tensors.bounds import check_copy
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.export import AnyView, Reader, new_file
from pt2kit.tensors.safetensors_header import CODES, METADATA, Row, header, read_header, view_of
from pt2kit.tensors.view import TensorView
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.directory import unzipped
from pt2kit.zip.reader import Archive
from pt2kit.zip.source import DEFAULT_LIMITS, Progress, Source, no_progress, open_bytes, open_path

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
        progress: called after each tensor, and when the file is in its place.

    Raises:
        OSError: the file cannot be written.
        UnsupportedError: a type, name or kind of tensor that the format lacks (P15, P18).
        Pt2Error: a tensor cannot be read.
    """
    tensors = {name: view.dense() for name, view in views.items()}
    notes = dict(metadata or {})
    if tied == "once":
        notes.update(_drop_tied(tensors))
    rows = {name: (_code(name, tensor), tensor.sizes, tensor.nbytes) for name, tensor in tensors.items()}
    try:
        "".join((*tensors, *notes, *notes.values())).encode()
    except (TypeError, UnicodeEncodeError) as error:
        raise UnsupportedError(
            f"{os.fspath(path)}: expected names and texts that a safetensors file can hold, got: {error}", rule="P18"
        ) from error
    head, order = header(rows, notes)
    reader = Reader(tensors.values())
    done, total = 0, sum(tensor.nbytes for tensor in tensors.values())
    with new_file(path) as file:
        file.write(head)
        for name in order:
            for piece in tensors[name].iter_bytes(reader.take(tensors[name])):
                file.write(piece)
            done += tensors[name].nbytes
            if done < total:
                progress(done, total)
    progress(total, total)


def _code(name: str, tensor: TensorView) -> str:
    """Return the format's name of a tensor's type; refuse what cannot be written, before anything is.

    Raises:
        UnsupportedError: a type or a name that the format lacks (P18).
        LimitError: a copy that would be far larger than its storage (P16).
    """
    code = CODES.get(tensor.dtype)
    if code is None:
        raise UnsupportedError(
            f"{tensor.where}: expected a type that safetensors has, got {DTYPES[tensor.dtype].name}; write .npz "
            "instead",
            rule="P18",
        )
    if name == METADATA:
        raise UnsupportedError(
            f"{tensor.where}: expected a name that safetensors does not use itself, got {name!r}", rule="P18"
        )
    check_copy(tensor.where, tensor.nbytes, tensor.storage.nbytes)
    return code


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
        self.records = MappingProxyType(
            {view.record: unzipped(view.record, view.nbytes) for view in self.views.values()}
        )

    def place_of(self, name: str) -> tuple[Source, int]:
        """Return the file of a tensor, and its offset there."""
        return self._places[name]

    def is_in_place(self, name: str) -> bool:
        """Return whether reading copies nothing."""
        return self._places[name][0].is_local


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
