"""Symbols and fake tensors: the ShapeEnv after reading, what is shared and what is not, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensor

from pt2kit.bridge.read.tensors import Devices
from pt2kit.bridge.read.values import Shapes, Values
from pt2kit.bridge.torch_export_names import hints
from pt2kit.errors import ExpressionError, GraphError, Pt2Error, UnsupportedError
from pt2kit.schema import (
    Device,
    Layout,
    RangeConstraint,
    ScalarType,
    SymBool,
    SymExpr,
    SymExprHint,
    SymFloat,
    SymInt,
    TensorMeta,
)

S0 = "Symbol('s0', positive=True, integer=True)"
U0 = "Symbol('u0', integer=True)"
F0 = "Symbol('zf0', real=True)"


def number(value: int | str, hint: int | None = None) -> SymInt:
    """A size: a number, or an expression with a hint."""
    if isinstance(value, int):
        return SymInt(as_int=value)
    return SymInt(as_expr=SymExpr(value, None if hint is None else SymExprHint(as_int=hint)))


def meta(sizes: list[Any], strides: list[Any], offset: int = 0, **fields: Any) -> TensorMeta:
    """A TensorMeta; each size or stride is an int, or a pair of text and hint."""
    row = {
        "dtype": ScalarType.FLOAT,
        "requires_grad": False,
        "device": Device("cpu"),
        "layout": Layout.Strided,
        **fields,
    }
    ends = [[number(*n) if isinstance(n, tuple) else number(n) for n in numbers] for numbers in (sizes, strides)]
    return TensorMeta(sizes=ends[0], strides=ends[1], storage_offset=number(offset), **row)


def values(**ranges: tuple[int | None, int | None]) -> tuple[Shapes, Values]:
    """Readers for a program with these ranges."""
    shapes = Shapes({name: RangeConstraint(*ends) for name, ends in ranges.items()})
    return shapes, Values(shapes, Devices(None))


DYNAMIC = meta([(S0, 6), 4], [4, 1])


def test_fake_tensor() -> None:
    """A value is a fake tensor as torch makes it through the dispatcher, with storage and attributes of its own."""
    shapes, made = values(s0=(2, 64))
    first, second = made.tensor(DYNAMIC, "a"), made.tensor(DYNAMIC, "b")
    with shapes.mode:
        want = torch.empty_strided(first.shape, (4, 1))
    for fake in (first, second):
        assert type(fake) is FakeTensor
        assert (fake.shape, fake.stride(), fake.dtype, fake.device) == (
            want.shape,
            want.stride(),
            want.dtype,
            want.device,
        )
        assert torch._C._dispatch_keys(fake) == torch._C._dispatch_keys(want)
        assert str(fake.untyped_storage().nbytes()) == str(want.untyped_storage().nbytes())
        assert vars(fake).keys() == vars(want).keys()
        assert fake._version == 0
        assert not fake._is_view()
    assert first is not second
    assert first.untyped_storage()._cdata != second.untyped_storage()._cdata
    assert first.shape[0].node is second.shape[0].node
    with shapes.mode:
        assert torch.relu(first + second).shape == first.shape


@pytest.mark.filterwarnings("ignore:Accessing the data pointer")
def test_addresses() -> None:
    """A value can be copied, and has the address that one of torch has; none where torch is configured so."""
    description = meta([2, 3], [3, 1], requires_grad=True)
    fake = values()[1].tensor(description, "a")
    assert fake.data_ptr() == 0
    copied = copy.deepcopy(fake)
    assert type(copied) is FakeTensor
    assert copied.requires_grad
    with torch._functorch.config.patch(fake_tensor_allow_unsafe_data_ptr_access=False):
        strict = values()[1].tensor(description, "a")
    with pytest.raises(RuntimeError, match="Cannot access data pointer"):
        strict.data_ptr()


def test_changes_stay_with_one_value() -> None:
    """A pass that changes one description leaves the others alone."""
    shapes, made = values()
    first, second = (made.tensor(meta([2, 3], [3, 1]), "a") for _ in range(2))
    with shapes.mode:
        first.resize_(4, 5)
        first.requires_grad_()
    first.constant = torch.ones(1)
    assert second.shape == (2, 3)
    assert not second.requires_grad
    assert second.constant is None
    assert made.tensor(meta([2, 3], [3, 1]), "a").shape == (2, 3)


def test_offset_and_gradient() -> None:
    """Offset, gradient and dtype are those of the file."""
    _, made = values(s0=(2, 64))
    fake = made.tensor(meta([(S0, 6), 4], [4, 1], 3, requires_grad=True, dtype=ScalarType.BFLOAT16), "a")
    assert fake.storage_offset() == 3
    assert fake.requires_grad
    assert fake.dtype == torch.bfloat16
    assert str(fake.untyped_storage().nbytes()) == "8*s0 + 6"
    assert made.tensor(meta([2], [1], 5), "a").untyped_storage().nbytes() == 28
    assert made.tensor(meta([], []), "a").shape == ()
    assert made.tensor(meta([0, 3], [3, 1]), "a").untyped_storage().nbytes() == 0


def test_sparse() -> None:
    """A sparse value has its layout, and no elements."""
    _, made = values()
    fake = made.tensor(meta([4, 5], [5, 1], layout=Layout.SparseCoo), "a")
    assert type(fake) is FakeTensor
    assert fake.layout is torch.sparse_coo
    assert fake.shape == (4, 5)


def test_symbols() -> None:
    """The ShapeEnv knows ranges, hints and counters; each expression is one object."""
    shapes, _ = values(s0=(2, 64), u0=(0, None), u7=(None, None), s9=(1, 1))
    a = shapes.number(number(S0, 6), "x")
    product = shapes.number(number(f"Mul(Integer(2), {S0})", 12), "x")
    assert shapes.number(number(S0, 6), "y") is a
    symbol = a.node.expr
    assert product.node.expr == 2 * symbol
    assert (a.node.hint, product.node.hint) == (6, 12)
    assert hints(shapes.env) == {symbol: 6, 2 * symbol: 12}
    assert [str(shapes.env.var_to_range[symbol])] == ["VR[2, 64]"]
    u0 = shapes.number(number(U0), "x")
    assert shapes.pending == {u0.node.expr}
    assert repr(shapes.env.unbacked_symint_counter) in ("8", "count(8)")  # an iterator up to 2.10
    assert [str(key) for key in shapes.constraints()] == ["s0", "u0", "u7", "s9"]
    assert shapes.number(number("Integer(3)"), "x") == 3
    assert type(shapes.number(number("Add(Integer(1), Integer(2))"), "x")) is int


def test_other_kinds() -> None:
    """Floats keep fractional hints; truth values become SymBool; constants become plain."""
    shapes, _ = values()
    real = shapes.number(SymFloat(as_expr=SymExpr(F0, SymExprHint(as_float=2.5))), "x")
    assert isinstance(real, torch.SymFloat)
    assert hints(shapes.env)[real.node.expr] == sympy.Float(2.5)
    truth = shapes.number(SymBool(as_expr=SymExpr(f"Equality({U0}, Integer(1))")), "x")
    assert isinstance(truth, torch.SymBool)
    assert shapes.number(SymBool(as_expr=SymExpr("true")), "x") is True
    assert shapes.number(SymFloat(as_float=float("inf")), "x") == float("inf")
    assert type(shapes.number(SymFloat(as_float=1e-30), "x")) is float


def test_derived_ranges() -> None:
    """A range of an expression is kept for the expression."""
    shapes = Shapes({"2*s0": RangeConstraint(4, 100), "s0": RangeConstraint(2, 50)})
    shapes.number(number(f"Mul(Integer(2), {S0})", 12), "x")
    assert [str(key) for key in shapes.constraints()] == ["2*s0", "s0"]


REFUSED: list[tuple[TensorMeta, type[Pt2Error], str]] = [
    (meta([2], [1, 1]), GraphError, "expected as many sizes as strides, got 1 and 2"),
    (meta([-1], [1]), GraphError, "expected sizes, strides and storage_offset of at least 0, got -1"),
    (meta([1 << 63], [1]), GraphError, r"expected sizes, strides and storage_offset below 2\*\*63, got a larger one"),
    (meta([2], [1], -3), GraphError, "expected sizes, strides and storage_offset of at least 0, got -3"),
    (meta([1 << 62, 1 << 62], [1, 1]), GraphError, r"expected fewer than 2\*\*63 elements, got more"),
    (meta([("Symbol('s0', positive=True, integer=True", 1)], [1]), ExpressionError, "sizes: expected a value"),
    (
        meta([(f"Mul(Float('0.5', precision=53), {S0})", 3)], [1]),
        ExpressionError,
        "yields an int, got one that yields a float",
    ),
    (meta([(S0, 99)], [1]), GraphError, r"expected a hint of s0 in its range VR\[2, 64\], got 99"),
    (meta([2], [1], dtype=ScalarType.UNKNOWN), GraphError, "expected an element type that torch has, got 0"),
    (
        meta([2], [1], dtype=ScalarType.INT, requires_grad=True),
        GraphError,
        "expected a tensor of floats where a gradient is required, got one of INT",
    ),
    (meta([2], [1], device=Device("evil")), UnsupportedError, "expected a device that torch knows, got 'evil'"),
    (meta([2], [1], layout=Layout._mkldnn), GraphError, "expected a layout that torch can describe, got 6"),
    (meta([2], [1], layout=Layout.SparseBsc), GraphError, "expected 2 dimensions or more .* SparseBsc, got 1"),
]


@pytest.mark.parametrize(("given", "error", "text"), REFUSED)
def test_refused(given: TensorMeta, error: type[Pt2Error], text: str) -> None:
    """Numbers and kinds that no tensor has are refused at their place."""
    _, made = values(s0=(2, 64))
    with pytest.raises(error, match=f"^here: .*{text}"):
        made.tensor(given, "here")


def test_empty_range() -> None:
    """A range without values is refused."""
    with pytest.raises(GraphError, match=r"^\$\.range_constraints\.s0: expected a range with values, got 10 to 2"):
        Shapes({"s0": RangeConstraint(10, 2)})


def test_wrong_hints() -> None:
    """A hint of another kind, or of another value than a constant, is refused."""
    shapes, _ = values()
    with pytest.raises(GraphError, match=r"expected a hint that is int, got 2\.5"):
        shapes.number(SymInt(as_expr=SymExpr(S0, SymExprHint(as_float=2.5))), "x")
    with pytest.raises(GraphError, match="expected the hint 3 of a constant, got 4"):
        shapes.number(number("Integer(3)", 4), "x")
    with pytest.raises(GraphError, match="expected symbols with ranges or hints, got s0"):
        shapes.number(number(S0), "x")
    with pytest.raises(ExpressionError, match="expected one meaning of the symbol s0"):
        shapes.number(number("Symbol('s0', integer=True)"), "x")
