"""Indexing rows of the operator table: slices, parts and diagonals as views; sizes of indexed tensors, embedding bags.

Symbols that decide where a slice ends are decided by the values of the example, as torch does when it exports.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from pt2kit.messages import count_text
from pt2kit.operators.facts import (
    MAX_RESULTS,
    Mismatch,
    Sizes,
    Tensor,
    Unknown,
    agree,
    at_least,
    axis,
    broadcast,
    decided,
    expect,
    require,
)
from pt2kit.operators.pointwise import compare
from pt2kit.operators.promotion import require_dtype
from pt2kit.operators.views import place_of, without
from pt2kit.operators.vocabulary import some_of
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import Size, hint, same, text, unknown


def from_start(index: Size, size: Size) -> Size | None:
    """Return an index that may count from the end; None if symbols decide whether it does."""
    sign = decided(compare, index, 0)
    return None if sign is None else index + size if sign < 0 else index


def offset_at(self: Tensor, dim: int, steps: Size | None) -> Size | None:
    """Return the offset of a view that begins some steps further along a dimension; None if it is not known."""
    if self.strides is None or self.offset is None or steps is None:
        return None
    return self.offset + steps * self.strides[dim]


def selected(self: Tensor, dim: int, index: Size) -> Tensor:
    """Return a view of one index along a dimension."""
    place = place_of(self, dim)
    size = self.sizes[place]
    if at_least(index - size, 0) or at_least(index + size, 0) is False:
        raise Mismatch(f"index: expected one from {text(-size)} to {text(size - 1)}, got {text(index)}")
    return replace(without(self, (place,)), offset=offset_at(self, place, from_start(index, size)))


def sliced_size(size: Size, start: Size | None, end: Size | None, step: Size = 1) -> tuple[Size, Size]:
    """Return the first index and the length of a slice, as Python counts them.

    Raises:
        Undecided: symbols decide.
    """
    start = _clamped(0 if start is None else start, 0, size)
    end = _clamped(size if end is None or (isinstance(end, int) and end >= 1 << 62) else end, start, size)
    return start, (end - start + step - 1) // step


def _clamped(index: Size, least: Size, size: Size) -> Size:
    """Return an index that may count from the end, not less than one index and not beyond the elements."""
    index = index + size if compare(index, 0) < 0 else index
    return least if compare(index, least) < 0 else size if compare(index, size) > 0 else index


def sliced(self: Tensor, dim: int = 0, start: Size | None = None, end: Size | None = None, step: Size = 1) -> Tensor:
    """Return a view of some indices along a dimension."""
    place = place_of(self, dim)
    expect(at_least(step, 1), f"step: expected 1 or more, got {text(step)}")
    first, length = decided(sliced_size, self.sizes[place], start, end, step) or (None, unknown())
    return replace(cut(self, place, length, step), offset=offset_at(self, place, first))


def cut(self: Tensor, dim: int, length: Size, step: Size = 1) -> Tensor:
    """Return a view with another length of one dimension, and longer steps along it."""
    strides = self.strides
    if strides is not None:
        strides = (*strides[:dim], strides[dim] * step, *strides[dim + 1 :])
    return replace(self, sizes=(*self.sizes[:dim], length, *self.sizes[dim + 1 :]), strides=strides)


def pieces(self: Tensor, dim: int, lengths: Sequence[Size]) -> list[Tensor]:
    """Return consecutive views along a dimension."""
    result = []
    start: Size = 0
    for length in lengths:
        result.append(replace(cut(self, dim, length), offset=offset_at(self, dim, start)))
        start = start + length
    return result


def even_lengths(size: Size, length: Size) -> list[Size]:
    """Return the lengths of equal pieces, of which the last one may be shorter; how many follows from the example.

    Raises:
        Unknown: symbols decide how many there are.
    """
    if size == 0:
        return [0]
    count: Size | None = -(-size // length)
    if not isinstance(count, int):
        values = hint(size), hint(length)
        count = -(-values[0] // values[1]) if values[0] and values[1] else None
    if count is None or count > MAX_RESULTS:
        raise Unknown("symbols decide how many pieces there are, or they are too many")
    return [*[length] * (count - 1), size - length * (count - 1)]


def sections_of(self: Tensor, sections: int, place: int) -> list[Tensor]:
    """Return a number of views along a dimension, of which the first ones may be longer by one."""
    expect(sections >= 1, f"sections: expected 1 or more, got {sections}")
    size = self.sizes[place]
    longer = hint(size % sections)
    if longer is None or sections > MAX_RESULTS:
        raise Unknown("symbols decide which pieces are longer, or they are too many")
    return pieces(self, place, [size // sections + (at < longer) for at in range(sections)])


def split_at(self: Tensor, indices: Sizes, place: int) -> list[Tensor]:
    """Return views between indices along a dimension."""
    starts: list[Size | None] = [None, *indices]
    return [sliced(self, place, start, end) for start, end in zip(starts, [*indices, None], strict=True)]


def place_in(self: Tensor, least: int) -> int:
    """Return the dimension that hsplit (1), vsplit (2) or dsplit (3) splits."""
    require(self.rank >= least, "dimension", f"self: expected {count_text(least, 'dimension')} or more", self)
    return {1: min(self.rank - 1, 1), 2: 0, 3: 2}[least]


def equal_sections(self: Tensor, sections: int, place: int) -> list[Tensor]:
    """Return views of equal lengths along a dimension."""
    size = self.sizes[place]
    fits = sections >= 1 and same(size % sections, 0)
    expect(fits, f"sections: expected a number that divides {text(size)}, got {sections}")
    return sections_of(self, sections, place)


_INTEGERS: Final = (ScalarType.LONG, ScalarType.INT)
_MASKS: Final = (ScalarType.BOOL, ScalarType.BYTE)


def require_dtype_of(self: Tensor, other: Tensor, name: str) -> None:
    """Refuse a tensor of another dtype."""
    if self.dtype is not None:
        require_dtype(other, (self.dtype,), name)


def indexed_sizes(self: Tensor, indices: Sequence[Tensor | None]) -> tuple[tuple[Size, ...], tuple[int, ...]]:
    """Return the sizes of a tensor indexed by tensors, and the dimensions of it that are kept, in their order.

    A mask counts as one index for each of its dimensions. The sizes that the indices broadcast to are where the first
    index is if they are next to each other, else in front.

    Raises:
        Mismatch: too many indices, other dtypes, or a mask that does not fit.
    """
    places: list[int] = []
    shapes: list[Sizes] = []
    place = 0
    for index in indices:
        if index is None:
            place += 1
            continue
        require_dtype(index, (*_INTEGERS, *_MASKS), "indices")
        count = 1
        if index.dtype in _MASKS:
            count = index.rank
            if not count:
                raise Unknown("a mask without dimensions")
            for one, other in zip(index.sizes, self.sizes[place:], strict=False):
                agree(one, other, "indices: expected a mask of the sizes of self")
        elif index.dtype is None:
            raise Unknown("the dtype of an index is not known")
        shapes.append((some_of(index),) if index.dtype in _MASKS else index.sizes)
        places += range(place, place + count)
        place += count
    require(place <= self.rank, "sizes", f"indices: expected at most {self.rank}", place)
    if not places:
        raise Unknown("there is no index")
    if not shapes[-1] and any(shapes):
        raise Unknown("fake tensors and kernels differ if the last index alone is a scalar tensor")
    shape = broadcast(*shapes)
    kept = tuple([dim for dim in range(self.rank) if dim not in places])
    is_together = places == list(range(places[0], places[-1] + 1))
    front = [self.sizes[dim] for dim in kept if is_together and dim < places[0]]
    back = [self.sizes[dim] for dim in kept if not is_together or dim > places[0]]
    return (*front, *shape, *back), kept


def is_in_order(self: Tensor, dims: Sequence[int]) -> bool:
    """Return whether some dimensions are known to be in memory in their order."""
    if self.strides is None:
        return False
    pairs = pairwise([self.strides[dim] for dim in dims])
    return decided(all, (one != 0 and compare(one, other) > 0 for one, other in pairs)) is True


def require_index(self: Tensor, dim: int, index: Tensor, other: Tensor | None = None) -> None:
    """Refuse an index of elements along a dimension that reaches beyond the tensors."""
    place = axis(dim, self.rank)
    if 0 in index.sizes:
        return
    require_dtype(index, _INTEGERS, "index")
    for one in (self,) if other is None else (self, other):
        is_fitting = max(one.rank, 1) == max(index.rank, 1)
        require(is_fitting, "sizes", f"index: expected {count_text(one.rank, 'dimension')}", index)
        for at, (size, length) in enumerate(zip(one.sizes, index.sizes, strict=False)):
            if (one is not self or at != place) and at_least(size - length, 0) is False:
                raise Mismatch(f"index: expected at most {text(size)} of dimension {at}, got {text(length)}", "sizes")
