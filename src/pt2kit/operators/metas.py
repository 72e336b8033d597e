"""Value tables of a program and the facts of operators: `schema.TensorMeta` and `SymInt` to `Tensor` and `Size`.

`Symbols` reads the expressions of one program; each distinct text is parsed once. The range of a symbol comes from the
program's `range_constraints`, its value in the example from the hints in the value tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET

from pt2kit import schema
from pt2kit.errors import Pt2Error, attempt
from pt2kit.operators.facts import UNKNOWN, Symbolic, Tensor
from pt2kit.symbols.dialects import parse
from pt2kit.symbols.expr import Symbol
from pt2kit.symbols.polynomials import End, Size, from_expression, hint, symbol, to_expression, unknown
from pt2kit.symbols.srepr import to_srepr

_INFINITE = 1 << 62
"""Ends of ranges beyond this one stand for no end."""


class Symbols:
    """The symbols of one program: facts of what its value tables declare.

    Args:
        ranges: the program's `range_constraints`.
        graphs: the graphs whose tables have the values of the example; none if hints shall not count.
        assumed_least: the least value of symbols without a range.
        knows_strides: whether declared strides count; those in a region of vmap are among dimensions that it hides.
    """

    def __init__(
        self,
        ranges: Mapping[str, schema.RangeConstraint] | None = None,
        graphs: Iterable[schema.Graph] = (),
        *,
        assumed_least: End = -math.inf,
        knows_strides: bool = True,
    ) -> None:
        self._ranges = ranges or {}
        self._knows_strides = knows_strides
        self._assumed_least = assumed_least
        self._sizes: dict[str, Size] = {}
        self._symbols: dict[Symbol, Size] = {}
        self._hints: dict[str, int] = {}
        self._tensors: dict[int, tuple[schema.TensorMeta, Tensor]] = {}
        seen: set[str] = set()
        for graph in graphs:
            self._learn(graph, seen)

    def size(self, value: schema.SymInt) -> Size:
        """Return a size or number of a value table."""
        if value.as_int is not UNSET:
            return value.as_int
        if value.as_expr is UNSET:
            return unknown(-math.inf)
        text = value.as_expr.expr_str
        size = self._sizes.get(text)
        if size is None:
            try:
                size = from_expression(parse(text), self._symbol)
            except Pt2Error:
                size = unknown(-math.inf)  # Not an expression: rule E1 of `check` reports it.
            self._sizes[text] = size
        return size

    def tensor(self, meta: schema.TensorMeta) -> Tensor:
        """Return what a value table declares of a tensor; values of a large program share their descriptions."""
        known = self._tensors.get(id(meta))
        if known is None:
            known = self._tensors[id(meta)] = meta, self._tensor(meta)
        return known[1]

    def _tensor(self, meta: schema.TensorMeta) -> Tensor:
        # Rule G6 of `check` reports another number of strides.
        is_strided = self._knows_strides and len(meta.sizes) == len(meta.strides)
        sizes, strides = tuple(map(self.size, meta.sizes)), tuple(map(self.size, meta.strides)) if is_strided else None
        return Tensor(sizes, meta.dtype, strides, meta.device, self.size(meta.storage_offset), meta.layout)

    def value(self, graph: schema.Graph, name: str) -> Any:
        """Return the fact of a value by its name: a tensor, a size, `Symbolic`, or `UNKNOWN`."""
        for table in (graph.tensor_values, graph.sym_int_values, graph.sym_float_values, graph.sym_bool_values):
            if name in table:
                return self.fact(table[name])
        return UNKNOWN

    def fact(self, meta: object) -> Any:
        """Return the fact of an entry of a value table."""
        if isinstance(meta, schema.TensorMeta):
            return self.tensor(meta)
        if isinstance(meta, schema.SymInt):
            return self.size(meta)
        if isinstance(meta, schema.SymFloat):
            return Symbolic(float)
        return Symbolic(bool) if isinstance(meta, schema.SymBool) else UNKNOWN

    def _symbol(self, node: Symbol) -> Size:
        size = self._symbols.get(node)
        if size is None:
            limits = self._ranges.get(node.name)
            low, high = (self._assumed_least, math.inf) if limits is None else _range(limits)
            size = self._symbols[node] = symbol(node, low, high, self._hints.get(node.name))
        return size

    def _learn(self, graph: schema.Graph, seen: set[str]) -> None:
        """Add the values of a graph's symbols in the example.

        Args:
            graph: the graph.
            seen: the texts of expressions that were looked at.
        """
        metas = {id(meta): meta for meta in graph.tensor_values.values()}
        sizes = [size for meta in metas.values() for size in meta.sizes]
        for value in (*sizes, *graph.sym_int_values.values()):
            if value.as_expr is UNSET or value.as_expr.hint is None or value.as_expr.expr_str in seen:
                continue
            seen.add(value.as_expr.expr_str)
            number, expr = value.as_expr.hint.as_int, attempt(parse, value.as_expr.expr_str)
            if isinstance(number, int) and isinstance(expr, Symbol):
                self._hints.setdefault(expr.name, number)


def to_size(size: Size) -> schema.SymInt:
    """Return a size as the value tables hold it.

    Raises:
        Undecided: it holds an unknown number.
    """
    if isinstance(size, int):
        return schema.SymInt(as_int=size)
    value = hint(size)
    return schema.SymInt(
        as_expr=schema.SymExpr(
            to_srepr(to_expression(size)), None if value is None else schema.SymExprHint(as_int=value)
        )
    )


def _range(limits: schema.RangeConstraint) -> tuple[End, End]:
    low, high = limits.min_val, limits.max_val
    return (
        -math.inf if low is None or low <= -_INFINITE else low,
        math.inf if high is None or high >= _INFINITE else high,
    )
