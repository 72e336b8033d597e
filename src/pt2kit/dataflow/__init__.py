"""Forward dataflow analysis of programs with domains that users can write.

run(program, domain)     facts of every value, subgraphs included
Domain                   input, call, write, join: what is known of a value
Sizes                    sizes, dtypes, strides and devices by the result rules of operators
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.dataflow.domain import Call as Call
    from pt2kit.dataflow.domain import Domain as Domain
    from pt2kit.dataflow.domain import Sizes as Sizes
    from pt2kit.dataflow.domain import Value as Value
    from pt2kit.dataflow.engine import run as run

__getattr__, __dir__, __all__ = front_door(__name__)
