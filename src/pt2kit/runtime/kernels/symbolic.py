"""Kernels: sizes as numbers, arithmetic of Python numbers, assertions, and calls without a result."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from pt2kit.errors import LimitError, OperatorError
from pt2kit.runtime.arrays import ARRAYS, Array, axis_of, kind, require, running
from pt2kit.runtime.kernels.views import select
from pt2kit.runtime.table import kernel

MAX_BITS = 4096
"""Bits that an integer of a program may have."""


def _checked(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise LimitError(f"expected an integer of at most {MAX_BITS} bits, got one of {value.bit_length()}")
    return value


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > 0 and abs(a).bit_length() * b > MAX_BITS * 2:
        raise LimitError(f"expected an integer of at most {MAX_BITS} bits, got a power with exponent {b}")
    return a**b


def _shift(a: int, b: int) -> int:
    if b > MAX_BITS:
        raise LimitError(f"expected a shift of at most {MAX_BITS} bits, got {b}")
    return a << b


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": _power, "neg": operator.neg, "pos": operator.pos,
    "abs": operator.abs, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "and_": operator.and_, "or_": operator.or_, "xor": operator.xor,
    "lshift": _shift, "rshift": operator.rshift, "not_": operator.not_, "invert": operator.invert,
    "iadd": operator.add, "isub": operator.sub, "imul": operator.mul, "ifloordiv": operator.floordiv,
    "itruediv": operator.truediv, "imod": operator.mod, "iand": operator.and_, "ior": operator.or_,
    "round": round, "trunc": math.trunc,
}  # fmt: skip


def _number(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **named: Any) -> Any:
        return _checked(function(*args, *named.values()))

    return run


for _name, _function in _FUNCTIONS.items():
    kernel(f"_operator.{_name}")(_number(_function))
for _name in ("ceil", "floor", "trunc", "sqrt", "pow", "isfinite", "isinf", "isnan"):
    kernel(f"math.{_name}")(_number(_power if _name == "pow" else getattr(math, _name)))
kernel("math.round", "builtins.round")(_number(round))
kernel("builtins.abs", "_operator.__abs__")(_number(abs))
kernel("builtins.max", "torch.sym_max")(_number(max))
kernel("builtins.min", "torch.sym_min")(_number(min))
kernel("torch.sym_float")(_number(float))
kernel("torch.sym_int")(_number(math.trunc))
kernel("torch.sym_not")(_number(operator.not_))
kernel("torch.sym_ite")(_number(lambda condition, then, otherwise: then if condition else otherwise))
kernel("torch.sym_sum")(_number(lambda *numbers: sum(numbers[0] if len(numbers) == 1 else numbers)))
for _name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2", "exp", "log"):
    kernel(f"torch._sym_{_name}", f"torch.sym_{_name}")(_number(getattr(math, _name)))


@kernel("_operator.getitem")
def getitem(a: Any, b: Any) -> Any:
    if isinstance(a, ARRAYS):
        return a[b] if not isinstance(b, int) else a[b, ...]
    return a[b]


# Sizes of tensors.


@kernel("aten.sym_storage_offset.default aten.storage_offset.default")
def sym_storage_offset(self: Array) -> int:
    from pt2kit.runtime.kernels.views import storage_of

    return storage_of(self)[1]


# Numbers out of tensors.


@kernel("aten.item.default aten._local_scalar_dense.default")
def item(self: Array) -> Any:
    return self.reshape(()).item() if kind(self.dtype) != 2 else float(self.reshape(()))


# Assertions about sizes and numbers.


@kernel("aten.sym_constrain_range.default aten.sym_constrain_range_for_size.default")
@kernel("aten._functional_sym_constrain_range.default aten._functional_sym_constrain_range_for_size.default")
def sym_constrain_range(size: Any, min: Any = None, max: Any = None, dep_token: Any = None) -> Any:
    if (min is not None and size < min) or (max is not None and size > max):
        raise OperatorError(f"expected a number from {min} to {max}, got {size}")
    return dep_token


@kernel("torch._check ._check_is_size")
def check(cond: Any, message: Any = None, **options: Any) -> None:
    require(cond is not False, "assertion failed")


@kernel("aten._assert_tensor_metadata.default")
def assert_tensor_metadata(a: Array, size: Sequence[int] | None, stride: Any, dtype: Any = None) -> None:
    if dtype is not None and a.dtype != dtype:
        raise OperatorError(f"expected a tensor of {dtype}, got {a.dtype}")
    if size is not None and tuple(size) != a.shape:
        raise OperatorError(f"expected a tensor of sizes {list(size)}, got {list(a.shape)}")


@kernel("torch._functorch.predispatch._add_batch_dim")
def add_batch_dim(a: Array, in_dim: int, level: int) -> Any:
    entry, axis = running().entries[-1], axis_of(in_dim, a.ndim)
    if entry < 0:
        return np.zeros((*a.shape[:axis], *a.shape[axis + 1 :]), a.dtype)
    return select(a, axis, entry)


@kernel("torch._functorch.predispatch._remove_batch_dim")
def remove_batch_dim(a: Array, level: int, batch_size: int, out_dim: int) -> Any:
    return a  # of one entry; those of all are stacked behind the region


@kernel("aten.promote_types.default")
def promote_types(type1: Any, type2: Any) -> Any:
    return None  # the format has no place for its result


@kernel("torch._functorch.predispatch.lazy_load_decompositions ._vmap_increment_nesting ._vmap_decrement_nesting")
@kernel("aten._print.default")
def nothing(*args: Any) -> None:
    return None


KERNELS: Final = {
    "aten.sym_size.int aten.size.int": lambda self, dim: int(self.shape[axis_of(dim, self.ndim)]),
    "aten.sym_size.default aten.size.default": lambda self: list(self.shape),
    "aten.sym_numel.default aten.numel.default": lambda self: int(self.size),
    "aten.sym_stride.int aten.stride.int": lambda self, dim: self.strides[axis_of(dim, self.ndim)] // self.itemsize,
    "aten.sym_stride.default aten.stride.default": lambda self: [step // self.itemsize for step in self.strides],
    "aten.dim.default": lambda self: self.ndim,
    "aten.sym_is_contiguous.default": lambda self: bool(self.flags.c_contiguous),
    "aten.Int.Tensor": lambda a: int(item(a)),
    "aten.Float.Tensor": lambda a: float(item(a)),
    "aten.Bool.Tensor": lambda a: bool(item(a)),
    "aten._make_dep_token.default": lambda: np.zeros(0, np.float32),
}
