"""Views of a tensor, indexing by constants, and tensors joined or cut: sizes, strides and offsets by arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.calling import Call, Rule, Unknown, axis, is_row_major, like, meta_of, size_like
from pt2kit.editing.infer_elements import joined, rank_of
from pt2kit.editing.sizes import is_one, known, number, product, quotient, same, total
from pt2kit.editing.values import Value
from pt2kit.schema import ScalarType, SymInt, TensorMeta
from pt2kit.tensors.dtypes import DTYPES

_LAST: Final = 2**63 - 1


def _view(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    sizes = wanted_sizes(meta, call.get("size", call.get("shape")))
    if arithmetic.all_same(sizes, meta.sizes):
        return meta
    if not is_row_major(meta):
        raise Unknown("the tensor is not row-major")
    return like(meta, sizes, offset=meta.storage_offset)


def wanted_sizes(meta: TensorMeta, asked: Sequence[Any]) -> list[SymInt]:
    """The sizes that a view asks for, with what -1 stands for.

    Raises:
        Unknown: other numbers of elements, or several -1.
    """
    listed = [None if size == -1 else size_like(size) for size in asked]
    count = product(meta.sizes)
    rest = product(size for size in listed if size is not None)
    if listed.count(None) > 1:
        raise Unknown("several sizes of -1")
    if None not in listed:
        if not same(count, rest):
            raise Unknown("the sizes are of another number of elements, or symbols decide")
        return [size for size in listed if size is not None]
    if known(rest) == 0:
        raise Unknown("a size of -1 beside one of 0")
    missing = quotient(count, rest)
    if not same(product((missing, rest)), count):
        raise Unknown("a size of -1 that symbols decide")
    return [missing if size is None else size for size in listed]


def _reshape(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    sizes = wanted_sizes(meta, call.get("shape", call.get("size")))
    if is_row_major(meta):
        return meta if arithmetic.all_same(sizes, meta.sizes) else like(meta, sizes, offset=meta.storage_offset)
    raise Unknown("the tensor is not row-major")


def _flatten(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    rank = len(meta.sizes)
    start, end = axis(call.number("start_dim", 0), rank), axis(call.number("end_dim", -1), rank)
    if start == end and rank:
        return meta
    if not is_row_major(meta):
        raise Unknown("the tensor is not row-major")
    sizes = [*meta.sizes[:start], product(meta.sizes[start : end + 1]), *meta.sizes[end + 1 :]]
    return like(meta, sizes, offset=meta.storage_offset)


def _changed(meta: TensorMeta, sizes: Sequence[SymInt], strides: Sequence[SymInt]) -> TensorMeta:
    return like(meta, sizes, strides, offset=meta.storage_offset)


def _unsqueeze(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    place = axis(call.number("dim"), len(meta.sizes) + 1)
    step = number(1) if place == len(meta.sizes) else product((meta.sizes[place], meta.strides[place]))
    sizes = [*meta.sizes[:place], number(1), *meta.sizes[place:]]
    return _changed(meta, sizes, [*meta.strides[:place], step, *meta.strides[place:]])


def _squeeze(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    rank = len(meta.sizes)
    dims = call.get("dim")
    if dims is None:
        chosen = set(range(rank))
        if any(known(size) is None for size in meta.sizes):
            raise Unknown("symbols decide which sizes are 1")
    else:
        chosen = {axis(dim, rank) for dim in (dims if isinstance(dims, list) else [dims])}
    if any(known(meta.sizes[place]) is None for place in chosen if place < rank):
        raise Unknown("symbols decide which sizes are 1")
    kept = [place for place in range(rank) if place not in chosen or not is_one(meta.sizes[place])]
    return _changed(meta, [meta.sizes[place] for place in kept], [meta.strides[place] for place in kept])


def _ordered(meta: TensorMeta, order: Sequence[int]) -> TensorMeta:
    return _changed(meta, [meta.sizes[place] for place in order], [meta.strides[place] for place in order])


def _permute(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    order = [axis(dim, len(meta.sizes)) for dim in call.get("dims")]
    if sorted(order) != list(range(len(meta.sizes))):
        raise Unknown("the dimensions are no permutation")
    return _ordered(meta, order)


def _transpose(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    rank = len(meta.sizes)
    a, b = axis(call.number("dim0"), rank), axis(call.number("dim1"), rank)
    order = list(range(rank))
    if rank:
        order[a], order[b] = order[b], order[a]
    return _ordered(meta, order)


def _t(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    if len(meta.sizes) > 2:
        raise Unknown("t takes at most two dimensions")
    return _ordered(meta, list(range(len(meta.sizes)))[::-1])


def _expand(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    asked = call.get("size")
    new = len(asked) - len(meta.sizes)
    if new < 0:
        raise Unknown("fewer sizes than the tensor has")
    sizes, strides = [], []
    for place, wanted in enumerate(asked):
        if place < new:
            sizes.append(size_like(wanted))
            strides.append(number(0))
            continue
        size, stride = meta.sizes[place - new], meta.strides[place - new]
        target = size if wanted == -1 else size_like(wanted)
        if same(target, size):
            sizes.append(size)
            strides.append(stride)
        elif is_one(size):
            sizes.append(target)
            strides.append(number(0))
        else:
            raise Unknown("a size that is not 1 and not the one asked for")
    return _changed(meta, sizes, strides)


def _slice(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    place = axis(call.number("dim", 0), len(meta.sizes))
    size = meta.sizes[place]
    step = call.number("step", 1)
    start, end = call.get("start"), call.get("end")
    start = 0 if start is None else start
    end = _LAST if end is None else end
    if not isinstance(start, int) or not isinstance(end, int) or step < 1:
        raise Unknown("ends that are no known numbers")
    length = known(size)
    if length is not None:
        start = min(max(start + length if start < 0 else start, 0), length)
        end = min(max(end + length if end < 0 else end, start), length)
        count = number((end - start + step - 1) // step)
    elif start == 0 and end >= _LAST and step == 1:
        return meta
    else:
        raise Unknown("a size that symbols decide")
    sizes, strides = list(meta.sizes), list(meta.strides)
    offset = total((meta.storage_offset, product((number(start), strides[place]))))
    sizes[place], strides[place] = count, product((number(step), strides[place]))
    return like(meta, sizes, strides, offset=offset)


def _select(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    place = axis(call.number("dim"), len(meta.sizes))
    index, length = call.number("index"), known(meta.sizes[place])
    if index < 0:
        if length is None:
            raise Unknown("an index from the end of a size that symbols decide")
        index += length
    if length is not None and not 0 <= index < length:
        raise Unknown("an index outside the tensor")
    offset = total((meta.storage_offset, product((number(index), meta.strides[place]))))
    sizes = [*meta.sizes[:place], *meta.sizes[place + 1 :]]
    return like(meta, sizes, [*meta.strides[:place], *meta.strides[place + 1 :]], offset=offset)


def _cat(call: Call) -> TensorMeta:
    metas = [meta_of(one) for one in call.get("tensors")]
    if not metas or any(len(one.sizes) != len(metas[0].sizes) for one in metas):
        raise Unknown("tensors of different numbers of dimensions")
    if not all(is_row_major(one) and one.device == metas[0].device for one in metas):
        raise Unknown("tensors that are not row-major, or on several devices")
    place = axis(call.number("dim", 0), len(metas[0].sizes))
    sizes = list(metas[0].sizes)
    for one in metas[1:]:
        if any(not same(a, b) for i, (a, b) in enumerate(zip(sizes, one.sizes, strict=True)) if i != place):
            raise Unknown("tensors of different sizes")
    sizes[place] = total(one.sizes[place] for one in metas)
    return _joined(metas, sizes)


def _stack(call: Call) -> TensorMeta:
    metas = [meta_of(one) for one in call.get("tensors")]
    if not metas or not all(arithmetic.all_same(one.sizes, metas[0].sizes) for one in metas):
        raise Unknown("tensors of different sizes")
    if any(one.device != metas[0].device for one in metas):
        raise Unknown("tensors on several devices")
    place = axis(call.number("dim", 0), len(metas[0].sizes) + 1)
    sizes = [*metas[0].sizes[:place], number(len(metas)), *metas[0].sizes[place:]]
    return _joined(metas, sizes)


def _joined(metas: Sequence[TensorMeta], sizes: Sequence[SymInt]) -> TensorMeta:
    dtype = metas[0].dtype
    for one in metas[1:]:
        dtype = joined(dtype, one.dtype)
    gradient = any(one.requires_grad for one in metas) and DTYPES[dtype].has_gradient
    return like(metas[0], sizes, dtype=dtype, gradient=gradient)


def _pieces(meta: TensorMeta, place: int, lengths: Sequence[SymInt]) -> list[TensorMeta]:
    pieces, start = [], meta.storage_offset
    for length in lengths:
        sizes = list(meta.sizes)
        sizes[place] = length
        pieces.append(like(meta, sizes, meta.strides, offset=start))
        start = total((start, product((length, meta.strides[place]))))
    return pieces


def _split(call: Call) -> list[TensorMeta]:
    meta = call.tensor("self")
    place = axis(call.number("dim", 0), len(meta.sizes))
    asked, length = call.get("split_size", call.get("split_sizes")), known(meta.sizes[place])
    if isinstance(asked, list):
        return _pieces(meta, place, [size_like(size) for size in asked])
    if not isinstance(asked, int) or asked < 1 or length is None:
        raise Unknown("sizes that are no known numbers")
    return _pieces(meta, place, [number(min(asked, length - start)) for start in range(0, max(length, 1), asked)])


def _chunk(call: Call) -> list[TensorMeta]:
    meta = call.tensor("self")
    place = axis(call.number("dim", 0), len(meta.sizes))
    chunks, length = call.number("chunks"), known(meta.sizes[place])
    if not length or chunks < 1:
        raise Unknown("a size that is no known number")
    step = -(-length // chunks)
    return _pieces(meta, place, [number(min(step, length - start)) for start in range(0, length, step)])


def _unbind(call: Call) -> list[TensorMeta]:
    meta = call.tensor("self")
    place = axis(call.number("dim", 0), len(meta.sizes))
    length = known(meta.sizes[place])
    if length is None:
        raise Unknown("a size that symbols decide")
    return [_select(Call({**call.arguments, "dim": place, "index": index})) for index in range(length)]


def _index_select(call: Call) -> TensorMeta:
    meta, index = call.tensor("self"), call.tensor("index")
    if not is_row_major(meta):
        raise Unknown("a tensor that is not row-major")
    if len(index.sizes) > 1:
        raise Unknown("an index of several dimensions")
    sizes = list(meta.sizes)
    if sizes:
        sizes[axis(call.number("dim"), len(sizes))] = index.sizes[0] if index.sizes else number(1)
    return like(meta, sizes)


def _gather(call: Call) -> TensorMeta:
    meta, index = call.tensor("self"), call.tensor("index")
    return like(meta, index.sizes)


def _index(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    indices = call.get("indices")
    chosen = [(place, one) for place, one in enumerate(indices) if one is not None]
    if len(chosen) != 1 or not isinstance(chosen[0][1], Value) or not is_row_major(meta):
        raise Unknown("several index tensors")
    place, index = chosen[0]
    index_meta = meta_of(index)
    if rank_of(index_meta.dtype) != 1 or index_meta.dtype is ScalarType.BYTE or not is_row_major(index_meta):
        raise Unknown("an index that is a mask")
    return like(meta, [*meta.sizes[:place], *index_meta.sizes, *meta.sizes[place + 1 :]])


def _repeat(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    times = [size_like(one) for one in call.get("repeats")]
    if len(times) < len(meta.sizes):
        raise Unknown("fewer numbers than the tensor has dimensions")
    padded = [number(1)] * (len(times) - len(meta.sizes)) + list(meta.sizes)
    return like(meta, [product(pair) for pair in zip(padded, times, strict=True)])


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "aten.view.default": _view,
        "aten._unsafe_view.default": _view,
        "aten.reshape.default": _reshape,
        "aten.flatten.using_ints": _flatten,
        "aten.unsqueeze.default": _unsqueeze,
        **{f"aten.squeeze.{kind}": _squeeze for kind in ("default", "dim", "dims")},
        "aten.permute.default": _permute,
        "aten.transpose.int": _transpose,
        "aten.t.default": _t,
        "aten.numpy_T.default": lambda call: _ordered(
            call.tensor("self"), list(range(len(call.tensor("self").sizes)))[::-1]
        ),
        "aten.expand.default": _expand,
        "aten.slice.Tensor": _slice,
        "aten.select.int": _select,
        "aten.cat.default": _cat,
        "aten.concat.default": _cat,
        "aten.stack.default": _stack,
        "aten.split.Tensor": _split,
        "aten.split_with_sizes.default": _split,
        "aten.chunk.default": _chunk,
        "aten.unbind.int": _unbind,
        "aten.index_select.default": _index_select,
        "aten.gather.default": _gather,
        "aten.index.Tensor": _index,
        "aten.repeat.default": _repeat,
    }
)
