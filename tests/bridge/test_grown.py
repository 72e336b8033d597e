"""The chains that benchmarks measure are those that export gives, although they are made without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import grown, models

import pt2kit


@pytest.mark.parametrize("nodes", [8, 40, 41, 43])
def test_a_grown_chain_is_the_exported_one(nodes: int, tmp_path: Path) -> None:
    """The same program and weights, whatever operator it ends with; and it runs."""
    small, exported, longer = (tmp_path / f"{name}.pt2" for name in ("small", "exported", "longer"))
    models.build("chain", 8, small)
    models.build("chain", nodes, exported)
    assert grown.build(small, nodes, longer)["nodes"] == nodes
    with pt2kit.open(longer) as ours, pt2kit.open(exported) as theirs:
        assert ours.programs["model"] == theirs.programs["model"]
        assert pt2kit.digest(ours) == pt2kit.digest(theirs)
    [x], _ = pt2kit.load(longer).example_inputs
    assert pt2kit.load_module(longer)(x).equal(pt2kit.load_module(exported)(x))
