"""A `.safetensors` file, or the index of sharded ones -> views by name; nothing is read but headers.

Files are mapped and stay so as long as a view of them is used.
"""

from __future__ import annotations

import os
from typing import Any

from pt2kit import codec
from pt2kit.errors import PayloadError
from pt2kit.tensors.safetensors_header import read_header, view_of
from pt2kit.tensors.view import TensorView
from pt2kit.zip.record_name import show_name, show_value
from pt2kit.zip.source import Source, open_path

SUFFIXES = (".safetensors", ".json")
"""How the names of such files, and of indexes, end."""


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, TensorView]:
    """The tensors of a file, or of all files that an index (`….index.json`, as Hugging Face writes it) names.

    Args:
        path: of the file or the index; the files of an index lie beside it.

    Raises:
        PayloadError: a file contradicts itself or was cut short, or has not what the index says (B4).
        UnsupportedError: a tensor of a type that the schema lacks (P4).
        OSError: a file cannot be opened.
    """
    if os.fspath(path).endswith(".json"):
        return _read_index(path)
    source = open_path(path)
    return {name: view_of(name, row, source) for name, row in read_header(source).items()}


def _read_index(path: str | os.PathLike[str]) -> dict[str, TensorView]:
    where, folder = os.fspath(path), os.path.dirname(os.fspath(path))
    source = open_path(path)
    placed = _placed(codec.parse(source.read(0, source.size), where), where)
    rows: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for file in dict.fromkeys(placed.values()):
        sources[file] = open_path(os.path.join(folder, file))
        rows[file] = read_header(sources[file])
    for name, file in placed.items():
        if name not in rows[file]:
            raise PayloadError(
                f"{where}: {show_name(name)}: expected it in {file}, as the index says, got none of that name",
                rule="B4",
            )
    return {name: view_of(name, rows[file][name], sources[file]) for name, file in placed.items()}


def _placed(index: Any, where: str) -> dict[str, str]:
    """Name -> file, as an index says."""
    found = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(found, dict) or not found:
        raise PayloadError(f"{where}: expected an index with a weight_map, got {show_value(str(index))}", rule="B4")
    for name, file in found.items():
        if not isinstance(file, str) or file != os.path.basename(file) or file in ("", ".", ".."):
            raise PayloadError(
                f"{where}: {show_name(name)}: expected the name of a file beside the index, got "
                f"{show_value(str(file))}",
                rule="B2",
            )
    return found
