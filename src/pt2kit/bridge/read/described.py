"""Descriptions of tensors that the installed torch cannot represent: dtypes, layouts, devices, numbers.

`pt2kit.load` checks each description that it makes a fake tensor of. A program that only runs needs no fake tensors,
and its descriptions are checked all the same. Expressions and ranges are checked before (`checks.refusals`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pt2kit import schema
from pt2kit.bridge.operators import DTYPES
from pt2kit.bridge.read.tensors import Devices
from pt2kit.errors import GraphError, UnsupportedError
from pt2kit.graph.traversal import Scope

_MAX_NUMBER: Final = (1 << 63) - 1
"""The largest size, stride or offset that torch counts."""

BLOCKS: Final = frozenset((schema.Layout.SparseBsr, schema.Layout.SparseBsc))

_SPARSE: Final = frozenset((schema.Layout.SparseCoo, schema.Layout.SparseCsr, schema.Layout.SparseCsc, *BLOCKS))


def check_described(scopes: Iterable[Scope], devices: Devices) -> None:
    """Refuse descriptions of a program's tensors that cannot be.

    Args:
        scopes: the program's graphs.
        devices: where its tensors go.

    Raises:
        Pt2Error: as `check_tensor`; UnsupportedError for a device unknown to torch.
    """
    known: set[int] = set()
    for scope in scopes:
        for name, meta in scope.graph.tensor_values.items():
            if id(meta) not in known:  # Values of a large program share their descriptions.
                known.add(id(meta))
                where = f"{scope.where}.tensor_values.{name}"
                check_tensor(meta, where)
                devices.find(meta.device, where)


def check_tensor(meta: schema.TensorMeta, where: str) -> None:
    """Refuse a description that no tensor has.

    Raises:
        GraphError: numbers that no tensor has.
        UnsupportedError: a dtype or layout that torch does not have, or has no fake tensors of.
    """
    if meta.dtype not in DTYPES:
        raise UnsupportedError(f"{where}: dtype: expected a dtype of torch, got {meta.dtype.name}")
    for size in meta.sizes:
        check_number(size.as_int, f"{where}: sizes")
    if meta.layout is not schema.Layout.Strided:
        if meta.layout not in _SPARSE:
            raise UnsupportedError(f"{where}: layout: expected one that has a fake form, got {meta.layout.name}")
        return
    if len(meta.sizes) != len(meta.strides):
        raise GraphError(f"{where}: expected as many strides as sizes, got {len(meta.strides)} and {len(meta.sizes)}")
    dtype = DTYPES[meta.dtype]
    if meta.requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise GraphError(f"{where}: requires_grad: expected false for {dtype}, got true")
    for stride in meta.strides:
        check_number(stride.as_int, f"{where}: strides")
    check_number(meta.storage_offset.as_int, f"{where}: storage_offset")


def check_number(number: Any, where: str) -> None:
    """Refuse a number that no size, stride or offset can be; symbolic ones pass."""
    if type(number) is int and not 0 <= number <= _MAX_NUMBER:
        raise GraphError(f"{where}: expected 0 to 2**63 - 1, got {number}")
