"""Every way in which files differ is found in some pair of files."""

from __future__ import annotations

from typing import get_args

from tests.diffs.cases import pairs

from pt2kit.diffs import diff
from pt2kit.diffs.changes import Area, Kind

ALONE = {"guard": {"added", "removed"}, "program": {"modified"}, "metadata": {"modified"}}
"""Areas in which some kinds of change make no sense: a guard is there or not, an operator set is always there."""

POSSIBLE = {(area, kind) for area in get_args(Area) for kind in ALONE.get(area, set(get_args(Kind)))}


def test_every_kind_of_change_is_found() -> None:
    """Each area, added, removed and modified as far as it can be, and nothing else."""
    found = {(change.area, change.kind) for pair in pairs().values() for change in diff(*pair).changes}
    assert found == POSSIBLE
