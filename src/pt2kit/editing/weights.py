"""Weights and constants of a program that is being edited: read from and written to payload records and configs.

An entry keeps the line of the config that it came with, so what is not edited is written as it was. New numbers become
records when the editor finishes; names that share an entry's record are tied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pt2kit import schema
from pt2kit.editing.assembly import Parts, folder_of
from pt2kit.errors import GraphError
from pt2kit.messages import quote
from pt2kit.package.open import Package
from pt2kit.package.plan import of_storage
from pt2kit.package.stored import Payload
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import contiguous_strides
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.dtypes import DTYPES, numpy_dtype, scalar_type_of
from pt2kit.tensors.storage import Storage
from pt2kit.tensors.view import CPU, TensorView

Kind = Literal["weights", "constants"]
KINDS: Final[tuple[Kind, Kind]] = ("weights", "constants")


@dataclass(slots=True)
class Entry:
    """One weight or constant.

    Args:
        payload: what it holds.
        meta: its line in the config; None where its numbers are new.
        kind: the folder of its record; that of the config that lists it may be another after an edit.
    """

    payload: Payload
    meta: schema.PayloadMeta | None
    kind: Kind


class Weights(Mapping[str, Payload]):
    """The weights (parameters, persistent buffers) or constants of a program, by name, in the file's order.

    Args:
        kind: which of the two.
        entries: name -> entry; changed in place.
    """

    def __init__(self, kind: Kind, entries: dict[str, Entry]) -> None:
        self.kind: Kind = kind
        self.entries = entries

    def __getitem__(self, name: str) -> Payload:
        return self.entries[name].payload

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def find(self, name: str, edit: str) -> Entry:
        """Return an entry by name.

        Raises:
            GraphError: there is none.
        """
        entry = self.entries.get(name)
        if entry is None:
            there = ", ".join(list(self.entries)[:6]) or "none"
            raise GraphError(f"{edit}: expected the name of one of the {self.kind} ({there}), got {quote(name)}")
        return entry


def read_weights(package: Package | None, parts: Parts | None, model: str) -> tuple[Weights, Weights]:
    """Return the weights and the constants of a model; none if there is only a program.

    Raises:
        Pt2Error: they cannot be listed.
    """
    tables = []
    for kind in KINDS:
        entries: dict[str, Entry] = {}
        if package is not None and parts is not None:
            config = parts.config(model, kind)
            payloads = package.weights(model) if kind == "weights" else package.constants(model)
            entries = {name: Entry(payload, config[name], kind) for name, payload in payloads.items()}
        tables.append(Weights(kind, entries))
    return tables[0], tables[1]


def write_weights(parts: Parts, model: str, weights: Weights, constants: Weights) -> None:
    """Write the weights and constants of a model into the records of a package.

    Raises:
        GraphError: some weights of a program that was saved without data have numbers now, and others have not.
    """
    _check_filled(weights)
    known: dict[tuple[Any, ...], str] = {}
    for table in (weights, constants):
        config: dict[str, schema.PayloadMeta] = {}
        for name, entry in table.entries.items():
            meta = entry.meta
            if meta is None or entry.kind != table.kind:
                meta = _place(parts, table.kind, entry, known)
            config[name] = meta
        if config != parts.config(model, table.kind) or not config:
            parts.set_config(model, table.kind, config)


def _check_filled(weights: Weights) -> None:
    """Refuse weights of which some have values and some have none, unless they are on the meta device."""
    missing = [name for name, one in weights.items() if isinstance(one, MetaView) and one.device.type != "meta"]
    if missing and any(isinstance(one, TensorView) and one.storage.nbytes for one in weights.values()):
        shown = ", ".join(map(quote, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise GraphError(
            f"weights: expected numbers for all of a program that was saved without data, got none for {shown}; "
            "set_weight or load_weights gives them",
            rule="P9",
        )


def _place(parts: Parts, kind: Kind, entry: Entry, known: dict[tuple[Any, ...], str]) -> schema.PayloadMeta:
    """Assign an entry a record in a folder: its own, or that of the entry to which it is tied."""
    payload = entry.payload
    if not isinstance(payload, TensorView):
        old = entry.meta
        if old is None or not old.use_pickle:
            raise GraphError(f"{payload.name!r}: expected a tensor among the {kind}, got {payload.describe()}")
        source = folder_of(entry.kind) + old.path_name
        name = known.setdefault((kind, source), parts.next_record(kind))
        parts.records.setdefault(name, parts.records[source])
        return schema.PayloadMeta(name.rpartition("/")[2], old.is_param, True, old.tensor_meta)
    storage = payload.storage
    key = (kind, storage, payload.dtype)
    if key not in known:
        known[key] = parts.next_record(kind)
        parts.records[known[key]] = of_storage(known[key], storage, payload.itemsize)
    return schema.PayloadMeta(known[key].rpartition("/")[2], payload.is_param, False, payload.meta())


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
        view = _from_array(name, numbers, edit)
    if like is None:
        return view
    gradient = like.requires_grad and DTYPES[view.dtype].has_gradient
    # A tensor with values is not on the meta device.
    device = CPU if like.device.type == "meta" else like.device
    return replace(view, requires_grad=gradient, device=device, is_param=like.is_param)


def _from_array(name: str, numbers: Any, edit: str) -> TensorView:
    import numpy as np

    array = np.asarray(numbers)
    dtype = scalar_type_of(array.dtype, f"{edit}: {name!r}")
    row = np.ascontiguousarray(array, dtype=numpy_dtype(dtype)).reshape(array.shape)
    data = arrays.raw_bytes(row)
    sizes = tuple(map(int, row.shape))
    storage = Storage(f"<{name}>", data.nbytes, lambda: data, in_place=True)
    return TensorView(name, dtype, sizes, contiguous_strides(sizes), 0, storage)
