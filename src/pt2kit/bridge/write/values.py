"""Write live numbers and tensors without their bytes as SymInt, SymFloat, SymBool and TensorMeta."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy
import torch
from sympy.logic.boolalg import BooleanAtom
from sympy.printing.repr import srepr

from pt2kit.bridge.operators import from_device, to_schema
from pt2kit.errors import LimitError, UnsupportedError
from pt2kit.schema import SymBool, SymExpr, SymExprHint, SymFloat, SymInt, TensorMeta


class Values:
    """Converts numbers and tensors; equal ones are made once.

    A program of 3,000 nodes holds 25,000 sizes and strides of which a few hundred differ. The objects it returns, and
    the lists inside them, are shared: they must not be changed.
    """

    def __init__(self) -> None:
        self._int = cache(lambda value: SymInt(as_int=value))
        self._symbols: dict[tuple[Any, Any], SymInt] = {}
        self._metas: dict[Any, TensorMeta] = {}

    def described(self, value: Any) -> TensorMeta | SymInt | SymFloat | SymBool | None:
        """Return the description of a tensor or number, known or symbolic; None for another value."""
        if isinstance(value, torch.Tensor):
            return self.tensor_meta(value)
        if isinstance(value, bool | torch.SymBool):
            return self.sym_bool(value)
        if isinstance(value, int | torch.SymInt):
            return self.sym_int(value)
        return self.sym_float(value) if isinstance(value, float | torch.SymFloat) else None

    def sym_int(self, value: int | torch.SymInt) -> SymInt:
        """Return an integer, known or symbolic, with the value it had in the example if there was one."""
        if not isinstance(value, torch.SymInt):
            return self._int(int(value))
        node = value.node
        expr, hint = getattr(node, "expr", None), getattr(node, "hint", None)
        if expr is None or not isinstance(hint, int | None):  # the sizes of nested tensors, which are no expressions
            raise UnsupportedError(f"expected a size that is an expression, got {value}, the size of a nested tensor")
        key = (expr, hint)
        sym_int = self._symbols.get(key)
        if sym_int is None:
            known = None if hint is None else SymExprHint(as_int=int(hint))
            is_constant = isinstance(expr, int | sympy.Integer)
            sym_int = self._int(int(expr)) if is_constant else SymInt(as_expr=SymExpr(expression_text(expr), known))
            self._symbols[key] = sym_int
        return sym_int

    def sym_float(self, value: float | torch.SymFloat) -> SymFloat:
        """Return a float, known or symbolic."""
        if not isinstance(value, torch.SymFloat):
            return SymFloat(as_float=float(value))
        expr, hint = value.node.expr, value.node.hint
        if isinstance(expr, sympy.Float):
            return SymFloat(as_float=float(expr))
        known = None if hint is None else SymExprHint(as_float=float(hint))
        return SymFloat(as_expr=SymExpr(expression_text(expr), known))

    def sym_bool(self, value: bool | torch.SymBool) -> SymBool:
        """Return a truth value, known or symbolic; the format keeps no example value for these."""
        if not isinstance(value, torch.SymBool):
            return SymBool(as_bool=bool(value))
        expr = value.node.expr
        if isinstance(expr, (bool, BooleanAtom)):
            return SymBool(as_bool=bool(expr))
        return SymBool(as_expr=SymExpr(expression_text(expr)))

    def tensor_meta(self, tensor: torch.Tensor) -> TensorMeta:
        """Return the description of a tensor without its bytes.

        Layouts that have no strides get a stride of 0 for each dimension, as torch up to 2.8 wrote them.

        Raises:
            UnsupportedError: a dtype or layout that the schema has no number for.
        """
        shape, layout = tensor.shape, tensor.layout
        if layout is torch.strided:
            strides, offset = tensor.stride(), tensor.storage_offset()
        else:
            strides, offset = (0,) * len(shape), 0
        key: Any = (tensor.dtype, shape, strides, offset, tensor.requires_grad, tensor.device, layout)
        try:
            meta = self._metas.get(key)
        except TypeError:  # symbolic sizes have no hash
            key = meta = None
        if meta is None:
            meta = TensorMeta(
                to_schema(tensor.dtype),
                [self.sym_int(size) for size in shape],
                tensor.requires_grad,
                from_device(tensor.device),
                [self.sym_int(stride) for stride in strides],
                self.sym_int(offset),
                to_schema(layout),
            )
            if key is not None:
                self._metas[key] = meta
        return meta


def expression_text(expr: Any) -> str:
    """Return the text of an expression, in the dialect of torch 2.6 and later."""
    try:
        text: str = srepr(expr)
    except RecursionError:
        raise LimitError("expected an expression that can be printed, got one nested too deeply") from None
    return text
