"""Tensors -> shadows of them, arrays that say of each element whether anything was written to it.

A shadow is a numpy array of bools, True where nothing was written. Views of a tensor are views of its shadow, so that
a write through one is seen through all. A dimension whose size is a symbol has one element in the shadow: it is
written, or looked at, as a whole or not at all. What cannot be followed loses its array: then nothing that is written
there counts, and everything that is read there may be what was never written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any, Final, TypeGuard

MAX_ELEMENTS: Final = 1 << 24
"""Elements of one shadow; larger tensors are followed as a whole only."""

_LAST: Final = 1 << 62
_MOST_ALIASES: Final = 64

Size = int | None
Sizes = tuple[Size, ...]
"""Sizes of a tensor; None where a symbol decides."""


@dataclass(slots=True, eq=False)
class Memory:
    """What several values may share.

    Args:
        origin: the value that brought it.
        cells: one bool for each element of the storage, True where nothing was written; None where all was.
        spoiled: what was computed from unwritten memory was put here.
        use: the place where that was computed; None where the memory itself was never written.
        linked: memories that this one may be the same as.
        changed: something was written here, or may have been.
        may_be: memories whose numbers the file tells, of which this one may be one; a write here may change them.
        depends: to be called where it matters that the tensor has the sizes that the file declares.
        exact: the cells lie as torch lays out the tensor, so that its strides are those of the mask.
        row: cells for each entry of the first dimension, where that alone is a symbol: the cells stand for all rows.
    """

    origin: str = ""
    cells: Any = None
    spoiled: bool = False
    use: Any = None
    linked: list[Memory] = field(default_factory=list)
    changed: bool = False
    may_be: frozenset[Memory] = frozenset()
    exact: bool = False
    row: int | None = None
    depends: Callable[[], None] | None = None

    def note_dependence(self) -> None:
        """Note that a part is written, or left out: which part of all it is depends on the sizes."""
        if self.depends is not None:
            self.depends()

    def change(self) -> None:
        """Note that something may have been written here."""
        self.changed = True
        for memory in self.may_be:
            memory.changed = True

    def note_alias(self, other: Memory) -> None:
        """Note that this memory may be another one, which was there before."""
        self.may_be |= other.may_be
        if len(self.may_be) > _MOST_ALIASES:
            self.change()
            self.may_be = frozenset()

    def spoil(self, use: Any) -> None:
        """Note that something computed from unwritten memory stands here, and wherever else this memory may be."""
        stack = [self]
        while stack:
            memory = stack.pop()
            memory.change()
            if not memory.spoiled:
                memory.spoiled, memory.use = True, use
                stack += memory.linked


@dataclass(frozen=True, slots=True, eq=False)
class Shadow:
    """What is known of one tensor.

    Args:
        memory: what it shares with its views.
        sizes: of the tensor, None for symbols; None as a whole where the tensor cannot be followed.
        mask: True where nothing was written: an array over the memory's cells, with one element for a symbol's
            dimension; None where all was written, or the tensor cannot be followed.
        whole: it is all of its memory.
    """

    memory: Memory
    sizes: Sizes | None = None
    mask: Any = None
    whole: bool = False

    @property
    def unwritten(self) -> bool:
        """Whether some element may be what was never written."""
        if self.memory.spoiled:
            return True
        cells = self.memory.cells if self.mask is None else self.mask
        return cells is not None and bool(cells.any())

    def write(self) -> None:
        """Note that all of it was written."""
        self.memory.change()
        if not self.whole:
            self.memory.note_dependence()
        if self.mask is not None and self.mask.flags.writeable:
            self.mask[...] = False
        if self.whole:
            self.memory.spoiled = False
            if self.memory.cells is not None:
                self.memory.cells[...] = False


def fresh(origin: str, sizes: Sizes | None, strides: Sequence[int] | None = None) -> Shadow:
    """A tensor to which nothing was written.

    Args:
        origin: its name.
        sizes: its sizes.
        strides: in elements, where they are not those of a contiguous tensor; all sizes must be plain then.
    """
    import numpy

    shape = None if sizes is None else tuple(1 if size is None else size for size in sizes)
    needed = _LAST if shape is None else _span(shape, strides) if strides is not None else prod(shape)
    if shape is None or needed > MAX_ELEMENTS:
        return Shadow(Memory(origin, numpy.ones(1, bool)), whole=True)
    cells = numpy.ones(needed, bool)
    mask = cells.reshape(shape) if strides is None else _strided(cells, shape, strides, 0)
    row = _row(sizes)
    exact = sizes is not None and (None not in sizes or row is not None)
    return Shadow(Memory(origin, cells, exact=exact, row=row), sizes, mask, whole=needed == prod(shape))


def _row(sizes: Sizes | None) -> int | None:
    """Elements of one entry of the first dimension, where that alone is a symbol."""
    if not sizes or sizes[0] is not None or None in sizes[1:]:
        return None
    return prod(size for size in sizes if size is not None)


def copied(shadow: Shadow, mask: Any = None, sizes: Sizes | None = None) -> Shadow:
    """A tensor of its own with the elements of another.

    Args:
        shadow: the other.
        mask: True where an element is one that was never written, if not as there.
        sizes: of the new tensor, if there is a mask.
    """
    origin = shadow.memory.origin
    mask, sizes = (shadow.mask, shadow.sizes) if mask is None else (mask, sizes)
    if shadow.memory.spoiled or mask is None or sizes is None:
        memory = Memory(origin)
        if shadow.unwritten:
            memory.spoiled, memory.use = True, shadow.memory.use
        return Shadow(memory, whole=True)
    cells = mask.copy(order="C").reshape(-1)
    return Shadow(Memory(origin, cells, row=_row(sizes)), sizes, cells.reshape(mask.shape), whole=True)


def restrided(shadow: Shadow, sizes: Sequence[Any], strides: Sequence[Any], offset: int | None) -> Shadow:
    """Another look at the storage of a tensor (`as_strided`), whose shadow must lie as the tensor does.

    Where the cells stand for all rows of a tensor, they are looked at only: what is written through such a look may
    miss some rows.

    Args:
        shadow: the tensor.
        sizes, strides, offset: in elements; no offset means that of the tensor. Symbols are their names.
    """
    cells = shadow.memory.cells
    if shadow.mask is None or (not sizes and not shadow.sizes):
        return lost(shadow)
    if offset is None:
        offset = shadow.mask.__array_interface__["data"][0] - cells.__array_interface__["data"][0]
    rows: tuple[Size, ...] = ()
    if shadow.memory.row is not None and sizes and strides and strides[0] == shadow.memory.row:
        rows, sizes, strides = (None,), sizes[1:], strides[1:]
    if not are_ints(sizes) or not are_ints(strides) or offset < 0 or offset + _span(sizes, strides) > len(cells):
        return lost(shadow)
    mask = _strided(cells, sizes, strides, offset)
    if shadow.memory.row is not None:
        mask.flags.writeable = False
        mask = mask[None] if rows else mask
    return Shadow(shadow.memory, (*rows, *sizes), mask)


def lies_as(shadow: Shadow, strides: Sequence[Any]) -> bool:
    """Whether a tensor of these strides lies as its shadow does."""
    if shadow.mask is None or shadow.sizes is None or len(strides) != len(shadow.sizes):
        return False
    if None in shadow.sizes:
        of_all_rows = shadow.whole and _row(shadow.sizes) is not None and strides[0] == shadow.memory.row
        return of_all_rows and lies_as(Shadow(shadow.memory, shadow.sizes[1:], shadow.mask[0]), strides[1:])
    pairs = zip(shadow.sizes, strides, shadow.mask.strides, strict=True)
    return all(size in (0, 1) or step == own for size, step, own in pairs)


def lost(shadow: Shadow) -> Shadow:
    """A part of a tensor that cannot be followed."""
    return Shadow(shadow.memory)


def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements of a storage a tensor reaches over."""
    if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
        return _LAST
    return 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))


def _strided(cells: Any, shape: Sequence[int], strides: Sequence[int], offset: int) -> Any:
    from numpy.lib.stride_tricks import as_strided

    return as_strided(cells[offset:], tuple(shape), tuple(strides))  # a bool is one byte


def joined(shape: Sequence[int], operands: Sequence[Sizes]) -> Sizes:
    """The sizes of what is computed element by element.

    Args:
        shape: of the result's array.
        operands: the sizes of each operand, in whose array one element stands for a symbol's dimension.
    """
    made: list[Size] = list(shape)
    for sizes in operands:
        for place, size in enumerate(reversed(sizes), 1):
            if size is None and made[-place] == 1:
                made[-place] = None
    return tuple(made)


# Views. Each function takes a followed tensor and the arguments of the call by name, and gives the result, a list of
# results, or None for what cannot be followed.

Arguments = Mapping[str, Any]
View = Callable[[Any, Sizes, Arguments], "tuple[Any, Sizes] | list[tuple[Any, Sizes]] | None"]


def _place(dim: Any, rank: int) -> int | None:
    if type(dim) is not int or not -max(rank, 1) <= dim < max(rank, 1):
        return None
    return dim % max(rank, 1)


def _select(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes] | None:
    dim, index = _place(call.get("dim", 0), len(sizes)), call.get("index")
    if dim is None or not sizes or type(index) is not int or (size := sizes[dim]) is None:
        return None
    if not -size <= index < size:
        return None
    return mask[(slice(None),) * dim + (index, ...)], sizes[:dim] + sizes[dim + 1 :]


def _slice(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes] | None:
    dim = _place(call.get("dim", 0), len(sizes))
    start, end, step = call.get("start"), call.get("end"), call.get("step", 1)
    start, end = 0 if start is None else start, _LAST if end is None else end
    if dim is None or not sizes or any(type(value) is not int for value in (start, end, step)) or step < 1:
        return None
    size = sizes[dim]
    if size is None:
        return (mask, sizes) if start == 0 and end >= _LAST and step == 1 else None
    chosen = range(*slice(start, end, step).indices(size))
    cut = mask[(slice(None),) * dim + (slice(chosen.start, chosen.stop, step),)]
    return cut, (*sizes[:dim], len(chosen), *sizes[dim + 1 :])


def _narrow(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes] | None:
    start, length, dim = call.get("start"), call.get("length"), _place(call.get("dim", 0), len(sizes))
    if type(start) is not int or type(length) is not int or dim is None or not sizes:
        return None
    size = sizes[dim]
    if size is None or not -size <= start <= size:
        return None
    start += size if start < 0 else 0
    return _slice(mask, sizes, {"dim": dim, "start": start, "end": start + length})


def _pieces(mask: Any, sizes: Sizes, dim: Any, lengths: Sequence[int]) -> list[tuple[Any, Sizes]] | None:
    pieces, start = [], 0
    for length in lengths:
        piece = _narrow(mask, sizes, {"dim": dim, "start": start, "length": length})
        if piece is None:
            return None
        pieces.append(piece)
        start += length
    return pieces


def _unbind(mask: Any, sizes: Sizes, call: Arguments) -> list[tuple[Any, Sizes]] | None:
    dim = _place(call.get("dim", 0), len(sizes))
    if dim is None or not sizes or (size := sizes[dim]) is None:
        return None
    pieces = [_select(mask, sizes, {"dim": dim, "index": index}) for index in range(min(size, 4096))]
    return None if size > len(pieces) else [piece for piece in pieces if piece is not None]


def _split(mask: Any, sizes: Sizes, call: Arguments) -> list[tuple[Any, Sizes]] | None:
    lengths = call.get("split_sizes", call.get("split_size"))
    dim = _place(call.get("dim", 0), len(sizes))
    if dim is None or not sizes or (size := sizes[dim]) is None:
        return None
    if "chunks" in call and type(call["chunks"]) is int and call["chunks"] > 0:
        lengths = -(-size // call["chunks"])
    if type(lengths) is int and lengths > 0 and size <= 4096 * lengths:
        lengths = [min(lengths, size - start) for start in range(0, size, lengths)]
    return _pieces(mask, sizes, dim, lengths) if are_ints(lengths) else None


def _permute(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes] | None:
    dims = call.get("dims", call.get("permutation"))
    if not are_ints(dims):
        return None
    order = [_place(dim, len(sizes)) for dim in dims]
    if None in order or len(set(order)) != len(sizes):
        return None
    return mask.transpose(order), tuple(sizes[dim] for dim in order if dim is not None)


def _transpose(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes] | None:
    if "permutation" in call:
        return _permute(mask, sizes, call)
    first, second = _place(call.get("dim0", 0), len(sizes)), _place(call.get("dim1", 1), len(sizes))
    order = list(range(len(sizes)))
    if first is None or second is None or len(sizes) < 2:
        return (mask, sizes) if len(sizes) < 2 else None
    order[first], order[second] = order[second], order[first]
    return _permute(mask, sizes, {"dims": order})


def _unsqueeze(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes] | None:
    dim = _place(call.get("dim"), len(sizes) + 1)
    if dim is None:
        return None
    return mask[(slice(None),) * dim + (None,)], (*sizes[:dim], 1, *sizes[dim:])


def _squeeze(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes] | None:
    dim_argument = call.get("dim", call.get("dimensions", list(range(len(sizes)))))
    dims = [_place(dim, len(sizes)) for dim in (dim_argument if isinstance(dim_argument, list) else [dim_argument])]
    if None in dims or any(sizes[dim] is None for dim in dims if dim is not None and sizes):
        return None
    gone = {dim for dim in dims if sizes and dim is not None and sizes[dim] == 1}
    kept = [number for number in range(len(sizes)) if number not in gone]
    return mask.squeeze(tuple(gone)), tuple(sizes[dim] for dim in kept)


def _expand(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes] | None:
    asked = call.get("size", call.get("shape"))
    if not isinstance(asked, list) or len(asked) < len(sizes):
        return None
    dims = call.get("broadcast_dimensions", list(range(len(asked) - len(sizes), len(asked))))
    if not are_ints(dims) or len(dims) != len(sizes) or sorted(set(dims)) != dims:
        return None
    inner: list[Size] = [1] * len(asked)
    for dim, size in zip(dims, sizes, strict=True):
        inner[dim] = size
    made: list[Size] = []
    for size, wanted in zip(inner, asked, strict=True):
        if size is None or wanted == -1 or (type(wanted) is not int and size != 1):
            made.append(size)
        else:
            made.append(wanted if type(wanted) is int else None)
            if size != 1 and made[-1] != size:
                return None
    return _broadcast(mask.reshape([1 if size is None else size for size in inner]), tuple(made))


def _broadcast(mask: Any, sizes: Sizes) -> tuple[Any, Sizes] | None:
    import numpy

    shape = [1 if size is None else size for size in sizes]
    if prod(shape) > MAX_ELEMENTS:
        return None
    return (mask, sizes) if list(mask.shape) == shape else (numpy.broadcast_to(mask, shape), sizes)


def _view(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes] | None:
    """Another shape; what lies between two symbols must stay the same number of elements."""
    asked = call.get("size", call.get("shape"))
    made = None if not isinstance(asked, list) else _inferred(asked, sizes)
    # With symbols in two places, the sizes of both could change together.
    if made is None or _between(made) != _between(sizes) or len(_between(sizes)) > 2:
        return None
    try:
        other = mask.reshape([1 if size is None else size for size in made])
    except ValueError:
        return None
    return (other, made) if other.__array_interface__["data"] == mask.__array_interface__["data"] else None


def _inferred(asked: Sequence[Any], sizes: Sizes) -> Sizes | None:
    made: list[Size] = [size if type(size) is int else None for size in asked]
    if -1 not in made:
        return tuple(made)
    symbols = sizes.count(None)
    if made.count(None) == symbols:
        rest = prod(size for size in made if size is not None and size != -1)
        made[made.index(-1)] = prod(size for size in sizes if size is not None) // rest if rest else 0
    else:
        made[made.index(-1)] = None
    return tuple(made)


def _between(sizes: Sizes) -> list[int]:
    """How many elements stand before, between and after the symbols; symbols side by side count as one."""
    counts, last = [1], False
    for size in sizes:
        if size is None and not last:
            counts.append(1)
        elif size is not None:
            counts[-1] *= size
        last = size is None if size != 1 else last
    return counts


def _collapse(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes] | None:
    start, end = call.get("start"), call.get("end")
    if type(start) is not int or type(end) is not int or not 0 <= start <= end < len(sizes):
        return None
    joined = sizes[start : end + 1]
    size = None if None in joined else prod(size for size in joined if size is not None)
    return _view(mask, sizes, {"size": [*sizes[:start], size, *sizes[end + 1 :]]})


def _as_it_is(mask: Any, sizes: Sizes, call: Arguments) -> tuple[Any, Sizes]:
    return mask, sizes


def are_ints(value: Any) -> TypeGuard[list[int]]:
    """Whether a value is a list of plain numbers."""
    return isinstance(value, list) and all(type(entry) is int for entry in value)


_ATEN: Final[Mapping[str, View]] = MappingProxyType(
    {
        "select": _select,
        "slice": _slice,
        "narrow": _narrow,
        "unbind": _unbind,
        **dict.fromkeys(("split", "split_with_sizes", "chunk"), _split),
        "permute": _permute,
        **dict.fromkeys(("transpose", "swapaxes", "swapdims", "t"), _transpose),
        "mT": lambda mask, sizes, call: _transpose(mask, sizes, {"dim0": -2, "dim1": -1}),
        "unsqueeze": _unsqueeze,
        "squeeze": _squeeze,
        **dict.fromkeys(("expand", "broadcast_to"), _expand),
        **dict.fromkeys(("view", "_unsafe_view", "reshape"), _view),
        **dict.fromkeys(("alias", "detach", "lift", "lift_fresh", "positive"), _as_it_is),
    }
)
VIEWS: Final[Mapping[str, View]] = MappingProxyType(
    {
        **{f"aten.{name}": view for name, view in _ATEN.items()},
        **{f"aten.{name}_copy": view for name, view in _ATEN.items()},
        "prims.broadcast_in_dim": _expand,
        "prims.collapse_view": _collapse,
        "prims.transpose": _permute,
        "prims.squeeze": _squeeze,
        "prims.view_of": _as_it_is,
    }
)
"""Operator, without overload -> how its result looks at the memory of its first argument; `…_copy` at a copy of it."""
