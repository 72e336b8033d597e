"""Two packages -> what differs, as data; nothing is printed here.

- `diff`: all differences. `pt2kit.diff(…)` calls it, too: the room can be called by the name of what it does.
- `Diff`, `Change`, `Detail`: what it finds.

    compute.py   packages, models, records
    program.py   inputs, outputs, module calls, constraints;  roles.py: which of them correspond
    graphs.py    nodes, subgraphs;  sides.py, matching.py: which nodes correspond;  details.py: what differs in them
    tensors.py   weights and constants
"""

import sys
from types import ModuleType
from typing import Any

from pt2kit.diff.changes import Change, Detail, Diff, GraphPair, ModelPair
from pt2kit.diff.compute import diff
from pt2kit.diff.tensors import ValueDifference

__all__ = ["Change", "Detail", "Diff", "GraphPair", "ModelPair", "ValueDifference", "diff"]


class _Callable(ModuleType):
    """Importing a room makes it an attribute of the package, where the function of the same name would be."""

    def __call__(self, *args: Any, **kwargs: Any) -> Diff:
        return diff(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
