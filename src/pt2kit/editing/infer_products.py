"""Matrix products, reductions, normalization and embedding: what their results are like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pt2kit.editing.calling import Call, Rule, Unknown, axis, broadcast, is_row_major, like, meta_of
from pt2kit.editing.infer_elements import dense_like, rank_of, with_floats
from pt2kit.editing.sizes import number, same
from pt2kit.editing.values import Value
from pt2kit.schema import ScalarType, SymInt, TensorMeta
from pt2kit.tensors.dtypes import DTYPES


def _gradient(metas: Sequence[TensorMeta], dtype: ScalarType) -> bool:
    return any(one.requires_grad for one in metas) and DTYPES[dtype].has_gradient


def _same_type(metas: Sequence[TensorMeta]) -> None:
    if any(one.dtype != metas[0].dtype or one.device != metas[0].device for one in metas):
        raise Unknown("operands of different types or devices")


def _meet(a: SymInt, b: SymInt) -> None:
    if not same(a, b):
        raise Unknown("sizes that do not meet, or that symbols decide")


def _linear(call: Call) -> TensorMeta:
    metas = [call.tensor("input"), call.tensor("weight")]
    if isinstance(call.get("bias"), Value):
        metas.append(call.tensor("bias"))
    _same_type(metas)
    data, weight = metas[0], metas[1]
    if len(weight.sizes) not in (1, 2) or not data.sizes:
        raise Unknown("operands of other numbers of dimensions")
    _meet(data.sizes[-1], weight.sizes[-1])
    if len(data.sizes) > 2 and not is_row_major(data):
        raise Unknown("an input that is not row-major")
    sizes = [*data.sizes[:-1], *weight.sizes[:-1]]
    return like(data, sizes, gradient=_gradient(metas, data.dtype))


def _matmul(call: Call) -> TensorMeta:
    a, b = call.tensor("self"), call.tensor("other" if "other" in call.arguments else "mat2")
    return _product(a, b, [a, b])


def _product(a: TensorMeta, b: TensorMeta, metas: Sequence[TensorMeta]) -> TensorMeta:
    _same_type([a, b])
    if not a.sizes or not b.sizes:
        raise Unknown("operands without dimensions")
    _meet(a.sizes[-1], b.sizes[-2] if len(b.sizes) > 1 else b.sizes[-1])
    batch = broadcast([a.sizes[:-2], b.sizes[:-2]])
    rows = a.sizes[-2:-1]
    columns = b.sizes[-1:] if len(b.sizes) > 1 else []
    if (
        max(len(a.sizes), len(b.sizes)) > 2
        and not (is_row_major(a) and is_row_major(b))
        and not (len(a.sizes) == len(b.sizes) == 3)
    ):
        raise Unknown("operands that are not row-major")
    return like(a, [*batch, *rows, *columns], gradient=_gradient(metas, a.dtype))


def _addmm(call: Call) -> TensorMeta:
    first, second = ("mat1", "mat2") if "mat1" in call.arguments else ("batch1", "batch2")
    metas = [call.tensor(first), call.tensor(second), call.tensor("self")]
    _same_type(metas)
    return _product(metas[0], metas[1], metas)


def _reduced(meta: TensorMeta, dims: Any, keepdim: bool) -> list[SymInt]:
    rank = len(meta.sizes)
    listed = [] if dims is None else dims if isinstance(dims, list) else [dims]
    chosen = {axis(dim, rank) for dim in listed} if listed else set(range(rank))
    if keepdim:
        return [number(1) if place in chosen else size for place, size in enumerate(meta.sizes)]
    return [size for place, size in enumerate(meta.sizes) if place not in chosen]


def _reduction(kind: str) -> Rule:
    """A reduction: "sum" makes ints long, "mean" needs floats, "same" keeps the type, "bool" and "long" give those."""

    def rule(call: Call) -> TensorMeta:
        meta = call.tensor("self")
        dtype = call.get("dtype")
        if dtype is None:
            dtype = {"bool": ScalarType.BOOL, "long": ScalarType.LONG}.get(kind, meta.dtype)
            if kind == "bool" and meta.dtype is ScalarType.BYTE:
                dtype = ScalarType.BYTE  # what stood for a bool before there was one
            if kind == "sum" and rank_of(dtype) < 2:
                dtype = ScalarType.LONG
            if kind == "mean" and rank_of(dtype) < 2:
                raise Unknown("the mean of numbers that are no floats")
        sizes = _reduced(meta, call.get("dim"), bool(call.get("keepdim", False)))
        if not is_row_major(meta) and len(sizes) > 1:
            raise Unknown("a tensor that is not row-major")
        return like(meta, sizes, dtype=dtype, gradient=_gradient([meta], dtype))

    return rule


def _extreme(call: Call) -> tuple[TensorMeta, TensorMeta]:
    meta = call.tensor("self")
    if not is_row_major(meta):
        raise Unknown("a tensor that is not row-major")
    sizes = _reduced(meta, call.number("dim"), bool(call.get("keepdim", False)))
    return like(meta, sizes), like(meta, sizes, dtype=ScalarType.LONG, gradient=False)


def _kept(parameter: str, *, reals: bool = True) -> Rule:
    """A result like one argument: softmax, normalization."""

    def rule(call: Call) -> TensorMeta:
        meta = call.tensor(parameter)
        dtype = call.get("dtype")
        dtype = (with_floats(meta.dtype) if reals else meta.dtype) if dtype is None else dtype
        others = [one.meta for one in call.arguments.values() if isinstance(one, Value) and one.kind == "tensor"]
        strides = None if is_row_major(meta) else dense_like(meta)
        return like(meta, meta.sizes, strides, dtype=dtype, gradient=_gradient(others, dtype))

    return rule


def _softmax(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    dtype = call.get("dtype") or (ScalarType.FLOAT if call.get("half_to_float") else meta.dtype)
    if rank_of(dtype) < 2:
        raise Unknown("a softmax of integers, which no kernel computes")
    strides = None if is_row_major(meta) else dense_like(meta)
    return like(meta, meta.sizes, strides, dtype=dtype, gradient=_gradient([meta], dtype))


def _cumulated(call: Call) -> TensorMeta:
    meta = call.tensor("self")
    dtype = call.get("dtype")
    if dtype is None:
        dtype = ScalarType.LONG if rank_of(meta.dtype) < 2 else meta.dtype
    return like(meta, meta.sizes, dense_like(meta), dtype=dtype, gradient=_gradient([meta], dtype))


def _layer_norm(call: Call) -> TensorMeta:
    meta = call.tensor("input")
    others = [one.meta for one in call.arguments.values() if isinstance(one, Value) and one.kind == "tensor"]
    _same_type(others)
    return like(meta, meta.sizes, gradient=_gradient(others, meta.dtype))


def _embedding(call: Call) -> TensorMeta:
    weight, indices = call.tensor("weight"), meta_of(call.get("indices"))
    return like(weight, [*indices.sizes, *weight.sizes[1:]])


def _attention(call: Call) -> TensorMeta:
    query, value = call.tensor("query"), call.tensor("value")
    if not is_row_major(query) or query.requires_grad or query.device.type != "cpu":
        raise Unknown("the order of the result in memory is not sure")
    return like(query, [*query.sizes[:-1], value.sizes[-1]])


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "aten.linear.default": _linear,
        **{f"aten.{name}.default": _matmul for name in ("matmul", "mm", "bmm")},
        **{f"aten.{name}.default": _addmm for name in ("addmm", "baddbmm")},
        "aten.sum.default": _reduction("sum"),
        "aten.sum.dim_IntList": _reduction("sum"),
        "aten.prod.default": _reduction("sum"),
        "aten.prod.dim_int": _reduction("sum"),
        "aten.mean.default": _reduction("mean"),
        "aten.mean.dim": _reduction("mean"),
        "aten.var.correction": _reduction("mean"),
        "aten.std.correction": _reduction("mean"),
        **{f"aten.{name}.default": _reduction("same") for name in ("amax", "amin", "max", "min")},
        **{f"aten.{name}.{kind}": _reduction("bool") for name in ("any", "all") for kind in ("default", "dim")},
        **{f"aten.{name}.default": _reduction("long") for name in ("argmax", "argmin")},
        "aten.max.dim": _extreme,
        "aten.min.dim": _extreme,
        "aten.softmax.int": _softmax,
        "aten.log_softmax.int": _softmax,
        "aten._softmax.default": _softmax,
        "aten._log_softmax.default": _softmax,
        "aten.cumsum.default": _cumulated,
        "aten.layer_norm.default": _layer_norm,
        "aten.embedding.default": _embedding,
    }
)
