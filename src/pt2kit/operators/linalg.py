"""Linear algebra rows of the operator table: column-major results, solutions of systems of equations."""

from __future__ import annotations

from pt2kit.operators.facts import Sizes, Tensor, Unknown, agree, broadcast, expect, like, new, shape_text
from pt2kit.operators.promotion import require_kind
from pt2kit.operators.vocabulary import free
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size, same


def _matrix(tensor: Tensor, name: str) -> tuple[tuple[Size, ...], Size, Size]:
    """Return the batch, the rows and the columns of a batch of matrices."""
    expect(tensor.rank >= 2, f"{name}: expected 2 dimensions or more, got {shape_text(tensor.sizes)}", "sizes")
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


def solved_vectors(left_side: Tensor, right_side: Tensor, is_left: bool) -> tuple[Size, ...]:
    """Return the sizes of a solution; the right side may have a vector for each matrix."""
    if not _is_vector(left_side, right_side):
        return solved(left_side, right_side, is_left)
    agree(right_side.sizes[-1], left_side.sizes[-1], "expected a right side that fits the matrices")
    return (*broadcast(left_side.sizes[:-2], right_side.sizes[:-1]), left_side.sizes[-1])


def _is_vector(matrices: Tensor, right_side: Tensor) -> bool:
    """Return whether the right side has a vector for each matrix, not a matrix."""
    if right_side.rank == 1 or right_side.rank != matrices.rank - 1:
        return right_side.rank == 1
    verdicts = [same(one, other) for one, other in zip(right_side.sizes, matrices.sizes[:-1], strict=True)]
    if None in verdicts and False not in verdicts:
        raise Unknown("vectors or matrices on the right side")
    return False not in verdicts


def lstsq(self: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Return the solution of least squares; what else is returned depends on the driver."""
    batch, rows, columns = _matrix(self, "self")
    is_vector = b.rank == self.rank - 1 and b.rank >= 1
    agree(b.sizes[-1 if is_vector else -2], rows, "expected a right side that fits the matrices")
    whole = broadcast(batch, b.sizes[: -1 if is_vector else -2])
    return (free(self, (*whole, columns) if is_vector else (*whole, columns, b.sizes[-1])),)
