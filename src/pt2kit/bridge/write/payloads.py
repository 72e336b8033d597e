"""Write weights and constants of live programs as records of the archive, with the configs that describe each name.

A storage is written once, however many names share it or view it: within a program, as torch does, and also between
programs of one archive. Names are grouped by storage and dtype: a reader takes a record as elements of one type.

Objects that are no plain tensors (tensor subclasses, script objects, opaque objects) are pickled, because the format
has no other place for them. torch runs code when it reads these records; pt2kit reads them only for classes that the
caller trusts.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from msgspec.structs import replace

from pt2kit.bridge.torch_names import (
    FakeScriptObject,
    FakeTensor,
    ScriptObject,
    groups_weights,
    is_opaque_value,
    pickled_script,
    script_class,
    storage_identity,
)
from pt2kit.bridge.write.values import Values
from pt2kit.errors import GraphError, PayloadError, UnsupportedError, placed
from pt2kit.package import record_names as names
from pt2kit.package.plan import Numbering, PlannedRecord
from pt2kit.schema import Device, PayloadConfig, PayloadMeta


class Payloads:
    """The records of one archive that hold tensors and objects; grows program by program.

    Attributes:
        records: in the order in which they are to be written.
    """

    def __init__(self, pickle_protocol: int) -> None:
        self.records: list[PlannedRecord] = []
        self._protocol = pickle_protocol
        self._numbering = Numbering()
        self._storages: dict[Any, str] = {}

    def weights(self, tensors: Mapping[str, Any], values: Values) -> PayloadConfig:
        """Add the state dict of a program.

        Raises:
            UnsupportedError: an entry that is no tensor, or a tensor that cannot be stored.
            PayloadError: a tensor whose storage was freed.

        Source: `_package_state_dict` in torch/export/pt2_archive/_package.py, 2.13.
        """
        for name, value in tensors.items():
            if not isinstance(value, torch.Tensor):
                raise UnsupportedError(f"weight {name!r}: expected a tensor, got {type(value).__name__}")
        config = self._tensors(tensors, values, "weight", names.WEIGHTS, names.weight)
        if any(
            _is_plain(value) and _has_bytes(value) and value.untyped_storage().nbytes() for value in tensors.values()
        ):
            # Among weights with data, an empty record is damage, unless the device has none.
            config = {name: meta if _has_bytes(tensors[name]) else _on_meta(meta) for name, meta in config.items()}
        return PayloadConfig(config)

    def constants(self, constants: Mapping[str, Any], inner: Mapping[str, Any], values: Values) -> PayloadConfig:
        """Add the constants of a program: tensors, script objects and opaque objects.

        Args:
            constants: of the program.
            inner: objects in the graph itself, by their names there.
            values: makes tensor metas.

        Raises: as `weights`; GraphError where a name is taken.

        Source: `_package_constants` in torch/export/pt2_archive/_package.py, 2.13.
        """
        tensors = {name: value for name, value in constants.items() if isinstance(value, torch.Tensor)}
        objects = {name: value for name, value in constants.items() if name not in tensors}
        if taken := sorted(inner.keys() & constants.keys()):
            raise GraphError(f"constants: expected names that no object of the graph has, got {taken[0]!r}")
        config = self._tensors(tensors, values, "constant", names.CONSTANTS, names.tensor_constant)
        for name, value in {**objects, **inner}.items():
            with placed(f"constant {name!r}"):
                config[name] = self._object(value)
        return PayloadConfig(config)

    def _tensors(
        self,
        tensors: Mapping[str, torch.Tensor],
        values: Values,
        what: str,
        folder: str,
        record: Callable[[int], str],
    ) -> dict[str, PayloadMeta]:
        """Add tensors: first the pickled ones, then storage by storage; or one by one, as the installed torch does."""
        groups: dict[Any, list[tuple[str, torch.Tensor]]] = {}
        config: dict[str, PayloadMeta] = {}
        for name, tensor in tensors.items():
            with placed(f"{what} {name!r}"):
                if not _is_plain(tensor):
                    path = self._bytes(record, pickle_tensor(tensor, self._protocol))
                    config[name] = _meta(path, tensor, True, values)
                    continue
                key = (folder, *_storage_key(tensor))
                if groups_weights():
                    groups.setdefault(key, []).append((name, tensor))
                    continue
                storage = tensor.untyped_storage()
                own = 0 if storage.nbytes() else storage_identity(storage)  # those without bytes have no address
                config[name] = _meta(self._storage((*key, own), tensor, record), tensor, False, values)
        for key, group in groups.items():
            group.sort(key=lambda item: 0 if _has_bytes(item[1]) else -item[1].numel())
            path = self._storage(key, group[0][1], record)
            for name, tensor in group:
                with placed(f"{what} {name!r}"):
                    config[name] = _meta(path, tensor, False, values)
        return config

    def _storage(self, key: Any, tensor: torch.Tensor, record: Callable[[int], str]) -> str:
        """Return the record of a storage, which may exist already."""
        if key not in self._storages:
            solid = _solid(tensor)
            size = storage_bytes(solid) if _has_bytes(solid) else 0
            self._storages[key] = self._add(record, size, lambda: storage_chunks(solid) if size else ())
        return self._storages[key]

    def _object(self, value: Any) -> PayloadMeta:
        if isinstance(value, ScriptObject):
            data, record = pickle_script(value), names.custom_object
        elif is_opaque_value(value):
            data, record = pickle_opaque(value, self._protocol), names.opaque_object
        else:
            raise UnsupportedError(f"expected a tensor, a script object or an opaque one, got {type(value).__name__}")
        return PayloadMeta(self._bytes(record, data), False, True, None)

    def _bytes(self, record: Callable[[int], str], data: bytes) -> str:
        return self._add(record, len(data), lambda: data)

    def _add(self, record: Callable[[int], str], size: int, content: Callable[[], Any]) -> str:
        """Add a record under the next free number of its kind; returns the last part of its name."""
        name = self._numbering.take(record)
        self.records.append(PlannedRecord(name, size, content))
        return name.rpartition("/")[2]


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is elements in a storage and nothing else; others are pickled."""
    if isinstance(tensor, FakeTensor):
        return True
    return type(tensor.data) is torch.Tensor and tensor.layout is torch.strided


def _has_bytes(tensor: torch.Tensor) -> bool:
    """Return whether there are bytes to write: fake and meta tensors are written without."""
    return not isinstance(tensor, FakeTensor) and not tensor.is_meta


def _storage_key(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return the key that tensors of one record share."""
    storage = tensor.untyped_storage()
    if not _has_bytes(tensor):  # their storages have no address
        return "none", storage_identity(storage), tensor.dtype
    if tensor.is_conj() or tensor.is_neg():  # values that are not the bytes of the storage
        return "solid", id(tensor), tensor.dtype
    if storage.nbytes() == 0 and tensor.numel():
        raise PayloadError(f"expected the bytes of shape {list(tensor.shape)}, got a storage of 0 bytes; was it freed?")
    return tensor.device, storage.data_ptr(), tensor.dtype


def _solid(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor itself, or with its lazy conjugate or negative bit resolved, in the same strides."""
    if not _has_bytes(tensor) or not (tensor.is_conj() or tensor.is_neg()):
        return tensor
    length = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    flat = tensor.detach().as_strided((length if tensor.numel() else 0,), (1,))
    return flat.resolve_conj().resolve_neg().as_strided(tensor.shape, tensor.stride(), 0)


def _on_meta(meta: PayloadMeta) -> PayloadMeta:
    if meta.tensor_meta is None or meta.use_pickle:
        return meta
    return replace(meta, tensor_meta=replace(meta.tensor_meta, device=Device(type="meta", index=None)))


def _meta(path: str, tensor: torch.Tensor, pickled: bool, values: Values) -> PayloadMeta:
    meta = values.tensor_meta(tensor if pickled else _solid(tensor))
    if meta.requires_grad != tensor.requires_grad:
        meta = replace(meta, requires_grad=tensor.requires_grad)
    return PayloadMeta(path, isinstance(tensor, torch.nn.Parameter), pickled, meta)


CHUNK = 4 << 20
"""Bytes to write at a time: few enough to stay in a processor's cache while they are summed and written."""
DEVICE_CHUNK = 16 << 20
"""The same for another device, where each transfer has a price."""


def storage_bytes(tensor: torch.Tensor) -> int:
    """Return how many bytes of a tensor's storage are written: all whole elements."""
    size, item = int(tensor.untyped_storage().nbytes()), int(tensor.element_size())
    return size - size % item


def storage_chunks(tensor: torch.Tensor) -> Iterator[Any]:
    """Yield the bytes of a tensor's whole storage, in order.

    On the CPU these are views of the storage itself, which must not change meanwhile.
    """
    size = storage_bytes(tensor)
    flat = _flat(tensor, size)
    step = CHUNK if flat.is_cpu else DEVICE_CHUNK
    for start in range(0, size, step):
        yield memoryview(flat[start : start + step].cpu().numpy())


def _flat(tensor: torch.Tensor, size: int) -> torch.Tensor:
    """Return a storage as bytes, without a copy."""
    flat = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return flat.set_(tensor.untyped_storage(), 0, (size,), (1,))


def pickle_tensor(tensor: torch.Tensor, protocol: int) -> bytes:
    """Return a tensor as a torch.save file.

    Raises:
        UnsupportedError: it cannot be pickled.
    """
    buffer = io.BytesIO()
    try:
        torch.save(tensor, buffer, pickle_protocol=protocol)
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError, NotImplementedError) as error:
        kind = type(tensor).__name__
        raise UnsupportedError(f"expected a tensor that can be pickled, got {kind}: {error}") from error
    return buffer.getvalue()


def pickle_script(value: Any) -> bytes:
    """Return a script object as torchbind pickles it.

    Raises:
        UnsupportedError: its class does not define how.
    """
    try:
        return pickled_script(value)
    except RuntimeError as error:
        kind = script_class(value)
        raise UnsupportedError(f"expected a script class that can be pickled (def_pickle), got {kind}") from error


def pickle_opaque(value: Any, protocol: int) -> bytes:
    """Return an opaque object as Python pickles it.

    Raises:
        UnsupportedError: it cannot be pickled.
    """
    real = value.real_obj if isinstance(value, FakeScriptObject) else value
    try:
        return pickle.dumps(real, protocol=protocol)
    except (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise UnsupportedError(f"expected an object that can be pickled, got {type(real).__name__}: {error}") from error
