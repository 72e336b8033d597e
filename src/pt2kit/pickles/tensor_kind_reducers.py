"""Rebuild functions of torch for sparse, quantized, nested, meta and device tensors: descriptions of their parts.

Shapes and types of the parts are checked against each other; the values in index tensors are not read.

Source: torch/_utils.py, as called by files of torch 1.6 to 2.15.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pt2kit.errors import UnsupportedError
from pt2kit.pickles.argument_checks import check_arity, check_bool, check_count, check_dims, check_tensor
from pt2kit.pickles.budget import Budget, describe
from pt2kit.pickles.tensor_reducers import check_no_hooks, dense
from pt2kit.pickles.torch_names import QUANTIZED, SPARSE_LAYOUTS
from pt2kit.pickles.values import (
    Device,
    DeviceTensor,
    DType,
    Layout,
    MetaTensor,
    NestedTensor,
    NumpyArray,
    PickledTensor,
    QScheme,
    QuantizedTensor,
    SparseTensor,
)


def rebuild_sparse_tensor(budget: Budget, path: str, args: tuple[Any, ...]) -> SparseTensor:
    """Handle `_rebuild_sparse_tensor(layout, parts)` for all five sparse layouts."""
    check_arity(budget, path, args, 2)
    layout, parts = args
    if not isinstance(layout, Layout) or layout.name not in SPARSE_LAYOUTS:
        got = layout.name if isinstance(layout, Layout) else describe(layout)
        raise budget.error(path, f"a layout of {', '.join(SPARSE_LAYOUTS)}", got)
    if not isinstance(parts, tuple):
        raise budget.error(path, "a tuple of parts", describe(parts))
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


def rebuild_qtensor(budget: Budget, path: str, args: tuple[Any, ...]) -> QuantizedTensor:
    """Handle `_rebuild_qtensor(storage, offset, size, stride, quantizer_params, requires_grad, backward_hooks)`."""
    check_arity(budget, path, args, 7)
    values = dense(budget, path, *args[:4])
    if values.dtype_name not in QUANTIZED:
        raise budget.error(path, f"one of {', '.join(sorted(QUANTIZED))}", values.dtype_name)
    params = args[4]
    if not isinstance(params, tuple) or not params or not isinstance(params[0], QScheme):
        raise budget.error(f"{path}: quantizer", "a tuple that starts with a scheme", describe(params))
    check_no_hooks(budget, path, args[6])
    tensor = _quantized(budget, path, values, params)
    return replace(tensor, requires_grad=check_bool(budget, f"{path}: requires_grad", args[5]))


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
            raise budget.error(f"{path}: axis", f"one of {len(values.sizes)} dimensions", str(axis))
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


def rebuild_nested_tensor(budget: Budget, path: str, args: tuple[Any, ...]) -> NestedTensor:
    """Handle `_rebuild_nested_tensor(buffer, sizes, strides, storage_offsets)`."""
    check_arity(budget, path, args, 4)
    buffer = check_tensor(budget, f"{path}: buffer", args[0])
    sizes = check_tensor(budget, f"{path}: sizes", args[1], "int64")
    strides = check_tensor(budget, f"{path}: strides", args[2], "int64")
    if sizes.sizes != strides.sizes:
        raise budget.error(path, f"strides of sizes {list(sizes.sizes)}", f"sizes {list(strides.sizes)}")
    offsets = args[3]
    if isinstance(offsets, tuple | list):
        budget.spend(8 * len(offsets))
        storage_offsets = tuple(check_count(budget, f"{path}: storage_offsets", offset) for offset in offsets)
        return NestedTensor(buffer, sizes, strides, storage_offsets)
    return NestedTensor(buffer, sizes, strides, check_tensor(budget, f"{path}: storage_offsets", offsets, "int64"))


def rebuild_meta_tensor(budget: Budget, path: str, args: tuple[Any, ...]) -> MetaTensor:
    """Handle `_rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)`."""
    check_arity(budget, path, args, 4)
    if not isinstance(args[0], DType):
        raise budget.error(path, "a dtype", describe(args[0]))
    sizes = check_dims(budget, f"{path}: sizes", args[1])
    strides = check_dims(budget, f"{path}: strides", args[2])
    if len(sizes) != len(strides):
        raise budget.error(path, f"{len(sizes)} strides, one per size", str(len(strides)))
    return MetaTensor(args[0].name, sizes, strides, check_bool(budget, f"{path}: requires_grad", args[3]))


def rebuild_device_tensor(budget: Budget, path: str, args: tuple[Any, ...]) -> DeviceTensor:
    """Handle `_rebuild_device_tensor_from_numpy` and `…_from_cpu_tensor(data, dtype, device, requires_grad)`."""
    check_arity(budget, path, args, 4)
    data, dtype, device, requires_grad = args
    if not isinstance(data, NumpyArray | PickledTensor):
        raise budget.error(path, "an array or a tensor", describe(data))
    if not isinstance(dtype, DType):
        raise budget.error(path, "a dtype", describe(dtype))
    if isinstance(device, Device):
        device = device.type if device.index is None else f"{device.type}:{device.index}"
    if not isinstance(device, str):
        raise budget.error(f"{path}: device", "a device", describe(device))
    return DeviceTensor(data, dtype.name, device, check_bool(budget, f"{path}: requires_grad", requires_grad))
