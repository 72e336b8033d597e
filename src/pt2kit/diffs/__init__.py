"""Comparison of two packages by meaning: added, removed and changed nodes, tensors and metadata as data; prints
nothing.

- `diff`: all differences.
- `Diff`, `Change`, `Detail`: what it finds.

    compute.py   packages, models, records
    program.py   inputs, outputs, module calls, constraints;  input_roles.py: which of them correspond
    graphs.py    nodes, subgraphs;  details.py: what differs in two of them;  expressions.py: names of symbols
    fingerprints.py   what nodes are matched by;  correspond.py: which of them correspond, with matching.py,
                 neighbours.py, unmatched.py, sequences.py
    tensors.py   weights and constants
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.diffs.changes import Change as Change
    from pt2kit.diffs.changes import Detail as Detail
    from pt2kit.diffs.changes import Diff as Diff
    from pt2kit.diffs.changes import GraphPair as GraphPair
    from pt2kit.diffs.changes import ModelPair as ModelPair
    from pt2kit.diffs.compute import diff as diff
    from pt2kit.diffs.tensors import ValueDifference as ValueDifference

__getattr__, __dir__, __all__ = front_door(
    __name__,
    {
        "changes": "Change Detail Diff GraphPair ModelPair",
        "compute": "diff",
        "tensors": "ValueDifference",
    },
)
