"""Sizes, strides, symbolic numbers and tensors without their bytes."""

from __future__ import annotations

import json

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._export.serde import serialize as torch_serde
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from pt2kit import codec
from pt2kit.bridge.write.values import Values, expression_text
from pt2kit.errors import LimitError, UnsupportedError
from pt2kit.schema import SymInt


def theirs(value):
    """The tree that torch makes of one of its own objects."""
    return json.loads(torch_serde._to_json_bytes(value))


@pytest.fixture(scope="module")
def symbols():
    """Two sizes that are symbols, one that is not backed by an example, and a float of that kind."""
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    dynamic = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * 2)
    fake = mode.from_tensor(torch.randn(5, 7), symbolic_context=dynamic)
    return *fake.shape, env.create_unbacked_symint(), env.create_unbacked_symfloat()


def test_integers(symbols):
    """Numbers and expressions become what torch makes of them."""
    a, b, u, _ = symbols
    values = Values()
    for value in (0, 3, 2**70, True, a, b, u, a + b, a * b // 2, -a % 3, u + a, a**2, (a + 1) // (b + 2)):
        assert codec.to_tree(values.sym_int(value)) == theirs(torch_serde.serialize_sym_int(value))


def test_floats_and_bools(symbols):
    """The same for floats and truth values."""
    a, b, _, f = symbols
    values = Values()
    for value in (0.5, float("inf"), a / b, torch.sym_float(a) * 0.5, f, f + a):
        assert codec.to_tree(values.sym_float(value)) == theirs(torch_serde.serialize_sym_float(value))
    for value in (True, False, a > b, a == 3, torch.sym_not(a > 4), (a > 1) & (b < 9)):
        assert codec.to_tree(values.sym_bool(value)) == theirs(torch_serde.serialize_sym_bool(value))


def test_equal_values_are_shared(symbols):
    """Equal values are made once."""
    a, b, _, _ = symbols
    values = Values()
    assert values.sym_int(4) is values.sym_int(4)
    assert values.sym_int(a + b) is values.sym_int(b + a)
    assert values.tensor_meta(torch.zeros(2, 3)) is values.tensor_meta(torch.ones(2, 3))


DTYPES = list(torch_serde._TORCH_TO_SERIALIZE_DTYPE)


@pytest.mark.filterwarnings("ignore:ComplexHalf:UserWarning")
@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 3), max_size=4), st.booleans(), st.data())
@settings(max_examples=100, deadline=None)
def test_tensor_meta(dtype, sizes, requires_grad, data):
    """Any strided tensor of any dtype becomes what torch makes of it."""
    base = torch.empty(sizes, dtype=dtype)
    order = data.draw(st.permutations(range(len(sizes))))
    tensor = base.permute(order)
    if sizes and tensor.shape[0] and data.draw(st.booleans()):
        tensor = tensor[data.draw(st.integers(0, tensor.shape[0] - 1)) :]
    tensor = tensor.detach().requires_grad_(requires_grad and (dtype.is_floating_point or dtype.is_complex))
    assert codec.to_tree(Values().tensor_meta(tensor)) == theirs(torch_serde.serialize_tensor_meta(tensor))


def test_symbolic_tensor_meta(symbols):
    """The same with symbolic sizes, strides and offset."""
    a, b, _, _ = symbols
    mode = FakeTensorMode(shape_env=a.node.shape_env)
    with mode:
        base = torch.empty(a, b, 4, device="meta")
        tensors = [base, base.transpose(0, 1), base[1:], base.flatten(0, 1), base[:, 1:, 2:]]
    values = Values()
    for tensor in tensors:
        assert codec.to_tree(values.tensor_meta(tensor)) == theirs(torch_serde.serialize_tensor_meta(tensor))


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
@pytest.mark.parametrize("make", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, torch.Tensor.to_mkldnn])
def test_other_layouts(make):
    """Layouts without strides get zeros."""
    meta = Values().tensor_meta(make(torch.eye(3)))
    assert meta.strides == [SymInt(as_int=0)] * 2
    assert meta.storage_offset == SymInt(as_int=0)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_unknown_dtype():
    """A dtype that the schema has no number for is named."""
    tensor = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    with pytest.raises(UnsupportedError, match=r"expected a dtype of the schema, got torch\.qint8"):
        Values().tensor_meta(tensor)


def test_nested_sizes():
    """The size of a nested dimension is no expression."""
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with pytest.raises(UnsupportedError, match="expected a size that is an expression, got j"):
        Values().sym_int(nested.shape[1])


def test_deep_expression(symbols):
    """An expression too deep to print is an error of ours."""
    expr = symbols[0].node.expr
    for _ in range(20000):
        expr = sympy.Pow(expr + 1, 2, evaluate=False)
    with pytest.raises(LimitError, match="nested too deeply"):
        expression_text(expr)
