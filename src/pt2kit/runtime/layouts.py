"""Orders of dimensions in memory: those of the program for values whose memory a call looks at.

NumPy's functions may leave dimensions in another order in memory than torch's, which the elements do not show. A call
of `as_strided` or `stride` does: what it looks at gets the order that its declared strides have.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import UNSET

from pt2kit import schema
from pt2kit.dataflow.domain import effects_of
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.values import operator_name
from pt2kit.runtime.arrays import Array

_LOOKING: Final = frozenset(
    ("as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter", "stride", "sym_stride")
)
"""Operators of ATen whose results depend on the strides of their first operand."""


def memory_orders(graph: schema.Graph, release: str) -> dict[str, tuple[int, ...]]:
    """Return the order of dimensions in memory, outermost first, of the results whose memory a call looks at.

    Args:
        graph: the graph.
        release: of torch, whose operators it calls.
    """
    looked_at = [
        name
        for node in graph.nodes
        if operator_name(node.target).partition(".")[2].partition(".")[0] in _LOOKING
        for named in node.inputs[:1]
        for name in arguments(named.arg)
    ]
    if not looked_at:
        return {}
    made_by = {name: node for node in graph.nodes for output in node.outputs for name in arguments(output)}
    owners = {_owner(name, made_by, release) for name in looked_at}
    orders = {name: _order(graph.tensor_values[name]) for name in owners & made_by.keys() & graph.tensor_values.keys()}
    return {name: order for name, order in orders.items() if order is not None}


def in_order(array: Array, order: tuple[int, ...]) -> Array:
    """Return an array whose dimensions are in an order in memory, and that is all of its memory: itself or a copy."""
    turned = np.transpose(array, order)
    if turned.flags.c_contiguous and getattr(array, "base", None) is None:
        return array
    return np.transpose(turned.copy(order="C"), [order.index(axis) for axis in range(len(order))])


def _owner(name: str, made_by: dict[str, schema.Node], release: str) -> str:
    """Return the value whose memory a value is a view of, as far as the graph tells."""
    for _ in made_by:
        if (node := made_by.get(name)) is None:
            break
        parameters = {parameter for _, parameter in effects_of(node.target, release).aliases}
        operands = [one for named in node.inputs if named.name in parameters for one in arguments(named.arg)]
        if len(operands) != 1:
            break
        name = operands[0]
    return name


def _order(meta: schema.TensorMeta) -> tuple[int, ...] | None:
    """Return the order that the strides of the example declare; None if the file does not have them."""
    values = [one.as_expr.hint if one.as_expr is not UNSET else one for one in meta.strides]
    strides = [one.as_int for one in values if one is not None and one.as_int is not UNSET]
    if len(strides) != len(meta.sizes):
        return None
    return tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))
