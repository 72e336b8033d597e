"""Storages, views and small archives for the tests of this subpackage."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from pt2kit.schema import Device, Layout, PayloadConfig, PayloadMeta, ScalarType, SymInt, TensorMeta
from pt2kit.tensors import Storage, TensorView
from pt2kit.tensors.bounds import contiguous_strides
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.zip.reader import Archive, open_archive
from pt2kit.zip.writer import ArchiveWriter

FOLDER = "m/data/weights/"
WHERE = "m/data/weights/model_weights_config.json"


def storage(data: bytes, record: str = "m/data/weights/weight_0", *, in_place: bool = True) -> Storage:
    """A storage over bytes in memory."""
    return Storage(record, len(data), lambda: memoryview(data), in_place=in_place)


def view(
    data: bytes | Storage,
    dtype: ScalarType,
    sizes: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    offset: int = 0,
    name: str = "w",
    **flags: Any,
) -> TensorView:
    """A view over bytes; row-major if no strides are given."""
    under = data if isinstance(data, Storage) else storage(data)
    return TensorView(
        name, dtype, sizes, contiguous_strides(sizes) if strides is None else strides, offset, under, **flags
    )


def view_of(array: np.ndarray[Any, Any], dtype: ScalarType, **flags: Any) -> TensorView:
    """A row-major view that holds the elements of an array of that type."""
    return view(array.tobytes(), dtype, array.shape, **flags)


def meta(
    sizes: tuple[int, ...] = (2,),
    strides: tuple[int, ...] | None = None,
    offset: int = 0,
    dtype: ScalarType = ScalarType.FLOAT,
    **other: Any,
) -> TensorMeta:
    """The description of a tensor as a config has it."""
    steps = contiguous_strides(sizes) if strides is None else strides
    fields: dict[str, Any] = {
        "dtype": dtype,
        "sizes": [SymInt(as_int=size) for size in sizes],
        "requires_grad": False,
        "device": Device("cpu"),
        "strides": [SymInt(as_int=step) for step in steps],
        "storage_offset": SymInt(as_int=offset),
        "layout": Layout.Strided,
    }
    return TensorMeta(**{**fields, **other})


def payload(
    path_name: str = "weight_0", tensor_meta: TensorMeta | None = None, *, use_pickle: bool = False
) -> PayloadMeta:
    """One entry of a config."""
    return PayloadMeta(path_name=path_name, is_param=False, use_pickle=use_pickle, tensor_meta=tensor_meta)


def config(**entries: PayloadMeta) -> PayloadConfig:
    """A config of entries by name."""
    return PayloadConfig(config=entries)


def archive(records: Mapping[str, bytes]) -> Archive:
    """An archive in memory; names are full."""
    file = io.BytesIO()
    with ArchiveWriter(file, root="") as writer:
        for name, data in records.items():
            writer.write(name, data)
    return open_archive(file.getvalue())


def every_pattern(dtype: ScalarType) -> bytes:
    """Bytes that hold many different elements of a type: all patterns of one or two bytes, random ones of more."""
    row = DTYPES[dtype]
    if row.kind == "bool":
        return bytes([0, 1, 1, 0, 0, 1])
    if row.itemsize == 1:
        return bytes(range(256))
    if row.itemsize == 2:
        return np.arange(1 << 16, dtype="<u2").tobytes()
    return np.random.default_rng(7).bytes(row.itemsize * 999)
