"""Totals of tensors: count, elements and bytes, in all and by element type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pt2kit.schema import ScalarType
from pt2kit.tensors.bounds import numel
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.opaque import OpaquePayload

if TYPE_CHECKING:
    from pt2kit.tensors.export import AnyView


@dataclass(frozen=True, slots=True)
class Amount:
    """Some tensors taken together.

    Args:
        tensors: how many.
        elements: of all of them; what two tensors share counts for each.
        bytes: of these elements.
    """

    tensors: int = 0
    elements: int = 0
    bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tensors + other.tensors, self.elements + other.elements, self.bytes + other.bytes)


NOTHING = Amount()


DTypes: TypeAlias = Mapping[str, Amount]


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """The parameters, the buffers or the constants of a program.

    Args:
        total: all of them.
        dtypes: torch's name of the element type ("float32") -> those of that type.
        opaque: names of those that are pickles, which take code to rebuild, with what they are.
    """

    total: Amount = NOTHING
    dtypes: DTypes = field(default_factory=dict)
    opaque: Mapping[str, str] = field(default_factory=dict)


def amount_of(payload: AnyView) -> Amount:
    """Return the amount of one payload; a pickle has no known elements, only bytes."""
    return Amount(1, elements_of(payload), payload.nbytes)


def elements_of(payload: AnyView) -> int:
    """Return numel of a payload; 0 for a pickle."""
    if isinstance(payload, OpaquePayload):
        return 0
    sizes: Any = payload.sizes
    if isinstance(sizes, tuple):
        return numel(sizes)
    return payload.nbytes // DTYPES[getattr(payload, "dtype", ScalarType.BYTE)].itemsize  # a nested tensor


def dtype_of(payload: AnyView) -> str:
    """Return torch's name of the element type of a payload ("float32"); "" for a pickle."""
    dtype = getattr(payload, "dtype", None)
    return DTYPES[dtype].name if dtype is not None else getattr(payload, "dtype_name", "")


def group_of(payloads: Mapping[str, AnyView]) -> TensorGroup:
    """Return payloads by name as a group."""
    dtypes: dict[str, Amount] = {}
    opaque: dict[str, str] = {}
    for name, payload in payloads.items():
        if isinstance(payload, OpaquePayload):
            opaque[name] = payload.describe()
        else:
            dtype = dtype_of(payload)
            dtypes[dtype] = dtypes.get(dtype, NOTHING) + amount_of(payload)
    return TensorGroup(sum_of(map(amount_of, payloads.values())), dict(sorted(dtypes.items())), opaque)


def sum_of(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of several amounts."""
    return sum(amounts, NOTHING)


def stored_bytes(payloads: Iterable[AnyView]) -> int:
    """Return the bytes of the records that hold some payloads; a record that several share counts once."""
    bytes_by_record: dict[str, int] = {}
    for number, payload in enumerate(payloads):
        storage = getattr(payload, "storage", None)
        nbytes = 0 if isinstance(payload, MetaView) else payload.nbytes
        bytes_by_record[getattr(payload, "record", str(number))] = storage.nbytes if storage is not None else nbytes
    return sum(bytes_by_record.values())
