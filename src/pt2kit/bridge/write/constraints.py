"""The ranges of symbols -> RangeConstraint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import sympy

from pt2kit.bridge.torch_names import int_oo
from pt2kit.schema import RangeConstraint

_INFINITIES = (sympy.oo, -sympy.oo, int_oo, -int_oo)


def write_range_constraints(ranges: Mapping[Any, Any]) -> dict[str, RangeConstraint]:
    """The ranges by symbol name, in their order.

    Args:
        ranges: sympy symbol -> torch's ValueRanges, inclusive.

    Source: `serialize_range_constraints` in torch/_export/serde/serialize.py, 2.13.
    """
    return {
        str(symbol): RangeConstraint(_bound(span.lower, math.ceil), _bound(span.upper, math.floor))
        for symbol, span in ranges.items()
    }


def _bound(value: Any, whole: Any) -> int | None:
    """One end of a range: a whole number, or None where it is open. A fraction is rounded to the inside."""
    if isinstance(value, (int, sympy.Integer)):
        return int(value)
    return None if value in _INFINITIES else int(whole(value))
