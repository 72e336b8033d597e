"""Convert records that belong to no program to another layout: extra files, compiled code, other records."""

from __future__ import annotations

from collections.abc import Iterator

from pt2kit.messages import count_text
from pt2kit.package import record_names as names
from pt2kit.package.layouts.base import PLAIN_MODEL
from pt2kit.package.open import Package
from pt2kit.package.plan import Numbering, Planned, copied
from pt2kit.release.destinations import Destination
from pt2kit.release.models import Model, listed_in
from pt2kit.versions.conversion_log import Note

_SINCE = "8.8"
"""Version whose layout has a place for records that have none in a plain zip."""


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
        if record in claimed or names.kind(name) == "header" or not package.layout.is_archive:
            continue
        if to.is_archive:
            plan.append(copied(package, record, name))
        else:
            notes.append(_lost(name))
    return plan, notes


def free_numbers(package: Package, models: list[Model], to: Destination) -> Numbering:
    """Return the numbers for new records that no unchanged record has."""
    gone = {record for model in models for record in claimed_by(model) if not to.has_configs or not model.parts.configs}
    kept = [package.relative(record) for record in package.records if record not in gone]
    weights = [index for record in kept if (index := names.weight_index(record)) is not None]
    constants = [constant[1] for record in kept if (constant := names.constant_index(record))]
    return Numbering(
        {names.weight: max(weights, default=-1) + 1, names.tensor_constant: max(constants, default=-1) + 1}
    )


def claimed_by(model: Model) -> Iterator[str]:
    """Yield the full names of the records that belong to a program."""
    package, place = model.package, model.parts
    yield from place.all
    for config in place.configs:
        yield from listed_in(package, config)
    if (container := model.stored_model) is not None:
        paths = (*container.weight_paths.values(), *container.constant_paths.values())
        yield from (package.layout.record(path) for path in paths)


def _about_programs(package: Package, to: Destination) -> Iterator[Note]:
    """Yield the notes of a layout for one program on several programs, and on one with a name."""
    models = package.layout.models
    if not to.is_archive and len(models) > 1:
        message = f"{count_text(len(models), 'program')} in one file: {', '.join(map(ascii, models[:10]))}"
        yield Note("blocked", "", message, _SINCE, (package.name,), 1)
    if to.has_fixed_name and models[0] != PLAIN_MODEL:
        yield Note("lost", "model_name", f"the name {models[0]!a} of the program", _SINCE, (package.name,), 1)


def _extra_records(package: Package) -> dict[str, str]:
    """Return the full name of the record of each of the user's extra files, by name."""
    by_name = package.layout.extra_files()
    return {name: by_name[name] for name in package.extra_files}


def _problem_with_extra(package: Package, record: str, to: Destination) -> str:
    """Return the reason why a file of the user's cannot be copied; "" if there is none."""
    if to.is_archive:
        return ""
    if to.is_text:
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
