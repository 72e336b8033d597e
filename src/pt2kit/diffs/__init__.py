"""Two packages -> what differs, as data; nothing is printed here.

- `diff`: all differences.
- `Diff`, `Change`, `Detail`: what it finds.

    compute.py   packages, models, records
    program.py   inputs, outputs, module calls, constraints;  roles.py: which of them correspond
    graphs.py    nodes, subgraphs;  details.py: what differs in two of them;  expressions.py: names of symbols
    sides.py     what nodes are matched by;  correspond.py: which of them correspond, with matching.py, neighbours.py,
                 leftover.py, sequences.py
    tensors.py   weights and constants
"""

from pt2kit.diffs.changes import Change, Detail, Diff, GraphPair, ModelPair
from pt2kit.diffs.compute import diff
from pt2kit.diffs.tensors import ValueDifference

__all__ = ["Change", "Detail", "Diff", "GraphPair", "ModelPair", "ValueDifference", "diff"]
