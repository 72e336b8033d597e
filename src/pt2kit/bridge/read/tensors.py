"""Views of stored tensors -> live tensors, over the file itself where that is safe.

A record that is stored, local and aligned is mapped copy-on-write: its pages are read when they are touched, a change
stays in this process, and a file that is replaced later stays as it was for whoever holds its tensors. Everything
else is copied once per storage. Tensors that share a storage in the file share it here.
"""

from __future__ import annotations

import mmap
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import torch

from pt2kit import schema
from pt2kit.bridge.read.devices import Devices
from pt2kit.bridge.scalars import DTYPES, LAYOUTS
from pt2kit.bridge.torch_names import QUANTIZERS, negated
from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.tensors.compound import MetaView, NestedView, QuantizedView, SparseView
from pt2kit.tensors.storage import Storage
from pt2kit.tensors.view import TensorView
from pt2kit.zip.reader import Archive

ALIGNMENT: Final = 64
"""Bytes that a storage's address must be a multiple of to be used in place: what torch's own allocator gives."""

VERIFIED_BYTES: Final = 64 << 20
"""Mapped bytes that one load compares with their checksums unless it is told to compare all. Beyond it pages stay
untouched until they are used."""


class Tensors:
    """Makes the live tensors of one load; one live storage for each stored one.

    Args:
        devices: where tensors go.
        archive: what the storages are records of; storages of torch.save payloads are not.
        mapping: the archive's file, mapped copy-on-write; None where there is no file.
        verify: have `finish` compare everything that is mapped with its checksums, not the first `VERIFIED_BYTES`.
    """

    def __init__(
        self, devices: Devices, archive: Archive, mapping: mmap.mmap | None = None, *, verify: bool = False
    ) -> None:
        self.devices = devices
        self._archive = archive
        self._mapping = mapping
        self._unverified = 0 if verify else VERIFIED_BYTES
        self._verify = verify
        self._mapped: list[Storage] = []
        self._storages: dict[tuple[Storage, torch.device], torch.UntypedStorage] = {}

    def finish(self) -> None:
        """Compare what was mapped so far with its checksums if that was asked for: several threads, a record each.

        Raises:
            IntegrityError: one is damaged.
            Pt2Error: one cannot be read.
        """
        if not self._mapped:
            return
        pool = ThreadPoolExecutor(min(len(self._mapped), os.cpu_count() or 1))
        try:
            for _ in pool.map(lambda stored: stored.read(keep=False), self._mapped):
                pass
        finally:
            pool.shutdown(cancel_futures=True)

    def dense(self, view: TensorView) -> torch.Tensor:
        """The tensor of a view; a `Parameter` where the view is one.

        Raises:
            PayloadError: a bool that is neither 0 nor 1.
            UnsupportedError: a device that is not there.
            Pt2Error: the record cannot be read.
        """
        device = self.devices.find(view.device, view.where)
        dtype = DTYPES[view.dtype]
        storage = self._storage(view.storage, device, view)
        tensor = torch.empty(0, dtype=dtype, device=device)
        tensor.set_(storage, view.storage_offset, view.sizes, view.strides)
        if dtype is torch.bool and tensor.numel():
            _check_bools(tensor, view)
        if view.conj:
            tensor = tensor.conj()
        if view.neg:
            tensor = negated(tensor)
        return _finish(tensor, view)

    def any(self, view: Any) -> torch.Tensor:
        """The tensor of any view.

        Raises:
            UnsupportedError: a kind that is not rebuilt (nested tensors, packed quantized ones).
            PayloadError, Pt2Error: as `dense`.
        """
        match view:
            case TensorView():
                return self.dense(view)
            case SparseView():
                return self._sparse(view)
            case QuantizedView() if view.bits is None and view.qscheme in QUANTIZERS:
                return self._quantized(view)
            case MetaView():
                dtype = DTYPES[view.dtype]
                made = torch.empty_strided(view.sizes, view.strides, dtype=dtype, device="meta")
                return _finish(made, view)
        what = "a nested tensor" if isinstance(view, NestedView) else "a tensor of a packed type"
        raise UnsupportedError(f"{view.record}: {view.name!r}: expected a tensor that can be rebuilt, got {what}")

    def _sparse(self, view: SparseView) -> torch.Tensor:
        indices = [self.dense(part) for part in view.indices]
        values = self.dense(view.values)
        try:
            if view.layout == schema.Layout.SparseCoo:
                made = torch.sparse_coo_tensor(
                    indices[0], values, view.sizes, is_coalesced=view.is_coalesced, check_invariants=True
                )
            else:
                layout = LAYOUTS[view.layout]
                made = torch.sparse_compressed_tensor(
                    *indices, values, view.sizes, layout=layout, check_invariants=True
                )
        except (RuntimeError, ValueError) as error:
            raise PayloadError(
                f"{view.record}: {view.name!r}: expected indices inside the tensor, got: {error}"
            ) from error
        return _finish(made, view)

    def _quantized(self, view: QuantizedView) -> torch.Tensor:
        parts = [self.dense(part) if isinstance(part, TensorView) else part for part in (view.scale, view.zero_point)]
        if view.axis is not None:
            parts = [part if isinstance(part, torch.Tensor) else torch.tensor(part, device="cpu") for part in parts]
        last = () if view.axis is None else (view.axis,)
        return _finish(QUANTIZERS[view.qscheme](self.dense(view.values), *parts, *last), view)

    def _storage(self, stored: Storage, device: torch.device, view: TensorView) -> torch.UntypedStorage:
        key = (stored, device)
        known = self._storages.get(key)
        if known is None:
            known = self._cpu_storage(stored)
            if device.type != "cpu":
                known = _moved(known, device, view.where)
            self._storages[key] = known
        return known

    def _cpu_storage(self, stored: Storage) -> torch.UntypedStorage:
        if stored.nbytes == 0:
            return torch.UntypedStorage(0)
        offset = self._mapped_at(stored)
        if offset is None:
            # A copy of its own: what was read may be the caller's bytes, or a read-only view of the file.
            return _over(bytearray(stored.read(keep=False)), 0, stored.nbytes)
        if self._verify:
            self._mapped.append(stored)
        elif stored.nbytes <= self._unverified:
            self._unverified -= stored.nbytes
            stored.read(keep=False)
        return _over(self._mapping, offset, stored.nbytes)

    def _mapped_at(self, stored: Storage) -> int | None:
        """Where in the mapping a storage lies, or None where it must be copied."""
        record = self._archive.records.get(stored.record)
        if self._mapping is None or record is None or not record.is_stored or record.size != stored.nbytes:
            return None
        offset = self._archive.data_offset(stored.record)
        return None if offset % ALIGNMENT or offset + stored.nbytes > len(self._mapping) else offset


def _over(buffer: Any, offset: int, nbytes: int) -> torch.UntypedStorage:
    """A storage over a writable buffer, which it keeps alive."""
    flat = torch.frombuffer(buffer, dtype=torch.uint8, count=nbytes, offset=offset)
    return flat.untyped_storage()


def _moved(storage: torch.UntypedStorage, device: torch.device, where: str) -> torch.UntypedStorage:
    try:
        flat = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)
        moved: torch.UntypedStorage = flat.to(device).untyped_storage()
        return moved
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UnsupportedError(
            f"{where}: expected the device {device} to be here, got: {error}; pass device= to load it elsewhere"
        ) from error


def _check_bools(tensor: torch.Tensor, view: TensorView) -> None:
    largest = int(tensor.view(torch.uint8).max())
    if largest > 1:
        raise PayloadError(f"{view.where}: expected bools stored as 0 or 1, got {largest}", rule="P13")


def _finish(tensor: torch.Tensor, view: Any) -> torch.Tensor:
    if view.is_param:
        return torch.nn.Parameter(tensor, requires_grad=view.requires_grad)
    return tensor.requires_grad_() if view.requires_grad else tensor
