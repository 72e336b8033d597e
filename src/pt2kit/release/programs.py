"""Convert a program of a package to its JSON text at another version, with all notes on the conversion.

A program that is of the target's version already, and whose operators need no change, keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pt2kit import codec, schema
from pt2kit.codec.shapes import put_back
from pt2kit.errors import Problem
from pt2kit.jsontext import Path
from pt2kit.node_metadata.redaction import AddressNumbers
from pt2kit.package.layouts.base import Parts
from pt2kit.package.open import Package
from pt2kit.package.plan import Planned
from pt2kit.package.stored import Kind, Payload, StoredModel, StoredProgram
from pt2kit.release.destinations import Destination
from pt2kit.versions.check import within_stack
from pt2kit.versions.containers import map_devices
from pt2kit.versions.conversion_log import ConversionLog, Note, SideInputs
from pt2kit.versions.operator_calls import fit_calls
from pt2kit.versions.opset_changes import EXPECTED, OperatorChange, convert_opset
from pt2kit.versions.program import Downgraded, try_to_lower
from pt2kit.versions.rewrite import rewrite


@dataclass(frozen=True, slots=True)
class Requested:
    """Requested conversion of programs, besides their version.

    Args:
        expected: namespace -> version of its operator set.
        changes: of operators of the caller's namespaces; those of aten are known.
        normalize: number the process addresses in node metadata, so that exports of one model are the same bytes.
    """

    expected: Mapping[str, int]
    changes: tuple[OperatorChange, ...]
    normalize: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """One program with everything that belongs to it.

    Args:
        package: where it is from.
        name: its name there.
        parts: its records there.
        moved: buffers that are constants there, and part of the state dict at the target.
    """

    package: Package
    name: str
    parts: Parts
    moved: tuple[str, ...] = ()

    @property
    def record(self) -> str:
        """Return the full name of its record."""
        return self.parts.program

    @property
    def stored_model(self) -> StoredModel | None:
        """Return the container of schema 8.6 that the program is in."""
        return self.package.stored[self.name].model

    @property
    def where(self) -> str:
        """Return the name of its record for messages."""
        return self.package.relative(self.record)

    def payloads(self, kind: Kind) -> Mapping[str, Payload]:
        """Return the contents of its state dict at the target, or its constants there.

        Raises:
            UnsupportedError: payloads that only code can rebuild.
            Pt2Error: payloads that cannot be read.
        """
        constants = self.package.constants(self.name) if kind == "constants" or self.moved else {}
        if kind == "constants":
            return {name: payload for name, payload in constants.items() if name not in self.moved}
        weights = self.package.weights(self.name)
        return {**weights, **{name: constants[name] for name in self.moved if name in constants}}

    def stored(self, kind: Kind) -> str | None:
        """Return the full name of the record that lists or holds one of the two."""
        return self.parts.weights if kind == "weights" else self.parts.constants


@dataclass(slots=True)
class Outcome:
    """Result of converting one program, extended step by step.

    Args:
        tree: its canonical tree; empty if the stored bytes are kept.
        data: its JSON text, as the release of the version writes it; empty if something is blocked.
        notes: what changed, what was lost and what is blocked; places name the record.
        problems: what could not be judged.
        records: its records, in order.
    """

    tree: dict[str, Any]
    data: bytes | memoryview
    notes: list[Note]
    problems: tuple[Problem, ...]
    records: list[Planned] = field(default_factory=list)


def operators(
    opset_version: Mapping[str, int] | None, changes: Iterable[OperatorChange], *, normalize: bool = False
) -> Requested:
    """Return the requested operator sets: those of torch, and those that the caller names besides it or instead."""
    return Requested({**EXPECTED, **(opset_version or {})}, tuple(changes), normalize)


def convert_program(
    model: Model, to: Destination, wanted: Requested, side_inputs: SideInputs, notes: list[Note]
) -> Outcome:
    """Convert one program to another version.

    Args:
        model: the program.
        to: the target. A program that becomes part of a container always has its tree there, and never its text.
        wanted: its operator sets, and whether its metadata is normalized.
        side_inputs: weights and constants, for versions that keep them inside.
        notes: those on its payloads; those on the program are added.

    Raises:
        VersionError, OperatorError, ConversionError: operators that cannot be converted to the expected versions.
        Pt2Error: the program cannot be read.
    """
    stored, where, in_container = model.package.stored[model.name], model.where, to.holds_containers
    converted = convert_opset(stored.program, where, expected=wanted.expected, changes=wanted.changes)
    notes += [Note("changed", "", text, "", (where,), 1) for text in converted.notes]
    numbers = AddressNumbers() if wanted.normalize else None
    is_same = converted.program is stored.program and stored.version == to.version and numbers is None
    if is_same and not in_container and stored.model is None and _suits(stored, to.operators, where):
        return Outcome({}, model.package.archive.read(model.record), notes, converted.problems)
    tree, dropped = _tree(stored, converted.program, to.version)
    if numbers is not None:
        tree = rewrite(tree, schema.CURRENT.number, {"Node": partial(_numbered, numbers)})
    if stored.model is not None and not in_container:
        tree, left = _taken_out(tree, stored.model, where)
        notes += left
    lowered, lowering_notes = lower_tree(tree, to.version, where, side_inputs, to.operators)
    notes += [*(_placed(note, where) for note in (*stored.notes, *dropped)), *lowering_notes]
    blocked = in_container or any(note.kind == "blocked" for note in notes)
    return Outcome(lowered.tree, b"" if blocked else lowered.encode(where), notes, converted.problems)


def _suits(stored: StoredProgram, release: str, where: str) -> bool:
    """Return whether a release accepts all calls of a program of its version; only 8.20 has several releases."""
    if stored.version != schema.CURRENT.number or not release:
        return True
    log = ConversionLog("")
    tree = codec.to_tree(stored.program)
    with within_stack(where):
        return fit_calls(tree, stored.version, release, log) is tree and not log.notes


def _numbered(numbers: AddressNumbers, node: Any, _: Path) -> Any:
    """Return a node with numbers for the process addresses in its metadata."""
    old = node["metadata"]
    new = numbers.numbered(old)
    return node if new == old else {**node, "metadata": new}


def lower_tree(
    tree: dict[str, Any], version: str, where: str, side_inputs: SideInputs | None = None, release: str = ""
) -> tuple[Downgraded, list[Note]]:
    """Downgrade the tree of a current program to another version; notes have places with the record.

    Raises:
        Pt2Error: as `try_to_lower`.
    """
    lowered = try_to_lower(tree, version, where, side_inputs=side_inputs, release=release)
    return lowered, [_placed(note, where) for note in lowered.notes]


def _taken_out(tree: dict[str, Any], was: StoredModel, where: str) -> tuple[dict[str, Any], list[Note]]:
    """Return a method of a container as a program of its own, on the devices that the container assigns."""
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
    """Return a program as a plain tree, with the keys that no schema here has at their places."""
    major, minor = schema.CURRENT.pair  # a newer minor is kept unchanged until here
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
    """Return a note whose places name the record too."""
    return replace(note, places=tuple(f"{where}: {place}" for place in note.places))
