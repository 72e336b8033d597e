"""Tensor storage of the design draft: big-endian bytes inside the program or in adjacent files, read as payload
descriptions; written inside.

The draft leaves the checksum of an external buffer open. pt2kit reads 64 hexadecimal digits, with or without `sha256:`
before them: the SHA-256 of the `length` bytes at `offset` of the file, as they are stored. A buffer without a checksum
("") is read unchecked, any other text is refused. `location` is a path with forward
slashes relative to the folder of the program, never leading out of it.

Bytes are decoded, read and checked when they are asked for, not before.
"""

from __future__ import annotations

import base64
import hashlib
import re
from array import array
from collections.abc import Callable, Mapping
from typing import Any, Final

from pt2kit.errors import IntegrityError, PayloadError, UnsupportedError
from pt2kit.pickles.values import ITEM_SIZES, PickledTensor, TensorKind, whole_bytes
from pt2kit.versions.conversion_log import ReadExternal, check_location
from pt2kit.versions.draft.graph import SCALAR_TYPES
from pt2kit.versions.line.constants import TORCH_NAMES, decode_bytes, described
from pt2kit.zip.reader import Storage

DTYPES: Final[Mapping[str, str]] = {short: TORCH_NAMES[number] for short, number in SCALAR_TYPES.items()}
"""Element types of the draft -> torch's names."""

_NAMES: Final[Mapping[str, str]] = {name: short for short, name in DTYPES.items()}
_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_CHECKSUM: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


def decode_tensor(
    tensor: Mapping[str, Any], kind: TensorKind, place: str, external: ReadExternal | None
) -> PickledTensor:
    """Return a tensor of the draft as a payload description; no bytes are read.

    Args:
        tensor: fits the draft's table.
        kind: its kind in its module.
        place: where it is, for messages.
        external: reads files next to the program; without it, asking for the bytes of such a tensor fails.

    Raises:
        PayloadError: symbolic sizes, an extent beyond the storage, an external buffer that is none.
    """
    meta, storage = tensor["meta"], tensor["storage"]
    dtype = DTYPES[meta["dtype"]]
    nbytes, read = _storage(storage, place, external)
    device = meta["device"]
    name = device["type"] if device["type"] == "cpu" or device["index"] < 0 else f"{device['type']}:{device['index']}"
    swapped = Storage(place, nbytes, lambda: memoryview(swap_bytes(read(), dtype)))
    return described(swapped, dtype, name, meta, kind, place)


def encode_tensor(tensor: PickledTensor, meta: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a payload description as a tensor of the draft, with its bytes inside.

    Args:
        tensor: not `unfit`.
        meta: the device, layout and gradient flag of the draft's `TensorMeta`.
        place: where it goes, for messages.
    """
    content = tensor.storage.read(keep=False)[: whole_bytes(tensor.storage, tensor.dtype_name)]
    data = swap_bytes(bytes(content), tensor.dtype_name)
    return {
        "storage": {"data_location": "Internal", "data": {"buffer": base64.b64encode(data).decode()}},
        "meta": {
            **meta,
            "dtype": _NAMES[tensor.dtype_name],
            "sizes": [{"as_int": size} for size in tensor.sizes],
            "strides": [{"as_int": stride} for stride in tensor.strides],
            "storage_offset": {"as_int": tensor.storage_offset},
            "requires_grad": tensor.requires_grad,
        },
    }


def unfit(tensor: PickledTensor) -> str:
    """Return why a payload cannot be a tensor of the draft; "" if it can."""
    if tensor.conj or tensor.neg:
        return "a lazily conjugated or negated tensor"
    return "" if tensor.dtype_name in _NAMES else tensor.dtype_name


def swap_bytes(data: bytes, dtype: str) -> bytes:
    """Reverse the bytes of every number, so that big-endian ones become little-endian and the other way round.

    Args:
        data: whole elements; an incomplete rest is kept.
        dtype: torch's name of the element type; the two parts of a complex number are numbers of their own.
    """
    width = ITEM_SIZES[dtype] // (2 if dtype.startswith("complex") else 1)
    whole = len(data) // width * width
    numbers = array({1: "B", 2: "H", 4: "I", 8: "Q"}[width], data[:whole])
    numbers.byteswap()
    return numbers.tobytes() + data[whole:]


def _storage(storage: Mapping[str, Any], place: str, external: ReadExternal | None) -> tuple[int, Callable[[], bytes]]:
    """Return how many bytes a storage has, and their reader."""
    data = storage["data"]
    if storage["data_location"] == "Internal":
        if "buffer" not in data:
            raise PayloadError(f"{place}: expected a Buffer, as data_location says, got an ExternalBuffer")
        text = data["buffer"]
        return len(text) // 4 * 3 - text[-2:].count("="), lambda: decode_bytes(text, place)
    if "location" not in data:
        raise PayloadError(f"{place}: expected an ExternalBuffer, as data_location says, got a Buffer")
    offset, length = (_decimal(data[key], key, place) for key in ("offset", "length"))
    location = check_location(data["location"], place)
    checksum = _checksum(data["checksum"], place)

    def read() -> bytes:
        if external is None:
            raise UnsupportedError(
                f"{place}: expected the folder of the program, which has its storage in {location!r}, got none; "
                "open the program by its path"
            )
        return _verified(external(location, offset, length), length, checksum, f"{place}: {location}")

    return length, read


def _verified(found: bytes, length: int, checksum: str | None, place: str) -> bytes:
    if len(found) != length:
        raise PayloadError(f"{place}: expected {length} bytes at the offset, got {len(found)}")
    if checksum is not None and (digest := hashlib.sha256(found).hexdigest()) != checksum:
        raise IntegrityError(f"{place}: expected bytes with the SHA-256 {checksum}, got {digest}")
    return found


def _checksum(text: str, place: str) -> str | None:
    if not text:
        return None
    if not (match := _CHECKSUM.fullmatch(text)):
        raise PayloadError(f"{place}: checksum: expected sha256: and 64 hexadecimal digits, got {text[:80]!r}")
    return match[1]


def _decimal(text: str, key: str, place: str) -> int:
    if not _DECIMAL.fullmatch(text):
        raise PayloadError(f"{place}: {key}: expected a decimal number, got {text[:80]!r}")
    return int(text)
