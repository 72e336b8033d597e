"""Read tensor views by name from a `.safetensors` file, or the index of sharded ones; only headers are read.

Files are mapped and remain so as long as a view of them is used.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import Any

from pt2kit import codec
from pt2kit.errors import PayloadError
from pt2kit.messages import quote
from pt2kit.tensors.safetensors_header import Row, read_header, view_of
from pt2kit.tensors.view import TensorView
from pt2kit.zip.directory import Record
from pt2kit.zip.headers import STORED
from pt2kit.zip.limits import DEFAULT_LIMITS
from pt2kit.zip.reader import Archive, Sum
from pt2kit.zip.record_name import show_name
from pt2kit.zip.source import Source, open_bytes, open_path

SUFFIXES = (".safetensors", ".json")
"""Endings of the names of such files, and of indexes."""


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
