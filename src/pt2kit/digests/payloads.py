"""Digests of weights and constants: one per tensor or object, and one over all of them.

The digest of a tensor covers its contents: type, sizes, strides, elements in row-major order, flags and device. It
does not cover the location of its bytes: the record and the tensors next to it. It does cover that two tensors overlap
in memory, because writing to one changes the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pt2kit.digests.result import BLOCK, DEFINITION, hash_bytes, hash_value
from pt2kit.errors import UnsupportedError
from pt2kit.schema import Layout, ScalarType
from pt2kit.tensors.compound import MetaView, NestedView, QuantizedView, SparseView, SubclassView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.export import AnyView, Reader
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.view import TensorView
from pt2kit.zip.reader import Storage
from pt2kit.zip.source import Progress


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_MEMBERS: Final[Mapping[type, tuple[str, Mapping[str, str]]]] = MappingProxyType(
    {
        SparseView: ("sparse", _same("layout", "sizes", "indices", "values", "is_coalesced")),
        QuantizedView: (
            "quantized",
            {"dtype": "dtype_name", "integers": "values", **_same("sizes", "qscheme", "scale", "zero_point", "axis")},
        ),
        NestedView: ("nested", _same("buffer", "sizes", "strides", "storage_offsets")),
        SubclassView: ("subclass", {"class": "class_name", **_same("dtype", "sizes", "parts", "options")}),
        MetaView: ("meta", _same("dtype", "sizes", "strides")),
    }
)
"""View -> its kind, and its members: name in the digest -> attribute. Flags are hashed of all kinds."""


@dataclass(frozen=True, slots=True)
class Payloads:
    """Digests of the weights or the constants of a program: of all of them, and by name; 32 bytes each."""

    digest: bytes
    by_name: Mapping[str, bytes]


def digest_payloads(payloads: Mapping[str, AnyView], hasher: Hasher, unknown: Any = None) -> Payloads:
    """Digest weights or constants.

    Args:
        payloads: name -> payload.
        hasher: made for these payloads, among others.
        unknown: what this build does not know of their description; None where it knows all.

    Raises:
        Pt2Error: a record cannot be read.

    Cost: reads each storage once, and hashes equal views of one storage once.
    """
    by_name = {name: hasher.leaf(payload) for name, payload in payloads.items()}
    value = {
        "tensors": by_name,
        "shared": shared(payloads),
        **({} if unknown is None else {"unknown": unknown}),
    }
    return Payloads(hash_value("payloads", value), by_name)


def shared(payloads: Mapping[str, AnyView]) -> list[dict[str, int]]:
    """List the groups of overlapping tensors, each as a dict from name to the distance in bytes from the first one.

    Two tensors overlap if the spans from their first to their last byte do; a group has all tensors connected so.
    """
    by_storage: dict[Storage, list[tuple[int, int, str]]] = defaultdict(list)
    for name, payload in payloads.items():
        if isinstance(payload, TensorView) and payload.numel:
            start, end = span(payload)
            by_storage[payload.storage].append((start, end, name))
    groups: list[dict[str, int]] = []
    for spans in by_storage.values():
        reached = 0
        for start, end, name in sorted(spans):
            if start >= reached:
                groups.append({})
                first = start
            groups[-1][name] = start - first
            reached = max(reached, end)
    return sorted((group for group in groups if len(group) > 1), key=min)


def span(view: TensorView) -> tuple[int, int]:
    """Return the bytes of a storage from the first to the last of a tensor that has elements."""
    last = sum((size - 1) * stride for size, stride in zip(view.sizes, view.strides, strict=True))
    return view.storage_offset * view.itemsize, (view.storage_offset + last + 1) * view.itemsize


class Hasher:
    """Digests payloads, reading each storage once.

    Args:
        payloads: all that will be digested, in any order.
        progress: called with the bytes done and the bytes in all.
        definition: the number of the definition to follow.
    """

    def __init__(self, payloads: list[AnyView], progress: Progress, definition: int = DEFINITION) -> None:
        self._definition = definition
        views = [view for payload in payloads for view in parts(payload)]
        self._reader = Reader(views)
        self._known: dict[tuple[Any, ...], bytes] = {}
        self._progress = progress
        self._done = 0
        self._total = sum(view.nbytes for view in views)
        self._total += sum(payload.nbytes for payload in payloads if isinstance(payload, OpaquePayload))
        progress(0, self._total)

    def leaf(self, payload: AnyView) -> bytes:
        """Return the digest of one payload, 32 bytes.

        Raises:
            Pt2Error: a record cannot be read.
        """
        described = self._described(payload)
        if self._definition > 2 and not payload.is_param and described.get("requires_grad"):
            described["requires_grad"] = False  # torch sets it for buffers that share memory with a parameter
        return hash_value("tensor", described)

    def _described(self, payload: AnyView) -> dict[str, Any]:
        flags = {"is_param": payload.is_param}
        if isinstance(payload, OpaquePayload):
            content = hash_bytes(self._counted(_blocks(payload.storage.read(keep=False))))
            return {"kind": payload.kind, "tensor_meta": payload.tensor_meta, "bytes": content, **flags}
        if isinstance(payload, TensorView):
            return {"kind": "tensor", **self._dense(payload), **flags}
        kind, members = _MEMBERS[payload.__class__]
        described = {key: self._member(getattr(payload, attribute)) for key, attribute in members.items()}
        return {"kind": kind, **described, "requires_grad": payload.requires_grad, **flags}

    def _dense(self, view: TensorView) -> dict[str, Any]:
        return {
            "dtype": DTYPES[view.dtype].name,
            "sizes": view.sizes,
            "strides": view.strides,
            "requires_grad": view.requires_grad,
            "device": view.device,
            "elements": self._elements(view),
        }

    def _member(self, value: Any) -> Any:
        """Return the form of a member that is hashed: tensors as such, element types and layouts by name."""
        match value:
            case TensorView():
                return self._dense(value)
            case ScalarType():
                return DTYPES[value].name
            case Layout():
                return value.name
            case tuple():
                return [self._dense(one) if isinstance(one, TensorView) else one for one in value]
            case Mapping():
                return {name: self._dense(one) if isinstance(one, TensorView) else one for name, one in value.items()}
        return value

    def _elements(self, view: TensorView) -> bytes:
        key = (view.storage, view.dtype, view.sizes, view.strides, view.storage_offset, view.conj, view.neg)
        data = self._reader.take(view)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = hash_bytes(self._counted(_pieces(view, data)))
        else:
            self._count(view.nbytes)
        return known

    def _counted(self, pieces: Iterator[memoryview]) -> Iterator[memoryview]:
        for piece in pieces:
            yield piece
            self._count(piece.nbytes)

    def _count(self, nbytes: int) -> None:
        self._done += nbytes
        self._progress(self._done, self._total)


def parts(payload: AnyView) -> list[TensorView]:
    """Return the tensors of a payload, each as often as it is read."""
    if isinstance(payload, TensorView):
        return [payload]
    if isinstance(payload, OpaquePayload):
        return []
    if payload.__class__ not in _MEMBERS:
        raise UnsupportedError(f"expected a tensor or an object of the archive, got {type(payload).__name__}")
    found: list[Any] = []
    for attribute in _MEMBERS[payload.__class__][1].values():
        value = getattr(payload, attribute)
        found += value if isinstance(value, tuple) else value.values() if isinstance(value, Mapping) else (value,)
    return [one for one in found if isinstance(one, TensorView)]


def _pieces(view: TensorView, data: memoryview) -> Iterator[memoryview]:
    """Yield the elements of a tensor in row-major order, little-endian, in pieces; without numpy if they are stored
    so."""
    if view.is_contiguous and not (view.conj or view.neg) and DTYPES[view.dtype].kind != "bool":
        start = view.storage_offset * view.itemsize if view.numel else 0
        return _blocks(data[start : start + view.nbytes])
    return view.iter_bytes(data)


def _blocks(data: memoryview) -> Iterator[memoryview]:
    return (data[start : start + BLOCK] for start in range(0, data.nbytes, BLOCK))
