"""Tensors -> how many, how many elements and how many bytes; in all and by element type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pt2kit.package import Payload
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.view import TensorView


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


def amount_of(payload: Payload) -> Amount:
    """One payload; a pickle has no elements that are known, only bytes."""
    return Amount(1, payload.numel if isinstance(payload, TensorView) else 0, payload.nbytes)


def group_of(payloads: Mapping[str, Payload]) -> TensorGroup:
    """Payloads by name as a group."""
    dtypes: dict[str, Amount] = {}
    opaque: dict[str, str] = {}
    for name, payload in payloads.items():
        if isinstance(payload, TensorView):
            dtype = DTYPES[payload.dtype].name
            dtypes[dtype] = dtypes.get(dtype, NOTHING) + amount_of(payload)
        else:
            opaque[name] = payload.describe()
    return TensorGroup(sum_of(map(amount_of, payloads.values())), dict(sorted(dtypes.items())), opaque)


def sum_of(amounts: Iterable[Amount]) -> Amount:
    """Several amounts as one."""
    return sum(amounts, NOTHING)


def stored_bytes(payloads: Iterable[Payload]) -> int:
    """Bytes of the records that hold some payloads; a record that several share counts once."""
    return sum({payload.record: payload.storage.nbytes for payload in payloads}.values())
