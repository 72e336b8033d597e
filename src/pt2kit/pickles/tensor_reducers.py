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

from pt2kit.errors import UnsupportedError
from pt2kit.messages import count_text, printable
from pt2kit.pickles.budget import (
    INT64,
    Budget,
    Handler,
    attributes_of,
    call_handler,
    check_arity,
    check_bool,
    check_count,
    check_dims,
    check_tensor,
    check_type,
    describe,
)
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


def dense(
    budget: Budget, path: str, storage: Any, storage_offset: Any, size: Any, stride: Any, dtype_name: str = ""
) -> PickledTensor:
    """Describe a dense tensor and check that it is inside its storage.

    Args:
        budget: the reading.
        path: the rebuild function, for messages.
        storage: a `PickledStorage`; shared, not copied.
        storage_offset, size, stride: in elements.
        dtype_name: the element type; the storage's if empty.

    Raises:
        PayloadError: metadata of the wrong type, or an extent beyond the storage.
    """
    check_type(budget, path, storage, PickledStorage, "a storage")
    subject = f"{path}: storage '{printable(storage.key)}'"
    sizes = check_dims(budget, f"{subject}: sizes", size)
    strides = check_dims(budget, f"{subject}: strides", stride)
    offset = check_count(budget, f"{subject}: storage_offset", storage_offset)
    dtype_name = dtype_name or storage.dtype_name
    if len(sizes) != len(strides):
        raise budget.error(subject, f"{count_text(len(sizes), 'stride')}, one per size", str(len(strides)))
    if 0 not in sizes and math.prod(sizes) >= INT64:
        raise budget.error(subject, "fewer than 2**63 elements", f"sizes {list(sizes)}")
    if dtype_name in ELEMENTS_PER_BYTE and (offset or (0 not in sizes and strides != _contiguous(sizes))):
        raise budget.error(subject, f"{dtype_name} contiguous at offset 0", f"strides {list(strides)} offset {offset}")
    needed = needed_bytes(sizes, strides, offset, dtype_name)
    if needed > storage.nbytes:
        shape = f"sizes {list(sizes)}, strides {list(strides)}, storage_offset {offset}, {dtype_name}"
        raise budget.error(
            subject, f"at least {count_text(needed, 'byte')} for {shape}", count_text(storage.nbytes, "byte")
        )
    return PickledTensor(storage, dtype_name, sizes, strides, offset)


def _contiguous(sizes: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def check_no_hooks(budget: Budget, path: str, hooks: Any) -> None:
    """Check that a tensor has no backward hooks: they are code.

    Raises:
        UnsupportedError: it does.
        PayloadError: something that is no table of hooks.
    """
    if hooks is None:
        return
    check_type(budget, path, hooks, dict, "an empty table of backward hooks")
    if hooks:
        raise UnsupportedError(f"{budget.where}: {path}: expected no backward hooks, got {len(hooks)}; they are code")


def plain_values(budget: Budget, path: str, tensor: PickledTensor) -> PickledTensor:
    """Check that the element type means something on its own.

    Raises:
        PayloadError: a quantized type.
    """
    if tensor.dtype_name in QUANTIZED:
        raise budget.error(path, "an element type that needs no scale", tensor.dtype_name)
    return tensor


def rebuild_tensor(budget: Budget, path: str, storage: Any, offset: Any, size: Any, stride: Any) -> PickledTensor:
    """Handle `_rebuild_tensor(storage, storage_offset, size, stride)`."""
    return plain_values(budget, path, dense(budget, path, storage, offset, size, stride))


def rebuild_tensor_v2(
    budget: Budget,
    path: str,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    metadata: Any = None,
    *,
    dtype_name: str = "",
) -> PickledTensor:
    """Handle `_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks, metadata=None)`."""
    tensor = plain_values(budget, path, dense(budget, path, storage, offset, size, stride, dtype_name))
    check_no_hooks(budget, path, hooks)
    needs = check_bool(budget, f"{path}: requires_grad", requires_grad)
    conj, neg = _flags(budget, path, metadata)
    return replace(tensor, requires_grad=needs, conj=conj, neg=neg)


def rebuild_tensor_v3(
    budget: Budget,
    path: str,
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
    check_type(budget, path, dtype, DType, "a dtype")
    geometry = (storage, offset, size, stride)
    return rebuild_tensor_v2(budget, path, *geometry, requires_grad, hooks, metadata, dtype_name=dtype.name)


def _flags(budget: Budget, path: str, metadata: Any) -> tuple[bool, bool]:
    if metadata is None:
        return False, False
    check_type(budget, f"{path}: metadata", metadata, dict, "a dict")
    for key, value in metadata.items():
        if key not in ("conj", "neg"):
            raise UnsupportedError(f"{budget.where}: {path}: expected the metadata conj and neg, got {describe(key)}")
        check_bool(budget, f"{path}: {key}", value)
    return metadata.get("conj", False), metadata.get("neg", False)


def rebuild_parameter(budget: Budget, path: str, data: Any, requires_grad: Any, hooks: Any) -> TensorLike:
    """Handle `_rebuild_parameter(data, requires_grad, backward_hooks)`."""
    check_no_hooks(budget, path, hooks)
    needs = check_bool(budget, f"{path}: requires_grad", requires_grad)
    return replace(check_type(budget, path, data, TensorLike, "a tensor"), requires_grad=needs, kind="parameter")


def rebuild_parameter_with_state(
    budget: Budget, path: str, data: Any, requires_grad: Any, hooks: Any, state: Any
) -> TensorLike:
    """Handle `_rebuild_parameter_with_state(data, requires_grad, backward_hooks, state)`; the state is kept as data."""
    return with_state(budget, path, rebuild_parameter(budget, path, data, requires_grad, hooks), state)


def with_state(budget: Budget, path: str, tensor: TensorLike, state: Any) -> TensorLike:
    """Add a tensor's Python attributes to its description; `_is_param` and `_is_buffer` among them set its kind.

    Args:
        budget: the reading.
        path: the rebuild function, for messages.
        tensor: the tensor without them; not changed.
        state: None, a dict, or a pair of such for attributes in a dict and in slots.

    Raises:
        PayloadError: a state of another form, or an attribute name that is no string.
    """
    attributes = attributes_of(budget, path, state)
    kind = tensor.kind
    if attributes.get("_is_buffer") is True:
        kind = "buffer"
    if attributes.get("_is_param") is True:
        kind = "parameter"
    return replace(tensor, kind=kind, attributes=MappingProxyType(attributes) if attributes else NO_ATTRIBUTES)


def rebuild_from_type(inner: Mapping[str, Handler]) -> Handler:
    """Return the handler of `_rebuild_from_type_v2(function, type, args, state)` and of its predecessor.

    Args:
        inner: the rebuild functions that may be named in `function`.
    """

    def handler(budget: Budget, path: str, function: Any, cls: Any, arguments: Any, state: Any) -> TensorLike:
        if isinstance(function, Global) and function.path == WRAPPER and isinstance(cls, Global):
            check_type(budget, path, arguments, tuple, "a tuple of arguments")
            return rebuild_subclass(budget, path, cls, arguments, state)
        if not isinstance(function, Global) or function.path not in inner:
            raise budget.error(path, "a function of torch that rebuilds a tensor", describe(function))
        if not isinstance(cls, Global) or cls.path not in _KINDS:
            raise UnsupportedError(f"{budget.where}: {path}: expected a plain tensor class, got {describe(cls)}")
        check_type(budget, path, arguments, tuple, "a tuple of arguments")
        value = call_handler(inner[function.path], budget, function.path, arguments)
        tensor = check_type(budget, path, value, TensorLike, "a tensor")
        kind = _KINDS[cls.path]
        return with_state(budget, path, replace(tensor, kind=kind) if kind else tensor, state)

    return handler


def rebuild_sparse_tensor(budget: Budget, path: str, layout: Any, parts: Any) -> SparseTensor:
    """Handle `_rebuild_sparse_tensor(layout, parts)` for all five sparse layouts."""
    if not isinstance(layout, Layout) or layout.name not in SPARSE_LAYOUTS:
        got = layout.name if isinstance(layout, Layout) else describe(layout)
        raise budget.error(path, f"a layout of {', '.join(SPARSE_LAYOUTS)}", got)
    check_type(budget, path, parts, tuple, "a tuple of parts")
    if layout.name == "sparse_coo":
        return _coo(budget, path, parts)
    return _compressed(budget, path, layout.name, parts)


def _coo(budget: Budget, path: str, parts: tuple[Any, ...]) -> SparseTensor:
    check_arity(budget, f"{path}: sparse_coo", parts, 3, 4)
    indices = check_tensor(budget, f"{path}: indices", parts[0], "int64")
    values = check_tensor(budget, f"{path}: values", parts[1])
    sizes = check_dims(budget, f"{path}: sizes", parts[2])
    coalesced = parts[3] if len(parts) > 3 else None
    if coalesced is not None:
        check_bool(budget, f"{path}: is_coalesced", coalesced)
    if len(indices.sizes) != 2 or indices.sizes[0] > len(sizes):
        raise budget.error(path, f"indices [at most {len(sizes)}, nonzeros]", f"sizes {list(indices.sizes)}")
    wanted = (indices.sizes[1], *sizes[indices.sizes[0] :])
    if values.sizes != wanted:
        raise budget.error(path, f"values of sizes {list(wanted)}", f"sizes {list(values.sizes)}")
    return SparseTensor("sparse_coo", (indices,), values, sizes, coalesced)


def _compressed(budget: Budget, path: str, layout: str, parts: tuple[Any, ...]) -> SparseTensor:
    check_arity(budget, f"{path}: {layout}", parts, 4)
    compressed = check_tensor(budget, f"{path}: compressed indices", parts[0], "int32", "int64")
    plain = check_tensor(budget, f"{path}: plain indices", parts[1], "int32", "int64")
    values = check_tensor(budget, f"{path}: values", parts[2])
    sizes = check_dims(budget, f"{path}: sizes", parts[3])
    if compressed.dtype_name != plain.dtype_name:
        raise budget.error(path, f"plain indices of {compressed.dtype_name}", plain.dtype_name)
    batch = len(compressed.sizes) - 1
    block = 2 if layout in ("sparse_bsr", "sparse_bsc") else 0
    ranks = (len(plain.sizes) - 1, len(values.sizes) - 1 - block - max(len(sizes) - 2 - batch, 0))
    if batch < 0 or len(sizes) < batch + 2 or ranks != (batch, batch):
        shapes = " ".join(str(list(part.sizes)) for part in (compressed, plain, values))
        raise budget.error(path, f"{layout} parts that fit sizes {list(sizes)}", f"parts of sizes {shapes}")
    _check_compressed_sizes(budget, path, layout, batch, (compressed, plain, values), sizes)
    return SparseTensor(layout, (compressed, plain), values, sizes)


def _check_compressed_sizes(
    budget: Budget,
    path: str,
    layout: str,
    batch: int,
    parts: tuple[PickledTensor, PickledTensor, PickledTensor],
    sizes: tuple[int, ...],
) -> None:
    compressed, plain, values = parts
    rows, columns = sizes[batch : batch + 2]
    blocks: tuple[int, ...] = ()
    if layout in ("sparse_bsr", "sparse_bsc"):
        blocks = values.sizes[batch + 1 : batch + 3]
        if 0 in blocks or rows % blocks[0] or columns % blocks[1]:
            raise budget.error(path, f"blocks that divide {[rows, columns]}", f"blocks {list(blocks)}")
        rows, columns = rows // blocks[0], columns // blocks[1]
    lead, nonzeros = sizes[:batch], plain.sizes[batch]
    count = (rows if layout in ("sparse_csr", "sparse_bsr") else columns) + 1
    wanted = ((*lead, count), (*lead, nonzeros), (*lead, nonzeros, *blocks, *sizes[batch + 2 :]))
    got = (compressed.sizes, plain.sizes, values.sizes)
    if got != wanted:
        shown = [" ".join(str(list(part)) for part in shapes) for shapes in (wanted, got)]
        raise budget.error(path, f"{layout} parts of sizes {shown[0]}", shown[1])


def rebuild_qtensor(
    budget: Budget,
    path: str,
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    params: Any,
    requires_grad: Any,
    hooks: Any,
) -> QuantizedTensor:
    """Handle `_rebuild_qtensor(storage, offset, size, stride, quantizer_params, requires_grad, backward_hooks)`."""
    values = dense(budget, path, storage, offset, size, stride)
    if values.dtype_name not in QUANTIZED:
        raise budget.error(path, f"one of {', '.join(sorted(QUANTIZED))}", values.dtype_name)
    if not isinstance(params, tuple) or not params or not isinstance(params[0], QScheme):
        raise budget.error(f"{path}: quantizer", "a tuple that starts with a scheme", describe(params))
    check_no_hooks(budget, path, hooks)
    tensor = _quantized(budget, path, values, params)
    return replace(tensor, requires_grad=check_bool(budget, f"{path}: requires_grad", requires_grad))


def _quantized(budget: Budget, path: str, values: PickledTensor, params: tuple[Any, ...]) -> QuantizedTensor:
    scheme = params[0].name
    if scheme == "per_tensor_affine":
        check_arity(budget, f"{path}: {scheme}", params, 3)
        scale = _number(budget, f"{path}: scale", params[1])
        zero_point = params[2]
        if not isinstance(zero_point, int) or isinstance(zero_point, bool):
            raise budget.error(f"{path}: zero_point", "an integer", describe(zero_point))
        return QuantizedTensor(values, scheme, scale, zero_point)
    if scheme in ("per_channel_affine", "per_channel_affine_float_qparams"):
        check_arity(budget, f"{path}: {scheme}", params, 4)
        axis = check_count(budget, f"{path}: axis", params[3])
        if axis >= len(values.sizes):
            raise budget.error(f"{path}: axis", f"one of {count_text(len(values.sizes), 'dimension')}", str(axis))
        scales = _per_channel(budget, f"{path}: scales", params[1], values.sizes[axis])
        zero_points = _per_channel(budget, f"{path}: zero_points", params[2], values.sizes[axis])
        return QuantizedTensor(values, scheme, scales, zero_points, axis)
    raise UnsupportedError(f"{budget.where}: {path}: expected an affine quantization scheme, got {scheme}")


def _number(budget: Budget, subject: str, value: Any) -> float:
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63):
        return float(value)
    raise budget.error(subject, "a number", describe(value))


def _per_channel(budget: Budget, subject: str, value: Any, channels: int) -> PickledTensor | tuple[float, ...]:
    if isinstance(value, list):
        budget.spend(8 * len(value))
        numbers: PickledTensor | tuple[float, ...] = tuple(_number(budget, subject, item) for item in value)
        sizes: tuple[int, ...] = (len(value),)
    else:
        numbers = check_tensor(budget, subject, value)
        sizes = numbers.sizes
    if sizes != (channels,):
        raise budget.error(subject, f"sizes [{channels}]", f"sizes {list(sizes)}")
    return numbers


def rebuild_nested_tensor(
    budget: Budget, path: str, buffer: Any, sizes: Any, strides: Any, offsets: Any
) -> NestedTensor:
    """Handle `_rebuild_nested_tensor(buffer, sizes, strides, storage_offsets)`."""
    buffer = check_tensor(budget, f"{path}: buffer", buffer)
    sizes = check_tensor(budget, f"{path}: sizes", sizes, "int64")
    strides = check_tensor(budget, f"{path}: strides", strides, "int64")
    if sizes.sizes != strides.sizes:
        raise budget.error(path, f"strides of sizes {list(sizes.sizes)}", f"sizes {list(strides.sizes)}")
    if isinstance(offsets, tuple | list):
        budget.spend(8 * len(offsets))
        storage_offsets = tuple(check_count(budget, f"{path}: storage_offsets", offset) for offset in offsets)
        return NestedTensor(buffer, sizes, strides, storage_offsets)
    return NestedTensor(buffer, sizes, strides, check_tensor(budget, f"{path}: storage_offsets", offsets, "int64"))


def rebuild_meta_tensor(
    budget: Budget, path: str, dtype: Any, size: Any, stride: Any, requires_grad: Any
) -> MetaTensor:
    """Handle `_rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)`."""
    check_type(budget, path, dtype, DType, "a dtype")
    sizes = check_dims(budget, f"{path}: sizes", size)
    strides = check_dims(budget, f"{path}: strides", stride)
    if len(sizes) != len(strides):
        raise budget.error(path, f"{count_text(len(sizes), 'stride')}, one per size", str(len(strides)))
    needs = check_bool(budget, f"{path}: requires_grad", requires_grad)
    return MetaTensor(dtype.name, sizes, strides, requires_grad=needs)


def rebuild_device_tensor(
    budget: Budget, path: str, data: Any, dtype: Any, device: Any, requires_grad: Any
) -> DeviceTensor:
    """Handle `_rebuild_device_tensor_from_numpy` and `…_from_cpu_tensor(data, dtype, device, requires_grad)`."""
    check_type(budget, path, data, NumpyArray | PickledTensor, "an array or a tensor")
    check_type(budget, path, dtype, DType, "a dtype")
    if isinstance(device, Device):
        device = device.text
    check_type(budget, f"{path}: device", device, str, "a device")
    needs = check_bool(budget, f"{path}: requires_grad", requires_grad)
    return DeviceTensor(data, dtype.name, device, requires_grad=needs)
