"""Writes pickle streams and torch.save payloads by hand, so that they can say anything."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STOP = b"."
MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"


@dataclass(frozen=True)
class Ref:
    """A global by `module.name`; the last dot separates."""

    path: str


@dataclass(frozen=True)
class Call:
    """A global called with arguments, by REDUCE or another opcode that takes both from the stack."""

    path: str
    args: tuple[Any, ...] = ()
    opcode: bytes = b"R"


@dataclass(frozen=True)
class Build:
    """An object whose state is set."""

    target: Any
    state: Any


@dataclass(frozen=True)
class Persistent:
    """A persistent id."""

    id: Any


@dataclass(frozen=True)
class Raw:
    """Opcodes as they are."""

    code: bytes


def storage(cls: str = "torch.FloatStorage", key: Any = "0", device: Any = "cpu", numel: Any = 4) -> Persistent:
    """A storage as torch refers to it."""
    return Persistent(("storage", Ref(cls), key, device, numel))


def tensor(*, size: Any = (4,), stride: Any = (1,), offset: Any = 0, of: Any = None, **more: Any) -> Call:
    """A `_rebuild_tensor_v2` call over a storage of four floats, unless told otherwise."""
    args = (of or storage(), offset, size, stride, more.get("requires_grad", False), more.get("hooks", Call(ORDERED)))
    metadata = (more["metadata"],) if "metadata" in more else ()
    return Call("torch._utils._rebuild_tensor_v2", args + metadata)


ORDERED = "collections.OrderedDict"
FLOATS = struct.pack("<4f", 1, 2, 3, 4)


def encode(value: Any) -> bytes:
    """`value` as protocol 2 opcodes, without PROTO and STOP; memo entries are not used."""
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8b" + struct.pack("<I", len(data)) + data
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        return b"X" + struct.pack("<I", len(data)) + data
    if isinstance(value, bytes):
        return b"B" + struct.pack("<I", len(value)) + value
    if isinstance(value, tuple | list | dict):
        return _encode_container(value)
    return _encode_special(value)


def _encode_container(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"}(" + b"".join(encode(key) + encode(item) for key, item in value.items()) + b"u"
    items = b"".join(map(encode, value))
    return b"(" + items + b"t" if isinstance(value, tuple) else b"](" + items + b"e"


def _encode_special(value: Any) -> bytes:
    if isinstance(value, Ref):
        module, name = value.path.rsplit(".", 1)
        return b"c" + module.encode() + b"\n" + name.encode() + b"\n"
    if isinstance(value, Call):
        return encode(Ref(value.path)) + encode(value.args) + value.opcode
    if isinstance(value, Build):
        return encode(value.target) + encode(value.state) + b"b"
    if isinstance(value, Persistent):
        return encode(value.id) + b"Q"
    if isinstance(value, Raw):
        return value.code
    raise TypeError(type(value))


def stream(value: Any) -> bytes:
    """A whole protocol 2 pickle of `value`."""
    return b"\x80\x02" + encode(value) + STOP


def payload(pickled: bytes, storages: Mapping[str, bytes] | None = None, **records: bytes) -> bytes:
    """A torch.save zip: the stream, storages by key (one of four floats by default), and further records by name."""
    given = {"data.pkl": pickled, "byteorder": b"little", **records}
    given |= {f"data/{key}": data for key, data in ({"0": FLOATS} if storages is None else storages).items()}
    return zipped({f"archive/{name}": data for name, data in given.items()})


def zipped(records: Mapping[str, bytes]) -> bytes:
    """A zip of stored records."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name, data in records.items():
            made.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()
