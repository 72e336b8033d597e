"""Describe views of tensors for writing torch.save files. No bytes are read.

Tensors that shared a storage share one again, as long as they have one element type: torch reads all tensors over a
storage of a file as elements of the first one's type.
"""

from __future__ import annotations

from typing import TypeAlias

from pt2kit.errors import UnsupportedError
from pt2kit.package.stored import Payload
from pt2kit.pickles.values import PickledStorage, PickledTensor, SparseTensor, TensorKind
from pt2kit.schema import Device, Layout, ScalarType
from pt2kit.tensors.compound import SparseView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.storage import Storage
from pt2kit.tensors.view import TensorView

Described: TypeAlias = PickledTensor | SparseTensor
Plain: TypeAlias = TensorView | SparseView
"""The tensors that can be written in every layout."""

_LAYOUTS = {
    Layout.SparseCoo: "sparse_coo",
    Layout.SparseCsr: "sparse_csr",
    Layout.SparseCsc: "sparse_csc",
    Layout.SparseBsr: "sparse_bsr",
    Layout.SparseBsc: "sparse_bsc",
}


class Descriptions:
    """Describes the tensors of one file; those that share a storage share it in the file."""

    def __init__(self) -> None:
        self._known: dict[tuple[Storage, ScalarType], PickledStorage] = {}

    @property
    def storages(self) -> tuple[PickledStorage, ...]:
        """Return the storages of all tensors described so far."""
        return tuple(self._known.values())

    def describe(self, view: Plain) -> Described:
        """Describe one tensor."""
        if isinstance(view, TensorView):
            return self._dense(view)
        return SparseTensor(
            _LAYOUTS[view.layout],
            tuple(self._dense(part) for part in view.indices),
            self._dense(view.values),
            view.sizes,
            view.is_coalesced,
            view.requires_grad,
            _kind(view.is_param),
        )

    def _dense(self, view: TensorView) -> PickledTensor:
        return PickledTensor(
            self._storage(view),
            DTYPES[view.dtype].name,
            view.sizes,
            view.strides,
            view.storage_offset,
            view.requires_grad,
            _kind(view.is_param),
            view.conj,
            view.neg,
        )

    def _storage(self, view: TensorView) -> PickledStorage:
        storage = view.storage
        known = self._known.get((storage, view.dtype))
        if known is None:
            whole = storage.nbytes - storage.nbytes % view.itemsize
            known = PickledStorage(
                storage.record,
                DTYPES[view.dtype].name,
                whole,
                device_text(view.device),
                lambda: storage.read(keep=False),
            )
            self._known[storage, view.dtype] = known
        return known


def plain_tensor(payload: Payload) -> Plain:
    """Return the tensor of a payload.

    Raises:
        UnsupportedError: one that only code can rebuild, or of a kind that is not written.
    """
    view = payload.view() if isinstance(payload, OpaquePayload) else payload
    if isinstance(view, TensorView | SparseView):
        return view
    kind = type(view).__name__.removesuffix("View").lower()
    raise UnsupportedError(f"{view.name!r}: expected a dense or a sparse tensor, got a {kind} one")


def device_text(device: Device) -> str:
    """Return a device as torch prints it: "cpu", "cuda:1"."""
    return device.type if device.index is None else f"{device.type}:{device.index}"


def _kind(is_param: bool) -> TensorKind:
    return "parameter" if is_param else "tensor"
