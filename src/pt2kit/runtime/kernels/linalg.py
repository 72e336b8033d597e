"""Kernels: decompositions and solvers of linear algebra, by LAPACK through NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError
from pt2kit.runtime.arrays import ARRAYS, Array, computed, is_complex, require, wide
from pt2kit.runtime.kernels.reductions import vector_norm
from pt2kit.runtime.table import kernel

INFO = np.dtype("int32")


def _turned(array: Any) -> Any:
    return array.swapaxes(-1, -2)


def _adjoint(array: Any) -> Any:
    return np.conjugate(_turned(array)) if is_complex(array) else _turned(array)


@contextmanager
def _solvable(expected: str) -> Iterator[None]:
    """Make failures of LAPACK, in a block or a function, errors of ours."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise OperatorError(f"expected {expected}") from error


_invertible = _solvable("matrices that have an inverse, got a singular one")


def _with_info(function: Callable[..., Any], *args: Any, check_errors: bool = False, **named: Any) -> Any:
    """Return the result of a function, and which matrices it failed for: none."""
    matrices = next(one for one in (*args, *named.values()) if isinstance(one, ARRAYS))
    return function(*args, **named), np.zeros(matrices.shape[:-2], INFO)


def _factors(A: Array) -> tuple[Array, Array]:
    """Return the factors that torch keeps for gradients: those of the transposed matrix, if A is real and row-major."""
    is_turned = A.flags.c_contiguous and not is_complex(A)
    packed, pivots, _ = lu_factor(_turned(A) if is_turned else A)
    return packed, pivots


@kernel("aten.logdet.default")
def logdet(self: Array) -> Any:
    sign, size = np.linalg.slogdet(wide(self))
    return np.where(sign == 0, -np.inf, np.log(sign) + size)


@kernel("aten.linalg_inv.default", adapt=computed)
@_invertible
def inv(A: Array) -> Any:
    return np.linalg.inv(A)


@kernel("aten.linalg_solve.default", adapt=computed)
@_invertible
def solve(A: Array, B: Array, left: bool = True) -> Any:
    if not left:
        return _turned(solve(_turned(A), _turned(B)))
    is_vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    return np.linalg.solve(A, B[..., None] if is_vector else B)


@kernel("aten.linalg_solve_triangular.default", adapt=computed)
def solve_triangular(self: Array, B: Array, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    triangle = np.triu(self) if upper else np.tril(self)
    if unitriangular:
        unit = np.eye(triangle.shape[-1], dtype=triangle.dtype)
        triangle = triangle * (1 - unit) + unit
    return np.linalg.solve(triangle, B) if left else _turned(np.linalg.solve(_turned(triangle), _turned(B)))


@kernel("aten.triangular_solve.default")
def triangular_solve(self: Array, A: Array, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    matrix, is_upper = (_turned(A), not upper) if transpose else (A, upper)
    result = solve_triangular(matrix, self, is_upper, True, unitriangular)
    return result, np.broadcast_to(A, (*result.shape[:-2], *A.shape[-2:])).copy()


@kernel("aten.linalg_cholesky.default aten.cholesky.default", adapt=computed)
@_solvable("positive-definite matrices, got another one")
def cholesky(self: Array, upper: bool = False) -> Any:
    return _adjoint(cholesky(_adjoint(self))) if upper else np.linalg.cholesky(np.tril(self))


def _of_factor(factor: Array, upper: bool) -> Array:
    """Return the matrices that have a Cholesky factor."""
    triangle = np.triu(factor) if upper else np.tril(factor)
    return _adjoint(triangle) @ triangle if upper else triangle @ _adjoint(triangle)


@kernel("aten.linalg_qr.default")
def qr(A: Array, mode: str = "reduced") -> Any:
    if mode == "r":
        return np.zeros(0, A.dtype), np.linalg.qr(wide(A), "r")
    return tuple(np.linalg.qr(wide(A), mode))


@kernel("aten.linalg_svd.default aten._linalg_svd.default")
def svd(A: Array, full_matrices: bool, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return np.zeros(0, A.dtype), svdvals(A), np.zeros(0, A.dtype)
    return tuple(np.linalg.svd(wide(A), full_matrices))


@kernel("aten.svd.default")
def svd_(self: Array, some: bool, compute_uv: bool) -> Any:
    u, s, vh = svd(self, not some)
    return (u, s, _adjoint(vh)) if compute_uv else (np.zeros_like(u), s, np.zeros_like(vh))


@kernel("aten.linalg_svdvals.default", adapt=computed)
def svdvals(A: Array) -> Any:
    return np.linalg.svd(A, compute_uv=False)


@kernel("aten._linalg_eigh.default aten.linalg_eigh.default", adapt=computed)
def eigh(A: Array, UPLO: str = "L", compute_v: bool = True) -> Any:
    return tuple(np.linalg.eigh(A, UPLO)) if compute_v else (np.linalg.eigvalsh(A, UPLO), np.zeros(0, A.dtype))


def _least(x: Array, s: Array, relative: Any, absolute: Any) -> Any:
    """Return the singular values up to which a matrix has no inverse, from all that it has."""
    bound = np.asarray(0.0 if absolute is None else absolute)[..., None]
    if relative is None:
        relative = np.where(bound[..., 0] > 0, 0.0, max(x.shape[-2:]) * float(np.finfo(x.dtype).eps))
    return np.maximum(bound, np.asarray(relative)[..., None] * s.max(-1, keepdims=True, initial=0))


@kernel("aten.linalg_pinv.default .rcond_tensor .atol_rtol_float .atol_rtol_tensor", adapt=computed)
def pinv(self: Array, rcond: Any = None, hermitian: bool = False, atol: Any = None, rtol: Any = None) -> Any:
    if not self.size:
        return np.zeros((*self.shape[:-2], self.shape[-1], self.shape[-2]), self.dtype)
    u, s, vh = np.linalg.svd(self, full_matrices=False, hermitian=hermitian)
    bound = _least(self, s, rtol if rcond is None else rcond, atol)
    inverse = np.where(s > bound, 1 / np.where(s > bound, s, 1), 0).astype(s.dtype)
    return _adjoint(vh) @ (inverse[..., None] * _adjoint(u))


@kernel("aten.linalg_matrix_rank.default .atol_rtol_float .atol_rtol_tensor .tol_tensor", adapt=computed)
def matrix_rank(self: Array, tol: Any = None, hermitian: bool = False, atol: Any = None, rtol: Any = None) -> Any:
    s = np.linalg.svd(self, compute_uv=False, hermitian=hermitian)
    bound = np.asarray(tol)[..., None] if tol is not None else _least(self, s, rtol, atol)
    return (s > bound).sum(-1)


@kernel("aten.linalg_matrix_exp.default", adapt=computed)
def matrix_exp(self: Array) -> Any:
    if not self.size:
        return self
    norm = np.abs(self).sum(-2, np.float64).max(-1)[..., None, None]
    halvings = np.ceil(np.log2(np.where(np.isfinite(norm), np.maximum(norm, 0.5), 0.5))) + 1
    scaled = (self / np.exp2(halvings)).astype(np.complex128 if is_complex(self) else np.float64)
    term = total = np.broadcast_to(np.eye(self.shape[-1], dtype=scaled.dtype), self.shape)
    for k in range(1, 20):
        term = term @ scaled / k
        total = total + term
    for k in range(int(halvings.max())):
        total = np.where(k < halvings, total @ total, total)
    return np.where(np.isfinite(norm), total, np.nan)


@kernel("aten.linalg_norm.ord_str aten.linalg_matrix_norm.default .str_ord", adapt=computed)
def matrix_norm(self: Array, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False) -> Any:
    axes = tuple(dim or (-2, -1))
    return np.linalg.norm(self, ord, axes, keepdim) if self.size else self.sum(axes, keepdims=keepdim)


@kernel("aten.linalg_norm.default")
def linalg_norm(self: Array, ord: Any, dim: Any, keepdim: bool, dtype: Any = None) -> Any:
    count = (self.ndim if dim is None else 1 if isinstance(dim, int) else len(dim)) if ord is not None else 0
    if count == 2:
        return matrix_norm(self, ord, dim, keepdim)
    return vector_norm(self, ord, dim, keepdim, dtype)


def _lu(A: Array) -> tuple[Array, Array]:
    """Return the packed factors and the pivots, counted from 1, of one matrix, with partial pivoting."""
    packed = A.copy()
    rows, columns = packed.shape
    pivots = np.arange(1, min(rows, columns) + 1, dtype=np.int32)
    for k in range(min(rows, columns)):
        column = packed[k:, k]
        # LAPACK compares the sums of both parts of complex numbers.
        pivot = k + int(np.argmax(np.abs(column.real) + np.abs(column.imag)))
        pivots[k] = pivot + 1
        if pivot != k:
            packed[[k, pivot]] = packed[[pivot, k]]
        if packed[k, k] != 0:
            packed[k + 1 :, k] /= packed[k, k]
            packed[k + 1 :, k + 1 :] -= np.outer(packed[k + 1 :, k], packed[k, k + 1 :])
    return packed, pivots


@kernel("aten.linalg_lu_factor_ex.default aten.linalg_lu_factor.default", adapt=computed)
def lu_factor(A: Array, pivot: bool = True) -> Any:
    require(pivot, "expected a decomposition with pivots, got one without")
    packed, batch = np.empty_like(A), A.shape[:-2]
    pivots = np.empty((*batch, min(A.shape[-2:])), np.int32)
    for place in np.ndindex(*batch):
        packed[place], pivots[place] = _lu(A[place])
    return packed, pivots, np.zeros(batch, INFO)


@kernel("aten.lu_unpack.default")
def lu_unpack(LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    x = wide(LU_data)
    rows, columns = x.shape[-2:]
    size = min(rows, columns)
    lower = np.tril(x[..., :, :size], -1) + np.eye(rows, size, dtype=x.dtype)
    upper = np.triu(x[..., :size, :])
    order = np.broadcast_to(np.arange(rows), (*x.shape[:-2], rows)).copy()
    for place in np.ndindex(*x.shape[:-2]):
        for k, pivot in enumerate(LU_pivots[place].tolist()):
            require(1 <= pivot <= rows, f"expected pivots from 1 to {rows}, got {pivot}")
            order[place][[k, pivot - 1]] = order[place][[pivot - 1, k]]
    permutation = np.swapaxes(np.eye(rows, dtype=x.dtype)[order], -1, -2)
    empty = np.zeros(0, x.dtype)
    return (permutation if unpack_pivots else empty, *((lower, upper) if unpack_data else (empty, empty)))


@kernel("aten.linalg_lu_solve.default")
def lu_solve(LU: Array, pivots: Array, B: Array, left: bool = True, adjoint: bool = False) -> Any:
    permutation, lower, upper = lu_unpack(LU, pivots)
    matrix = permutation @ lower @ upper
    return solve(_adjoint(matrix) if adjoint else matrix, B, left)


@kernel("aten.linalg_householder_product.default", adapt=computed)
def householder_product(input: Array, tau: Array) -> Any:
    rows, columns = input.shape[-2:]
    result = np.broadcast_to(np.eye(rows, columns, dtype=input.dtype), input.shape).copy()
    for k in reversed(range(tau.shape[-1])):
        v = input[..., :, k].copy()
        v[..., :k] = 0
        v[..., k] = 1
        result -= tau[..., k, None, None] * v[..., :, None] * (np.conjugate(v)[..., None, :] @ result)
    return result


@kernel("aten.ormqr.default", adapt=computed)
def ormqr(self: Array, tau: Array, other: Array, left: bool, transpose: bool) -> Any:
    rows = self.shape[-2]
    square = np.zeros_like(self, shape=(*self.shape[:-1], rows))
    square[..., : self.shape[-1]] = self[..., :rows]
    factor = householder_product(square, tau)
    factor = _adjoint(factor) if transpose else factor
    return factor @ other if left else other @ factor


@kernel("aten._linalg_check_errors.default")
def check_errors_(info: Array, api_name: str, is_matrix: bool) -> None:
    require(not np.any(info), f"{api_name[:80]!a}: expected a decomposition that succeeds, got a failure")


KERNELS: Final = {
    "aten.linalg_lu.default": lambda A, pivot: lu_unpack(*lu_factor(A, pivot)[:2]),
    "aten._linalg_det.default": lambda A: (np.linalg.det(wide(A)), *_factors(wide(A))),
    "aten._linalg_solve_ex.default": lambda A, B, left: (solve(A, B, left), *lu_factor(A)),
    "aten.linalg_inv_ex.default": partial(_with_info, inv),
    "aten.linalg_solve_ex.default": partial(_with_info, solve),
    "aten.linalg_cholesky_ex.default": partial(_with_info, cholesky),
    "aten.cholesky_solve.default": computed(
        lambda self, input2, upper: np.linalg.solve(_of_factor(input2, upper), self)
    ),
    "aten.cholesky_inverse.default": computed(lambda self, upper: np.linalg.inv(_of_factor(self, upper))),
    "aten.linalg_det.default": computed(np.linalg.det),
    "aten.qr.default": lambda self, some: qr(self, "reduced" if some else "complete"),
    "aten.linalg_eig.default": computed(lambda self: tuple(np.linalg.eig(self))),
    "aten.linalg_eigvals.default": computed(np.linalg.eigvals),
    "aten.linalg_eigvalsh.default": computed(np.linalg.eigvalsh),
    "aten.linalg_matrix_power.default": lambda self, n: (
        self.copy() if n == 1 else np.linalg.matrix_power(wide(self), n)
    ),
    "aten.lu_solve.default": lambda self, LU_data, LU_pivots: lu_solve(LU_data, LU_pivots, self),
    "aten.linalg_cond.default .p_str": computed(np.linalg.cond),
    "aten.linalg_tensorinv.default": computed(np.linalg.tensorinv),
    "aten.linalg_tensorsolve.default": computed(np.linalg.tensorsolve),
    "aten._linalg_slogdet.default aten.linalg_slogdet.default": computed(
        lambda A: (*np.linalg.slogdet(A), *_factors(A))
    ),
}
