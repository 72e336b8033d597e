"""What belongs to no program of a package -> its place in another layout: extra files, compiled code, other records."""

from __future__ import annotations

from collections.abc import Iterator

from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.package.parts import PLAIN_MODEL
from pt2kit.package.pickle_free_inputs.names import index_model
from pt2kit.package.plan import Numbering, Planned, copied
from pt2kit.release.destinations import Destination
from pt2kit.release.models import Model
from pt2kit.release.records import listed_in
from pt2kit.versions.conversion_log import Note

_SINCE = "8.8"
"""The version whose layout has a place for what has none in a plain zip."""


def plan_other_records(package: Package, models: list[Model], to: Destination) -> tuple[list[Planned], list[Note]]:
    """Plan the records that belong to no program, and note those that have no place.

    Raises:
        Pt2Error: a record cannot be read.
    """
    plan: list[Planned] = []
    notes = list(_about_programs(package, to))
    claimed = {record for model in models for record in claimed_by(model)}
    for name, record in _extra_records(package).items():
        claimed.add(record)
        if problem := _problem_with_extra(package, record, to):
            notes.append(Note("lost", "extra_files", problem, "", (names.extra(name),), 1))
        else:
            plan.append(copied(package, record, names.extra(name) if to.is_archive else names.plain_extra(name)))
    for record in package.records:
        name = package.relative(record)
        if record in claimed or names.kind(name) == "header" or package.layout.kind in ("plain-zip", "json"):
            continue
        if to.is_archive:
            plan.append(copied(package, record, name))
        else:
            notes.append(_lost(name))
    return plan, notes


def free_numbers(package: Package, models: list[Model], to: Destination) -> Numbering:
    """Numbers that no record has which goes over as it is, for those that are new beside them."""
    gone = {
        record
        for model in models
        for record in claimed_by(model)
        if to.kind != "archive" or model.parts.stored_as != "records"
    }
    kept = [package.relative(record) for record in package.records if record not in gone]
    weights = [index for record in kept if (index := names.weight_index(record)) is not None]
    constants = [constant[1] for record in kept if (constant := names.constant_index(record))]
    return Numbering(
        {names.weight: max(weights, default=-1) + 1, names.tensor_constant: max(constants, default=-1) + 1}
    )


def claimed_by(model: Model) -> Iterator[str]:
    """Full names of the records that belong to a program."""
    package, place = model.package, model.parts
    yield place.program
    yield from filter(None, (place.weights, place.constants, place.sample_inputs))
    if place.stored_as == "records":
        for config in filter(None, (place.weights, place.constants)):
            yield from listed_in(package, config)
    if (container := model.stored_model) is not None:
        paths = (*container.weight_paths.values(), *container.constant_paths.values())
        yield from (package.layout.record(path) for path in paths)


def _about_programs(package: Package, to: Destination) -> Iterator[Note]:
    """What a layout for one program says of several, and of one with a name."""
    models = package.layout.models
    if not to.is_archive and len(models) > 1:
        message = f"{len(models)} programs in one file: {', '.join(map(ascii, models[:10]))}"
        yield Note("blocked", "", message, _SINCE, (package.name,), 1)
    if to.kind == "plain-zip" and models[0] != PLAIN_MODEL:
        yield Note("lost", "model_name", f"the name {models[0]!a} of the program", _SINCE, (package.name,), 1)


def _extra_records(package: Package) -> dict[str, str]:
    """Name of each file that the user put beside the programs -> full name of its record."""
    folder = names.PLAIN_EXTRA if package.layout.kind == "plain-zip" else names.EXTRA
    return {name: package.layout.record(folder + name) for name in package.extra_files}


def _problem_with_extra(package: Package, record: str, to: Destination) -> str:
    """What keeps a file of the user's from going over; "" if nothing does."""
    if to.is_archive:
        return ""
    if to.kind == "json":
        return "a file of the user's, for which a JSON text has no place"
    try:
        str(package.archive.read(record), "utf-8")
    except UnicodeDecodeError:
        return "a file of the user's that is no UTF-8 text, as which those releases read all of them"
    return ""


def _lost(name: str) -> Note:
    """The note for a record that has no place outside an archive."""
    if names.kind(name) == "compiled code":
        return Note("lost", "compiled_code", "compiled code", _SINCE, (name,), 1)
    if index_model(name) or name.startswith(names.SAMPLE_INPUTS):
        message = "the inputs that the program was exported with, which are no torch.save file"
        return Note("lost", "sample_inputs", message, _SINCE, (name,), 1)
    return Note("lost", "other_records", "a record that is no part of the format", _SINCE, (name,), 1)
