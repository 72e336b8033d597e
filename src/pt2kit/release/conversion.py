"""Conversion of a package to a schema version or a release of torch, with a report of all changes and losses.

Everything is planned before the target is touched: programs are converted to the version, payloads get their places,
and everything without a place is collected. Only a plan without obstacles is written.

`Report` is the result as data: source, target, changes and losses; `report_lines` is its text.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import IO, Any, Final

from pt2kit import codec
from pt2kit.errors import ArchiveError, Problem, UnsupportedError
from pt2kit.front_door import registered
from pt2kit.messages import count_text
from pt2kit.package import record_names as names
from pt2kit.package.layouts.bare_json import BareJson
from pt2kit.package.open import Package, open_package
from pt2kit.package.plan import Planned, PlannedRecord, header, of_bytes, write_records
from pt2kit.release.containers import convert_models, free_numbers, plan_other_records
from pt2kit.release.destinations import Destination, find_destination, own_destination
from pt2kit.release.models import convert_model, find_model
from pt2kit.release.programs import Model, Outcome, operators
from pt2kit.versions.conversion_log import BY_PERMISSION, Note, raise_if_blocked
from pt2kit.versions.conversion_log import HARMLESS as OF_PROGRAMS
from pt2kit.versions.identify import DRAFT
from pt2kit.versions.opset_changes import OperatorChange
from pt2kit.zip.listing import FileLike
from pt2kit.zip.source import Progress, no_progress
from pt2kit.zip.target import not_while_reading, open_target
from pt2kit.zip.writer import ArchiveWriter

HARMLESS: Final = OF_PROGRAMS | {"sample_inputs"}
"""Losses that need no permission: the program's results, and the inputs that the older torch accepts, are the same."""


@dataclass(frozen=True, slots=True)
class Side:
    """One end of a conversion.

    Args:
        schema: the version of the programs: "8.20"; "8.14, 8.20" where they differ.
        layout: how the records are arranged: "archive", "archive-2.8", "plain-zip", or that of a container.
        release: the release of torch that writes this: "torch 2.4"; "" for a version that no release wrote.
    """

    schema: str
    layout: str
    release: str

    def __str__(self) -> str:
        return f"schema {self.schema}, {self.layout}{f' ({self.release})' if self.release else ''}"


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a conversion.

    Args:
        source, target: its two ends.
        models: names of the programs, in order.
        notes: changes that keep the meaning, and losses; places name the record.
        problems: facts that could not be judged, such as operators of an unknown namespace.
    """

    source: Side
    target: Side
    models: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def changed(self) -> tuple[Note, ...]:
        """Return the parts that are written in another way and mean the same."""
        return tuple(note for note in self.notes if note.kind == "changed")

    @property
    def lost(self) -> tuple[Note, ...]:
        """Return the parts that the target has no place for, and that were dropped."""
        return tuple(note for note in self.notes if note.kind == "lost")

    def to_tree(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        problems = [{"loc": one.loc, "rule": one.rule, "message": one.message} for one in self.problems]
        tree = codec.to_tree(self)
        notes = [{**note, "places": list(note["places"])} for note in tree["notes"]]
        return {**tree, "models": list(self.models), "notes": notes, "problems": problems}

    def __str__(self) -> str:
        lost = f"; lost: {', '.join(dict.fromkeys(note.name for note in self.lost))}" if self.lost else ""
        return f"from {self.source} to {self.target}: {count_text(len(self.changed), 'change')}{lost}"


def convert(
    src: FileLike | Package,
    dst: str | os.PathLike[str] | IO[bytes] | None,
    *,
    target: str | None = None,
    fsync: bool = False,
    compress: bool = True,
    allow: Iterable[str] = (),
    keep: Iterable[str] = (),
    normalize: bool = False,
    opset_version: Mapping[str, int] | None = None,
    operator_changes: Iterable[OperatorChange] = (),
    namedtuples: Mapping[str, str] | None = None,
    tell: Callable[[Report], object] | None = None,
    progress: Progress = no_progress,
    prove: bool = False,
) -> Report:
    """Write a package as another version of the schema, or another release of torch, writes it.

    Args:
        src: an open package, or anything that `pt2kit.open` accepts.
        dst: a path, replaced whole or not at all, or a binary file object; either may be the source's own file. None
            writes nothing: the report lists what would be done.
        target: a schema version ("8.7", "5.3-traces", "draft") or a release ("torch==2.4"). A version means the
            first release that wrote it. None keeps the source's.
        fsync: wait for the disk also if no file is replaced; replacing one always does.
        compress: deflate the JSON; False stores it, for readers in other languages that accept stored records only.
        allow: names of losses that are accepted ("persistent") in addition to those of `HARMLESS`.
        keep: names of losses that are not accepted, though they are in `HARMLESS`.
        normalize: replace the process addresses in node metadata by numbers, so that two exports of one model are the
            same bytes, as `pt2kit.save` writes them.
        opset_version: namespace -> version of the operator set that the programs are to have, in addition to those of
            torch.
        operator_changes: how operators of the caller's namespaces changed between those versions.
        namedtuples: class name -> name under which it is registered, for sources up to schema 5.1 (torch 2.3), which
            have the class name only ("NT" -> "corpus.NT"); a package that is open already has its own.
        tell: called with the report before anything is written; an exception of it prevents the write.
        progress: called with (done, total) bytes while the file is written.
        prove: run the program before and after on random inputs, and write nothing if results differ.

    Returns:
        The report of changes, losses, and problems that could not be judged.

    Raises:
        VersionError: no such target (M4), or operators newer than expected that cannot be downgraded (O1).
        ConversionError: the target cannot express the package, or something would be lost that was not allowed: all of
            it is listed, with its place and the version that introduced it (M3). Nothing was written.
        ProofError: with `prove`, results differ.
        UnsupportedError: a name in `allow` or `keep` that no loss has; with `prove`, the program has operators that
            cannot be run; the message lists them.
        OperatorError: an operator that cannot be converted to the expected version (O3).
        Pt2Error: the source cannot be read.
        OSError: the target cannot be written.

    Cost: programs as `downgrade_program`; weights are read and written once and never held, but for the draft's, which
        are text inside the program.
    """
    allow, keep = named_losses("allow", allow), named_losses("keep", keep)
    wanted = operators(opset_version, operator_changes, normalize=normalize)
    with nullcontext(src) if isinstance(src, Package) else open_package(src, namedtuples=namedtuples) as package:
        if not package.layout.models:
            raise ArchiveError(package.without_program("to convert"))
        to = find_destination(target) if target is not None else own_destination(package)
        models = [find_model(package, name, to) for name in package.layout.models]
        if _is_program_alone(package, models):
            to = replace(to, layout=BareJson, plain_records=())
        numbering = free_numbers(package, models, to)
        if to.holds_containers:
            outcomes = convert_models(models, to, wanted, numbering)
        else:
            outcomes = [convert_model(model, to, wanted, numbering) for model in models]
        rest, left_over = plan_other_records(package, models, to)
        notes = _joined([*(note for outcome in outcomes for note in outcome.notes), *left_over])
        named = f"{to.version} (torch {to.release})" if to.release else to.version
        raise_if_blocked(notes, package.name, named, (HARMLESS | allow) - keep, what="package")
        report = _report(package, to, notes, outcomes)
        if tell is not None:
            tell(report)
        if dst is not None:
            plan = [record for outcome in outcomes for record in outcome.records]
            if to.has_fixed_name:  # a plain zip, which states its version in a record
                plan.append(of_bytes(names.PLAIN_VERSION, to.version.partition("-")[0].encode()))
            # Programs of one archive may share records.
            records = list({record.name: record for record in (*plan, *rest)}.values())
            if prove:
                _prove(package, to, records)
            with not_while_reading(package.archive.source, dst) as file:
                _write(file, to, records, progress, fsync, compress)
    return report


def named_losses(argument: str, given: Iterable[str]) -> frozenset[str]:
    """Return names of losses that a caller passes; one text is refused as well, as its letters are no names.

    Raises:
        UnsupportedError: a name that no loss has.
    """
    found = frozenset(given)
    if unknown := sorted(found - HARMLESS - BY_PERMISSION):
        names = ", ".join(sorted(HARMLESS | BY_PERMISSION))
        raise UnsupportedError(f"{argument}: expected names of losses ({names}), got {unknown[0]!r:.80}")
    return found


def _is_program_alone(package: Package, models: list[Model]) -> bool:
    """Return whether a JSON text is a program whose payloads are nowhere; a draft has its own inside."""
    if not package.layout.is_text:
        return False
    if any(model.payloads("weights") or model.payloads("constants") for model in models):
        return False
    return all(stored.version != DRAFT and stored.model is None for stored in package.stored.values())


def _report(package: Package, to: Destination, notes: tuple[Note, ...], outcomes: list[Outcome]) -> Report:
    layout, stored = package.layout, package.stored
    source = Side(
        ", ".join(dict.fromkeys(stored[name].version for name in layout.models)), layout.kind, package.producer
    )
    if source.layout != to.layout.kind:
        message = f"the layout, from {source.layout} to {to.layout.kind}"
        notes = (Note("changed", "", message, "", (package.name,), 1), *notes)
    if package.external:
        message = f"{count_text(len(package.external), 'payload')} from next to the file, stored in the new one"
        notes = (Note("changed", "", message, "", (package.name,), 1), *notes)
    return Report(
        source,
        Side(to.version, to.layout.kind, f"torch {to.release}" if to.release else ""),
        layout.models,
        notes,
        tuple(problem for outcome in outcomes for problem in outcome.problems),
    )


def _joined(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Merge notes that report the same of several places."""
    by_key: dict[tuple[str, str, str, str], Note] = {}
    for note in notes:
        key = (note.kind, note.name, note.message, note.since)
        before = by_key.get(key)
        if before is None:
            by_key[key] = note
        else:
            new = [place for place in note.places if place not in before.places]
            places = (*before.places, *new)[: max(10, len(before.places))]
            count = before.count + note.count - (len(note.places) - len(new))
            by_key[key] = replace(before, places=places, count=count)
    return tuple(by_key.values())


def _prove(package: Package, to: Destination, records: list[Planned]) -> None:
    """Write a temporary file, and compare by running.

    Raises:
        ProofError, UnsupportedError: as `convert`.
    """
    with TemporaryFile() as file:
        _write(file, to, records, no_progress, fsync=False, compress=False)
        file.seek(0)
        with open_package(file) as result:
            registered("prove")(package, result)


def _write(
    dst: str | os.PathLike[str] | IO[bytes],
    to: Destination,
    plan: list[Planned],
    progress: Progress,
    fsync: bool,
    compress: bool,
) -> None:
    if to.layout.is_text:
        with open_target(dst, fsync=fsync) as target:
            if isinstance(plan[0], PlannedRecord):
                target.write(memoryview(plan[0].read()))
        return
    with ArchiveWriter(dst, root=None if to.layout.is_archive else "", fsync=fsync, compress=compress) as writer:
        write_records(writer, plan, progress)
        if to.layout.is_archive:
            write_records(writer, header())
            writer.write(names.SERIALIZATION_ID, _serialization_id(writer))


def _serialization_id(writer: ArchiveWriter) -> bytes:
    """Return forty digits by which torch distinguishes files: here they follow from the content."""
    text = "\n".join(f"{name} {crc32} {size}" for name, crc32, size in writer.checksums)
    return str(int(hashlib.sha256(text.encode()).hexdigest()[:32], 16)).rjust(40, "0").encode()


_PLACES = 3
"""Places that are shown of each note."""


def report_lines(report: Report) -> Iterator[str]:
    """Yield every line of a report.

    Args:
        report: as `convert` gives it.
    """
    yield str(report)
    for title, notes in (("changed", report.changed), ("lost", report.lost)):
        if notes:
            yield ""
            yield title
        for note in notes:
            yield from _note_lines(note)
    if report.problems:
        yield ""
        yield "not judged"
        yield from (f"  {problem}" for problem in report.problems)


def _note_lines(note: Note) -> Iterator[str]:
    name = f"{note.name}: " if note.name else ""
    since = f", which came with {note.since}" if note.since else ""
    free = "" if note.kind != "lost" or note.name in HARMLESS else " (allowed)"
    yield f"  {name}{note.message}{since}{free}"
    yield from (f"      {place}" for place in note.places[:_PLACES])
    if note.count > _PLACES:
        yield f"      and {note.count - len(note.places[:_PLACES])} more"
