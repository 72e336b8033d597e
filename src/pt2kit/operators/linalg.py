"""Linear algebra rows of the operator table: column-major results, solutions, matrix products, contractions."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import pairwise
from typing import Final

from pt2kit.messages import count_text
from pt2kit.operators.facts import (
    Sizes,
    Tensor,
    Unknown,
    agree,
    broadcast,
    expect,
    like,
    may_be,
    new,
    require,
    require_rank,
    shape_text,
)
from pt2kit.operators.pointwise import common_device
from pt2kit.operators.promotion import integer_sum_type, promoted, require_kind
from pt2kit.operators.vocabulary import if_contiguous, one_dtype, typed
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size, bounds, hint, product, same


def _matrix(tensor: Tensor, name: str) -> tuple[tuple[Size, ...], Size, Size]:
    """Return the batch, the rows and the columns of a batch of matrices."""
    require(tensor.rank >= 2, "sizes", f"{name}: expected 2 dimensions or more", tensor)
    require_kind(tensor.dtype, "fc", name)
    return tensor.sizes[:-2], tensor.sizes[-2], tensor.sizes[-1]


def by_columns(tensor: Tensor, sizes: Sizes | None = None) -> Tensor:
    """Return a new column-major tensor: the transposed one is row-major."""
    sizes = tensor.sizes if sizes is None else tuple(sizes)
    flipped = like(tensor, (*sizes[:-2], sizes[-1], sizes[-2])).strides or ()
    return new(sizes, tensor.dtype, tensor.device, (*flipped[:-2], flipped[-1], flipped[-2]))


def codes(tensor: Tensor, sizes: Sizes) -> Tensor:
    """Return error codes or pivots: integers of 32 bits."""
    return new(sizes, ScalarType.INT, tensor.device)


def solved(left_side: Tensor, right_side: Tensor, is_left: bool = True) -> tuple[Size, ...]:
    """Return the sizes of the solution of square systems of equations with matrices on the right side."""
    batch, rows, columns = _matrix(left_side, "A")
    rows = agree(rows, columns, "A: expected square matrices")
    other, first, second = _matrix(right_side, "B")
    agree(first if is_left else second, rows, "expected a right side that fits the matrices")
    return (*broadcast(batch, other), first, second)


def is_vector(matrices: Tensor, right_side: Tensor) -> bool:
    """Return whether the right side has a vector for each matrix, not a matrix."""
    if right_side.rank == 1 or right_side.rank != matrices.rank - 1:
        return right_side.rank == 1
    verdicts = [same(one, other) for one, other in zip(right_side.sizes, matrices.sizes[:-1], strict=True)]
    if None in verdicts and False not in verdicts:
        raise Unknown("vectors or matrices on the right side")
    return False not in verdicts


_WORDS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def of_operands(sizes: Sizes, dtype: ScalarType | None, *tensors: Tensor | None) -> Tensor:
    """Return a row-major result of operands that share a dtype and a device."""
    given = [one for one in tensors if one is not None]
    shared = one_dtype(*given)
    return new(sizes, shared if dtype is None else dtype, common_device(given))


def require_expands(bias: Tensor, sizes: Sizes) -> None:
    """Refuse a tensor that does not expand to the sizes of the product that it is added to."""
    fits = may_be(broadcast(bias.sizes, sizes), sizes)
    require(fits, "sizes", f"expected self to expand to {shape_text(sizes)}", bias)


def with_bias(bias: Tensor | None, sizes: Sizes, dtype: ScalarType | None, *operands: Tensor) -> Tensor:
    """Return a product and a bias, whose dtype does not count if that of the result is given."""
    if bias is not None:
        require_expands(bias, sizes)
    return of_operands(sizes, dtype, *operands) if dtype else of_operands(sizes, None, bias, *operands)


def expanded(tensor: Tensor, dims: Sequence[int]) -> list[Size]:
    """Return sizes with new ones of 1 at some dimensions."""
    sizes = list(tensor.sizes)
    for dim in sorted(dims):
        sizes.insert(dim, 1)
    return sizes


def chained(matrices: Sequence[Tensor], may_be_vectors: bool) -> Tensor:
    """Return the product of several matrices; the first and the last may be vectors in `linalg.multi_dot`."""
    require(len(matrices) >= (2 if may_be_vectors else 1), "value", "expected matrices", len(matrices))
    for position, one in enumerate(matrices):
        is_end = may_be_vectors and position in (0, len(matrices) - 1)
        require_rank(one, (1, 2) if is_end else (2,), f"matrix {position}")
    for one, other in pairwise(matrices):
        agree(one.sizes[-1], other.sizes[0], "expected operands with one inner size")
    result = of_operands((*matrices[0].sizes[:-1], *matrices[-1].sizes[1:]), None, *matrices)
    return if_contiguous(result, *matrices)


_CHAIN: Final = 100
"""Matrices whose product is counted: the ways to order it are as many as their third power."""


def chain_flops(matrices: Sequence[Tensor]) -> Size:
    """Count the FLOPs of a product of several matrices, in the order that is the cheapest at the sizes of the example.

    Source: `multi_dot_impl` in aten/src/ATen/native/LinearAlgebra.cpp, 2.13.
    """
    count = len(matrices)
    if count > _CHAIN:
        raise Unknown(f"expected at most {_CHAIN} matrices, whose orders are compared, got {count}")
    rows, columns = (one.sizes[end] if one.rank > 1 else 1 for one, end in ((matrices[0], 0), (matrices[-1], -1)))
    edges = [rows, *(one.sizes[0] for one in matrices[1:]), columns]
    least: dict[tuple[int, int], Size] = {(first, first + 1): 0 for first in range(count)}
    for length in range(2, count + 1):
        for first in range(count - length + 1):
            end = first + length
            ways = [
                least[first, middle] + least[middle, end] + 2 * edges[first] * edges[middle] * edges[end]
                for middle in range(first + 1, end)
            ]
            least[first, end] = min(ways, key=lambda way: hint(way) or 0)
    return least[0, count]


def contracted(equation: str, tensors: Sequence[Tensor], path: Sequence[int] | None) -> Tensor:
    """Return the sums of products along the dimensions that an equation names."""
    letters, output = einsum_terms(equation, [one.rank for one in tensors])
    sizes: dict[str, Size] = {}
    for names, tensor in zip(letters, tensors, strict=True):
        for place, (name, size) in enumerate(zip(names, tensor.sizes, strict=True)):
            agree(tensor.sizes[names.index(name)], size, f"expected one size of dimension {name!r} at place {place}")
            known = sizes.get(name, 1)
            if same(known, 1) is True:
                sizes[name] = size
            elif size != 1:
                sizes[name] = agree(known, size, f"expected one size of dimension {name.strip('.')!r}")
    _, dtype = products(equation, tensors, path)
    # It may be a view.
    return Tensor(tuple(sizes[name] for name in output), dtype, None, common_device(tensors), None)


def einsum_terms(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """Return the name of each dimension of the operands and of the result; "...0" and so on for those of an ellipsis.

    Raises:
        Mismatch: the equation does not fit the operands.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    expected = f"equation: expected {count_text(len(ranks), 'operand')}"
    expect(len(terms) == len(ranks), f"{expected}, got {len(terms)} in {equation!r}")
    operands = [_labels(term, rank, equation) for term, rank in zip(terms, ranks, strict=True)]
    seen = [name for names in operands for name in names]
    dots = sorted({name for name in seen if name.startswith("...")}, key=lambda name: -int(name[3:]))
    if not arrow:
        return operands, dots + sorted({name for name in seen if seen.count(name) == 1 and name not in dots})
    before, ellipsis, after = right.partition("...")
    output = [*before, *(dots if ellipsis else ()), *after]
    for name in output:
        expect(name in seen, f"equation: expected {name!r} among the operands, got {equation!r}")
        expect(output.count(name) == 1, f"equation: expected {name!r} once in the result, got {equation!r}")
    return operands, output


def _labels(term: str, rank: int, equation: str) -> list[str]:
    """Return the name of each dimension of one operand; those of an ellipsis are counted from the last one."""
    before, ellipsis, after = term.partition("...")
    for name in before + after:
        expect(name in _WORDS, f"equation: expected letters, got {equation!r}")
    named = len(before) + len(after)
    fits = named <= rank if ellipsis else named == rank
    require(fits, "sizes", f"equation: expected {count_text(rank, 'dimension')} in {term!r}", named)
    return [*before, *(f"...{place}" for place in reversed(range(rank - named))), *after]


def products(equation: str, tensors: Sequence[Tensor], path: Sequence[int] | None) -> tuple[Size, ScalarType | None]:
    """Return the FLOPs of the products of an einsum, and the dtype of the result, if it is known.

    Products along dimensions count that two operands share and nothing needs later. Dimensions of one operand that
    nothing needs later are summed before, which counts as free, as does a product without a sum.

    Args:
        equation, tensors: of the call.
        path: the places of the two operands of each product, the result of which becomes the last operand; by default
            the first two are multiplied, and the result is the first operand.

    Raises:
        Mismatch: operands of a product with a sum have several dtypes; without one, they are promoted.

    Source: `einsum` and `sumproduct_pair` in aten/src/ATen/native/Linear.cpp, 2.13.
    """
    operands, output = einsum_terms(equation, [one.rank for one in tensors])
    sizes: dict[str, Size] = {}
    held: list[tuple[set[str], Tensor]] = []
    for names, tensor in zip(operands, tensors, strict=True):
        shared = {name: size for name, size in zip(names, tensor.sizes, strict=True) if bounds(size) != (1, 1)}
        sizes |= shared
        held.append(({*shared}, like(tensor, [1])))  # Without dimensions it would not count in promotion.
    count: Size = 0
    wanted = 2 * len(held) - 2
    expect(not path or wanted in (0, len(path)), f"path: expected {count_text(wanted, 'place')}, got {path}")
    for step in range(len(held) - 1):
        low, high = sorted(path[2 * step : 2 * step + 2]) if path else (0, 1)
        expect(0 <= low < high < len(held), f"path: expected places of two operands, got {low} and {high}")
        (other, right), (one, left) = held.pop(high), held.pop(low)
        needed = {*output}.union(*(names for names, _ in held))
        left, right = _added(left, one - other - needed), _added(right, other - one - needed)
        if summed := (one & other) - needed:
            count = count + 2 * product([sizes[name] for name in sorted(summed | ((one | other) & needed))])
        dtype = one_dtype(left, right) if summed else promoted((left, right))
        held.insert(len(held) if path else 0, ((one | other) & needed, typed(left, dtype)))
    last = held[0][1]
    return count, (last if tensors[1:] else _added(last, {*operands[0]}.difference(output))).dtype


def _added(tensor: Tensor, names: Set[str]) -> Tensor:
    """Return an operand of an einsum after the sum over dimensions that only it has."""
    return typed(tensor, integer_sum_type(tensor.dtype)) if names and tensor.dtype else tensor
