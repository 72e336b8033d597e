"""Result rules of element-wise operators, activations, creation and random draws: results, unknowns and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from pt2kit.operators.facts import Mismatch, Tensor, Unknown, new
from pt2kit.operators.promotion import known_dtype
from pt2kit.operators.table import infer
from pt2kit.schema import Device, Layout, MemoryFormat, ScalarType
from pt2kit.symbols.polynomials import symbol

CPU, CUDA = Device("cpu"), Device("cuda", 0)
S0, S1 = symbol("s0", 2, hint=6), symbol("s1", 2, hint=4)
F32, F16, I64, BOOL, C64 = (
    ScalarType.FLOAT,
    ScalarType.HALF,
    ScalarType.LONG,
    ScalarType.BOOL,
    ScalarType.COMPLEXFLOAT,
)


def of(*sizes: Any, dtype: ScalarType = F32, device: Device = CPU) -> Tensor:
    return new(sizes, dtype, device)


IMAGE = Tensor((2, S0, 8, 8), F32, (S0 * 64, 1, S0 * 8, S0), CPU)
"""In channels_last."""


def call(name: str, *operands: Any, **named: Any) -> Any:
    keys = ("self", "other")
    return infer(f"aten.{name}", {**dict(zip(keys, operands, strict=False)), **named}, is_strict=True)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (call("add.Tensor", of(2, S0), of(S0, dtype=F16)), of(2, S0)),
        (call("mul.Tensor", of(S0, 1), of(1, S1)), of(S0, S1)),
        (call("add.Tensor", of(2, dtype=I64), 0.5), of(2)),
        (call("div.Tensor", of(3, dtype=I64), 2), of(3)),
        (call("div.Tensor_mode", of(3, dtype=I64), 2, rounding_mode="floor"), of(3, dtype=I64)),
        (call("eq.Scalar", IMAGE, 0), Tensor(IMAGE.sizes, BOOL, IMAGE.strides, CPU)),
        (call("add_.Tensor", of(2, S0), of(S0, dtype=I64)), of(2, S0)),
        (call("abs.default", of(2, dtype=C64)), of(2)),
        (call("where.self", of(2, 1, dtype=I64), of(3), condition=of(2, 3, dtype=BOOL)), of(2, 3)),
        (call("relu.default", IMAGE), IMAGE),
        (call("zeros.default", size=(2, S0)), of(2, S0)),
        (call("full.default", size=(), fill_value=True), of(dtype=BOOL)),
        (call("arange.start_step", start=1, end=S0, step=2), of(S0 // 2, dtype=I64)),
        (call("full_like.default", of(3), fill_value=0, device=CUDA), of(3, device=CUDA)),
        (call("new_zeros.default", of(3, dtype=F16), size=(1,)), of(1, dtype=F16)),
        (call("clone.default", IMAGE, memory_format=MemoryFormat.ContiguousFormat), of(2, S0, 8, 8)),
        (call("to.dtype", of(3), dtype=F16), of(3, dtype=F16)),
        (call("multinomial.default", of(4, 9), num_samples=3), of(4, 3, dtype=I64)),
        (call("tril_indices.default", row=3, col=3), of(2, 6, dtype=I64)),
    ],
)
def test_results(result: Any, expected: Any) -> None:
    assert result == expected


def test_devices_of_accelerators_without_a_number_are_unknown() -> None:
    assert call("zeros.default", size=(2,), device=Device("cuda")).device is None


def test_dropout_of_a_slice() -> None:
    """A dropout that keeps everything returns its input, or, traced, a dense copy: a slice leaves its strides open."""
    column = Tensor((2, 3), F32, (12, 1), CPU)
    assert call("dropout.default", input=column, p=0.0, train=True).strides is None
    assert call("dropout.default", input=IMAGE, p=0.5, train=False).strides == IMAGE.strides


@pytest.mark.parametrize(
    ("name", "operands", "named"),
    [
        ("add.Tensor", (Tensor((2,), F32, layout=Layout.SparseCoo), 1), {}),
        ("arange.default", (), {"end": 2.5, "dtype": I64}),
        ("gelu_backward.default", (of(2),), {"grad_output": of(2, dtype=F16)}),
    ],
)
def test_unknown_results(name: str, operands: Any, named: Any) -> None:
    with pytest.raises(Unknown) as caught:
        call(name, *operands, **named)
    assert str(caught.value), "expected a reason"


BOOLS = of(2, dtype=BOOL)


@pytest.mark.parametrize(
    ("subject", "name", "operands", "named"),
    [
        ("sizes", "add.Tensor", (of(2, 3), of(4)), {}),
        ("sizes", "add_.Tensor", (of(3), of(2, 3)), {}),
        ("dtype", "add_.Tensor", (of(3, dtype=I64), of(3)), {}),
        ("dtype", "add.Tensor", (of(2, dtype=I64), 1), {"alpha": 0.5}),
        ("dtype", "sub.Tensor", (BOOLS, BOOLS), {}),
        ("dtype", "neg.default", (BOOLS,), {}),
        ("dtype", "bitwise_and.Tensor", (of(2), BOOLS), {}),
        ("dtype", "gt.Scalar", (of(2, dtype=C64), 1), {}),
        ("dtype", "complex.default", (), {"real": of(2), "imag": of(2, dtype=F16)}),
        ("dtype", "where.self", (of(2), of(2)), {"condition": of(2)}),
        ("dtype", "masked_fill.Scalar", (of(2),), {"mask": of(2), "value": 1}),
        ("sizes", "masked_fill.Tensor", (of(2),), {"mask": BOOLS, "value": of(2)}),
        ("value", "div.Tensor_mode", (of(2), of(2)), {"rounding_mode": "ceil"}),
        ("value", "gelu.default", (of(2),), {"approximate": "erf"}),
        ("value", "clamp.default", (of(2),), {}),
        ("value", "pow.Tensor_Scalar", (of(2, dtype=I64),), {"exponent": -1}),
        ("value", "celu.default", (of(2),), {"alpha": 0}),
        ("value", "polygamma.default", (of(2),), {"n": -1}),
        ("value", "add.Tensor", (of(2), of(2, device=CUDA)), {}),
        ("sizes", "glu.default", (of(2, 3),), {}),
        ("dimension", "glu.default", (of(2, 4),), {"dim": 2}),
        ("sizes", "prelu.default", (of(2, 3),), {"weight": of(4)}),
        ("sizes", "zeros.default", (), {"size": (-1,)}),
        ("value", "arange.start_step", (), {"start": 3, "end": 1, "step": 1}),
        ("value", "arange.start_step", (), {"start": 0, "end": 1, "step": 0}),
        ("value", "arange.default", (), {"end": 4, "layout": Layout.SparseCoo}),
        ("value", "eye.default", (), {"n": 4, "layout": Layout.SparseCsr}),
        ("value", "linspace.default", (), {"start": 0, "end": 1, "steps": 4, "layout": Layout.SparseCoo}),
        ("dimension", "empty_permuted.default", (), {"size": (2, 3), "physical_layout": (0, 0)}),
        ("sizes", "empty_strided.default", (), {"size": (2, 3), "stride": (1,)}),
        ("dimension", "clone.default", (of(2, 3),), {"memory_format": MemoryFormat.ChannelsLast}),
        ("value", "dropout.default", (), {"input": of(2), "p": 1.5, "train": True}),
        ("sizes", "gelu_backward.default", (), {"grad_output": of(2), "self": of(3)}),
        ("sizes", "glu_backward.default", (), {"grad_output": of(4), "self": of(4), "dim": 0}),
        ("value", "softshrink.default", (of(2),), {"lambd": -1.0}),
        ("value", "multinomial.default", (of(3),), {"num_samples": 4}),
        ("sizes", "multinomial.default", (of(2, 3, 4),), {"num_samples": 1}),
        ("value", "randint.low", (), {"low": 3, "high": 3, "size": (2,)}),
        ("value", "fake_quantize_per_tensor_affine.default", (of(2),), {"quant_min": 5, "quant_max": 1}),
    ],
)
def test_impossible_arguments(subject: str, name: str, operands: Any, named: Any) -> None:
    with pytest.raises(Mismatch) as caught:
        call(name, *operands, **named)
    assert caught.value.subject == subject


def test_messages_show_dtypes_by_name() -> None:
    with pytest.raises(Mismatch, match="got dtype = i64"):
        infer("aten.hann_window.default", {"window_length": 4, "dtype": ScalarType.LONG})


def test_messages_show_a_negative_step_as_it_was_passed() -> None:
    with pytest.raises(Mismatch, match="step: expected one towards the end, got -1 from 0 to 5"):
        call("arange.start_step", start=0, end=5, step=-1)


def test_an_unknown_dtype_stays_unknown() -> None:
    """A rule that needs the dtype of a tensor says unknown where there is none."""
    with pytest.raises(Unknown, match="a dtype is not known"):
        known_dtype(Tensor((2,), None, (1,), CPU))


@pytest.mark.parametrize("name", ["add_.Tensor", "floor_divide_.Tensor", "pow_.Tensor", "ldexp_.default"])
def test_what_is_written_in_place_is_returned_whatever_its_layout(name: str) -> None:
    sparse = Tensor((2, 3), F32, None, CPU, 0, Layout.SparseCoo)
    found = infer(f"aten.{name}", {"self": sparse, "other": of(2, 3), "exponent": of(2, 3)})
    assert found is sparse
