"""Cost of a program from its file: FLOPs, bytes moved, parameters and peak memory, as formulas in its symbols.

- `cost(file)` counts; nothing is run and no weights are read.
- `Cost` holds the counts of every node: `at(s0=8)`, `by_module()`, `by_operator()`, `seconds(...)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.costs.count import cost as cost
    from pt2kit.costs.result import Cost as Cost
    from pt2kit.costs.result import NodeCost as NodeCost

__getattr__, __dir__, __all__ = front_door(__name__)
