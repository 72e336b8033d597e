"""Write descriptions of tensors in plain containers as a torch.save file.

The opposite of `pickles.reader`. Runs nothing.

The older layouts keep weights, constants and sample inputs in such files. Storages are written once for each element
type, shared by all tensors over them of that type: torch reads all tensors over a storage of a file as elements of the
first one's type. The same value has the same bytes. The stream is pickle protocol 2, the oldest that torch writes.

Source: torch/serialization.py and torch/_utils.py, 2.1 to 2.13, and the files of those releases.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import IO, Any, Final, TypeAlias

from msgspec import Struct

from pt2kit.errors import LimitError, UnsupportedError
from pt2kit.pickles.budget import parts_of
from pt2kit.pickles.values import (
    ITEM_SIZES,
    TYPED_STORAGES,
    MetaTensor,
    PickledTensor,
    SparseTensor,
    whole_bytes,
)
from pt2kit.zip.reader import Storage
from pt2kit.zip.writer import ArchiveWriter

_MAX_DEPTH: Final = 100
_TYPED: Final[Mapping[str, str]] = MappingProxyType(
    {dtype: f"torch.{name}Storage" for name, dtype in TYPED_STORAGES.items()}
)
"""dtype -> name of its storage class, for the dtypes that have one."""
_Tensor: TypeAlias = PickledTensor | SparseTensor | MetaTensor
_SEQUENCES: Final[Mapping[type, tuple[bytes, bytes]]] = MappingProxyType({tuple: (b"(", b"t"), list: (b"](", b"e")})
"""Type -> the opcodes before and after its items."""


def dump(value: Any, file: IO[bytes], where: str) -> None:
    """Write a value as a torch.save file.

    Args:
        value: None, bool, int, float, complex, str, list, tuple, dict, OrderedDict, `PickledTensor`, `SparseTensor`
            and `MetaTensor`, nested. A tensor's kind "parameter" makes it a parameter.
        file: open for writing; need not be able to seek.
        where: what messages call the file.

    Raises:
        UnsupportedError: anything else.
        LimitError: containers nested deeper than 100, an integer of more than 255 bytes.

    Cost: every storage is read once; none is held.
    """
    stream = _Stream(where)
    stream.value(value, 0)
    data = b"\x80\x02" + b"".join(stream.parts) + b"."
    digest = hashlib.sha256(data)
    with ArchiveWriter(file, root="archive") as writer:
        writer.write("data.pkl", data)
        writer.write("byteorder", b"little")
        for key, (storage, dtype) in enumerate(stream.storages):
            content = storage.read(keep=False)[: whole_bytes(storage, dtype)]
            digest.update(content)
            writer.write(f"data/{key}", content)
        writer.write("version", b"3\n")
        writer.write(".data/serialization_id", str(int(digest.hexdigest()[:32], 16)).rjust(40, "0").encode())


def dumps(value: Any, where: str) -> bytes:
    """Write a value as the bytes of a torch.save file.

    Raises:
        UnsupportedError, LimitError: as `dump`.
    """
    buffer = io.BytesIO()
    dump(value, buffer, where)
    return buffer.getvalue()


def size_of(value: Any) -> int:
    """Return about how many bytes the file of a value has: those of the storages."""
    waiting, found = [value], {}
    while waiting:
        part = waiting.pop()
        if isinstance(part, PickledTensor):
            found[part.storage, part.dtype_name] = whole_bytes(part.storage, part.dtype_name)
        waiting += parts_of(part) or ()
    return sum(found.values())


class _Global(Struct, frozen=True):
    """Class or function of this module's choice, to be written; those that payloads describe are refused."""

    path: str


class _Made(Struct, frozen=True):
    """Result of an opcode, to be written after its operands: of a call, or the storage of a persistent id."""

    opcode: bytes
    operands: tuple[Any, ...]


def _call(path: str, *args: Any) -> _Made:
    return _Made(b"R", (_Global(path), args))


_ORDERED_DICT: Final = _call("collections.OrderedDict")


class _Stream:
    """The opcodes of a pickle, in order, and the storages they refer to."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.parts: list[bytes] = []
        self.storages: dict[tuple[Storage, str], _Made] = {}

    def value(self, value: Any, depth: int) -> None:
        """Write any value."""
        if depth > _MAX_DEPTH:
            raise LimitError(f"{self.where}: expected containers nested at most {_MAX_DEPTH} levels deep, got more")
        match value:
            case None:
                self.parts.append(b"N")
            case bool():
                self.parts.append(b"\x88" if value else b"\x89")
            case int():
                self._int(value)
            case float():
                self.parts.append(b"G" + struct.pack(">d", value))
            case str():
                raw = value.encode("utf-8", "surrogatepass")
                self.parts.append(b"X" + struct.pack("<I", len(raw)) + raw)
            case complex():
                self.value(_call("__builtin__.complex", value.real, value.imag), depth)  # as protocol 2 spells it
            case PickledTensor() | SparseTensor() | MetaTensor():
                self.value(self._rebuilt(value), depth)
            case _Global(path):
                module, _, name = path.rpartition(".")
                self.parts.append(f"c{module}\n{name}\n".encode())
            case _Made(opcode, operands):
                for operand in operands:
                    self.value(operand, 0)
                self.parts.append(opcode)
            case _:
                self._container(value, depth)

    def _int(self, value: int) -> None:
        if 0 <= value < 256:
            self.parts.append(b"K" + bytes([value]))
        elif -(1 << 31) <= value < 1 << 31:
            self.parts.append(b"J" + struct.pack("<i", value))
        else:
            raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            if len(raw) > 255:
                raise LimitError(f"{self.where}: expected integers of at most 255 bytes, got one of {len(raw)}")
            self.parts.append(b"\x8a" + bytes([len(raw)]) + raw)

    def _container(self, value: Any, depth: int) -> None:
        if isinstance(value, OrderedDict):
            self.value(_ORDERED_DICT, depth)
            self._items(value, depth)
        elif isinstance(value, dict):
            self.parts.append(b"}")
            self._items(value, depth)
        elif type(value) in _SEQUENCES:
            begin, end = _SEQUENCES[type(value)]
            self.parts.append(begin)
            for entry in value:
                self.value(entry, depth + 1)
            self.parts.append(end)
        else:
            raise UnsupportedError(
                f"{self.where}: expected tensors and plain containers of numbers and text, got {type(value).__name__}"
            )

    def _items(self, value: Mapping[Any, Any], depth: int) -> None:
        if not value:
            return
        self.parts.append(b"(")
        for key, entry in value.items():
            self.value(key, depth + 1)
            self.value(entry, depth + 1)
        self.parts.append(b"u")

    def _rebuilt(self, tensor: _Tensor) -> _Made:
        """Return the call that rebuilds a tensor."""
        if tensor.kind == "parameter":
            data = self._data(tensor, False)
            return _call("torch._utils._rebuild_parameter", data, tensor.requires_grad, _ORDERED_DICT)
        return self._data(tensor, tensor.requires_grad)

    def _data(self, tensor: _Tensor, requires_grad: bool) -> _Made:
        """Return the call for a tensor; a dense one of the newer dtypes names its dtype, as its storage does not."""
        if isinstance(tensor, SparseTensor):
            layout = _call("torch.serialization._get_layout", f"torch.{tensor.layout}")
            parts: tuple[Any, ...] = (*tensor.indices, tensor.values, _call("torch.Size", tensor.sizes))
            if tensor.layout == "sparse_coo" and tensor.is_coalesced is not None:
                parts += (tensor.is_coalesced,)
            return _call("torch._utils._rebuild_sparse_tensor", layout, parts)
        if (dtype := tensor.dtype_name) not in ITEM_SIZES:
            raise UnsupportedError(f"{self.where}: expected a dtype that torch.save knows, got {dtype!r}")
        if isinstance(tensor, MetaTensor):
            of_shape = (_Global(f"torch.{dtype}"), tensor.sizes, tensor.strides, requires_grad)
            return _call("torch._utils._rebuild_meta_tensor_no_storage", *of_shape)
        typed, size = _TYPED.get(dtype), whole_bytes(tensor.storage, dtype)
        kind = _Global(typed or "torch.storage.UntypedStorage")
        count = size // ITEM_SIZES[dtype] if typed else size
        place = _Made(b"Q", (("storage", kind, str(len(self.storages)), tensor.device, count),))
        args: tuple[Any, ...] = (
            self.storages.setdefault((tensor.storage, dtype), place),
            tensor.storage_offset,
            tensor.sizes,
            tensor.strides,
            requires_grad,
            _ORDERED_DICT,
        )
        if not typed:
            args += (_Global(f"torch.{dtype}"),)
        if marks := {name: True for name, is_set in (("conj", tensor.conj), ("neg", tensor.neg)) if is_set}:
            args += (marks,)
        return _call(f"torch._utils._rebuild_tensor_v{2 if typed else 3}", *args)
