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
from pt2kit.bridge.read.staging import PIECE, Staging
from pt2kit.bridge.scalars import DTYPES, LAYOUTS
from pt2kit.bridge.torch_names import QUANTIZERS, negated
from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.tensors.compound import MetaView, NestedView, QuantizedView, SparseView
from pt2kit.tensors.storage import Storage
from pt2kit.tensors.view import TensorView
from pt2kit.zip.reader import Archive
from pt2kit.zip.source import Source, map_privately

ALIGNMENT: Final = 64
"""Bytes that a storage's address must be a multiple of to be used in place: what torch's own allocator gives."""

VERIFIED_BYTES: Final = 64 << 20
"""Mapped bytes that one load compares with their checksums unless it is told to compare all. Beyond it pages stay
untouched until they are used."""

_HERE: Final = torch.device("cpu")


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
        self._beside: dict[Source, mmap.mmap | None] = {}
        self._mapped: list[Storage] = []
        self._staging: dict[torch.device, Staging] = {}
        self._tied: dict[str, torch.UntypedStorage] = {}
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
        if dtype is torch.bool and tensor.numel() and not tensor.is_meta:
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
                return _finish(self._without_data(view), view)
        what = "a nested tensor" if isinstance(view, NestedView) else "a tensor of a packed type"
        raise UnsupportedError(f"{view.record}: {view.name!r}: expected a tensor that can be rebuilt, got {what}")

    def _without_data(self, view: MetaView) -> torch.Tensor:
        dtype = DTYPES[view.dtype]
        if not view.tie:
            return torch.empty_strided(view.sizes, view.strides, dtype=dtype, device="meta")
        made = torch.empty(0, dtype=dtype, device="meta")
        # A storage on the meta device grows with what is laid over it.
        storage = self._tied.setdefault(view.tie, made.untyped_storage())
        return made.set_(storage, view.storage_offset, view.sizes, view.strides)

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
            known = self._cpu_storage(stored) if device.type == "cpu" else self._moved(stored, device, view.where)
            self._storages[key] = known
        return known

    def _cpu_storage(self, stored: Storage) -> torch.UntypedStorage:
        if stored.nbytes == 0:
            return torch.UntypedStorage(0)
        mapping, offset = self._mapped_at(stored)
        if mapping is None:
            # A copy of its own: what was read may be the caller's bytes, or a read-only view of the file.
            return self._filled(Staging(_HERE), stored, is_verified=True)
        if self._verify:
            self._mapped.append(stored)
        elif stored.nbytes <= self._unverified:
            self._unverified -= stored.nbytes
            stored.read(keep=False)
        return _over(mapping, offset, stored.nbytes)

    def _moved(self, stored: Storage, device: torch.device, where: str) -> torch.UntypedStorage:
        """A storage on another device; its bytes are read in pieces, and never all in memory."""
        is_mapped = self._mapped_at(stored)[0] is not None
        is_verified = self._verify or not is_mapped or stored.nbytes <= self._unverified
        if is_mapped and is_verified and not self._verify:
            self._unverified -= stored.nbytes
        try:
            if device not in self._staging:
                self._staging[device] = Staging(device)
            return self._filled(self._staging[device], stored, is_verified=is_verified)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise UnsupportedError(
                f"{where}: expected the device {device} to be here, got: {error}; pass device= to load it elsewhere"
            ) from error

    def _filled(self, staging: Staging, stored: Storage, *, is_verified: bool) -> torch.UntypedStorage:
        """A new storage with the bytes of a stored one, compared with their checksum or not."""
        record = self._archive.records.get(stored.record)
        # What is fetched comes in one request, unless it is large.
        is_small = stored.nbytes <= PIECE and not (record is not None and self._archive.is_in_place(record.name))
        if record is None or not record.is_stored or record.size != stored.nbytes or is_small:
            content = stored.read(keep=False) if staging.device.type != "meta" else memoryview(b"")

            def copy(start: int, buffer: memoryview) -> None:
                buffer[:] = content[start : start + buffer.nbytes]

            return staging.upload(stored.nbytes, copy)
        total = self._archive.sum_of(record.name) if is_verified and staging.device.type != "meta" else None

        def read(start: int, buffer: memoryview) -> None:
            self._archive.read_into(record.name, start, buffer)
            if total is not None:
                total.add(buffer)

        made = staging.upload(stored.nbytes, read)
        if total is not None:
            total.check()
        return made

    def _mapped_at(self, stored: Storage) -> tuple[mmap.mmap | None, int]:
        """The mapping of the file that a storage lies in, and where; None where it must be copied."""
        record = self._archive.records.get(stored.record)
        if record is None or record.size != stored.nbytes or not self._archive.is_in_place(record.name):
            return None, 0
        source, offset = self._archive.place_of(stored.record)
        mapping = self._mapping
        if source is not self._archive.source:
            if source not in self._beside:
                self._beside[source] = map_privately(source)
            mapping = self._beside[source]
        if mapping is None or offset % ALIGNMENT or offset + stored.nbytes > len(mapping):
            return None, 0
        return mapping, offset


def _over(buffer: Any, offset: int, nbytes: int) -> torch.UntypedStorage:
    """A storage over a writable buffer, which it keeps alive."""
    flat = torch.frombuffer(buffer, dtype=torch.uint8, count=nbytes, offset=offset)
    return flat.untyped_storage()


def _check_bools(tensor: torch.Tensor, view: TensorView) -> None:
    largest = int(tensor.view(torch.uint8).max())
    if largest > 1:
        raise PayloadError(f"{view.where}: expected bools stored as 0 or 1, got {largest}", rule="P13")


def _finish(tensor: torch.Tensor, view: Any) -> torch.Tensor:
    if view.is_param:
        return torch.nn.Parameter(tensor, requires_grad=view.requires_grad)
    return tensor.requires_grad_() if view.requires_grad else tensor
