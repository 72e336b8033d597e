"""Steps between all versions as one line, and the conversion of a tree along it.

    draft - 1 - 2 - 5.1 - 5.3 - 7.3 - 8.2 - 8.6 - 8.7 - 8.8 - 8.14 - 8.15 - 8.17 - 8.20
                          5.3 - 5.3-traces

Majors 3, 4 and 6 were never released and have no tables, so no steps either. A tree is checked against the frozen table
of its version before the first step and after each one, but for those between minors on the way up, which only add.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pt2kit.errors import VersionError
from pt2kit.schema.fieldtable import NAMES
from pt2kit.schema.versions import LOG, parse_version
from pt2kit.versions.check import check_tree, fits
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.identify import DRAFT
from pt2kit.versions.line import v1_v2, v2_v5_1, v5_1_v5_3, v5_3_v7_3, v7_3_v8_2, v8_2_v8_6
from pt2kit.versions.line.minor import Conversion, block_misfits, downgrade_minor, upgrade_minor

MINORS: Final = tuple(row.number for row in LOG if row.pair[0] == 8 and row.pair >= (8, 6))
"""Versions whose differences `since` in the field tables describes completely."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the line.

    Args:
        older, newer: the names of the two tables.
        upgrade, downgrade: from the one to the other, and back; `schema_version` is left to `apply`.
    """

    older: str
    newer: str
    upgrade: Conversion
    downgrade: Conversion

    def apply(self, tree: Tree, log: ConversionLog, *, upwards: bool) -> Tree:
        """Return a program of one of the two versions as one of the other, which it states."""
        version = self.newer if upwards else self.older
        log.since = self.older if upwards else self.newer
        new = (self.upgrade if upwards else self.downgrade)(tree, log)
        if version == DRAFT:
            return new
        major, *minor = parse_version(version.removesuffix("-traces"))
        return {**new, "schema_version": {"major": major, "minor": minor[0]} if "." in version else major}


def _upgrade_draft(tree: Tree, log: ConversionLog) -> Tree:
    from pt2kit.versions.draft.to_v1 import upgrade  # few files are drafts; opening the others need not wait for it

    return upgrade(tree, log)


def _downgrade_draft(tree: Tree, log: ConversionLog) -> Tree:
    from pt2kit.versions.draft.to_v1 import downgrade

    return downgrade(tree, log)


STEPS: Final = (
    Step("draft", "1", _upgrade_draft, _downgrade_draft),
    Step("1", "2", v1_v2.upgrade, v1_v2.downgrade),
    Step("2", "5.1", v2_v5_1.upgrade, v2_v5_1.downgrade),
    Step("5.1", "5.3", v5_1_v5_3.upgrade, v5_1_v5_3.downgrade),
    Step("5.3", "7.3", v5_3_v7_3.upgrade, v5_3_v7_3.downgrade),
    Step("7.3", "8.2", v7_3_v8_2.upgrade, v7_3_v8_2.downgrade),
    Step("8.2", "8.6", v8_2_v8_6.upgrade, v8_2_v8_6.downgrade),
    *(Step(older, newer, upgrade_minor(older, newer), downgrade_minor(newer)) for older, newer in pairwise(MINORS)),
)
TRACES: Final = Step("5.3-traces", "5.3", v5_1_v5_3.expand_traces, v5_1_v5_3.compact_traces)
"""The side branch, which both begins and ends in 5.3."""

VERSIONS: Final = (*(step.older for step in STEPS), STEPS[-1].newer)
"""The versions of the line, oldest first."""


def route(source: str, target: str) -> tuple[tuple[Step, bool], ...]:
    """Return the steps between two versions, each with True for upwards.

    Raises:
        VersionError: one of them has no table.
    """
    for name in (source, target):
        if name not in NAMES:
            raise VersionError(f"schema version: expected one of {', '.join(NAMES)}, got {name!r}", rule="M4")
    if source == target:
        return ()
    if source == TRACES.older:
        return ((TRACES, True), *route(TRACES.newer, target))
    if target == TRACES.older:
        return (*route(source, TRACES.newer), (TRACES, False))
    first, last = VERSIONS.index(source), VERSIONS.index(target)
    if first < last:
        return tuple((step, True) for step in STEPS[first:last])
    return tuple((step, False) for step in reversed(STEPS[last:first]))


def convert(tree: Tree, source: str, target: str, log: ConversionLog) -> Tree:
    """Convert a canonical tree from one version to another.

    Args:
        tree: fits the table of `source`; not changed.
        source, target: names of tables.
        log: gets everything there is to say. After a downgrade its caller calls `raise_if_blocked`: only then is the
            result one, since a blocked place is filled with something that fits, to find all the others.

    Raises:
        SchemaError: a tree that does not fit its table (M1).
        VersionError: no such version (M4).
        ExpressionError, PayloadError, UnsupportedError, JsonError, LimitError: what a step cannot read.
    """
    checked = check_fit(tree, source, log)
    steps = route(source, target)
    for step, upwards in steps:
        checked = apply_step(checked, step, upwards, log)
    if not all(upwards for _, upwards in steps):
        check_tree(checked.tree, target, log.where)
    return checked.tree


@dataclass(frozen=True, slots=True)
class Checked:
    """A tree that fits the table of its version; `exact` if it has no keys that the table does not know."""

    tree: Tree
    exact: bool


def check_fit(tree: Tree, version: str, log: ConversionLog) -> Checked:
    """Check a tree before its first step, or after one.

    Raises:
        SchemaError: it does not fit its table (M1).
    """
    exact = fits(tree, version)
    if not exact:
        check_tree(tree, version, log.where)
    return Checked(tree, exact)


def apply_step(checked: Checked, step: Step, upwards: bool, log: ConversionLog) -> Checked:
    """Apply one step, and check the resulting tree; after a downgrade only where the two tables differ.

    Args:
        checked: the tree before; it is not changed.
        step: from its version.
        upwards: which way.
        log: as for `convert`.

    Raises:
        SchemaError: the new tree does not fit its table (M1).
        ExpressionError, PayloadError, UnsupportedError, JsonError, LimitError: what the step cannot read.
    """
    version = step.newer if upwards else step.older
    tree = step.apply(checked.tree, log, upwards=upwards)
    if not upwards and version != DRAFT:
        return Checked(block_misfits(tree, version, step.newer, log, exact=checked.exact), True)
    # A minor only adds, so what fitted the one before fits; the last is looked at for them all.
    is_between = upwards and version in MINORS[1:-1] and checked.exact
    return Checked(tree, True) if is_between else check_fit(tree, version, log)
