"""Refuses programs that describe values which cannot be: sizes, types, devices and symbols that torch does not have.

`pt2kit.load` finds these when it makes fake tensors of the descriptions. A program that only runs needs none of them,
and is refused all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.read.devices import Devices
from pt2kit.bridge.read.extents import MAX_NUMBER, check_extent
from pt2kit.bridge.scalars import DTYPES
from pt2kit.errors import GraphError, UnsupportedError
from pt2kit.graph.traversal import Scope
from pt2kit.symbols.dialects import parse_number, parse_size, parse_truth
from pt2kit.symbols.evaluation import check_constants
from pt2kit.symbols.expr import Expr, Integer

_SPARSE: Final = frozenset((schema.Layout.SparseCoo, schema.Layout.SparseCsr, schema.Layout.SparseCsc))
_PARSERS: Final[Mapping[str, Callable[..., Expr]]] = MappingProxyType(
    {"int": parse_size, "float": parse_number, "bool": parse_truth}
)


def check_described(scopes: Iterable[Scope], ranges: Mapping[str, schema.RangeConstraint], devices: Devices) -> None:
    """Refuse descriptions of values that cannot be.

    Args:
        scopes: the program's graphs.
        ranges: symbol -> range.
        devices: where its tensors go.

    Raises:
        GraphError: numbers that no tensor has, ranges without values, hints out of their range.
        ExpressionError: an expression that cannot be read, or has no value.
        UnsupportedError: an element type, layout or device that torch does not have.
        LimitError: more bytes than any device has.
    """
    for name, bounds in ranges.items():
        if bounds.min_val is not None and bounds.max_val is not None and bounds.min_val > bounds.max_val:
            raise GraphError(
                f"$.range_constraints.{name}: expected a range with values, got {bounds.min_val} to {bounds.max_val}"
            )
    checker = _Checker(ranges, devices)
    for scope in scopes:
        graph, where = scope.graph, scope.where
        for name, meta in graph.tensor_values.items():
            checker.tensor(meta, f"{where}.tensor_values.{name}")
        for name, integer in graph.sym_int_values.items():
            checker.number("int", integer.as_expr, f"{where}.sym_int_values.{name}")
        for name, number in graph.sym_float_values.items():
            checker.number("float", number.as_expr, f"{where}.sym_float_values.{name}")
        for name, truth in graph.sym_bool_values.items():
            checker.number("bool", truth.as_expr, f"{where}.sym_bool_values.{name}")


class _Checker:
    """Looks at each description and each expression once."""

    def __init__(self, ranges: Mapping[str, schema.RangeConstraint], devices: Devices) -> None:
        self._ranges = ranges
        self._devices = devices
        self._known: set[Any] = set()

    def tensor(self, meta: schema.TensorMeta, where: str) -> None:
        """One tensor; values of a large program share their descriptions."""
        if id(meta) in self._known:
            return
        self._known.add(id(meta))
        if meta.dtype not in DTYPES:
            raise UnsupportedError(f"{where}: dtype: expected an element type of torch, got {meta.dtype.name}")
        if meta.layout is not schema.Layout.Strided and meta.layout not in _SPARSE:
            raise UnsupportedError(f"{where}: layout: expected one that has a fake form, got {meta.layout.name}")
        if meta.layout is schema.Layout.Strided:
            self._strided(meta, where)
        for size in meta.sizes:
            self._size(size, f"{where}: sizes")
        self._devices.find(meta.device, where)

    def number(self, kind: str, expr: Any, where: str) -> None:
        """One expression with its hint, where there is one."""
        if expr is UNSET:
            return
        hint = None if expr.hint is None else expr.hint.value
        key = (kind, expr.expr_str, hint)
        if key in self._known:
            return
        self._known.add(key)
        built = check_constants(_PARSERS[kind](expr.expr_str, where=where), where=where)
        if hint is not None and kind != "bool":
            self._hint(kind, built, expr.expr_str, hint, where)

    def _strided(self, meta: schema.TensorMeta, where: str) -> None:
        if len(meta.sizes) != len(meta.strides):
            raise GraphError(
                f"{where}: expected one stride per size, got {len(meta.sizes)} sizes and {len(meta.strides)} strides"
            )
        dtype = DTYPES[meta.dtype]
        if meta.requires_grad and not (dtype.is_floating_point or dtype.is_complex):
            raise GraphError(f"{where}: requires_grad: expected false for {dtype}, got true")
        for stride in meta.strides:
            self._size(stride, f"{where}: strides")
        self._size(meta.storage_offset, f"{where}: storage_offset")
        check_extent(meta, where)

    def _size(self, size: schema.SymInt, where: str) -> None:
        number = size.as_int
        if number is UNSET:
            self.number("int", size.as_expr, where)
        elif not 0 <= number <= MAX_NUMBER:
            raise GraphError(f"{where}: expected 0 to 2**63 - 1, got {number}")

    def _hint(self, kind: str, built: Expr, text: str, hint: Any, where: str) -> None:
        fits = type(hint) is int if kind == "int" else type(hint) in (int, float)
        if not fits:
            raise GraphError(f"{where}: expected a hint that is {kind}, got {hint!r}")
        if isinstance(built, Integer) and built.value != hint:
            raise GraphError(f"{where}: expected the hint {built.value} of a constant, got {hint}")
        bounds = self._ranges.get(text)
        if bounds is None:
            return
        if (bounds.min_val is not None and hint < bounds.min_val) or (
            bounds.max_val is not None and hint > bounds.max_val
        ):
            shown = f"{bounds.min_val} to {bounds.max_val}"
            raise GraphError(f"{where}: expected a hint of {text} in its range {shown}, got {hint}")
