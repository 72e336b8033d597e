"""Weights and constants of a program that is being edited: read from and written to payload records and configs.

A payload that is not edited keeps the line of the config that it came with, so it is written as it was. New numbers
become records when the editor finishes; names whose payloads share a storage share its record: they are tied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from msgspec import structs

from pt2kit import schema
from pt2kit.editing.assembly import Parts
from pt2kit.errors import GraphError
from pt2kit.messages import listed, quote
from pt2kit.package.open import Package
from pt2kit.package.plan import of_storage
from pt2kit.package.stored import Payload
from pt2kit.tensors import arrays
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.view import CPU, TensorView, view_of_array
from pt2kit.zip.reader import Storage

Kind = Literal["weights", "constants"]
KINDS: Final[tuple[Kind, Kind]] = ("weights", "constants")


class Weights(Mapping[str, Payload]):
    """The weights (parameters, persistent buffers) or constants of a program, by name, in the file's order.

    Args:
        kind: which of the two.
        payloads: name -> payload; changed in place.
        config: their lines in the config of the package.

    Attributes:
        kind, payloads: as above.
    """

    def __init__(self, kind: Kind, payloads: dict[str, Payload], config: Mapping[str, schema.PayloadMeta]) -> None:
        self.kind: Kind = kind
        self.payloads = payloads
        self._lines: dict[int, tuple[Payload, schema.PayloadMeta]] = {}
        self._records: dict[tuple[Storage, schema.ScalarType], schema.PayloadMeta] = {}
        for name, payload in payloads.items():
            self.add_line(payload, config[name])

    def __getitem__(self, name: str) -> Payload:
        return self.payloads[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.payloads)

    def __len__(self) -> int:
        return len(self.payloads)

    def find(self, name: str, edit: str) -> Payload:
        """Return a payload by name.

        Raises:
            GraphError: there is none.
        """
        payload = self.payloads.get(name)
        if payload is None:
            there = ", ".join(list(self.payloads)[:6]) or "none"
            raise GraphError(f"{edit}: expected the name of one of the {self.kind} ({there}), got {quote(name)}")
        return payload

    def add_line(self, payload: Payload, meta: schema.PayloadMeta) -> None:
        """Set the line in the config of a payload whose record exists already."""
        self._lines[id(payload)] = payload, meta
        if isinstance(payload, TensorView):
            self._records[payload.storage, payload.dtype] = meta

    def line(self, name: str) -> schema.PayloadMeta | None:
        """Return the line in the config of a payload: the one that was read, or a new one of the same record.

        Returns:
            None if its numbers are in no record of this kind.
        """
        payload = self.payloads[name]
        if id(payload) in self._lines:
            return self._lines[id(payload)][1]
        if isinstance(payload, TensorView) and (known := self._records.get((payload.storage, payload.dtype))):
            return structs.replace(known, is_param=payload.is_param, tensor_meta=payload.meta())
        return None


def read_weights(package: Package | None, parts: Parts | None, model: str) -> tuple[Weights, Weights]:
    """Return the weights and the constants of a model; none if there is only a program.

    Raises:
        Pt2Error: they cannot be listed.
    """
    if package is None or parts is None:
        return Weights("weights", {}, {}), Weights("constants", {}, {})
    weights = Weights("weights", dict(package.weights(model)), parts.config(model, "weights"))
    return weights, Weights("constants", dict(package.constants(model)), parts.config(model, "constants"))


def write_weights(parts: Parts, model: str, weights: Weights, constants: Weights) -> None:
    """Write the weights and constants of a model into the records of a package.

    Raises:
        GraphError: some weights of a program that was saved without data have numbers now, and others have not.
    """
    _check_filled(weights)
    for table in (weights, constants):
        for name, payload in table.items():
            if table.line(name) is None:
                table.add_line(payload, _place(parts, table.kind, payload))
        config = {name: line for name in table if (line := table.line(name)) is not None}
        if config != parts.config(model, table.kind) or not config:
            parts.set_config(model, table.kind, config)


def _check_filled(weights: Weights) -> None:
    """Refuse weights of which some have values and some have none, unless they are on the meta device."""
    missing = [name for name, one in weights.items() if isinstance(one, MetaView) and one.device.type != "meta"]
    if missing and any(isinstance(one, TensorView) and one.storage.nbytes for one in weights.values()):
        raise GraphError(
            "weights: expected numbers for all of a program that was saved without data, got none for "
            f"{listed([*map(quote, missing)], 5)}; "
            "set_weight or load_weights gives them",
            rule="P9",
        )


def _place(parts: Parts, kind: Kind, payload: Payload) -> schema.PayloadMeta:
    """Add a record of new numbers, and return the line in the config."""
    if not isinstance(payload, TensorView):
        raise GraphError(f"{payload.name!r}: expected a tensor among the {kind}, got {payload.describe()}")
    record = parts.next_record(kind)
    parts.records[record] = of_storage(record, payload.storage, payload.itemsize)
    return schema.PayloadMeta(record.rpartition("/")[2], payload.is_param, False, payload.meta())


def laid_out(view: TensorView, strides: tuple[int, ...]) -> TensorView:
    """Return the same values with the strides of the tensor they replace, if these are dense in some order.

    Returns:
        a view of bytes that are put into that order when they are read; the view itself where there is nothing to do.
    """
    if view.strides == strides or not view.is_contiguous or len(strides) != len(view.sizes) or view.numel == 0:
        return view
    order = sorted(range(len(strides)), key=lambda dim: (-strides[dim], view.sizes[dim] == 1))
    step = 1
    for dim in reversed(order):
        if view.sizes[dim] != 1 and strides[dim] != step:
            return view
        step *= view.sizes[dim]

    def read() -> memoryview:
        import numpy as np

        return arrays.raw_bytes(np.ascontiguousarray(view.numpy().transpose(order)))

    storage = Storage(f"<{view.name}>", view.nbytes, read)
    return replace(view, strides=strides, storage_offset=0, storage=storage)


def to_view(name: str, numbers: Any, *, like: TensorView | MetaView | None = None, edit: str = "weights") -> TensorView:
    """Return an array or tensor as a payload.

    Args:
        name: of the weight.
        numbers: an array of numpy or ml_dtypes, anything `numpy.asarray` takes, or a payload of any package.
        like: what states device, gradient and whether it is a parameter; those of a payload are its own otherwise.
        edit: what messages call the edit.

    Returns:
        A view; of an array its bytes are shared where they lie in row-major order and little-endian, else copied.

    Raises:
        GraphError: no numbers that the format has a type for.
    """
    if isinstance(numbers, TensorView):
        view = replace(numbers, name=name)
    else:
        view = view_of_array(name, numbers, f"{edit}: {name!r}")
    if like is None:
        return view
    gradient = like.requires_grad and DTYPES[view.dtype].has_gradient
    # A tensor with values is not on the meta device.
    device = CPU if like.device.type == "meta" else like.device
    return replace(view, requires_grad=gradient, device=device, is_param=like.is_param)
