"""Rebuild functions of torch for dense tensors and parameters: descriptions, every extent checked against its storage.

Each `rebuild_…` function replaces the one of torch that a payload names: it has the same parameters and returns a
description instead of a tensor. Arithmetic is in Python integers, so nothing wraps.

Source: torch/_utils.py and torch/_tensor.py, as called by files of torch 1.6 to 2.15.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from pt2kit.errors import UnsupportedError
from pt2kit.messages import printable
from pt2kit.pickles.argument_checks import INT64, Handler, check_arity, check_bool, check_count, check_dims
from pt2kit.pickles.budget import Budget, describe
from pt2kit.pickles.tensor_subclasses import WRAPPER, rebuild_subclass
from pt2kit.pickles.torch_names import ELEMENTS_PER_BYTE, ITEM_SIZES, QUANTIZED
from pt2kit.pickles.values import (
    NO_ATTRIBUTES,
    DType,
    Global,
    PickledStorage,
    PickledTensor,
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
    if not isinstance(storage, PickledStorage):
        raise budget.error(path, "a storage", describe(storage))
    subject = f"{path}: storage '{printable(storage.key)}'"
    sizes = check_dims(budget, f"{subject}: sizes", size)
    strides = check_dims(budget, f"{subject}: strides", stride)
    offset = check_count(budget, f"{subject}: storage_offset", storage_offset)
    dtype_name = dtype_name or storage.dtype_name
    if len(sizes) != len(strides):
        raise budget.error(subject, f"{len(sizes)} strides, one per size", str(len(strides)))
    if 0 not in sizes and math.prod(sizes) >= INT64:
        raise budget.error(subject, "fewer than 2**63 elements", f"sizes {list(sizes)}")
    if dtype_name in ELEMENTS_PER_BYTE and (offset or (0 not in sizes and strides != _contiguous(sizes))):
        raise budget.error(subject, f"{dtype_name} contiguous at offset 0", f"strides {list(strides)} offset {offset}")
    needed = needed_bytes(sizes, strides, offset, dtype_name)
    if needed > storage.nbytes:
        shape = f"sizes {list(sizes)}, strides {list(strides)}, storage_offset {offset}, {dtype_name}"
        raise budget.error(subject, f"at least {needed} bytes for {shape}", f"{storage.nbytes} bytes")
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
    if not isinstance(hooks, dict):
        raise budget.error(path, "an empty table of backward hooks", describe(hooks))
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


def rebuild_tensor(budget: Budget, path: str, args: tuple[Any, ...]) -> PickledTensor:
    """Handle `_rebuild_tensor(storage, storage_offset, size, stride)`."""
    check_arity(budget, path, args, 4)
    return plain_values(budget, path, dense(budget, path, *args))


def rebuild_tensor_v2(budget: Budget, path: str, args: tuple[Any, ...]) -> PickledTensor:
    """Handle `_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks, metadata=None)`."""
    check_arity(budget, path, args, 6, 7)
    tensor = dense(budget, path, *args[:4])
    return _finished(budget, path, tensor, args[4], args[5], args[6] if len(args) > 6 else None)


def rebuild_tensor_v3(budget: Budget, path: str, args: tuple[Any, ...]) -> PickledTensor:
    """Handle `_rebuild_tensor_v3`: as v2, with `dtype` before `metadata`, for element types without a storage class."""
    check_arity(budget, path, args, 7, 8)
    if not isinstance(args[6], DType):
        raise budget.error(path, "a dtype", describe(args[6]))
    tensor = dense(budget, path, args[0], args[1], args[2], args[3], args[6].name)
    return _finished(budget, path, tensor, args[4], args[5], args[7] if len(args) > 7 else None)


def _finished(
    budget: Budget, path: str, tensor: PickledTensor, requires_grad: Any, hooks: Any, metadata: Any
) -> PickledTensor:
    plain_values(budget, path, tensor)
    check_no_hooks(budget, path, hooks)
    needs = check_bool(budget, f"{path}: requires_grad", requires_grad)
    conj, neg = _flags(budget, path, metadata)
    return replace(tensor, requires_grad=needs, conj=conj, neg=neg)


def _flags(budget: Budget, path: str, metadata: Any) -> tuple[bool, bool]:
    if metadata is None:
        return False, False
    if not isinstance(metadata, dict):
        raise budget.error(f"{path}: metadata", "a dict", describe(metadata))
    for key, value in metadata.items():
        if key not in ("conj", "neg"):
            raise UnsupportedError(f"{budget.where}: {path}: expected the metadata conj and neg, got {describe(key)}")
        check_bool(budget, f"{path}: {key}", value)
    return metadata.get("conj", False), metadata.get("neg", False)


def rebuild_parameter(budget: Budget, path: str, args: tuple[Any, ...]) -> TensorLike:
    """Handle `_rebuild_parameter(data, requires_grad, backward_hooks)`."""
    check_arity(budget, path, args, 3)
    return _parameter(budget, path, *args)


def rebuild_parameter_with_state(budget: Budget, path: str, args: tuple[Any, ...]) -> TensorLike:
    """Handle `_rebuild_parameter_with_state(data, requires_grad, backward_hooks, state)`; the state is kept as data."""
    check_arity(budget, path, args, 4)
    return with_state(budget, path, _parameter(budget, path, *args[:3]), args[3])


def _parameter(budget: Budget, path: str, data: Any, requires_grad: Any, hooks: Any) -> TensorLike:
    check_no_hooks(budget, path, hooks)
    needs = check_bool(budget, f"{path}: requires_grad", requires_grad)
    return replace(_tensor_like(budget, path, data), requires_grad=needs, kind="parameter")


def _tensor_like(budget: Budget, path: str, value: Any) -> TensorLike:
    if not isinstance(value, TensorLike):
        raise budget.error(path, "a tensor", describe(value))
    return value


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
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    attributes: dict[str, Any] = {}
    for part in parts:
        if part is None:
            continue
        if not isinstance(part, dict):
            raise budget.error(f"{path}: state", "a dict of attributes", describe(part))
        budget.spend(100 * len(part))
        attributes.update(part)
    for name in attributes:
        if not isinstance(name, str):
            raise budget.error(f"{path}: state", "attribute names", describe(name))
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

    def handler(budget: Budget, path: str, args: tuple[Any, ...]) -> TensorLike:
        check_arity(budget, path, args, 4)
        function, cls, arguments, state = args
        if isinstance(function, Global) and function.path == WRAPPER and isinstance(cls, Global):
            if not isinstance(arguments, tuple):
                raise budget.error(path, "a tuple of arguments", describe(arguments))
            return rebuild_subclass(budget, path, cls, arguments, state)
        if not isinstance(function, Global) or function.path not in inner:
            raise budget.error(path, "a function of torch that rebuilds a tensor", describe(function))
        if not isinstance(cls, Global) or cls.path not in _KINDS:
            raise UnsupportedError(f"{budget.where}: {path}: expected a plain tensor class, got {describe(cls)}")
        if not isinstance(arguments, tuple):
            raise budget.error(path, "a tuple of arguments", describe(arguments))
        tensor = _tensor_like(budget, path, inner[function.path](budget, function.path, arguments))
        kind = _KINDS[cls.path]
        return with_state(budget, path, replace(tensor, kind=kind) if kind else tensor, state)

    return handler
