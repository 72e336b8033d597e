"""The domain of sizes: facts of tensors and numbers computed from the inputs of a program by result rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pt2kit import schema
from pt2kit.dataflow.domain import Call, Domain, Value
from pt2kit.graph.traversal import graphs
from pt2kit.operators.facts import UNKNOWN, Mismatch, Tensor, Unknown
from pt2kit.operators.metas import Symbols
from pt2kit.operators.table import infer
from pt2kit.symbols.polynomials import Polynomial, same, unknown


class Sizes(Domain[Any]):
    """Sizes, dtypes, strides and devices of all values, computed from the inputs.

    What the program declares of its inputs is trusted, what it declares of other values is not. A value that nothing is
    known of is `UNKNOWN`, a size that is not known an unknown number.

    Args:
        program: whose symbols have ranges and examples.
    """

    def __init__(self, program: schema.ExportedProgram) -> None:
        self._symbols = Symbols(program.range_constraints, (scope.graph for scope in graphs(program)))

    def input(self, value: Value) -> Any:
        """Return what the program declares of an input; nothing of values inside."""
        if not value.is_root or value.position < 0:
            return UNKNOWN
        return self._symbols.value(value.scope.graph, value.name)

    def call(self, call: Call) -> Sequence[Any]:
        """Return what the operator's rule computes; nothing if it has none or is not certain."""
        try:
            results = infer(call.target, call.arguments)
        except (Unknown, Mismatch):
            return [UNKNOWN] * len(call.node.outputs)
        # A rule returns None for a result that it does not describe; None as an argument means that it is not given.
        return [UNKNOWN if one is None else one for one in (results if isinstance(results, tuple) else (results,))]

    def join(self, one: Any, other: Any) -> Any:
        """Return what both facts agree on."""
        if one == other:
            return one
        if isinstance(one, Tensor) and isinstance(other, Tensor) and one.rank == other.rank:
            return _joined(one, other)
        if isinstance(one, (int, Polynomial)) and isinstance(other, (int, Polynomial)):
            return unknown(-math.inf)
        return UNKNOWN

    def slice(self, fact: Any, dim: int) -> Any:
        """Return a tensor without one dimension."""
        if not isinstance(fact, Tensor) or not fact.sizes:
            return UNKNOWN
        strides = None if fact.strides is None else (*fact.strides[:dim], *fact.strides[dim + 1 :])
        return Tensor((*fact.sizes[:dim], *fact.sizes[dim + 1 :]), fact.dtype, strides, fact.device, None, fact.layout)

    def stack(self, fact: Any, operands: Sequence[Any]) -> Any:
        """Return a tensor with a leading dimension as long as that of the operands."""
        lengths = [one.sizes[0] for one in operands if isinstance(one, Tensor) and one.sizes]
        if not isinstance(fact, Tensor):
            return UNKNOWN
        return Tensor((lengths[0] if lengths else unknown(), *fact.sizes), fact.dtype, None, fact.device)


def _joined(one: Tensor, other: Tensor) -> Tensor:
    sizes = tuple([a if same(a, b) else unknown() for a, b in zip(one.sizes, other.sizes, strict=True)])
    return Tensor(
        sizes,
        one.dtype if one.dtype is other.dtype else None,
        one.strides if one.strides == other.strides else None,
        one.device if one.device == other.device else None,
        one.offset if one.offset == other.offset else None,
        one.layout,
    )
