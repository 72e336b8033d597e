"""A program of a package -> the JSON text of it at another version, and everything there is to say about that.

A program that is of the target's version already, and whose operators need no change, keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pt2kit import codec, schema
from pt2kit.codec.unknown import put_back
from pt2kit.errors import Problem
from pt2kit.package.open import Package
from pt2kit.package.stored import StoredModel, StoredProgram
from pt2kit.versions.check import too_deep
from pt2kit.versions.containers import map_devices
from pt2kit.versions.conversion_log import ConversionLog, Note, SideInputs
from pt2kit.versions.operator_calls import fit_calls
from pt2kit.versions.opset.changes import EXPECTED, convert_opset
from pt2kit.versions.opset.operator_change import OperatorChange
from pt2kit.versions.program import Downgraded, try_to_lower


@dataclass(frozen=True, slots=True)
class Operators:
    """What the operators of a converted program are to be.

    Args:
        expected: namespace -> number of its operator set.
        changes: the caller's, beside those of aten.
    """

    expected: Mapping[str, int]
    changes: tuple[OperatorChange, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """One program at the target's version.

    Args:
        tree: its canonical tree; empty where the stored bytes are kept.
        data: its JSON text, as the release of the version writes it; empty where something is blocked.
        notes: what changed, what was lost and what is blocked; places name the record.
        problems: what could not be judged.
    """

    tree: dict[str, Any]
    data: bytes | memoryview
    notes: tuple[Note, ...]
    problems: tuple[Problem, ...]


def operators(opset_version: Mapping[str, int] | None, changes: Iterable[OperatorChange]) -> Operators:
    """The numbers that torch has, and those that the caller gives beside them or instead."""
    return Operators({**EXPECTED, **(opset_version or {})}, tuple(changes))


def convert_program(
    package: Package,
    model: str,
    record: str,
    version: str,
    side_inputs: SideInputs,
    wanted: Operators,
    *,
    release: str = "",
    in_container: bool = False,
) -> Converted:
    """Bring one program to another version.

    Args:
        package: where it is from.
        model: its name.
        record: the full name of its record.
        version: the name of the target's table.
        side_inputs: weights and constants, for versions that keep them inside.
        wanted: what its operators are to be.
        release: of torch, whose operators there are; without it, the last that writes the version.
        in_container: whether it becomes part of a container: then its tree is always given, and its text never.

    Raises:
        VersionError, OperatorError, ConversionError: operators that cannot be brought to the numbers expected.
        Pt2Error: the program cannot be read.
    """
    stored = package.stored[model]
    where = package.relative(record)
    converted = convert_opset(stored.program, where, expected=wanted.expected, changes=wanted.changes)
    notes = [Note("changed", "", text, "", (where,), 1) for text in converted.notes]
    is_same = converted.program is stored.program and stored.version == version
    if is_same and not in_container and stored.model is None and _suits(stored, release, where):
        return Converted({}, package.archive.read(record), tuple(notes), converted.problems)
    tree, dropped = _tree(stored, converted.program, version)
    if stored.model is not None and not in_container:
        tree, left = _taken_out(tree, stored.model, where)
        notes += left
    lowered, said = lower_tree(tree, version, where, side_inputs, release)
    notes += [*(_placed(note, where) for note in (*stored.notes, *dropped)), *said]
    blocked = in_container or any(note.kind == "blocked" for note in notes)
    return Converted(lowered.tree, b"" if blocked else lowered.encode(where), tuple(notes), converted.problems)


def _suits(stored: StoredProgram, release: str, where: str) -> bool:
    """Whether a release takes all calls of a program of its version; only of 8.20 are there several releases."""
    if stored.version != schema.CURRENT.number or not release:
        return True
    log = ConversionLog("")
    tree = codec.to_tree(stored.program)
    try:
        return fit_calls(tree, stored.version, release, log) is tree and not log.notes
    except RecursionError:
        raise too_deep(where) from None


def lower_tree(
    tree: dict[str, Any], version: str, where: str, side_inputs: SideInputs | None = None, release: str = ""
) -> tuple[Downgraded, list[Note]]:
    """Bring the tree of a current program to another version; notes have their places with the record.

    Raises:
        Pt2Error: as `try_to_lower`.
    """
    lowered = try_to_lower(tree, version, where, side_inputs=side_inputs, release=release)
    return lowered, [_placed(note, where) for note in lowered.notes]


def _taken_out(tree: dict[str, Any], was: StoredModel, where: str) -> tuple[dict[str, Any], list[Note]]:
    """A method of a container as a program of its own, on the devices that the container gives it."""
    notes = []
    if was.devices:
        tree = map_devices(tree, was.devices, where)
        listed = ", ".join(f"{old} is {new}" for old, new in was.devices.items())
        notes.append(Note("changed", "", f"devices, as the container maps them: {listed}", "", (where,), 1))
    if was.delegates:
        message = f"the delegates {', '.join(map(ascii, list(was.delegates)[:10]))} of the container"
        notes.append(Note("lost", "delegates", message, "8.6", (where,), 1))
    return tree, notes


def _tree(
    stored: StoredProgram, program: schema.ExportedProgram, version: str
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """A program as a plain tree, with the keys that no schema here knows where they have a place."""
    major, minor = schema.CURRENT.pair  # a newer minor stays what it was until here
    tree: dict[str, Any] = {**codec.to_tree(program), "schema_version": {"major": major, "minor": minor}}
    is_older, has_new_nodes = version != schema.CURRENT.number, program is not stored.program
    gone = [one for one in stored.unknown if is_older or (has_new_nodes and "nodes" in one.path)]
    if not is_older:
        put_back(tree, (one for one in stored.unknown if not (has_new_nodes and "nodes" in one.path)))
    if not gone:
        return tree, ()
    places = tuple(map(str, gone[:10]))
    return tree, (Note("lost", "unknown_keys", "a key that no schema here knows", "", places, len(gone)),)


def _placed(note: Note, where: str) -> Note:
    """A note whose places name the record too."""
    return replace(note, places=tuple(f"{where}: {place}" for place in note.places))
