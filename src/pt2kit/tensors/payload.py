"""Payload configs (`data/weights/<model>_weights_config.json` and similar): views by name.

Names, numbers and the lengths of records are compared, all of them before any byte is touched.

Source: torch/export/pt2_archive/_package.py (2.13). torch groups what it writes by (storage, element type), so that
a record never holds tensors of two types; empty storages, of which there may be any number, share one empty record.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pt2kit.errors import PayloadError
from pt2kit.jsontext import path_text
from pt2kit.schema import PayloadConfig, PayloadMeta, ScalarType, SymInt, TensorMeta
from pt2kit.tensors.bounds import show_integer
from pt2kit.tensors.dtypes import DTYPES, dtype_of
from pt2kit.tensors.opaque import OpaqueKind, OpaquePayload
from pt2kit.tensors.view import TensorView, check_raw
from pt2kit.zip.chosen_names import name_problem, show_name
from pt2kit.zip.reader import Archive, Storage

if TYPE_CHECKING:
    from pt2kit.tensors.compound import MetaView, SparseView

Storages = MutableMapping[str, Storage]
"""Full record name -> its storage: one per record, so that tied weights are tied."""

_OBJECTS: Final[tuple[tuple[str, OpaqueKind], ...]] = (("custom_obj_", "torchbind"), ("opaque_obj_", "opaque"))
_CONFIG_SUFFIX: Final = "_config.json"
_WEIGHT: Final = "weight_"


def views_from_config(
    config: PayloadConfig, archive: Archive, *, folder: str, where: str, storages: Storages | None = None
) -> dict[str, TensorView | MetaView | OpaquePayload]:
    """Describe every payload of one config, in the config's order; nothing is read.

    Args:
        config: name -> the payload's location and how to read it.
        archive: the archive of the records.
        folder: the prefix of a `path_name`, with the archive's root: "mlp/data/weights/".
        where: the config's record, for messages.
        storages: those of other configs of the same archive; this one's are added. Each call has its own if None.

    Raises:
        PayloadError: a `path_name` that names no payload (P1, P2), metadata that is missing (P3), not plain numbers
            (P7), beyond the record (P9, P10), or contradicts itself (P8, P11, P12).
        SchemaError: an unknown element type (P4).
        UnsupportedError: a layout (P5) or device (P6) that a record of raw bytes cannot have.
        LimitError: more than 64 dimensions (P7).
    """
    known: Storages = {} if storages is None else storages
    types: dict[str, tuple[ScalarType, str]] = {}
    views: dict[str, TensorView | MetaView | OpaquePayload] = {}
    for name, meta in config.config.items():
        record = folder + meta.path_name
        storage = known.get(record)
        if storage is None:
            storage = known[record] = _storage(archive, record, name, meta.path_name, where)
        view = _view(name, meta, storage, where)
        if isinstance(view, TensorView):
            _check_one_type(view, types, where)
        views[name] = view
    _check_empty_records(views)
    return _tied(views)


def _tied(
    views: dict[str, TensorView | MetaView | OpaquePayload],
) -> dict[str, TensorView | MetaView | OpaquePayload]:
    """Return the payloads, with ties among the tensors without data that were in the same memory.

    torch puts all of one element type into one empty record, whether they are tied or not. If there are several for
    one type, the writer distinguished them, as pt2kit does.
    """
    records: dict[ScalarType, set[str]] = {}
    empty = {name: view for name, view in views.items() if not isinstance(view, TensorView | OpaquePayload)}
    for view in empty.values():
        records.setdefault(view.dtype, set()).add(view.record)
    if all(len(names) == 1 for names in records.values()):
        return views
    return views | {name: replace(view, tie=f"{view.record}: {int(view.dtype)}") for name, view in empty.items()}


def _check_empty_records(views: Mapping[str, TensorView | MetaView | OpaquePayload]) -> None:
    """Refuse weights whose records are empty while those of others are not: a program is saved without data as a whole.

    Constants may be mixed: what export made of a number in the source has data in a program of fake tensors, too.

    Raises:
        PayloadError: the first such weight (P9).
    """
    weights = [view for view in views.values() if not isinstance(view, OpaquePayload) and _is_weight(view)]
    empty = next((view for view in weights if not isinstance(view, TensorView) and view.device.type != "meta"), None)
    full = next((view for view in weights if isinstance(view, TensorView) and view.storage.nbytes), None)
    if empty is not None and full is not None:
        raise PayloadError(
            f"{show_name(empty.record)}: {empty.name!r}: expected {empty.nbytes} bytes, as other weights have theirs "
            f"({full.name!r}), got an empty record; a weight without data among others is saved by pt2kit.save, which "
            "marks it, or filled first",
            rule="P9",
        )


def _is_weight(view: TensorView | MetaView) -> bool:
    return view.record.rpartition("/")[2].startswith(_WEIGHT)


def check_against(view: TensorView | SparseView | MetaView, meta: TensorMeta, where: str) -> None:
    """Compare a payload with the graph's description of the value that it becomes.

    Dtype and sizes must agree; symbolic sizes are left to the range constraints. Strides and `requires_grad` may differ
    without a change of values and are not compared.

    Args:
        view: the payload.
        meta: the graph's entry in `tensor_values`.
        where: the record and path of that entry, for messages.

    Raises:
        PayloadError: they disagree (P14).
    """
    at = f"{where}: payload {view.name!r}"
    if view.dtype != meta.dtype:
        wanted = DTYPES[meta.dtype].name if meta.dtype in DTYPES else f"dtype {int(meta.dtype)}"
        got = DTYPES[view.dtype].name
        raise PayloadError(f"{at}: dtype: expected {wanted} as in the graph, got {got}", rule="P14")
    sizes = [size.as_int if isinstance(size.as_int, int) else None for size in meta.sizes]
    if len(sizes) != len(view.sizes) or any(
        wanted not in (None, got) for wanted, got in zip(sizes, view.sizes, strict=True)
    ):
        shown = ", ".join("?" if size is None else show_integer(size) for size in sizes)
        raise PayloadError(f"{at}: sizes: expected [{shown}] as in the graph, got {list(view.sizes)}", rule="P14")


def _place(where: str, name: str, *fields: str | int) -> str:
    return f"{where}: {path_text(('config', name, *fields))}"


def _storage(archive: Archive, record: str, name: str, path_name: str, where: str) -> Storage:
    """Return the storage of a record, for a `path_name` that is fit to name one."""
    problem = "holds a slash" if "/" in path_name else name_problem(path_name)
    if path_name.endswith(_CONFIG_SUFFIX):
        problem = "is the name of a config"
    if problem:
        place = _place(where, name, "path_name")
        raise PayloadError(
            f"{place}: expected the name of a payload such as 'weight_0', got {path_name[:200]!r}, which {problem}",
            rule="P1",
        )
    if record not in archive.records:
        place = _place(where, name, "path_name")
        raise PayloadError(f"{place}: expected a record {show_name(record)}, got none of that name", rule="P2")
    return archive.storage(record)


def _view(name: str, meta: PayloadMeta, storage: Storage, where: str) -> TensorView | MetaView | OpaquePayload:
    for prefix, kind in _OBJECTS:
        if meta.path_name.startswith(prefix):
            return OpaquePayload(name, storage, kind)
    if meta.use_pickle:
        return OpaquePayload(name, storage, "pickle", meta.tensor_meta, meta.is_param)
    tensor = meta.tensor_meta
    if tensor is None:
        place = _place(where, name, "tensor_meta")
        raise PayloadError(f"{place}: expected a description of raw bytes, got null", rule="P3")
    fields: dict[str, Any] = {
        "name": name,
        "dtype": tensor.dtype,
        "sizes": _known(tensor.sizes, where, name, "sizes"),
        "strides": _known(tensor.strides, where, name, "strides"),
        "storage_offset": _known([tensor.storage_offset], where, name, "storage_offset")[0],
        "requires_grad": tensor.requires_grad,
        "device": tensor.device,
        "is_param": meta.is_param,
    }
    if storage.nbytes == 0 and (tensor.device.type == "meta" or 0 not in fields["sizes"]):  # declared to have no data
        from pt2kit.tensors.compound import MetaView

        check_raw(f"{show_name(storage.record)}: {name!r}", tensor.layout, tensor.device)
        return MetaView(**fields, record=storage.record)
    view = TensorView(**fields, storage=storage, layout=tensor.layout)
    if storage.nbytes % view.itemsize:
        row = dtype_of(view.dtype, view.where)
        raise PayloadError(
            f"{view.where}: expected a multiple of {row.itemsize} bytes for {row.name}, got {storage.nbytes}",
            rule="P10",
        )
    return view


def _known(values: list[SymInt], where: str, name: str, field: str) -> tuple[int, ...]:
    known = []
    for index, value in enumerate(values):
        if not isinstance(value.as_int, int):
            place = _place(where, name, "tensor_meta", field, index)
            raise PayloadError(f"{place}: expected a number, got an expression", rule="P7")
        known.append(value.as_int)
    return tuple(known)


def _check_one_type(view: TensorView, types: dict[str, tuple[ScalarType, str]], where: str) -> None:
    if view.storage.nbytes == 0:
        return
    dtype, first = types.setdefault(view.record, (view.dtype, view.name))
    if dtype != view.dtype:
        raise PayloadError(
            f"{_place(where, view.name, 'tensor_meta', 'dtype')}: expected {DTYPES[dtype].name}, which "
            f"{first!r} says {show_name(view.record)} holds, got {DTYPES[view.dtype].name}",
            rule="P11",
        )
