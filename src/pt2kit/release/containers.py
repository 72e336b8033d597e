"""Write programs with their payloads as the `Model` containers of schema 8.6, one per model, and a record per tensor.

A weight is a raw record if the graph describes it as it is stored, and tied weights then share the record; any other
is a torch.save file of one tensor. The methods of one container of the source are kept together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pt2kit import codec
from pt2kit.package import record_names as names
from pt2kit.package.plan import Numbering, Planned, PlannedPickle, PlannedRecord, of_bytes, of_storage
from pt2kit.package.stored import Kind
from pt2kit.release.destinations import Destination
from pt2kit.release.models import Descriptions, Model, Outcome, Plain, fitting, metas, sample_inputs
from pt2kit.release.programs import Requested, convert_program, lower_tree
from pt2kit.schema import TensorMeta
from pt2kit.tensors.view import TensorView
from pt2kit.versions import encoding
from pt2kit.versions.containers import METHOD, VERSION
from pt2kit.versions.conversion_log import SideInputs


@dataclass(slots=True)
class Paths:
    """Record paths of the tensors of one model.

    Args:
        weights, constants: name -> path of the record below the root.
        records: the planned records.
        shared: key of the tensors that share a record -> its path.
    """

    weights: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    records: list[Planned] = field(default_factory=list)
    shared: dict[Any, str] = field(default_factory=dict)


def convert_models(models: list[Model], to: Destination, wanted: Requested, numbering: Numbering) -> list[Outcome]:
    """Plan the records of all programs, as containers.

    Args:
        models: the programs of a package, with their records.
        to: the target.
        wanted: the requested operator sets.
        numbering: assigns records their numbers.

    Raises:
        Pt2Error: a program or its payloads cannot be read.
    """
    outcomes = []
    for group in _grouped(models):
        paths, methods, group_outcomes = Paths(), {}, []
        for model in group:
            converted = convert_program(
                model.package, model.name, model.record, to.version, SideInputs(), wanted, in_container=True
            )
            outcome = Outcome(converted, [], list(converted.notes))
            methods[_method(model)] = converted.tree
            _place(model, paths, numbering, outcome)
            sample_inputs(model, to, outcome)
            group_outcomes.append(outcome)
        group_outcomes[0].records += [*paths.records, _container(group[0], methods, paths, group_outcomes[0])]
        outcomes += group_outcomes
    return outcomes


def _grouped(models: list[Model]) -> Iterator[list[Model]]:
    """Return the programs by the container they were in, or each alone."""
    groups: dict[str, list[Model]] = {}
    for model in models:
        groups.setdefault(model.record if model.stored_model is not None else model.name, []).append(model)
    return iter(groups.values())


def _method(model: Model) -> str:
    return model.stored_model.method if model.stored_model is not None else METHOD


def _container(model: Model, methods: Mapping[str, Any], paths: Paths, found: Outcome) -> PlannedRecord:
    """Return the JSON of a `Model`."""
    was = model.stored_model
    delegates: dict[str, Any] = {}
    for delegate, programs in (was.delegates if was is not None else {}).items():
        trees = {}
        for method, program in programs.items():
            place = f"{model.where}: delegate {delegate!a}"
            lowered, notes = lower_tree(codec.to_tree(program), VERSION, place)
            found.notes += notes
            trees[method] = lowered.tree
        delegates[delegate] = {"methods": trees}
    tree = {
        "name": (was.name if was is not None else "") or model.name,
        "tensorPaths": paths.weights,
        "program": {"methods": dict(methods)},
        "delegates": delegates,
        "deviceAllocationMap": dict(was.devices) if was is not None else {},
        "constantPaths": paths.constants,
    }
    data = encoding.encode(tree, VERSION, model.where, root="Model")
    name = model.where if was is not None and model.where.startswith(names.MODELS) else names.model_json(model.name)
    return of_bytes(name, data, deflate=True)


def _place(model: Model, paths: Paths, numbering: Numbering, found: Outcome) -> None:
    """Assign every tensor of a program its record."""
    stated = metas(model.package.programs[model.name])
    tables: tuple[tuple[Kind, dict[str, str], Callable[[int], str]], ...] = (
        ("weights", paths.weights, names.weight),
        ("constants", paths.constants, names.tensor_constant),
    )
    for kind, table, name_of in tables:
        for name, view in fitting(model, kind, found.notes):
            if name in table:
                continue  # another method has it already
            raw = _is_as_stated(view, stated.get(name))
            key = (view.storage, view.dtype) if raw and isinstance(view, TensorView) else (name, id(table))
            if key not in paths.shared:
                paths.shared[key] = record = numbering.take(name_of)
                paths.records.append(_record(record, view, raw))
            table[name] = paths.shared[key]


def _record(record: str, view: Plain, raw: bool) -> Planned:
    if raw and isinstance(view, TensorView):
        return of_storage(record, view.storage, view.itemsize)
    known = Descriptions()
    return PlannedPickle(record, known.describe(view), known.storages)


def _is_as_stated(view: Plain, meta: TensorMeta | None) -> bool:
    """Return whether the graph describes a tensor as it is stored."""
    if meta is None or not isinstance(view, TensorView) or view.conj or view.neg or not view.storage.nbytes:
        return False
    return (
        [size.as_int for size in meta.sizes] == list(view.sizes)
        and [stride.as_int for stride in meta.strides] == list(view.strides)
        and meta.storage_offset.as_int == view.storage_offset
        and (meta.dtype, meta.requires_grad, meta.device) == (view.dtype, view.requires_grad, view.device)
    )
