"""Files of different layouts are compared by what is in them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests import samples

import pt2kit

SAME_GRAPH = ("2.7.1", "2.8.0", "2.9.1", "2.12.0")


@pytest.mark.parametrize(("old", "new"), list(pairwise(SAME_GRAPH)))
def test_layouts_make_no_difference(old: str, new: str) -> None:
    """The plain zip, the archive of 2.8 and that of today: the same model differs in its metadata alone."""
    with pt2kit.open(samples.sample(old, "extra_files")) as one, pt2kit.open(samples.sample(new, "extra_files")) as two:
        found = pt2kit.diff(one, two)
    assert not [change for change in found.changes if change.kind in ("added", "removed")]
    assert all(
        change.area not in ("weight", "constant") and (change.area != "node" or change.is_described_only)
        for change in found.changes
    )
