"""Rebuild functions of torch for tensors and parameters: descriptions, every extent checked against its storage.

Each `rebuild_…` function replaces the one of torch that a payload names: it has the same parameters and returns a
description instead of a tensor. Arithmetic is in Python integers, so nothing wraps.

Sparse, quantized, nested, meta and device tensors are described by their parts. Shapes and types of the parts are
checked against each other; the values in index tensors are not read.

Source: torch/_utils.py and torch/_tensor.py, as called by files of torch 1.6 to 2.15.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from pt2kit.messages import count_text, printable
from pt2kit.pickles.budget import INT64, Handler, Place, describe
from pt2kit.pickles.tensor_subclasses import WRAPPER, rebuild_subclass
from pt2kit.pickles.values import (
    ELEMENTS_PER_BYTE,
    ITEM_SIZES,
    NO_ATTRIBUTES,
    QUANTIZED,
    SPARSE_LAYOUTS,
    Device,
    DeviceTensor,
    DType,
    Global,
    Layout,
    MetaTensor,
    NestedTensor,
    NumpyArray,
    PickledStorage,
    PickledTensor,
    QScheme,
    QuantizedTensor,
    SparseTensor,
    TensorKind,
    TensorLike,
)

_KINDS: Mapping[str, TensorKind | None] = MappingProxyType(
    {
        "torch.Tensor": None,
        "torch._tensor.Tensor": None,
        "torch.nn.parameter.Parameter": "parameter",
        "torch.nn.parameter.Buffer": "buffer",
    }
)
"""Kind of the tensors of each tensor class without code of its own."""


def needed_bytes(sizes: tuple[int, ...], strides: tuple[int, ...], storage_offset: int, dtype_name: str) -> int:
    """Return the bytes that a storage must have for a tensor: up to the end of its last element; 0 if it has none.

    Args:
        sizes, strides, storage_offset: in elements, not negative; as many sizes as strides.
        dtype_name: a key of `ITEM_SIZES`; a tensor of a packed type is assumed to be contiguous.
    """
    if 0 in sizes:
        return 0
    if per_byte := ELEMENTS_PER_BYTE.get(dtype_name):
        last = sizes[-1] if sizes else 1
        return math.prod(sizes[:-1]) * (-(-last // per_byte))
    end = storage_offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return (end + 1) * ITEM_SIZES[dtype_name]


def dense(at: Place, storage: Any, storage_offset: Any, size: Any, stride: Any, dtype_name: str = "") -> PickledTensor:
    """Describe a dense tensor and check that it is inside its storage.

    Args:
        at: the call.
        storage: a `PickledStorage`, whose bytes are shared, not copied.
        storage_offset, size, stride: in elements.
        dtype_name: the element type; the storage's if empty.

    Raises:
        PayloadError: metadata of the wrong type, or an extent beyond the storage.
    """
    at.check(storage, PickledStorage, "a storage")
    at = at.part(f"storage '{printable(storage.key)}'")
    sizes, strides = at.geometry(size, stride)
    offset = at.count(storage_offset, "storage_offset")
    dtype_name = dtype_name or storage.dtype_name
    if 0 not in sizes and math.prod(sizes) >= INT64:
        raise at.error("fewer than 2**63 elements", f"sizes {list(sizes)}")
    if dtype_name in ELEMENTS_PER_BYTE and (offset or (0 not in sizes and strides != _contiguous(sizes))):
        raise at.error(f"{dtype_name} contiguous at offset 0", f"strides {list(strides)} offset {offset}")
    needed = needed_bytes(sizes, strides, offset, dtype_name)
    nbytes = storage.storage.nbytes
    if needed > nbytes:
        shape = f"sizes {list(sizes)}, strides {list(strides)}, storage_offset {offset}, {dtype_name}"
        raise at.error(f"at least {count_text(needed, 'byte')} for {shape}", count_text(nbytes, "byte"))
    return PickledTensor(storage.storage, dtype_name, sizes, strides, offset, storage.device)


def _contiguous(sizes: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def check_no_hooks(at: Place, hooks: Any) -> None:
    """Check that a tensor has no backward hooks: they are code.

    Raises:
        UnsupportedError: it does.
        PayloadError: something that is no table of hooks.
    """
    at.check(hooks, dict | None, "an empty table of backward hooks")
    if hooks:
        raise at.unsupported("no backward hooks", f"{len(hooks)}; they are code")


def rebuild_tensor(at: Place, storage: Any, offset: Any, size: Any, stride: Any) -> PickledTensor:
    """Handle `_rebuild_tensor(storage, storage_offset, size, stride)`."""
    return _marked(at, dense(at, storage, offset, size, stride), False, None, None)


def rebuild_tensor_v2(
    at: Place, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> PickledTensor:
    """Handle `_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks, metadata=None)`."""
    return _marked(at, dense(at, storage, offset, size, stride), requires_grad, hooks, metadata)


def rebuild_tensor_v3(
    at: Place,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> PickledTensor:
    """Handle `_rebuild_tensor_v3`: as v2, with `dtype` before `metadata`, for element types without a storage class."""
    name = at.check(dtype, DType, "a dtype").name
    return _marked(at, dense(at, storage, offset, size, stride, name), requires_grad, hooks, metadata)


def _marked(at: Place, tensor: PickledTensor, requires_grad: Any, hooks: Any, metadata: Any) -> PickledTensor:
    if tensor.dtype_name in QUANTIZED:
        raise at.error("an element type that needs no scale", tensor.dtype_name)
    check_no_hooks(at, hooks)
    needs = at.flag(requires_grad, "requires_grad")
    conj, neg = _flags(at, metadata)
    return replace(tensor, requires_grad=needs, conj=conj, neg=neg)


def _flags(at: Place, metadata: Any) -> tuple[bool, bool]:
    if metadata is None:
        return False, False
    at.check(metadata, dict, "a dict", "metadata")
    for key, value in metadata.items():
        if key not in ("conj", "neg"):
            raise at.unsupported("the metadata conj and neg", describe(key))
        at.flag(value, key)
    return metadata.get("conj", False), metadata.get("neg", False)


def rebuild_parameter(at: Place, data: Any, requires_grad: Any, hooks: Any) -> TensorLike:
    """Handle `_rebuild_parameter(data, requires_grad, backward_hooks)`."""
    check_no_hooks(at, hooks)
    needs = at.flag(requires_grad, "requires_grad")
    return replace(at.check(data, TensorLike, "a tensor"), requires_grad=needs, kind="parameter")


def rebuild_parameter_with_state(at: Place, data: Any, requires_grad: Any, hooks: Any, state: Any) -> TensorLike:
    """Handle `_rebuild_parameter_with_state(data, requires_grad, backward_hooks, state)`; the state is kept as data."""
    return with_state(at, rebuild_parameter(at, data, requires_grad, hooks), state)


def with_state(at: Place, tensor: TensorLike, state: Any) -> TensorLike:
    """Add a tensor's Python attributes to its description; `_is_param` and `_is_buffer` among them set its kind.

    Args:
        at: the call.
        tensor: the tensor without them; not changed.
        state: None, a dict, or a pair of such for attributes in a dict and in slots.

    Raises:
        PayloadError: a state of another form, or an attribute name that is no string.
    """
    attributes = at.attributes(state)
    kind = tensor.kind
    if attributes.get("_is_buffer") is True:
        kind = "buffer"
    if attributes.get("_is_param") is True:
        kind = "parameter"
    return replace(tensor, kind=kind, attributes=MappingProxyType(attributes) if attributes else NO_ATTRIBUTES)


def rebuild_from_type(at: Place, function: Any, cls: Any, arguments: Any, state: Any) -> TensorLike:
    """Handle `_rebuild_from_type_v2(function, type, args, state)`, and its predecessor, for a function of `REBUILD`."""
    at.check(arguments, tuple, "a tuple of arguments")
    if isinstance(function, Global) and function.path == WRAPPER and isinstance(cls, Global):
        return rebuild_subclass(at, cls, arguments, state)
    if not isinstance(function, Global) or function.path not in REBUILD:
        raise at.wrong("a function of torch that rebuilds a tensor", function)
    if not isinstance(cls, Global) or cls.path not in _KINDS:
        raise at.unsupported("a plain tensor class", describe(cls))
    value = Place(at.budget, function.path).call(REBUILD[function.path], arguments)
    tensor = at.check(value, TensorLike, "a tensor")
    kind = _KINDS[cls.path]
    return with_state(at, replace(tensor, kind=kind) if kind else tensor, state)


def rebuild_sparse_tensor(at: Place, layout: Any, parts: Any) -> SparseTensor:
    """Handle `_rebuild_sparse_tensor(layout, parts)` for all five sparse layouts."""
    if not isinstance(layout, Layout) or layout.name not in SPARSE_LAYOUTS:
        got = layout.name if isinstance(layout, Layout) else describe(layout)
        raise at.error(f"a layout of {', '.join(SPARSE_LAYOUTS)}", got)
    at.check(parts, tuple, "a tuple of parts")
    if layout.name == "sparse_coo":
        return _coo(at, parts)
    return _compressed(at, layout.name, parts)


def _coo(at: Place, parts: tuple[Any, ...]) -> SparseTensor:
    at.part("sparse_coo").arity(parts, 3, 4)
    indices = at.tensor(parts[0], "indices", "int64")
    values = at.tensor(parts[1], "values")
    sizes = at.dims(parts[2], "sizes")
    coalesced = parts[3] if len(parts) > 3 else None
    if coalesced is not None:
        at.flag(coalesced, "is_coalesced")
    if len(indices.sizes) != 2 or indices.sizes[0] > len(sizes):
        raise at.error(f"indices [at most {len(sizes)}, nonzeros]", f"sizes {list(indices.sizes)}")
    wanted = (indices.sizes[1], *sizes[indices.sizes[0] :])
    if values.sizes != wanted:
        raise at.error(f"values of sizes {list(wanted)}", f"sizes {list(values.sizes)}")
    return SparseTensor("sparse_coo", (indices,), values, sizes, coalesced)


def _compressed(at: Place, layout: str, parts: tuple[Any, ...]) -> SparseTensor:
    at.part(layout).arity(parts, 4)
    compressed = at.tensor(parts[0], "compressed indices", "int32", "int64")
    plain = at.tensor(parts[1], "plain indices", "int32", "int64")
    values = at.tensor(parts[2], "values")
    sizes = at.dims(parts[3], "sizes")
    if compressed.dtype_name != plain.dtype_name:
        raise at.error(f"plain indices of {compressed.dtype_name}", plain.dtype_name)
    batch = len(compressed.sizes) - 1
    has_blocks = layout in ("sparse_bsr", "sparse_bsc")
    ranks = (len(plain.sizes) - 1, len(values.sizes) - 1 - 2 * has_blocks - max(len(sizes) - 2 - batch, 0))
    if batch < 0 or len(sizes) < batch + 2 or ranks != (batch, batch):
        shapes = " ".join(str(list(part.sizes)) for part in (compressed, plain, values))
        raise at.error(f"{layout} parts that fit sizes {list(sizes)}", f"parts of sizes {shapes}")
    rows, columns = sizes[batch : batch + 2]
    blocks: tuple[int, ...] = ()
    if has_blocks:
        blocks = values.sizes[batch + 1 : batch + 3]
        if 0 in blocks or rows % blocks[0] or columns % blocks[1]:
            raise at.error(f"blocks that divide {[rows, columns]}", f"blocks {list(blocks)}")
        rows, columns = rows // blocks[0], columns // blocks[1]
    lead, nonzeros = sizes[:batch], plain.sizes[batch]
    count = (rows if layout in ("sparse_csr", "sparse_bsr") else columns) + 1
    wanted = ((*lead, count), (*lead, nonzeros), (*lead, nonzeros, *blocks, *sizes[batch + 2 :]))
    got = (compressed.sizes, plain.sizes, values.sizes)
    if got != wanted:
        shown = [" ".join(str(list(part)) for part in shapes) for shapes in (wanted, got)]
        raise at.error(f"{layout} parts of sizes {shown[0]}", shown[1])
    return SparseTensor(layout, (compressed, plain), values, sizes)


def rebuild_qtensor(
    at: Place, storage: Any, offset: Any, size: Any, stride: Any, params: Any, requires_grad: Any, hooks: Any
) -> QuantizedTensor:
    """Handle `_rebuild_qtensor(storage, offset, size, stride, quantizer_params, requires_grad, backward_hooks)`."""
    values = dense(at, storage, offset, size, stride)
    if values.dtype_name not in QUANTIZED:
        raise at.error(f"one of {', '.join(sorted(QUANTIZED))}", values.dtype_name)
    if not isinstance(params, tuple) or not params or not isinstance(params[0], QScheme):
        raise at.wrong("a tuple that starts with a scheme", params, "quantizer")
    check_no_hooks(at, hooks)
    tensor = _quantized(at, values, params)
    return replace(tensor, requires_grad=at.flag(requires_grad, "requires_grad"))


def _quantized(at: Place, values: PickledTensor, params: tuple[Any, ...]) -> QuantizedTensor:
    scheme = params[0].name
    if scheme == "per_tensor_affine":
        at.part(scheme).arity(params, 3)
        scale = _number(at, "scale", params[1])
        zero_point = params[2]
        if not isinstance(zero_point, int) or isinstance(zero_point, bool):
            raise at.wrong("an integer", zero_point, "zero_point")
        return QuantizedTensor(values, scheme, scale, zero_point)
    if scheme in ("per_channel_affine", "per_channel_affine_float_qparams"):
        at.part(scheme).arity(params, 4)
        axis = at.count(params[3], "axis")
        if axis >= len(values.sizes):
            raise at.error(f"one of {count_text(len(values.sizes), 'dimension')}", str(axis), "axis")
        scales = _per_channel(at, "scales", params[1], values.sizes[axis])
        zero_points = _per_channel(at, "zero_points", params[2], values.sizes[axis])
        return QuantizedTensor(values, scheme, scales, zero_points, axis)
    raise at.unsupported("an affine quantization scheme", scheme)


def _number(at: Place, part: str, value: Any) -> float:
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63):
        return float(value)
    raise at.wrong("a number", value, part)


def _per_channel(at: Place, part: str, value: Any, channels: int) -> PickledTensor | tuple[float, ...]:
    if isinstance(value, list):
        at.budget.spend(8 * len(value))
        numbers: PickledTensor | tuple[float, ...] = tuple(_number(at, part, item) for item in value)
        sizes: tuple[int, ...] = (len(value),)
    else:
        numbers = at.tensor(value, part)
        sizes = numbers.sizes
    if sizes != (channels,):
        raise at.error(f"sizes [{channels}]", f"sizes {list(sizes)}", part)
    return numbers


def rebuild_nested_tensor(at: Place, buffer: Any, sizes: Any, strides: Any, offsets: Any) -> NestedTensor:
    """Handle `_rebuild_nested_tensor(buffer, sizes, strides, storage_offsets)`."""
    buffer = at.tensor(buffer, "buffer")
    sizes = at.tensor(sizes, "sizes", "int64")
    strides = at.tensor(strides, "strides", "int64")
    if sizes.sizes != strides.sizes:
        raise at.error(f"strides of sizes {list(sizes.sizes)}", f"sizes {list(strides.sizes)}")
    if isinstance(offsets, tuple | list):
        at.budget.spend(8 * len(offsets))
        storage_offsets = tuple(at.count(offset, "storage_offsets") for offset in offsets)
        return NestedTensor(buffer, sizes, strides, storage_offsets)
    return NestedTensor(buffer, sizes, strides, at.tensor(offsets, "storage_offsets", "int64"))


def rebuild_meta_tensor(at: Place, dtype: Any, size: Any, stride: Any, requires_grad: Any) -> MetaTensor:
    """Handle `_rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)`."""
    at.check(dtype, DType, "a dtype")
    sizes, strides = at.geometry(size, stride)
    needs = at.flag(requires_grad, "requires_grad")
    return MetaTensor(dtype.name, sizes, strides, requires_grad=needs)


def rebuild_device_tensor(at: Place, data: Any, dtype: Any, device: Any, requires_grad: Any) -> DeviceTensor:
    """Handle `_rebuild_device_tensor_from_numpy` and `…_from_cpu_tensor(data, dtype, device, requires_grad)`."""
    at.check(data, NumpyArray | PickledTensor, "an array or a tensor")
    at.check(dtype, DType, "a dtype")
    if isinstance(device, Device):
        device = device.text
    at.check(device, str, "a device", "device")
    needs = at.flag(requires_grad, "requires_grad")
    return DeviceTensor(data, dtype.name, device, requires_grad=needs)


REBUILD: Mapping[str, Handler] = MappingProxyType(
    {
        "torch._utils._rebuild_tensor": rebuild_tensor,
        "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
        "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
        "torch._utils._rebuild_parameter": rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
        "torch._utils._rebuild_qtensor": rebuild_qtensor,
        "torch._utils._rebuild_sparse_tensor": rebuild_sparse_tensor,
        "torch._utils._rebuild_sparse_csr_tensor": rebuild_sparse_tensor,
        "torch._utils._rebuild_nested_tensor": rebuild_nested_tensor,
        "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta_tensor,
        "torch._utils._rebuild_device_tensor_from_numpy": rebuild_device_tensor,
        "torch._utils._rebuild_device_tensor_from_cpu_tensor": rebuild_device_tensor,
        "torch._utils._rebuild_xla_tensor": rebuild_device_tensor,
    }
)
"""Handler for calls of each function that rebuilds a tensor."""
