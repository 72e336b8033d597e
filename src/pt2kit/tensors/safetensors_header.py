"""Header of a `.safetensors` file: read and write the location of each tensor's bytes (rule B4).

    8 bytes      the header's length, little-endian
    header       JSON: name -> dtype, shape, data_offsets (from the end of the header), and "__metadata__"
    data         the tensors one after another, without a gap

Source: the format's description in the README of safetensors 0.8. Types that the schema lacks are listed all the same:
only a requested tensor must be of a known one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pt2kit import codec
from pt2kit.errors import JsonError, PayloadError, UnsupportedError
from pt2kit.messages import quote
from pt2kit.schema import ScalarType
from pt2kit.tensors.bounds import INT64_MAX, contiguous_strides
from pt2kit.tensors.dtypes import DTYPES, scalar_type_named
from pt2kit.tensors.view import TensorView
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.reader import Storage
from pt2kit.zip.source import Source

ALIGNMENT: Final = 64
"""The data of files that are written here begins at a multiple of this, so that they can be mapped."""

_MAX_HEADER: Final = 100_000_000
"""Bytes of a header, as the safetensors library has it."""

METADATA: Final = "__metadata__"
NO_METADATA: Final[Mapping[str, str]] = MappingProxyType({})

_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "BOOL": "bool",
        **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
        **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
        **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
        "BF16": "bfloat16",
        "C64": "complex64",
        "F8_E4M3": "float8_e4m3fn",
        "F8_E5M2": "float8_e5m2",
        "F8_E8M0": "float8_e8m0fnu",
        "F8_E4M3FNUZ": "float8_e4m3fnuz",
        "F8_E5M2FNUZ": "float8_e5m2fnuz",
    }
)
"""Its name of an element type -> torch's."""

CODES: Final[Mapping[ScalarType, str]] = MappingProxyType(
    {scalar_type_named(name, code): code for code, name in _NAMES.items()}
)
"""Element type -> the format's name of it; some have none."""


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor of a file.

    Args:
        dtype: its element type, as the file calls it ("F32").
        shape: elements per dimension.
        start, end: its bytes in the file.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def read_header(source: Source) -> dict[str, Row]:
    """Read where the tensors of a file are; no tensor is read.

    Raises:
        PayloadError: it is no such file, contradicts itself, or was cut short (B4).
        Pt2Error: the source cannot be read.
    """
    where = source.name
    length = int.from_bytes(source.peek(0, 8), "little") if source.size >= 8 else -1
    if not 2 <= length <= min(_MAX_HEADER, source.size - 8):
        raise PayloadError(
            f"{where}: expected a safetensors header within its {source.size} bytes, got "
            f"{'none' if length < 0 else f'one of {length}'}",
            rule="B4",
        )
    try:
        tree = codec.parse(source.read(8, length), where)
    except JsonError as error:
        raise PayloadError(f"{where}: expected a safetensors header, got no JSON: {error}", rule="B4") from error
    if not isinstance(tree, dict):
        raise PayloadError(f"{where}: expected a safetensors header, got a {type(tree).__name__}", rule="B4")
    begin = 8 + length
    rows = {name: _row(name, row, begin, where) for name, row in tree.items() if name != METADATA}
    _check_data(rows, begin, source)
    return rows


def _row(name: str, row: Any, begin: int, where: str) -> Row:
    match row:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(start), int(end)]} if all(
            type(number) is int and 0 <= number <= INT64_MAX for number in (*shape, start, end)
        ):
            entry = Row(dtype, tuple(shape), begin + start, begin + end)
        case _:
            raise PayloadError(
                f"{where}: {show_name(name)}: expected dtype, shape and data_offsets, got {quote(str(row))}",
                rule="B4",
            )
    itemsize = itemsize_of(dtype)
    if start > end or (itemsize is not None and end - start != math.prod(shape) * itemsize):
        raise PayloadError(
            f"{where}: {show_name(name)}: expected the bytes of {dtype} {shape}, got {end - start} of them", rule="B4"
        )
    return entry


def _check_data(rows: Mapping[str, Row], begin: int, source: Source) -> None:
    """Check that tensors are stored one after another up to the end of the file."""
    reached = begin
    for name, row in sorted(rows.items(), key=lambda item: (item[1].start, item[1].end)):
        if row.start != reached:
            raise PayloadError(
                f"{source.name}: {show_name(name)}: expected its bytes from {reached} on, where those before end, "
                f"got {row.start}",
                rule="B4",
            )
        reached = row.end
    if reached != source.size:
        cut = ": it was cut short" if source.size < reached else ""
        raise PayloadError(
            f"{source.name}: expected {reached} bytes, as its header says, got {source.size}{cut}", rule="B4"
        )


def itemsize_of(dtype: str) -> int | None:
    """Return the bytes of an element of a type by the format's name; None for a type that the schema lacks."""
    return DTYPES[scalar_type_named(_NAMES[dtype], dtype)].itemsize if dtype in _NAMES else None


def view_of(name: str, row: Row, source: Source) -> TensorView:
    """Return a tensor of an open file, read on access.

    Raises:
        UnsupportedError: a type that the schema lacks (P4).
    """
    where = f"{show_name(source.name)}: {name}"
    if row.dtype not in _NAMES:
        raise UnsupportedError(
            f"{where}: dtype: expected an element type of the schema, got {quote(row.dtype)}", rule="P4"
        )
    nbytes = row.end - row.start
    storage = Storage(where, nbytes, lambda: source.read(row.start, nbytes), in_place=source.is_local)
    dtype = scalar_type_named(_NAMES[row.dtype], where)
    return TensorView(name, dtype, row.shape, contiguous_strides(row.shape), 0, storage)


def header(
    tensors: Mapping[str, tuple[str, tuple[int, ...], int]], metadata: Mapping[str, str] = NO_METADATA
) -> tuple[bytes, list[str]]:
    """Return the length and the header of a file, and the order of the tensors after it.

    Whole multiples of `ALIGNMENT` bytes come first, then larger elements.

    Args:
        tensors: name -> dtype, shape and bytes.
        metadata: texts besides `format: pt`, which identifies a state dict of PyTorch.
    """

    def key(name: str) -> tuple[bool, int]:
        dtype, _, nbytes = tensors[name]
        return nbytes % ALIGNMENT != 0, -(itemsize_of(dtype) or 0)

    order = sorted(tensors, key=key)
    tree: dict[str, Any] = {METADATA: {"format": "pt", **metadata}}
    reached = 0
    for name in order:
        dtype, shape, nbytes = tensors[name]
        tree[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [reached, reached + nbytes]}
        reached += nbytes
    text = codec.encode(tree)
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text, order
