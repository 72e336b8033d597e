"""Descriptions of what a pickle holds -> live values: tensors, numbers, texts, containers, torch's small types.

The reader of pickles has made plain data of the stream; nothing is called here that the stream names.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch

from pt2kit import codec, schema
from pt2kit.bridge.read.opened import FakeTensors
from pt2kit.bridge.read.tensors import Tensors
from pt2kit.bridge.scalars import DTYPES, LAYOUTS, MEMORY_FORMATS
from pt2kit.errors import UnsupportedError
from pt2kit.pickles import values as data
from pt2kit.tensors.pickled import from_pickled

FAKE_TENSOR: Final = "torch._export.serde.serialize._reconstruct_fake_tensor"
"""The function that torch pickles fake tensors by; its argument is their description, which is read here."""

MAX_DEPTH: Final = 200
"""Containers inside each other."""

_BY_NAME: Final[Mapping[str, Any]] = MappingProxyType(
    {
        str(value).removeprefix("torch."): value
        for table in (DTYPES, LAYOUTS, MEMORY_FORMATS)
        for value in table.values()
    }
)
_TENSORS = (
    data.PickledTensor, data.SparseTensor, data.QuantizedTensor, data.NestedTensor, data.MetaTensor, data.DeviceTensor
)  # fmt: skip


class PickledValues:
    """Makes the live values of one payload; tensors that share a storage there share it here.

    Args:
        where: the record, for messages.
        tensors: makes dense tensors.
        values: makes fake tensors.
    """

    def __init__(self, where: str, tensors: Tensors, values: FakeTensors) -> None:
        self.devices = tensors.devices
        self._where = where
        self._tensors = tensors
        self._values = values
        self._storages: dict[Any, Any] = {}

    def live(self, value: Any, depth: int = 0) -> Any:
        """The live value of a description; containers are new.

        Raises:
            UnsupportedError: an object of a class, or a type that has no live form here.
            PayloadError, Pt2Error: a tensor that cannot be read.
        """
        if depth > MAX_DEPTH:
            raise UnsupportedError(
                f"{self._where}: expected at most {MAX_DEPTH} containers inside each other, got more"
            )
        if isinstance(value, _TENSORS):
            view = from_pickled(value, name="value", where=self._where, storages=self._storages)
            return self._tensors.any(view)
        if type(value) in _CONTAINERS:
            return _CONTAINERS[type(value)](value, lambda item: self.live(item, depth + 1))
        match value:
            case data.DType(name) | data.Layout(name) | data.MemoryFormat(name) if name in _BY_NAME:
                return _BY_NAME[name]
            case data.Device(kind, index):
                return torch.device(kind) if index is None else torch.device(kind, index)
            case data.Size(sizes):
                return torch.Size(sizes)
            case data.PickledDict():
                return OrderedDict((key, self.live(item, depth + 1)) for key, item in value.items())
            case data.Opaque(data.Global() as function, (bytes() as text, bool() as is_param)) if (
                function.path == FAKE_TENSOR and not value.built
            ):
                return self._fake(text, is_param)
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | slice | range):
            return value
        raise UnsupportedError(f"{self._where}: expected plain data, got {_describe(value)}")

    def _fake(self, text: bytes, is_param: bool) -> torch.Tensor:
        meta = codec.decode(text, schema.TensorMeta, self._where).value
        fake = self._values.tensor(meta, self._where)
        return torch.nn.Parameter(fake, requires_grad=meta.requires_grad) if is_param else fake


_CONTAINERS: Final[Mapping[type, Callable[[Any, Callable[[Any], Any]], Any]]] = MappingProxyType(
    {
        list: lambda value, live: [live(item) for item in value],
        tuple: lambda value, live: tuple(live(item) for item in value),
        set: lambda value, live: {live(item) for item in value},
        frozenset: lambda value, live: frozenset(live(item) for item in value),
        dict: lambda value, live: {live(key): live(item) for key, item in value.items()},
    }
)


def _describe(value: Any) -> str:
    if isinstance(value, data.Opaque):
        return f"an object of {value.cls.path}"
    if isinstance(value, data.Global):
        return f"the global {value.path}"
    return f"a {type(value).__name__}"
