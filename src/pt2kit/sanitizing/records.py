"""Classification of an archive's records: those of a program, and those that belong to nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pt2kit.errors import ArchiveError, Problem
from pt2kit.package import record_names as names
from pt2kit.package.layouts.base import Parts
from pt2kit.package.open import Package
from pt2kit.sanitizing.options import Options
from pt2kit.sanitizing.texts import not_text

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Others:
    """The records that are no program and no payload.

    Args:
        extra: name of each kept extra file -> full name of its record.
        dropped: names of what is left out, below the root folder.
        problems: records that must not go over, and that nobody said to drop.
    """

    extra: Mapping[str, str]
    dropped: tuple[str, ...]
    problems: tuple[Problem, ...]


def parts_of(package: Package, model: str) -> Parts:
    """Return the records of a program; of one whose payloads are elsewhere, its own and its sample inputs."""
    try:
        return package.layout.parts(model)
    except ArchiveError:
        program = package.layout.program_record(model)
        return Parts(program, sample_inputs=package.layout.sample_inputs_record(model))


def sort_records(package: Package, used: Iterable[str], options: Options) -> Others:
    """Decide what happens to all records except those that programs and payloads are read from.

    Args:
        package: an open package.
        used: full names of the records that these are read from.
        options: what may be left out.

    Raises:
        Pt2Error: an extra file cannot be read.
    """
    extra = dict(package.layout.extra_files())
    known = {*used, *(package.layout.record(names.samples_index(model)) for model in package.layout.models)}
    left = [record for record in package.records if record not in known and record not in extra.values()]
    relative = [(record, package.relative(record)) for record in left]
    compiled = [name for _, name in relative if name.startswith((names.AOTINDUCTOR, names.EXECUTORCH))]
    unused = [name for _, name in relative if name not in compiled and not _is_header(name)]
    kept = {name: record for name, record in extra.items() if record not in known}
    dropped_extra = {name: record for name, record in kept.items() if options.drops_extra(names.extra(name))}
    kept = {name: record for name, record in kept.items() if name not in dropped_extra}
    dropped = [names.extra(name) for name in dropped_extra]
    problems = list(_texts(package, kept))
    for group, records, rule, message in (
        ("compiled", compiled, "X8", "torch loads compiled code into the process"),
        ("unused", unused, "Z1", "expected a record that something refers to, got one that nothing does"),
    ):
        if group in options.drop:
            dropped += records
        else:
            problems += _refuse(records, rule, f"{message}; drop {group!r} to leave it out")
    return Others(MappingProxyType(kept), tuple(dropped), tuple(problems))


def _is_header(name: str) -> bool:
    return names.kind(name) == "header" or name == names.PLAIN_VERSION


def _refuse(found: list[str], rule: str, message: str) -> Iterator[Problem]:
    for name in found[:_SHOWN]:
        yield Problem(name, rule, message, "safety")
    if len(found) > _SHOWN:
        yield Problem(f"{len(found) - _SHOWN:,} more records", rule, message, "safety")


def _texts(package: Package, extra: Mapping[str, str]) -> Iterator[Problem]:
    for name, record in extra.items():
        where = names.extra(name)
        if what := not_text(package.archive.read(record), where):
            yield Problem(where, "Z2", f"expected text, got {what}; drop {where!r} to leave it out", "safety")
