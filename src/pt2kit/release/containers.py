"""Write programs with their payloads as the `Model` containers of schema 8.6, one per model, and a record per tensor.

A weight is a raw record if the graph describes it as it is stored, and tied weights then share the record; any other
is a torch.save file of one tensor. The methods of one container of the source are kept together.

Records that belong to no program are converted, too: extra files, compiled code, other records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pt2kit import codec
from pt2kit.canonical.canonical_labeling import grouped
from pt2kit.messages import count_text
from pt2kit.package import record_names as names
from pt2kit.package.layouts.base import PLAIN_MODEL
from pt2kit.package.open import Package
from pt2kit.package.plan import Numbering, Planned, PlannedPickle, PlannedRecord, copied, of_bytes, of_storage
from pt2kit.package.stored import Kind, StoredModel
from pt2kit.release.destinations import Destination
from pt2kit.release.models import fitting, metas, records_of, sample_inputs
from pt2kit.release.programs import Model, Outcome, Requested, convert_program, lower_tree
from pt2kit.schema import TensorMeta
from pt2kit.tensors.pickled import to_pickled
from pt2kit.tensors.view import TensorView
from pt2kit.versions import encoding
from pt2kit.versions.containers import METHOD, VERSION
from pt2kit.versions.conversion_log import Note, SideInputs


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
    # By the container they were in, or each alone.
    groups = grouped(models, lambda model: model.record if model.stored_model is not None else model.name)
    for group in groups.values():
        paths, methods, group_outcomes = Paths(), {}, []
        for model in group:
            outcome = convert_program(model, to, wanted, SideInputs(), [])
            methods[_home(model).method] = outcome.tree
            _place(model, paths, numbering, outcome)
            sample_inputs(model, to, outcome)
            group_outcomes.append(outcome)
        group_outcomes[0].records += [*paths.records, _container(group[0], methods, paths, group_outcomes[0])]
        outcomes += group_outcomes
    return outcomes


def _home(model: Model) -> StoredModel:
    """Return the container that a program was in; one of its own for a program that was in none."""
    return model.stored_model or StoredModel("", METHOD)


def _container(model: Model, methods: Mapping[str, Any], paths: Paths, found: Outcome) -> PlannedRecord:
    """Return the JSON of a `Model`."""
    was = _home(model)
    delegates: dict[str, Any] = {}
    for delegate, programs in was.delegates.items():
        trees = {}
        for method, program in programs.items():
            place = f"{model.where}: delegate {delegate!a}"
            lowered, notes = lower_tree(codec.to_tree(program), VERSION, place)
            found.notes += notes
            trees[method] = lowered.tree
        delegates[delegate] = {"methods": trees}
    tree = {
        "name": was.name or model.name,
        "tensorPaths": paths.weights,
        "program": {"methods": dict(methods)},
        "delegates": delegates,
        "deviceAllocationMap": dict(was.devices),
        "constantPaths": paths.constants,
    }
    data = encoding.encode(tree, VERSION, model.where, root="Model")
    has_name = model.stored_model is not None and model.where.startswith(names.MODELS)
    return of_bytes(model.where if has_name else names.model_json(model.name), data, deflate=True)


def _place(model: Model, paths: Paths, numbering: Numbering, found: Outcome) -> None:
    """Assign every tensor of a program its record."""
    stated = metas(model.package.programs[model.name])
    tables: tuple[tuple[Kind, dict[str, str]], ...] = (("weights", paths.weights), ("constants", paths.constants))
    for kind, table in tables:
        for name, view in fitting(model, kind, found.notes):
            if name in table:
                continue  # another method has it already
            if not isinstance(view, TensorView):
                message = f"a payload of this kind: expected a dense tensor with data, got {view.describe()}"
                found.notes.append(Note("blocked", "", message, "", (f"{model.where}: {name!r}",), 1))
                continue
            raw = _is_as_stated(view, stated.get(name))
            key = (view.storage, view.dtype) if raw else (name, id(table))
            if key not in paths.shared:
                paths.shared[key] = record = numbering.take(names.PAYLOADS[kind])
                paths.records.append(_record(record, view, raw))
            table[name] = paths.shared[key]


def _record(record: str, view: TensorView, raw: bool) -> Planned:
    if raw:
        return of_storage(record, view.storage, view.itemsize)
    return PlannedPickle(record, to_pickled(view))


def _is_as_stated(view: TensorView, meta: TensorMeta | None) -> bool:
    """Return whether the graph describes a tensor as it is stored."""
    if view.conj or view.neg or not view.storage.nbytes:
        return False
    return meta == view.meta()


_SINCE = "8.8"
"""Version whose layout has a place for records that have none in a plain zip."""


def plan_other_records(package: Package, models: list[Model], to: Destination) -> tuple[list[Planned], list[Note]]:
    """Plan the records that belong to no program, and note those that have no place.

    Raises:
        Pt2Error: a record cannot be read.
    """
    plan: list[Planned] = []
    notes = list(_about_programs(package, to))
    claimed = {record for model in models for record in records_of(package, model.name)}
    by_name = package.layout.extra_files()
    for name in package.extra_files:
        claimed.add(record := by_name[name])
        if problem := _problem_with_extra(package, record, to):
            notes.append(Note("lost", "extra_files", problem, "", (names.extra(name),), 1))
        else:
            plan.append(copied(package, record, names.extra(name) if to.layout.is_archive else names.plain_extra(name)))
    for record in package.records:
        name = package.relative(record)
        if record in claimed or names.kind(name) == "header" or not package.layout.is_archive:
            continue
        if to.layout.is_archive:
            plan.append(copied(package, record, name))
        else:
            notes.append(_lost(name))
    return plan, notes


def free_numbers(package: Package, models: list[Model], to: Destination) -> Numbering:
    """Return the numbers for new records that no unchanged record has."""
    replaced = [model.name for model in models if not (to.layout.has_configs and model.parts.configs)]
    gone = {record for name in replaced for record in records_of(package, name)}
    kept = [package.relative(record) for record in package.records if record not in gone]

    def first_free(*parsers: Callable[[str], int | None]) -> int:
        numbers = [number for parse in parsers for record in kept if (number := parse(record)) is not None]
        return max(numbers, default=-1) + 1

    constants = (names.tensor_constant_index, names.custom_object_index, names.opaque_object_index)
    return Numbering({names.weight: first_free(names.weight_index), names.tensor_constant: first_free(*constants)})


def _about_programs(package: Package, to: Destination) -> Iterator[Note]:
    """Yield the notes of a layout for one program on several programs, and on one with a name."""
    models = package.layout.models
    if not to.layout.is_archive and len(models) > 1:
        message = f"{count_text(len(models), 'program')} in one file: {', '.join(map(ascii, models[:10]))}"
        yield Note("blocked", "", message, _SINCE, (package.name,), 1)
    if to.has_fixed_name and models[0] != PLAIN_MODEL:
        yield Note("lost", "model_name", f"the name {models[0]!a} of the program", _SINCE, (package.name,), 1)


def _problem_with_extra(package: Package, record: str, to: Destination) -> str:
    """Return the reason why a file of the user's cannot be copied; "" if there is none."""
    if to.layout.is_archive:
        return ""
    if to.layout.is_text:
        return "a file of the user's, for which a JSON text has no place"
    try:
        str(package.archive.read(record), "utf-8")
    except UnicodeDecodeError:
        return "a file of the user's that is no UTF-8 text, as which those releases read all of them"
    return ""


def _lost(name: str) -> Note:
    """Return the note for a record that has no place outside an archive."""
    if names.kind(name) == "compiled code":
        return Note("lost", "compiled_code", "compiled code", _SINCE, (name,), 1)
    if names.samples_index_model(name) or name.startswith(names.SAMPLE_INPUTS):
        message = "the inputs that the program was exported with, which are no torch.save file"
        return Note("lost", "sample_inputs", message, _SINCE, (name,), 1)
    return Note("lost", "other_records", "a record that is no part of the format", _SINCE, (name,), 1)
