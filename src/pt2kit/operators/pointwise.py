"""Results of element-wise operators: broadcast sizes, memory format of the operands, one device.

Source: `TensorIteratorBase::reorder_dimensions` and `compute_fast_setup_type` in aten/src/ATen/TensorIterator.cpp,
torch 2.13, for the strides of results.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pt2kit.operators.facts import Tensor, Unknown, broadcast, decided, like, new, require, row_major, unlike_strides
from pt2kit.operators.promotion import result_type
from pt2kit.schema import Device, Layout, ScalarType
from pt2kit.symbols.polynomials import Size, Undecided, hint, same


def pointwise(*operands: Any, dtype: ScalarType | Callable[[ScalarType], ScalarType] | None = None) -> Tensor:
    """Return the result of an element-wise operator.

    Args:
        operands: tensors, and numbers, which count in promotion only.
        dtype: of the result, or a function of the promoted dtype; by default the promoted one.

    Raises:
        Unknown: nothing is certain, such as for operands of other layouts.
        Mismatch: the operands do not broadcast, or are on different devices.
    """
    tensors = [one for one in operands if isinstance(one, Tensor)]
    if not tensors or any(one.layout is not Layout.Strided for one in tensors):
        raise Unknown("no strided operands")
    if dtype is None or not isinstance(dtype, ScalarType):
        try:
            promoted = result_type(*operands)
            dtype = promoted if dtype is None else dtype(promoted)
        except Unknown:
            dtype = None
    sizes = broadcast(*[one.sizes for one in tensors])
    return Tensor(sizes, dtype, element_strides(tensors, sizes, dtype), common_device(tensors))


def if_row_major(result: Tensor, *operands: Any) -> Tensor:
    """Return a result whose strides are known only if they are row-major: for operators whose memory order differs
    between kernels, decompositions and releases.

    Args:
        result: what an element-wise operator returns.
        operands: those that must be in this order, too, as kernels and decompositions differ in which comes first.
    """
    tensors = [one for one in operands if isinstance(one, Tensor)]
    alone = [pointwise(one) for one in tensors]
    if all(one.strides == row_major(one.sizes) for one in (result, *alone)) and all(map(_descends, tensors)):
        return result
    return Tensor(result.sizes, result.dtype, None, result.device, result.offset)


def _descends(tensor: Tensor) -> bool:
    """Return whether strides descend, also those of dimensions of size 1, which decompositions order dimensions by."""
    steps = [step for step in tensor.strides or () if step != 0]
    numbers = [step for step in steps if isinstance(step, int)]
    return tensor.strides == row_major(tensor.sizes) or (
        len(numbers) == len(steps) and numbers == sorted(numbers)[::-1]
    )


def like_if_contiguous(tensor: Tensor, sizes: Sequence[Size] | None = None, dtype: ScalarType | None = None) -> Tensor:
    """Return a new tensor that is row-major if the operand is contiguous; else its strides are not certain.

    Neither are they if the operand is laid out with channels last, too, as images of one pixel can be: releases and
    devices differ in which of the two other sizes get.
    """
    result = like(tensor, sizes, dtype)
    is_row_major = is_contiguous(tensor) and (sizes is None or decided(is_channels_last, tensor) is False)
    return result if is_row_major else unlike_strides(result)


def common_device(tensors: Sequence[Tensor]) -> Device | None:
    """Return the device that tensors share; scalar tensors on the CPU go with any device. None if it is not known.

    Raises:
        Mismatch: tensors are on different devices.
    """
    if any(one.device is None for one in tensors):
        return None
    devices = [one.device for one in tensors if one.device is not None and (one.sizes or one.device.type != "cpu")]
    if not devices:
        return tensors[0].device
    for device in devices[1:]:
        require(device == devices[0], "value", "expected tensors on one device", devices[0], device)
    return devices[0]


def element_strides(
    tensors: Sequence[Tensor], sizes: Sequence[Size], dtype: ScalarType | None = None
) -> tuple[Size, ...] | None:
    """Return the strides of a new element-wise result; None if the order of its dimensions is not certain.

    Args:
        tensors: the operands.
        sizes: of the result.
        dtype: of the result; None if it is that of the operands.
    """
    if any(one.strides is None for one in tensors):
        return None
    sizes = tuple(sizes)
    if all(is_contiguous(one) and (one.sizes == sizes or one.strides == row_major(one.sizes)) for one in tensors):
        return row_major(sizes)
    try:
        first = tensors[0]
        if all(one.sizes == first.sizes and one.strides == first.strides for one in tensors) and is_dense(first):
            return first.strides
        order = _memory_order(tensors, sizes)
        # Operands of other dtypes are converted to dense copies first, by fake tensors or by kernels of the CPU.
        is_cast = len({one.dtype for one in tensors} | {dtype or tensors[0].dtype}) > 1
        if is_cast and order != _memory_order(list(map(_dense, tensors)), sizes):
            return None
        return strides_in_order(sizes, order)
    except Undecided:
        return None


def is_contiguous(tensor: Tensor) -> bool:
    """Return whether a tensor is known to be contiguous; strides of dimensions of size 1 do not count."""
    if tensor.strides is None:
        return False
    step: Size = 1
    for size, stride in zip(reversed(tensor.sizes), reversed(tensor.strides), strict=True):
        if size == 0:
            return True
        if size == 1:
            continue
        if stride != step:
            return False
        step = step * size
    return True


def is_dense(tensor: Tensor) -> bool:
    """Return whether a tensor has no gaps and no overlaps in memory, in whatever order of its dimensions.

    Raises:
        Undecided: its symbols decide.
    """
    if tensor.strides is None:
        return False
    step: Size = 1
    pairs = [(stride, size) for size, stride in zip(tensor.sizes, tensor.strides, strict=True) if size != 1]
    for place in _sorted(list(range(len(pairs))), lambda one, other: compare(pairs[one][0], pairs[other][0])):
        stride, size = pairs[place]
        if stride != step:
            return False
        step = step * size
    return True


def preserved_strides(tensor: Tensor) -> tuple[Size, ...] | None:
    """Return the strides of a new tensor in the memory order of another one (`memory_format=torch.preserve_format`)."""
    return element_strides([tensor], tensor.sizes)


def strides_in_order(sizes: Sequence[Size], order: Sequence[int]) -> tuple[Size, ...]:
    """Return the strides of a dense tensor whose dimensions are in memory in a given order.

    Args:
        sizes: the sizes.
        order: its dimensions, the innermost first.
    """
    outermost_first = list(reversed(order))
    dense = row_major([sizes[dim] for dim in outermost_first])
    by_dim = dict(zip(outermost_first, dense, strict=True))
    return tuple([by_dim[dim] for dim in range(len(sizes))])


def channels_last(sizes: Sequence[Size]) -> tuple[Size, ...]:
    """Return the strides of a tensor of 4 or 5 dimensions whose channels are innermost in memory.

    Raises:
        Mismatch: another number of dimensions.
    """
    require(len(sizes) in (4, 5), "dimension", "expected 4 or 5 dimensions for channels_last", len(sizes))
    return strides_in_order(sizes, [1, *range(len(sizes) - 1, 1, -1), 0])


def is_channels_last(tensor: Tensor) -> bool:
    """Return whether torch suggests channels_last as the memory format of a tensor of 4 or 5 dimensions.

    Raises:
        Undecided: its symbols decide.
    """
    if tensor.strides is None or tensor.rank not in (4, 5):
        return False
    step: Size = 0
    strides, sizes = tensor.strides, tensor.sizes
    if strides[1] == 0:
        return False
    for dim in (1, *range(tensor.rank - 1, 1, -1), 0):
        if sizes[dim] == 0 or compare(strides[dim], step) < 0:
            return False
        if dim == 0 and step == strides[1]:
            return False
        step = strides[dim]
        if sizes[dim] != 1:
            step = step * sizes[dim]
    return True


def new_like(tensor: Tensor, dtype: ScalarType | None, strides: Sequence[Size] | None) -> Tensor:
    """Return a new tensor with the sizes and device of another one."""
    return Tensor(tensor.sizes, dtype, None if strides is None else tuple(strides), tensor.device)


def _memory_order(tensors: Sequence[Tensor], sizes: Sequence[Size]) -> list[int]:
    """Return the dimensions of an element-wise result, the innermost in memory first.

    Raises:
        Undecided: symbols decide; or the operands leave the order of two dimensions open, which kernels and fake
            tensors then order differently.
    """
    operands = [_stretched(one, sizes) for one in tensors]

    def by_strides(one: int, other: int) -> int:
        for strides in operands:
            if strides[one] == 0 or strides[other] == 0:
                continue
            if sign := compare(strides[one], strides[other]):
                return sign
            if compare(sizes[one], sizes[other]) > 0:
                return 1
        return 0

    row_major_order = list(range(len(sizes)))[::-1]
    if all(by_strides(*pair) <= 0 for pair in itertools.combinations(row_major_order, 2)):
        return row_major_order  # No dimension is moved, so it does not matter how the rest is compared.
    order = _sorted(row_major_order, by_strides)
    counted = [dim for dim in order if sizes[dim] != 1]
    if len(operands) > 1 and any(by_strides(*pair) >= 0 for pair in itertools.combinations(counted, 2)):
        raise Undecided("the order of dimensions in memory")
    return order


def _dense(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor as fake tensors make it: without gaps, in the same order of dimensions."""
    if tensor.strides is None or is_dense(tensor):
        return tensor
    return new(
        tensor.sizes, tensor.dtype, tensor.device, strides_in_order(tensor.sizes, _memory_order([tensor], tensor.sizes))
    )


def _sorted(places: list[int], order: Callable[[int, int], int]) -> list[int]:
    """Sort by insertion with comparisons that may be undecided (0), which keep the order."""
    for start in range(1, len(places)):
        at = start
        for before in range(start - 1, -1, -1):
            sign = order(places[before], places[at])
            if sign > 0:
                places[before], places[at] = places[at], places[before]
                at = before
            elif sign < 0:
                break
    return places


def _stretched(tensor: Tensor, sizes: Sequence[Size]) -> list[Size]:
    """Return the strides of an operand as the result's dimensions see them: 0 where it is broadcast."""
    if tensor.strides is None:
        raise Undecided("strides are not known")
    missing = len(sizes) - tensor.rank
    strides: list[Size] = [0] * missing
    for size, stride, wanted in zip(tensor.sizes, tensor.strides, sizes[missing:], strict=True):
        strides.append(0 if size == 1 and wanted != 1 else stride)
    return strides


def compare(one: Size, other: Size) -> int:
    """Return the sign of `one - other`; what symbols decide is decided by the values of the example, as torch does.

    Raises:
        Undecided: there are none.
    """
    if isinstance(one, int) and isinstance(other, int):
        return (one > other) - (one < other)
    if same(one, other):
        return 0
    difference = one - other
    try:
        return 1 if difference > 0 else -1 if difference < 0 else 0
    except Undecided:
        value = hint(difference)
        if value is None:
            raise
        return (value > 0) - (value < 0)
