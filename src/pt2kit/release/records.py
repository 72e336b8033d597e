"""Write tensors as raw records with the config that lists them: torch 2.9 and later.

Names are grouped by storage and element type, as those releases do it: a record holds elements of one type, tied
tensors and views share one. Empty storages share a record. Anything but a strided tensor is a torch.save file in a
record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from pt2kit import codec, schema
from pt2kit.package.open import Package
from pt2kit.package.plan import Numbering, Planned, PlannedPickle, PlannedRecord, of_storage
from pt2kit.release.descriptions import Descriptions, Plain
from pt2kit.tensors.bounds import contiguous_strides
from pt2kit.tensors.view import TensorView

Metas = Mapping[str, schema.TensorMeta]
"""The graph's description of each weight or constant, by name."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The weights or the constants of one program as records.

    Args:
        records: in the order in which they are written.
        config: lists them.
    """

    records: tuple[Planned, ...]
    config: schema.PayloadConfig


def pack(payloads: Mapping[str, Plain], metas: Metas, numbering: Numbering, name_of: Callable[[int], str]) -> Packed:
    """Arrange payloads as raw records.

    Args:
        payloads: name -> view.
        metas: the graph's descriptions; for anything but strided tensors.
        numbering: assigns records their numbers.
        name_of: makes the name of a record of a number.
    """
    records: list[Planned] = []
    config: dict[str, schema.PayloadMeta] = {}
    groups: dict[object, list[tuple[str, TensorView]]] = {}
    for name, payload in payloads.items():
        if isinstance(payload, TensorView):
            groups.setdefault(_group(payload), []).append((name, payload))
            continue
        known = Descriptions()
        record = numbering.take(name_of)
        records.append(PlannedPickle(record, known.describe(payload), known.storages))
        config[name] = schema.PayloadMeta(_last(record), payload.is_param, True, metas.get(name))
    for group in groups.values():
        record = numbering.take(name_of)
        records.append(_raw(record, group[0][1]))
        for name, view in group:
            config[name] = schema.PayloadMeta(_last(record), view.is_param, False, _meta(view))
    return Packed(tuple(records), schema.PayloadConfig(config))


def listed_in(package: Package, config: str) -> Iterable[str]:
    """Return the full names of the records that a config lists, each once."""
    folder = config.rpartition("/")[0]
    listed = codec.decode(package.archive.read(config), schema.PayloadConfig, package.relative(config)).value
    return dict.fromkeys(f"{folder}/{meta.path_name}" for meta in listed.config.values())


def _group(view: TensorView) -> object:
    """Return the key that tensors of one record share."""
    if view.conj or view.neg:
        return id(view)
    return (view.storage, view.dtype) if view.storage.nbytes else (None, view.dtype)


def _raw(record: str, view: TensorView) -> PlannedRecord:
    """Return the storage of a tensor; its elements if it has a lazy conjugate or negative bit."""
    if view.conj or view.neg:
        return PlannedRecord(record, view.nbytes, view.contiguous_bytes)
    return of_storage(record, view.storage, view.itemsize)


def _meta(view: TensorView) -> schema.TensorMeta:
    meta = view.meta()
    if not (view.conj or view.neg):
        return meta
    strides = [schema.SymInt(as_int=stride) for stride in contiguous_strides(view.sizes)]
    return replace(meta, strides=strides, storage_offset=schema.SymInt(as_int=0))


def _last(record: str) -> str:
    return record.rpartition("/")[2]
