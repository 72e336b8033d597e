"""The weights and constants of a program that is being edited: numbers in, payload records and configs out.

An entry keeps the line of the config that it came with, so what is not edited is written as it was. New numbers become
records when the editor finishes; names that share an entry's record are tied.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pt2kit import schema
from pt2kit.editing.assembly import Part, Parts, folder_of
from pt2kit.editing.metas import scalar_type
from pt2kit.errors import GraphError, PayloadError
from pt2kit.messages import quote
from pt2kit.package.open import Package
from pt2kit.package.payloads import Payload
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import contiguous_strides
from pt2kit.tensors.dtypes import DTYPES, numpy_dtype, scalar_type_of
from pt2kit.tensors.storage import Storage
from pt2kit.tensors.view import TensorView
from pt2kit.zip.record_name import show_name

Kind = Literal["weights", "constants"]
KINDS: Final[tuple[Kind, Kind]] = ("weights", "constants")
_MAX_HEADER: Final = 100_000_000
_SAFETENSORS: Final = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "C64": "complex64",
}  # fmt: skip


@dataclass(slots=True)
class Entry:
    """One weight or constant.

    Args:
        payload: what it holds.
        meta: its line in the config; None where its numbers are new.
        kind: the folder that its record lies in; that of the config it is listed in may be another after an edit.
    """

    payload: Payload
    meta: schema.PayloadMeta | None
    kind: Kind


class Weights(Mapping[str, Payload]):
    """The weights (parameters, persistent buffers) or constants of a program, by name, in the file's order.

    Args:
        kind: which of the two.
        entries: name -> entry; changed in place.
    """

    def __init__(self, kind: Kind, entries: dict[str, Entry]) -> None:
        self.kind: Kind = kind
        self.entries = entries

    def __getitem__(self, name: str) -> Payload:
        return self.entries[name].payload

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def find(self, name: str, edit: str) -> Entry:
        """An entry by name.

        Raises:
            GraphError: there is none.
        """
        found = self.entries.get(name)
        if found is None:
            there = ", ".join(list(self.entries)[:6]) or "none"
            raise GraphError(f"{edit}: expected the name of one of the {self.kind} ({there}), got {quote(name)}")
        return found


def read_weights(package: Package | None, parts: Parts | None, model: str) -> tuple[Weights, Weights]:
    """The weights and the constants of a model; nothing where there is only a program.

    Raises:
        Pt2Error: they cannot be listed.
    """
    found = []
    for kind in KINDS:
        entries: dict[str, Entry] = {}
        if package is not None and parts is not None:
            config = parts.config(model, kind)
            payloads = package.weights(model) if kind == "weights" else package.constants(model)
            entries = {name: Entry(payload, config[name], kind) for name, payload in payloads.items()}
        found.append(Weights(kind, entries))
    return found[0], found[1]


def write_weights(parts: Parts, model: str, weights: Weights, constants: Weights) -> None:
    """Put the weights and constants of a model into the records of a package."""
    known: dict[tuple[Any, ...], str] = {}
    for table in (weights, constants):
        config: dict[str, schema.PayloadMeta] = {}
        for name, entry in table.entries.items():
            meta = entry.meta
            if meta is None or entry.kind != table.kind:
                meta = _place(parts, table.kind, entry, known)
            config[name] = meta
        if config != parts.config(model, table.kind) or not config:
            parts.set_config(model, table.kind, config)


def _place(parts: Parts, kind: Kind, entry: Entry, known: dict[tuple[Any, ...], str]) -> schema.PayloadMeta:
    """Give an entry a record in a folder: one of its own, or the one that what it is tied to got there."""
    payload = entry.payload
    if not isinstance(payload, TensorView):
        old = entry.meta
        if old is None or not old.use_pickle:
            raise GraphError(f"{payload.name!r}: expected a tensor among the {kind}, got {payload.describe()}")
        source = folder_of(entry.kind) + old.path_name
        name = known.setdefault((kind, source), parts.next_record(kind))
        parts.records.setdefault(name, parts.records[source])
        return schema.PayloadMeta(name.rpartition("/")[2], old.is_param, True, old.tensor_meta)
    storage = payload.storage
    key = (kind, storage, payload.dtype)
    if key not in known:
        known[key] = parts.next_record(kind)
        nbytes = storage.nbytes - storage.nbytes % payload.itemsize
        parts.records[known[key]] = Part(nbytes, lambda: storage.read(keep=False)[:nbytes])
    return schema.PayloadMeta(known[key].rpartition("/")[2], payload.is_param, False, payload.meta())


def to_view(name: str, numbers: Any, *, like: TensorView | None = None, edit: str = "weights") -> TensorView:
    """Numbers as a payload.

    Args:
        name: of the weight.
        numbers: an array of numpy or ml_dtypes, anything `numpy.asarray` takes, or a payload of any package.
        like: what states device, gradient and whether it is a parameter; those of a payload are its own otherwise.
        edit: what messages call the edit.

    Returns:
        A view; of an array its bytes are shared where they lie in row-major order and little-endian, else copied.

    Raises:
        GraphError: no numbers that the format has a type for.
    """
    if isinstance(numbers, TensorView):
        view = replace(numbers, name=name)
    else:
        view = _from_array(name, numbers, edit)
    if like is None:
        return view
    gradient = like.requires_grad and DTYPES[view.dtype].has_gradient
    return replace(view, requires_grad=gradient, device=like.device, is_param=like.is_param)


def _from_array(name: str, numbers: Any, edit: str) -> TensorView:
    import numpy as np

    array = np.asarray(numbers)
    dtype = scalar_type_of(array.dtype, f"{edit}: {name!r}")
    row = np.ascontiguousarray(array, dtype=numpy_dtype(dtype)).reshape(array.shape)
    data = arrays.raw_bytes(row)
    sizes = tuple(map(int, row.shape))
    storage = Storage(f"<{name}>", data.nbytes, lambda: data, in_place=True)
    return TensorView(name, dtype, sizes, contiguous_strides(sizes), 0, storage)


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, TensorView]:
    """The tensors of a `.safetensors` file, mapped, or of all files that an index of one (`….index.json`) names.

    Raises:
        PayloadError: the file is no such file, or contradicts itself.
        OSError: it cannot be read.
    """
    if os.fspath(path).endswith(".json"):
        with open(path, "rb") as file:
            index = json.load(file)
        shards = dict.fromkeys(index["weight_map"].values()) if isinstance(index.get("weight_map"), dict) else {}
        folder = os.path.dirname(os.fspath(path))
        if not shards or not all(isinstance(one, str) and one == os.path.basename(one) for one in shards):
            raise PayloadError(f"{os.fspath(path)}: expected a weight_map of files beside the index, got none")
        return {name: view for one in shards for name, view in read_safetensors(os.path.join(folder, one)).items()}
    where = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(_MAX_HEADER, size - 8):
            raise PayloadError(f"{where}: expected a safetensors header within {size} bytes, got one of {length}")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise PayloadError(f"{where}: expected a safetensors header, got no JSON: {error}") from None
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[8 + length :]
    if not isinstance(header, dict):
        raise PayloadError(f"{where}: expected a safetensors header, got {type(header).__name__}")
    return {name: _listed(name, row, data, where) for name, row in header.items() if name != "__metadata__"}


def _listed(name: str, row: Any, data: memoryview, where: str) -> TensorView:
    match row:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(start), int(end)]} if dtype in _SAFETENSORS:
            pass
        case _:
            raise PayloadError(f"{where}: {name!r}: expected dtype, shape and data_offsets, got {str(row)[:100]}")
    if not (0 <= start <= end <= data.nbytes and all(isinstance(size, int) and size >= 0 for size in shape)):
        raise PayloadError(f"{where}: {name!r}: expected bytes within {data.nbytes}, got {start} to {end}", rule="P9")
    piece = data[start:end]
    storage = Storage(f"{show_name(where)}: {name}", piece.nbytes, lambda: piece, in_place=True)
    sizes = tuple(shape)
    return TensorView(name, scalar_type(_SAFETENSORS[dtype]), sizes, contiguous_strides(sizes), 0, storage)
