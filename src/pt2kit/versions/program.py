"""Upgrade of a stored program (parsed JSON) to the current version, and downgrade of a current tree to an older one.

`codec.convert` interprets the trees of the current version. Payloads that a version keeps inside the program are
returned next to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pt2kit.pickles.values import PickledTensor
from pt2kit.schema import CURRENT, LOG, MINIMUM
from pt2kit.versions import encoding
from pt2kit.versions.check import within_stack
from pt2kit.versions.conversion_log import (
    HARMLESS,
    ConversionLog,
    Note,
    ReadExternal,
    SideInputs,
    Tree,
    obstacles,
    raise_if_blocked,
)
from pt2kit.versions.identify import DRAFT, Found, find_version
from pt2kit.versions.line import metadata
from pt2kit.versions.operator_calls import fit_calls
from pt2kit.versions.reader_limits import make_readable
from pt2kit.versions.rewrite import rewrite
from pt2kit.versions.steps import TRACES, VERSIONS, apply_step, check_fit, convert, route


@dataclass(frozen=True, slots=True)
class Upgraded:
    """A program at the current version.

    Args:
        tree: fits the current table, but for keys that no table knows. Nothing in it is shared with the input.
        found: the version it was stored in.
        notes: what changed and what was lost on the way.
        constants: name -> torch.save bytes of the tensors (and bytes of the custom objects) that were inside the
            program, for versions that keep them there.
        weights: name -> parameters and buffers that were inside the program (the draft); nothing of them is read yet.
    """

    tree: Tree
    found: Found
    notes: tuple[Note, ...]
    constants: Mapping[str, bytes | PickledTensor]
    weights: Mapping[str, PickledTensor]


@dataclass(frozen=True, slots=True)
class Downgraded:
    """A program at an older version: its canonical tree, and what changed and was lost on the way."""

    tree: Tree
    version: str
    notes: tuple[Note, ...]

    def encode(self, where: str) -> bytes:
        """Return the bytes that the release of the version would have written for this tree."""
        return encoding.encode(self.tree, self.version, where)


def upgrade_program(
    raw: Any,
    where: str,
    *,
    namedtuples: Mapping[str, str] | None = None,
    read_external: ReadExternal | None = None,
) -> Upgraded:
    """Upgrade a stored program of any version to the current one.

    Args:
        raw: the record, as `codec.parse(data, where, bare_literals=True)` gives it; not changed.
        where: the record's name, for messages.
        namedtuples: class name -> name under which it is registered, for programs up to schema 5.1, which know the
            class name only ("NT" -> "corpus.NT"). A name that is missing stays.
        read_external: reads the files next to a program of the draft (`conversion_log.read_folder(folder)`).

    Raises:
        VersionError: a version that no table describes (M4).
        SchemaError: no program (M5), or one that does not fit the table of its version (M1).
        ExpressionError, PayloadError, UnsupportedError, JsonError, LimitError: what a step cannot read.

    Cost: 0.2 s per 1,000 nodes from the oldest version, 0.08 s from schema 8.2.
    """
    stored_version = find_version(raw, where)
    log = ConversionLog(where, namedtuples=namedtuples, side_inputs=SideInputs(read_external=read_external))
    with within_stack(where):
        tree = encoding.from_wire(raw, stored_version.table, where)
        tree = convert(tree, stored_version.table, CURRENT.number, log)
        if stored_version.table != CURRENT.number:
            tree = rewrite(tree, CURRENT.number, {"Node": lambda node, _: metadata.repaired(node)})
    major, minor = CURRENT.pair
    tree = {**tree, "schema_version": {"major": major, "minor": minor}}
    return Upgraded(tree, stored_version, log.notes, log.constants, log.weights)


def downgrade_program(
    tree: Tree,
    target: str,
    where: str,
    *,
    allow: Collection[str] = HARMLESS,
    side_inputs: SideInputs | None = None,
    release: str = "",
) -> Downgraded:
    """Write a program of the current version as an older one.

    Args:
        tree: fits the current table; not changed.
        target: the name of a table: "8.7", "5.3", "5.3-traces", "draft".
        where: the record's name, for messages.
        allow: names of the losses that the caller accepts.
        side_inputs: weights and constants, for the versions that keep them inside the program (1, the draft).
        release: of torch, whose operators there are ("2.13"); without it, the last that writes the target.

    Raises:
        ConversionError: the target cannot express the program, or something would be lost that was not allowed: all of
            it is listed, with its place and the version that brought it (M3).
        VersionError: no such target (M4).
        SchemaError: the tree does not fit its table (M1).
        ExpressionError, JsonError, LimitError: what a step cannot read.

    Cost: 0.25 s per 1,000 nodes to the oldest version, 0.1 s to schema 8.2.
    """
    lowered = try_to_lower(tree, target, where, side_inputs=side_inputs, release=release)
    raise_if_blocked(lowered.notes, where, target, allow)
    return lowered


def try_to_lower(
    tree: Tree, target: str, where: str, *, side_inputs: SideInputs | None = None, release: str = ""
) -> Downgraded:
    """Downgrade a program like `downgrade_program`; what the target cannot express is among the notes and raises
    nothing.

    Where there is such a note ("blocked"), the tree has something that fits in its place, and is no result.

    Raises:
        Pt2Error: as `downgrade_program`, but for ConversionError.
    """
    log = ConversionLog(where, side_inputs=side_inputs)
    with within_stack(where):
        whole = encoding.from_wire(tree, CURRENT.number, where)  # with every field that may be left out
        lowered = convert(whole, CURRENT.number, target, log)
        if target != DRAFT:  # of no release, so that no operator is missing
            lowered = fit_calls(lowered, target, release or release_of(target), log)
            lowered = make_readable(lowered, target, log)
        if target in _NO_FIELD_NAMES:
            for name in log.namedtuple_fields:
                log.lost("namedtuple_fields", f"the field names of {name!r}", ("graph_module",), "8.6")
    return Downgraded(lowered, target, log.notes)


_NO_FIELD_NAMES: Final = frozenset(("5.3-traces", "5.3", "7.3", "8.2"))
"""Versions that have no place for the field names of named tuples; older ones keep them in the tree specs."""


def release_of(version: str) -> str:
    """Return the last release that writes a version; for a development state, the first that came after it."""
    following = VERSIONS[VERSIONS.index(TRACES.newer if version == TRACES.older else version) :]
    return next(row.releases[-1] for name in following for row in LOG if row.number == name and row.releases)


def oldest_version(tree: Tree, where: str) -> str:
    """Find the oldest released version that can express a program of the current one: "5.3".

    Args:
        tree: fits the current table; not changed.
        where: the record's name, for messages.

    Raises:
        SchemaError: the tree does not fit its table (M1).
        ExpressionError, JsonError, LimitError: what a step cannot read.

    Cost: that of downgrading the program to that version and one step further.
    """
    # Schema 1 keeps constants inside; that they can be written is taken for granted here.
    specs = [spec.get("tensor_constant", {}) for spec in tree["graph_module"]["signature"]["input_specs"]]
    constants = {spec["tensor_constant_name"]: b"?" for spec in specs if spec}
    log = ConversionLog(where, side_inputs=SideInputs(constants=constants))
    oldest = CURRENT.number
    released = {row.number for row in LOG if row.releases}
    with within_stack(where):
        checked = check_fit(encoding.from_wire(tree, CURRENT.number, where), CURRENT.number, log)
        for step, upwards in route(CURRENT.number, MINIMUM.number):
            checked = apply_step(checked, step, upwards, log)
            fit_calls(checked.tree, step.older, release_of(step.older), log)
            make_readable(checked.tree, step.older, log)
            if obstacles(log.notes, HARMLESS):
                break
            oldest = step.older if step.older in released else oldest
    return oldest
