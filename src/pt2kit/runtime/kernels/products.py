"""Kernels: products of matrices and vectors."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import (
    Array,
    DType,
    Keep,
    asarray,
    cast,
    check_indices,
    compute_type,
    computed,
    float_type,
    floating,
    joined_type,
    kind,
    require,
    reserve,
    result_type,
    rounding,
    wide,
)
from pt2kit.runtime.kernels.elementwise import scaled
from pt2kit.runtime.kernels.reductions import vector_norm
from pt2kit.runtime.table import kernel


def _mixed(self: Array, product: Array, beta: Any, alpha: Any) -> Any:
    """Return beta * self + alpha * product; with beta 0, self counts for nothing, also if it is nan."""
    other = scaled(product, alpha)
    if beta == 0:
        return np.broadcast_to(other, np.broadcast_shapes(self.shape, other.shape))
    return other + scaled(wide(self), beta)


def addr(self: Array, vec1: Array, vec2: Array, beta: Any, alpha: Any) -> Any:
    dtype = joined_type([self, vec1, vec2])  # unlike in other sums, the product is of the type of the result
    keep, compute = rounding(dtype), compute_type(dtype)
    first, second = (cast(cast(one, dtype), compute) for one in (vec1, vec2))
    product = keep(keep(scaled(first, keep(alpha)))[:, None] * second)
    return product if beta == 0 else product + keep(scaled(cast(cast(self, dtype), compute), keep(beta)))


def addmv(self: Array, mat: Array, vec: Array, beta: Any, alpha: Any) -> Any:
    keep = rounding(self.dtype)
    return _mixed(keep(scaled(wide(self), keep(beta))), matmul(mat, vec), 1 if beta else 0, keep(alpha))


def addbmm(self: Array, batch1: Array, batch2: Array, beta: Any, alpha: Any) -> Any:
    """Return the sum of products, which torch adds one after the other."""
    if compute_type(self.dtype) == self.dtype or not len(batch1):
        return _mixed(self, matmul(batch1, batch2).sum(0), beta, alpha)
    result = self
    for number, product in enumerate(matmul(batch1, batch2)):
        result = cast(_mixed(result, product, 1 if number else beta, alpha), self.dtype)
    return result


@kernel("aten.mv.default aten.dot.default")
@kernel("aten.matmul.default aten.mm.default .dtype aten.bmm.default .dtype", adapt=computed)
def matmul(self: Array, other: Array) -> Any:
    lead = self.shape[:-1]
    if self.ndim > 2 and other.ndim <= 2 and self.flags.c_contiguous:  # one product is faster than many
        return (self.reshape(math.prod(lead), self.shape[-1]) @ other).reshape(*lead, *other.shape[1:])
    return np.matmul(self, other)


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
    result = matmul(self, mat2) * scale_a * scale_b  # one factor for all, or one for each row and column
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
        return matmul(self, mat2)
    # Groups are parts of the rows of the result, of its columns, or of the dimension that is summed over.
    size = mat2.shape[1] if self.ndim == 3 else self.shape[0] if mat2.ndim == 3 else self.shape[1]
    ends = check_indices(offs, size + 1).tolist()
    parts = [slice(*pair) for pair in itertools.pairwise([0, *ends])]
    if self.ndim == mat2.ndim:
        return np.stack([self[:, part] @ mat2[part] for part in parts])
    result = np.zeros((self.shape[-2], mat2.shape[-1]), self.dtype)
    for group, part in enumerate(parts):
        if self.ndim == 2:
            result[part] = self[part] @ mat2[group]
        else:
            result[:, part] = self[group] @ mat2[:, part]
    return result


@kernel("aten.outer.default")
def outer(self: Array, vec2: Array) -> Any:
    dtype = compute_type(joined_type([self, vec2]))
    return np.outer(cast(self, dtype), cast(vec2, dtype))


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
    i1: Array,
    i2: Array,
    i3: Array,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
) -> Any:
    parts = [np.expand_dims(one, tuple(dims)) for one, dims in ((i1, expand1), (i2, expand2), (i3, expand3))]
    reserve(np.broadcast_shapes(*(one.shape for one in parts)), i1.dtype)
    return (parts[0] * parts[1] * parts[2]).sum(tuple(sumdim))


@kernel("aten.einsum.default")
def einsum(equation: str, tensors: Sequence[Array]) -> Any:
    dtype = compute_type(joined_type(tensors))
    return np.einsum(equation, *(cast(one, dtype) for one in tensors), optimize=len(tensors) > 1)


@kernel("aten.cross.default aten.linalg_cross.default")
def cross(self: Array, other: Array, dim: int | None) -> Any:
    dtype = joined_type((self, other))  # in which torch stores the products
    a, b = np.broadcast_arrays(cast(self, dtype), cast(other, dtype))
    if dim is None:
        dim = next((i for i, size in enumerate(a.shape) if size == 3), -1)
    return np.cross(a, b, axis=dim)


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
    reserve(np.broadcast_shapes(a.shape, b.shape), x1.dtype)
    return vector_norm(a - b, p, -1)


@kernel("aten.pdist.default aten._pdist_forward.default", adapt=computed)
def pdist(self: Array, p: float) -> Any:
    reserve((self.shape[0], *self.shape), self.dtype)
    first, second = np.triu_indices(self.shape[0], 1)
    return vector_norm(self[first] - self[second], p, -1)


def distance(keep: Keep, x1: Array, x2: Array, p: float = 2, eps: float = 1e-6) -> Any:
    """Return the distance of two arrays, whose steps `keep` rounds, along the last dimension."""
    difference = keep(floating(x1 - x2))
    return vector_norm(keep(difference + difference.dtype.type(keep(eps))), p, -1)


@kernel("aten.pairwise_distance.default")
def pairwise_distance(x1: Array, x2: Array, p: float, eps: float) -> Any:
    return distance(rounding(float_type(result_type(x1, x2))), wide(x1), wide(x2), p, eps)


@kernel("aten.cosine_similarity.default")
def cosine_similarity(x1: Array, x2: Array, dim: int, eps: float) -> Any:
    keep = rounding(result_type(x1, x2))
    units = [
        keep(one / np.maximum(keep(vector_norm(one, 2, dim, True)), keep(eps)))
        for one in np.broadcast_arrays(wide(x1), wide(x2))
    ]
    return keep(units[0] * units[1]).sum(dim)


@kernel("aten.cov.default")
def cov(self: Array, correction: int, fweights: Array | None, aweights: Array | None) -> Any:
    require(kind(self.dtype) != 0, "expected numbers, got truth values")
    return np.cov(np.atleast_2d(wide(self)), ddof=correction, fweights=fweights, aweights=aweights)


@kernel("aten.tensordot.default", adapt=computed)
def tensordot(self: Array, other: Array, dims_self: Sequence[int], dims_other: Sequence[int]) -> Any:
    for one, two in zip(dims_self, dims_other, strict=True):
        if self.shape[one] != other.shape[two]:  # One of them has one element, for which the other's are added up.
            if self.shape[one] == 1:
                other = other.sum(two, keepdims=True)
            else:
                self = self.sum(one, keepdims=True)
    return np.tensordot(self, other, (dims_self, dims_other))


KERNELS: Final = {
    "transformers.grouped_mm_fallback.default": computed(lambda input, weight, offs: grouped_mm(input, weight, offs)),
    "aten.linalg_multi_dot.default aten.chain_matmul.default": lambda matrices: (
        functools.reduce(matmul, matrices) if len(matrices) > 1 else matrices[0].copy()
    ),
    "aten.inner.default": computed(lambda self, other: np.inner(self, other)),
    "aten.kron.default": computed(np.kron),
    "aten._int_mm.default": lambda self, mat2: matmul(cast(self, np.dtype(np.int32)), cast(mat2, np.dtype(np.int32))),
    "aten.addmm.default": lambda self, mat1, mat2, beta, alpha: _mixed(self, matmul(mat1, mat2), beta, alpha),
    "aten.addmv.default": addmv,
    "aten.addr.default": addr,
    "aten.baddbmm.default": lambda self, batch1, batch2, beta, alpha: _mixed(self, matmul(batch1, batch2), beta, alpha),
    "aten.addbmm.default": addbmm,
    "aten.vdot.default": computed(lambda self, other: np.vdot(self, other)),
    "aten.corrcoef.default": (
        computed(lambda self: np.corrcoef(np.atleast_2d(self)) if self.ndim == 2 else np.ones((), np.float32))
    ),
    "aten.linalg_vecdot.default": computed(  # torch ignores dim of two vectors
        lambda x, y, dim: (np.conjugate(x) * y).sum(-1 if x.ndim == y.ndim == 1 else dim)
    ),
}
