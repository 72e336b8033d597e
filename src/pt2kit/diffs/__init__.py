"""Comparison of two packages by meaning: added, removed and changed nodes, tensors and metadata as data; prints
nothing.

- `diff`: all differences.
- `Diff`, `Change`, `Detail`: the results.

    compute.py       packages, models, records
    input_roles.py   corresponding inputs and outputs of two programs
    graphs.py        nodes and subgraphs, and the properties that differ
    fingerprints.py  fingerprints of nodes, and corresponding symbols
    correspond.py    corresponding nodes of two graphs
    tensors.py       weights and constants
    changes.py       `Diff`, `Change`, `Detail`
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

__getattr__, __dir__, __all__ = front_door(__name__)
