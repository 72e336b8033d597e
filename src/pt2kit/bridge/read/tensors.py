"""Live tensors from views of stored tensors, in memory or mapped (mmap), on the devices that the caller asks for.

Records that are read into memory are read in parallel and compared with their checksums; later changes of the file do
not matter. A record that is stored, local and aligned can be mapped copy-on-write instead: its pages are read when they
are touched, and a change remains in this process. Tensors that share a storage in the file share it here.

`Devices` maps the devices of a program as the caller asks: `device="cpu"`, or `device={"cuda:0": "cpu"}`.

The installed torch cannot represent every description: dtypes, layouts, devices, numbers. `pt2kit.load` checks each
description that it makes a fake tensor of. A program that only runs needs no fake tensors, and its descriptions are
checked all the same. Expressions and ranges are checked before (`checks.refusals`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import torch

from pt2kit import schema
from pt2kit.bridge.operators import DTYPES, LAYOUTS, to_device
from pt2kit.bridge.read.reading import (
    MappedFile,
    Staging,
    in_threads,
    is_in_pieces,
    map_file,
    read_range,
    read_storages,
)
from pt2kit.bridge.torch_names import QUANTIZERS, negated, renamed_backend
from pt2kit.errors import GraphError, PayloadError, UnsupportedError, placed
from pt2kit.graph.traversal import Scope, tensor_problems
from pt2kit.tensors.bounds import INT64_MAX
from pt2kit.tensors.compound import MetaView, NestedView, QuantizedView, SparseView
from pt2kit.tensors.view import TensorView
from pt2kit.zip.reader import Archive, Storage
from pt2kit.zip.source import Source

Moves: TypeAlias = "torch.device | str | int | Mapping[str, torch.device | str | int] | None"
"""Devices that a caller may request: one for everything, a table, or None to change nothing."""

ALIGNMENT: Final = 64
"""Required alignment of a storage's address to be used in place, in bytes: that of torch's own allocator."""

READ_BYTES: Final = 64 << 20
"""Bytes up to which `load_module` reads the weights of a program into memory; it maps those of larger programs."""

_HERE: Final = torch.device("cpu")

BLOCKS: Final = frozenset((schema.Layout.SparseBsr, schema.Layout.SparseBsc))


class Devices:
    """Maps stored devices to live ones, for the tensors of one program.

    Args:
        moves: one device, or stored device ("cuda:0"; "cuda" for one without index) -> device; None changes nothing.

    Raises:
        UnsupportedError: a device unknown to torch.
    """

    def __init__(self, moves: Moves) -> None:
        self._table: dict[str, torch.device] = {}
        self._all: torch.device | None = None
        if isinstance(moves, Mapping):
            self._table = {str(_device(source)): _device(target) for source, target in moves.items()}
        elif moves is not None:
            self._all = _device(moves)
        self._known: dict[tuple[str, int | None], torch.device] = {}

    def find(self, device: schema.Device, where: str) -> torch.device:
        """Return the live device for a stored one.

        Raises:
            UnsupportedError: the stored device is unknown to torch.
        """
        key = (device.type, device.index)
        if key not in self._known:
            with placed(where):
                self._known[key] = self.move(to_device(device))
        return self._known[key]

    def move(self, stored: torch.device) -> torch.device:
        """Return the target device for tensors stored on a device; tensors without data (meta) stay on meta.

        Raises:
            UnsupportedError: a device whose package is not imported.
        """
        if self._all is not None:
            destination = stored if stored.type == "meta" else self._all
        else:
            destination = self._table.get(str(stored), stored)
        _check_imported(destination)
        return destination

    def failed(self, device: torch.device, where: str, error: Exception) -> UnsupportedError:
        """Return the error for tensors that could not be put on a device: it is not available, or it is full."""
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError, NotImplementedError):
            if device == self._all or device in self._table.values():
                return UnsupportedError(f"device {device}: not available here")
            return UnsupportedError(f"{where}: device {device}: not available here; pass device= to load it elsewhere")
        return UnsupportedError(f"{where}: expected to put it on the device {device}, got: {error}")

    def map_location(self) -> str | dict[str, str] | None:
        """Return the same moves in the form that `torch.load` accepts; tensor subclasses do not accept a function."""
        if self._all is not None:
            return str(self._all)
        return {str(source): str(target) for source, target in self._table.items()} or None


def _check_imported(device: torch.device) -> None:
    """Refuse a device that torch itself only has a name for: using it would import a module of that name.

    Source: `_get_device_module` in torch/utils/_device.py and torch/_utils.py, 2.13.
    """
    if device.type in ("hpu", renamed_backend()) and not hasattr(torch, device.type):
        raise UnsupportedError(
            f"device {device}: not available here; import the package that brings it before loading, or pass another "
            "one as device="
        )


def _device(given: torch.device | str | int) -> torch.device:
    try:
        return torch.device(given)
    except (RuntimeError, TypeError) as error:
        raise UnsupportedError(f"device: expected a device that torch knows, got {given!r}") from error


class Tensors:
    """Builds the live tensors of one load; one live storage for each stored one.

    Args:
        devices: where tensors go.
        archive: the archive whose records the storages are; storages of torch.save payloads are not.
        mmap: True to map the storages of a file where it allows that, False to read all into memory. None to decide in
            each call of `read`: at most `READ_BYTES` together are read, and more are mapped.
        verify: make `finish` compare mapped records with their checksums; records that are read always are.

    Attributes:
        watched: the files that storages are mapped from.
    """

    def __init__(self, devices: Devices, archive: Archive, *, mmap: bool | None = False, verify: bool = False) -> None:
        self.devices = devices
        self._archive = archive
        self._mmap = mmap
        self._is_mapped = bool(mmap)
        self._verify = verify
        self._files: dict[Source, tuple[Any, MappedFile | None]] = {}
        if mmap is not False:  # Now, before more of the file is read: what is mapped later must be the same.
            self._files[archive.source] = map_file(archive.source)
        self._mapped: list[Storage] = []
        self.watched: list[MappedFile] = []
        self._staging: dict[torch.device, Staging] = {}
        self._tied: dict[str, torch.UntypedStorage] = {}
        self._storages: dict[tuple[Storage, torch.device], torch.UntypedStorage] = {}

    def finish(self) -> list[MappedFile]:
        """Compare the records mapped so far with their checksums if requested.

        Returns:
            the files that tensors are mapped from.

        Raises:
            IntegrityError: a record is damaged.
            Pt2Error: one cannot be read.
        """
        if self._verify:
            in_threads([partial(stored.read, keep=False) for stored in self._mapped])
        return list(dict.fromkeys(self.watched))

    def of_other_file(self, archive: Archive) -> Tensors:
        """Return a builder of another file's tensors for the same program: same devices, mapped alike."""
        other = Tensors(self.devices, archive, mmap=self._mmap)
        other.watched = self.watched
        return other

    def read(self, views: Iterable[Any]) -> None:
        """Read the storages of several views into memory, all in parallel, so that their tensors find them there.

        Views of other kinds, on other devices, or that are mapped are left for later.

        Raises:
            IntegrityError: a record is damaged.
            UnsupportedError: a device unknown to torch.
            Pt2Error: one cannot be read.
        """
        here = [view.storage for view in _dense_parts(views) if self.devices.find(view.device, view.where) == _HERE]
        asked = [stored for stored in dict.fromkeys(here) if stored.nbytes and (stored, _HERE) not in self._storages]
        if self._mmap is None:
            self._is_mapped = sum(stored.nbytes for stored in asked) > READ_BYTES
        self._read(asked)

    def dense(self, view: TensorView) -> torch.Tensor:
        """Return the tensor of a view; a `Parameter` if the view is one.

        Raises:
            PayloadError: a bool that is neither 0 nor 1.
            UnsupportedError: a device that is not available.
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
        return finish(tensor, view)

    def any(self, view: Any) -> torch.Tensor:
        """Return the tensor of any view.

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
                return finish(self._without_data(view), view)
        what = "a nested tensor" if isinstance(view, NestedView) else "a tensor of a packed type"
        raise UnsupportedError(f"{view.record}: {view.name!r}: expected a tensor that can be rebuilt, got {what}")

    def _without_data(self, view: MetaView) -> torch.Tensor:
        dtype = DTYPES[view.dtype]
        if not view.tie:
            return torch.empty_strided(view.sizes, view.strides, dtype=dtype, device="meta")
        made = torch.empty(0, dtype=dtype, device="meta")
        # A storage on the meta device grows with the views over it.
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
        return finish(made, view)

    def _quantized(self, view: QuantizedView) -> torch.Tensor:
        parts = [self.dense(part) if isinstance(part, TensorView) else part for part in (view.scale, view.zero_point)]
        if view.axis is not None:
            parts = [part if isinstance(part, torch.Tensor) else torch.tensor(part, device="cpu") for part in parts]
        last = () if view.axis is None else (view.axis,)
        return finish(QUANTIZERS[view.qscheme](self.dense(view.values), *parts, *last), view)

    def _storage(self, stored: Storage, device: torch.device, view: TensorView) -> torch.UntypedStorage:
        key = (stored, device)
        if key not in self._storages:
            if device.type == "cpu" and stored.nbytes:
                self._read([stored])
                self._storages[key] = self._storages[stored, _HERE]
            else:
                self._storages[key] = self._moved(stored, device, view.where)
        return self._storages[key]

    def _read(self, asked: Iterable[Storage]) -> None:
        """Map storages, or read them into memory in parallel, compared with their checksums."""
        live = {stored: torch.UntypedStorage(stored.nbytes) for stored in asked if not self._over_file(stored)}
        read_storages(self._archive, {stored: _bytes_of(storage) for stored, storage in live.items()})
        self._storages.update({(stored, _HERE): storage for stored, storage in live.items()})

    def _over_file(self, stored: Storage) -> bool:
        """Map a storage if it is to be mapped, and can be; return whether it is."""
        if not self._is_mapped or not is_in_pieces(self._archive, stored):
            return False
        source, offset = self._archive.place_of(stored.record)
        if source not in self._files:
            self._files[source] = map_file(source)
        mapping, file = self._files[source]
        if file is None or offset % ALIGNMENT or offset + stored.nbytes > len(mapping):
            return False
        self._storages[stored, _HERE] = _over(mapping, offset, stored.nbytes)
        self._mapped.append(stored)
        self.watched.append(file)
        return True

    def _moved(self, stored: Storage, device: torch.device, where: str) -> torch.UntypedStorage:
        """Return a storage on another device; its bytes are read in pieces, and are never all in memory."""
        try:
            if device.type == "meta" or not stored.nbytes:
                return torch.empty(stored.nbytes, dtype=torch.uint8, device=device).untyped_storage()
            if device not in self._staging:
                self._staging[device] = Staging(device)
            return self._filled(self._staging[device], stored)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise self.devices.failed(device, where, error) from error

    def _filled(self, staging: Staging, stored: Storage) -> torch.UntypedStorage:
        """Return a new storage with the bytes of a stored one, compared with their checksum."""
        if not is_in_pieces(self._archive, stored):
            content = stored.read(keep=False)

            def copy(start: int, buffer: memoryview) -> None:
                buffer[:] = content[start : start + buffer.nbytes]

            return staging.upload(stored.nbytes, copy)
        total = self._archive.sum_of(stored.record)

        def read(start: int, buffer: memoryview) -> None:
            read_range(self._archive, stored.record, start, buffer, total)

        made = staging.upload(stored.nbytes, read)
        total.check()
        return made


def _dense_parts(views: Iterable[Any]) -> Iterator[TensorView]:
    """Yield the dense tensors that views consist of."""
    for view in views:
        match view:
            case TensorView():
                yield view
            case SparseView():
                yield from (*view.indices, view.values)
            case QuantizedView():
                yield from (part for part in (view.values, view.scale, view.zero_point) if isinstance(part, TensorView))


def _bytes_of(storage: torch.UntypedStorage) -> memoryview:
    """Return the writable bytes of a storage in memory."""
    return memoryview(torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage).numpy())


def _over(buffer: Any, offset: int, nbytes: int) -> torch.UntypedStorage:
    """Return a storage over a writable buffer, which it keeps alive."""
    flat = torch.frombuffer(buffer, dtype=torch.uint8, count=nbytes, offset=offset)
    return flat.untyped_storage()


def _check_bools(tensor: torch.Tensor, view: TensorView) -> None:
    largest = int(tensor.view(torch.uint8).max())
    if largest > 1:
        raise PayloadError(f"{view.where}: expected bools stored as 0 or 1, got {largest}", rule="P13")


def finish(tensor: torch.Tensor, view: Any) -> torch.Tensor:
    """Return a parameter or a plain tensor, as the view is one, over the same memory."""
    if view.is_param:
        return torch.nn.Parameter(tensor, requires_grad=view.requires_grad)
    return tensor.requires_grad_() if view.requires_grad else tensor


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
        GraphError: it contradicts itself, or has numbers that no tensor has.
        UnsupportedError: a dtype that torch does not have.
    """
    for problem in tensor_problems(meta, where):
        raise GraphError(f"{where}: {problem.message}", rule=problem.rule)
    if meta.dtype not in DTYPES:
        raise UnsupportedError(f"{where}: dtype: expected a dtype of torch, got {meta.dtype.name}")


def check_number(number: Any, where: str) -> None:
    """Refuse a number that no size, stride or offset can be; symbolic ones pass."""
    if type(number) is int and not 0 <= number <= INT64_MAX:
        raise GraphError(f"{where}: expected 0 to 2**63 - 1, got {number}")
