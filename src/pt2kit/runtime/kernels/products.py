"""Kernels: products of matrices and vectors."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.messages import count_text
from pt2kit.operators.facts import axis as axis_of
from pt2kit.operators.linalg import einsum_terms
from pt2kit.runtime.arrays import (
    Array,
    DType,
    asarray,
    cast,
    check_broadcast,
    check_indices,
    compute_type,
    computed,
    floating,
    joined_type,
    kind,
    require,
    reserve,
    wide,
)
from pt2kit.runtime.kernels.reductions import vector_norm
from pt2kit.runtime.table import kernel


def _scaled(array: Any, factor: Any) -> Any:
    return array if factor == 1 else array * cast(factor, array.dtype)


def _mixed(self: Array, product: Array, beta: Any, alpha: Any) -> Any:
    """Return beta * self + alpha * product; with beta 0, self counts for nothing, also if it is nan."""
    scaled = _scaled(product, alpha)
    if beta == 0:
        return np.broadcast_to(scaled, np.broadcast_shapes(self.shape, scaled.shape))
    check_broadcast([self, scaled])
    return scaled + _scaled(wide(self), beta)


def addr(self: Array, vec1: Array, vec2: Array, beta: Any, alpha: Any) -> Any:
    dtype = joined_type([self, vec1, vec2])  # unlike in other sums, the product is of the type of the result
    return _mixed(cast(self, dtype), outer(cast(vec1, dtype), cast(vec2, dtype)), beta, alpha)


@kernel("aten.matmul.default aten.mv.default aten.dot.default", adapt=computed)
def matmul(self: Array, other: Array) -> Any:
    if not (self.ndim and other.ndim):
        raise OperatorError("expected tensors with dimensions, got one without")
    if self.ndim > 2 and other.ndim <= 2 and self.flags.c_contiguous:  # one product is faster than many
        return (self.reshape(-1, self.shape[-1]) @ other).reshape(*self.shape[:-1], *other.shape[1:])
    rows, columns = self.shape[-2:-1], other.shape[-1:] if other.ndim > 1 else ()
    reserve((*np.broadcast_shapes(self.shape[:-2], other.shape[:-2]), *rows, *columns), self.dtype)
    return np.matmul(self, other)


def _product(dimensions: int) -> Callable[..., Any]:
    """Return the product of two matrices, or batches of them."""

    def run(self: Array, mat2: Array, out_dtype: Any = None) -> Any:
        if self.ndim != dimensions or mat2.ndim != dimensions:
            raise OperatorError(f"expected {count_text(dimensions, 'dimension')}, got {self.ndim} and {mat2.ndim}")
        return matmul(self, mat2)

    return run


mm, bmm = _product(2), _product(3)


@kernel("aten._scaled_mm.default")
def scaled_mm(
    self: Array,
    mat2: Array,
    scale_a: Array,
    scale_b: Array,
    bias: Array | None = None,
    scale_result: Array | None = None,
    out_dtype: DType | None = None,
    use_fast_accum: bool = False,
) -> Any:
    result = mm(wide(self), wide(mat2)) * scale_a * scale_b  # one factor for all, or one for each row and column
    if bias is not None:
        result = result + wide(bias)
    if scale_result is not None and out_dtype is not None and out_dtype.itemsize == 1:
        return result / scale_result  # torch heeds it for a float8 type that the call names, and for no other
    return result


@kernel("aten._grouped_mm.default", adapt=computed)
def grouped_mm(self: Array, mat2: Array, offs: Array | None = None, bias: Array | None = None) -> Any:
    if bias is not None:
        raise OperatorError("expected products without a bias, got one")
    if offs is None:
        return bmm(self, mat2)
    if (self.ndim, mat2.ndim) not in ((2, 3), (3, 2), (2, 2)):
        raise OperatorError(f"expected matrices, of which one may be a batch, got {self.ndim} and {mat2.ndim}")
    # Groups are parts of the rows of the result, of its columns, or of the dimension that is summed over.
    size = mat2.shape[1] if self.ndim == 3 else self.shape[0] if mat2.ndim == 3 else self.shape[1]
    ends = check_indices(offs, size + 1).tolist()
    parts = [slice(*pair) for pair in itertools.pairwise([0, *ends])]
    reserve((len(ends) if self.ndim == mat2.ndim else 1, self.shape[-2], mat2.shape[-1]), self.dtype)
    if self.ndim == mat2.ndim:
        return np.stack([self[:, part] @ mat2[part] for part in parts])
    result = np.zeros((self.shape[-2], mat2.shape[-1]), self.dtype)
    for group, part in enumerate(parts):
        if self.ndim == 2:
            result[part] = self[part] @ mat2[group]
        else:
            result[:, part] = self[group] @ mat2[:, part]
    return result


@kernel("aten.linalg_vecdot.default", adapt=computed)
def vecdot(x: Array, y: Array, dim: int) -> Any:
    check_broadcast([x, y])
    return (np.conjugate(x) * y).sum(-1 if x.ndim == y.ndim == 1 else dim)  # torch ignores dim of two vectors


@kernel("aten.outer.default")
def outer(self: Array, vec2: Array) -> Any:
    reserve((self.size, vec2.size), self.dtype)
    dtype = compute_type(joined_type([self, vec2]))
    return np.outer(cast(self, dtype), cast(vec2, dtype))


@kernel("aten.inner.default", adapt=computed)
def inner(self: Array, other: Array) -> Any:
    if not (self.ndim and other.ndim):
        return self * other
    reserve((*self.shape[:-1], *other.shape[:-1]), self.dtype)
    return np.inner(self, other)


@kernel("aten.linear.default", adapt=computed)
def linear(input: Array, weight: Array, bias: Array | None = None) -> Any:
    result = asarray(matmul(input, weight.T))
    if bias is not None:
        result += bias
    return result


@kernel("aten.bilinear.default", adapt=computed)
def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None) -> Any:
    reserve((*input1.shape[:-1], weight.shape[0], weight.shape[2]), input1.dtype)
    left = np.tensordot(input1, weight, ([-1], [1]))
    result = (left * input2[..., None, :]).sum(-1)
    return result if bias is None else result + bias


@kernel("aten._trilinear.default", adapt=computed)
def trilinear(
    i1: Array, i2: Array, i3: Array, expand1: Sequence[int], expand2: Sequence[int], expand3: Sequence[int], sumdim:
    Sequence[int],
) -> Any:  # fmt: skip
    parts = [i1, i2, i3]
    for number, dims in enumerate((expand1, expand2, expand3)):
        for dim in dims:
            parts[number] = np.expand_dims(parts[number], dim)
    check_broadcast(parts)
    return (parts[0] * parts[1] * parts[2]).sum(tuple(sumdim))


@kernel("aten.einsum.default")
def einsum(equation: str, tensors: Sequence[Array]) -> Any:
    dtype = compute_type(joined_type(tensors))
    arrays = [cast(one, dtype) for one in tensors]
    letters, output = einsum_terms(equation, [one.ndim for one in arrays])
    sizes: dict[str, int] = {}
    for names, array in zip(letters, arrays, strict=True):
        sizes.update({name: max(sizes.get(name, 1), size) for name, size in zip(names, array.shape, strict=True)})
    reserve([sizes[name] for name in output], dtype)
    return np.einsum(equation, *arrays, optimize=len(arrays) > 1)


@kernel("aten.tensordot.default")
def tensordot(self: Array, other: Array, dims_self: Sequence[int], dims_other: Sequence[int]) -> Any:
    kept = [self.shape[i] for i in range(self.ndim) if i not in {axis_of(d, self.ndim) for d in dims_self}]
    kept += [other.shape[i] for i in range(other.ndim) if i not in {axis_of(d, other.ndim) for d in dims_other}]
    reserve(kept, self.dtype)
    return np.tensordot(wide(self), wide(other), (list(dims_self), list(dims_other)))


@kernel("aten.kron.default")
def kron(self: Array, other: Array) -> Any:
    reserve((self.size, other.size), joined_type([self, other]))
    return np.kron(wide(self), wide(other))


@kernel("aten.cross.default aten.linalg_cross.default")
def cross(self: Array, other: Array, dim: int | None) -> Any:
    a, b = np.broadcast_arrays(wide(self), wide(other))
    if dim is None:
        dim = next((i for i, size in enumerate(a.shape) if size == 3), -1)
    axis = axis_of(dim, a.ndim)
    require(a.shape[axis] == 3, f"expected a dimension of size 3, got {a.shape[axis]}")
    return np.cross(a, b, axis=axis)


@kernel("aten._cdist_backward.default", adapt=computed)
def cdist_backward(grad: Array, x1: Array, x2: Array, p: float, cdist: Array) -> Any:
    reserve((*cdist.shape, x1.shape[-1]), x1.dtype)
    apart, far = x1[..., :, None, :] - x2[..., None, :, :], cdist[..., None]
    if p == math.inf:
        slope = np.where(np.abs(apart) == far, np.sign(apart), 0)
    else:
        slope = np.sign(apart) * np.divide(np.abs(apart), far, out=np.zeros_like(apart), where=far != 0) ** (p - 1)
    return (grad[..., None] * np.where((far == 0) | (apart == 0) | (p == 0), 0, slope)).sum(-2)


@kernel("aten.cdist.default aten._cdist_forward.default", adapt=computed)
def cdist(x1: Array, x2: Array, p: float = 2.0) -> Any:
    a, b = x1[..., :, None, :], x2[..., None, :, :]
    check_broadcast([a, b])
    return vector_norm(a - b, p, -1)


@kernel("aten.pdist.default aten._pdist_forward.default", adapt=computed)
def pdist(self: Array, p: float) -> Any:
    reserve((self.shape[0], *self.shape), self.dtype)
    first, second = np.triu_indices(self.shape[0], 1)
    return vector_norm(self[first] - self[second], p, -1)


@kernel("aten.pairwise_distance.default", adapt=computed)
def pairwise_distance(x1: Array, x2: Array, p: float, eps: float, keepdim: bool) -> Any:
    check_broadcast([x1, x2])
    difference = floating(x1 - x2)
    return vector_norm(difference + difference.dtype.type(eps), p, -1, keepdim)


@kernel("aten.cosine_similarity.default", adapt=computed)
def cosine_similarity(x1: Array, x2: Array, dim: int, eps: float) -> Any:
    check_broadcast([x1, x2])
    a, b = np.broadcast_arrays(x1, x2)
    axis = axis_of(dim, a.ndim)
    sizes = [np.maximum(vector_norm(one, 2, axis, True), eps) for one in (a, b)]
    return ((a / sizes[0]) * (b / sizes[1])).sum(axis)


@kernel("aten.cov.default")
def cov(self: Array, correction: int, fweights: Array | None, aweights: Array | None) -> Any:
    require(self.ndim <= 2 and kind(self.dtype) != 0, f"expected numbers of at most 2 dimensions, got {self.ndim}")
    x = np.atleast_2d(wide(self))
    reserve((x.shape[0], x.shape[0]), np.float64)
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


KERNELS: Final = {
    "transformers.grouped_mm_fallback.default": computed(lambda input, weight, offs: grouped_mm(input, weight, offs)),
    "aten.linalg_multi_dot.default aten.chain_matmul.default": lambda matrices: (
        functools.reduce(matmul, matrices) if len(matrices) > 1 else matrices[0].copy()
    ),
    "aten.mm.default .dtype": mm,
    "aten._int_mm.default": lambda self, mat2: mm(cast(self, np.dtype(np.int32)), cast(mat2, np.dtype(np.int32))),
    "aten.bmm.default .dtype": bmm,
    "aten.addmm.default": lambda self, mat1, mat2, beta, alpha: _mixed(self, mm(mat1, mat2), beta, alpha),
    "aten.addmv.default": lambda self, mat, vec, beta, alpha: _mixed(self, wide(mat) @ wide(vec), beta, alpha),
    "aten.addr.default": addr,
    "aten.baddbmm.default": (lambda self, batch1, batch2, beta, alpha: _mixed(self, bmm(batch1, batch2), beta, alpha)),
    "aten.addbmm.default": (
        lambda self, batch1, batch2, beta, alpha: _mixed(self, bmm(batch1, batch2).sum(0), beta, alpha)
    ),
    "aten.vdot.default": computed(lambda self, other: np.vdot(self, other)),
    "aten.corrcoef.default": (
        computed(lambda self: np.corrcoef(np.atleast_2d(self)) if self.ndim == 2 else np.ones((), np.float32))
    ),
}
