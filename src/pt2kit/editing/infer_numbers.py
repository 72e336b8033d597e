"""Arithmetic on sizes: functions over symbolic numbers, and the operators that ask a tensor for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit import schema, symbols
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.calling import Call, Rule, Unknown, axis, size_like
from pt2kit.schema import SymInt


def _pair(compute: Callable[[SymInt, SymInt], SymInt]) -> Rule:
    return lambda call: compute(size_like(call.get("a")), size_like(call.get("b")))


def _function(name: str, plain: Callable[[int, int], int]) -> Callable[[SymInt, SymInt], SymInt]:
    """A function of two sizes, as a number where both are known."""

    def compute(a: SymInt, b: SymInt) -> SymInt:
        x, y = arithmetic.known(a), arithmetic.known(b)
        if x is not None and y is not None:
            return arithmetic.number(plain(x, y))
        if name == "Mod" and y == 0:
            raise Unknown("a division by 0")
        m, n = arithmetic.hint(a), arithmetic.hint(b)
        value = None if m is None or n is None or (name == "Mod" and not n) else plain(m, n)
        return arithmetic.computed(name, (a, b), value)

    return compute


def _compared(name: str, plain: Callable[[int, int], bool]) -> Rule:
    def rule(call: Call) -> schema.SymBool:
        a, b = size_like(call.get("a")), size_like(call.get("b"))
        x, y = arithmetic.known(a), arithmetic.known(b)
        if x is not None and y is not None:
            return schema.SymBool(as_bool=plain(x, y))
        m, n = arithmetic.hint(a), arithmetic.hint(b)
        hint = None if m is None or n is None else schema.SymExprHint(as_bool=plain(m, n))
        expr = symbols.Call(name, (arithmetic.expression(a), arithmetic.expression(b)))
        return schema.SymBool(as_expr=schema.SymExpr(symbols.to_srepr(expr), hint))

    return rule


def _size(call: Call) -> SymInt:
    meta = call.tensor("self")
    return meta.sizes[axis(call.number("dim"), len(meta.sizes))]


def _numel(call: Call) -> SymInt:
    return arithmetic.product(call.tensor("self").sizes)


def _stride(call: Call) -> SymInt:
    meta = call.tensor("self")
    return meta.strides[axis(call.number("dim"), len(meta.sizes))]


def _nothing(call: Call) -> Any:
    """An operator without results."""
    del call
    return ()


def _quotient(a: SymInt, b: SymInt) -> SymInt:
    if b.as_int == 0:
        raise Unknown("a division by 0")
    return arithmetic.quotient(a, b)


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "aten.sym_size.int": _size,
        "aten.sym_stride.int": _stride,
        "aten.sym_numel.default": _numel,
        "_operator.add": _pair(lambda a, b: arithmetic.total((a, b))),
        "_operator.sub": _pair(lambda a, b: arithmetic.total((a, arithmetic.negative(b)))),
        "_operator.mul": _pair(lambda a, b: arithmetic.product((a, b))),
        "_operator.floordiv": _pair(_quotient),
        "_operator.mod": _pair(_function("Mod", lambda a, b: a % b)),
        "torch.sym_max": _pair(_function("Max", max)),
        "torch.sym_min": _pair(_function("Min", min)),
        "_operator.eq": _compared("Equality", lambda a, b: a == b),
        "_operator.ne": _compared("Unequality", lambda a, b: a != b),
        "_operator.lt": _compared("StrictLessThan", lambda a, b: a < b),
        "_operator.le": _compared("LessThan", lambda a, b: a <= b),
        "_operator.gt": _compared("StrictGreaterThan", lambda a, b: a > b),
        "_operator.ge": _compared("GreaterThan", lambda a, b: a >= b),
        "aten._assert_scalar.default": _nothing,
        "aten._assert_async.msg": _nothing,
        "aten.sym_constrain_range_for_size.default": _nothing,
        "aten._assert_tensor_metadata.default": _nothing,
    }
)
