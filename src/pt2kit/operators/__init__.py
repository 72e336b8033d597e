"""The operator table: shapes, dtypes, aliasing, FLOPs and safety requirements of every operator of torch; no torch.

find("aten.permute.default")       the row of an overload: result rule, FLOPs, arguments worth showing
infer("aten.mm.default", {...})    facts of the results of a call from facts of its arguments
describe("aten.mm.default")        everything that is known of an overload, as plain data
register("mylib::op", rule)        a row for an operator of another library
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.operators.facts import UNKNOWN as UNKNOWN
    from pt2kit.operators.facts import Mismatch as Mismatch
    from pt2kit.operators.facts import Symbolic as Symbolic
    from pt2kit.operators.facts import Tensor as Tensor
    from pt2kit.operators.facts import Unknown as Unknown
    from pt2kit.operators.facts import new as new
    from pt2kit.operators.facts import row_major as row_major
    from pt2kit.operators.symbolic import OperatorSpec as OperatorSpec
    from pt2kit.operators.table import describe as describe
    from pt2kit.operators.table import find as find
    from pt2kit.operators.table import infer as infer
    from pt2kit.operators.table import overloads as overloads
    from pt2kit.operators.table import register as register
    from pt2kit.operators.table import unregister as unregister

__getattr__, __dir__, __all__ = front_door(__name__)
