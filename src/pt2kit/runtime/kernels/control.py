"""Kernels: what programs compute besides tensors: sizes, Python numbers, assertions; operators that run subgraphs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from pt2kit.errors import LimitError, OperatorError, UnsupportedError
from pt2kit.operators.facts import axis as axis_of
from pt2kit.runtime.arrays import (
    ARRAYS,
    Array,
    ForeignArray,
    asarray,
    cast,
    is_known,
    kind,
    mapped,
    require,
    reserve,
    running,
)
from pt2kit.runtime.kernels.views import as_strided, select, slice_, storage_of
from pt2kit.runtime.table import functional, kernel, mutated_by

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


def _number(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    return _checked(function(*args, *named.values()))


for _name in (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "pos", "abs", "eq", "ne", "lt", "le", "gt", "ge"),
    *("and_", "or_", "xor", "rshift", "not_", "invert"),
):
    kernel(f"_operator.{_name}")(partial(_number, getattr(operator, _name)))
for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "and_", "or_"):
    kernel(f"_operator.i{_name.rstrip('_')}")(partial(_number, getattr(operator, _name)))
for _name in ("ceil", "floor", "trunc", "sqrt", "isfinite", "isinf", "isnan"):
    kernel(f"math.{_name}")(partial(_number, getattr(math, _name)))
for _name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2", "exp", "log"):
    kernel(f"torch._sym_{_name} torch.sym_{_name}")(partial(_number, getattr(math, _name)))


@kernel("_operator.getitem")
def getitem(a: Any, b: Any) -> Any:
    if isinstance(a, ARRAYS):
        return a[b] if not isinstance(b, int) else a[b, ...]
    return a[b]


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
def assert_tensor_metadata(a: Array, size: Any, stride: Any, dtype: Any = None) -> None:
    if dtype is not None and a.dtype != dtype:
        raise OperatorError(f"expected a tensor of {dtype}, got {a.dtype}")


@kernel("torch._functorch.predispatch._add_batch_dim")
def add_batch_dim(a: Array, in_dim: int, level: int) -> Any:
    entry, axis = running().entries[-1], axis_of(in_dim, a.ndim)
    if entry < 0:
        return np.zeros((*a.shape[:axis], *a.shape[axis + 1 :]), a.dtype)
    return select(a, axis, entry)


# Operators that run subgraphs: one is called with values, and returns the list of its outputs.


Subgraph = Callable[..., list[Any]]


def _fresh(values: Sequence[Any]) -> Any:
    """Return values whose memory no later step, such as the next turn of a loop, writes to."""
    return mapped([*values], lambda array: array.copy(order="K"))


@kernel("higher_order.cond")
def cond(pred: Any, true_fn: Subgraph, false_fn: Subgraph, operands: Sequence[Any] = ()) -> Any:
    if is_known(pred):
        return (true_fn if bool(asarray(pred).reshape(())) else false_fn)(*operands)
    # Both branches are computed, so neither may do more than return values.
    before = [one.copy() if isinstance(one, ForeignArray) else one for one in operands]
    count = len(running().checks)
    results = [branch(*before) for branch in (true_fn, false_fn)]
    if len(running().checks) > count or any(isinstance(one, ForeignArray) and one.is_written for one in before):
        raise UnsupportedError("expected branches without assertions and writes, as their condition is a tensor")
    chosen = []
    for one, other in zip(*results, strict=True):
        if not isinstance(one, ARRAYS) or one.shape != other.shape:
            raise UnsupportedError("expected branches with results of equal sizes, as their condition is a tensor")
        chosen.append(np.where(pred, one, other))
    return chosen


def _goes_on(condition: Any) -> bool:
    """Return the condition of a loop, which torch refuses if it is a number, or a tensor with a dimension."""
    is_truth = (
        condition.dtype == bool and not condition.ndim if isinstance(condition, ARRAYS) else type(condition) is bool
    )
    if not is_truth:
        raise OperatorError("expected a truth value, or a tensor of one without dimensions, as the condition of a loop")
    return bool(condition)


def _turns(
    cond_fn: Subgraph, body_fn: Subgraph, carried_inputs: Sequence[Any], additional_inputs: Sequence[Any] = ()
) -> Iterator[list[Any]]:
    """Yield the values that a loop carries: at first, and after each turn."""
    state = _fresh(carried_inputs)
    yield state
    while _goes_on(cond_fn(*state, *additional_inputs)[0]):
        state = _fresh(body_fn(*state, *additional_inputs))
        yield state


@kernel("higher_order.while_loop")
def while_loop(*args: Any, **named: Any) -> Any:
    for state in _turns(*args, **named):
        last = state
    return last


@kernel("higher_order.while_loop_stack_output")
def while_loop_stack_output(*args: Any, **named: Any) -> Any:
    _, *states = _turns(*args, **named)
    return _stacked(states)


@kernel("higher_order.map_impl")
def map_impl(f: Subgraph, xs: Sequence[Array], pos_args: Sequence[Any] = ()) -> Any:
    return _stacked([_fresh(f(*parts, *pos_args)) for parts in zip(*xs, strict=True)])


def _scanned(xs: Sequence[Array], rest: Sequence[Any], options: dict[str, Any]) -> tuple[list[Array], Any, int, bool]:
    """Return arrays with the scanned dimension in front, more inputs, that dimension, and whether its end is first."""
    numbers = [one for one in rest if isinstance(one, int)] or [options.get("dim", 0)]
    lists = [one for one in rest if isinstance(one, list | tuple)] or [options.get("additional_inputs", ())]
    moved = [np.moveaxis(x, axis_of(numbers[0], x.ndim), 0) for x in xs]
    return moved, lists[0], numbers[0], any(numbers[1:2])


@kernel("higher_order.scan")
def scan(combine_fn: Subgraph, init: Sequence[Any], xs: Sequence[Array], *rest: Any, **options: Any) -> Any:
    moved, more, _, reverse = _scanned(xs, rest, options)
    count = len(moved[0]) if moved else 0
    state, rows = _fresh(init), []
    for i in reversed(range(count)) if reverse else range(count):
        found = _fresh(combine_fn(*state, *(x[i, ...] for x in moved), *more))
        state, row = found[: len(init)], found[len(init) :]
        rows.append(row)
    return [*state, *_stacked(rows[::-1] if reverse else rows)]


def _stacked(rows: Sequence[Sequence[Any]]) -> list[Array]:
    return [np.stack([asarray(value) for value in column]) for column in zip(*rows, strict=True)]


@kernel("higher_order.associative_scan")
def associative_scan(combine_fn: Subgraph, xs: Sequence[Array], *rest: Any, **options: Any) -> Any:
    moved, more, dim, _ = _scanned(xs, rest, options)
    if not moved or not len(moved[0]):
        return [x.copy() for x in xs]
    rows = [_fresh([x[0, ...] for x in moved])]
    for i in range(1, len(moved[0])):
        rows.append(_fresh(combine_fn(*rows[-1], *(x[i, ...] for x in moved), *more)))
    return [np.moveaxis(column, 0, axis_of(dim, x.ndim)) for column, x in zip(_stacked(rows), xs, strict=True)]


# Subgraphs that run once.


# The types that autocast chooses are those that the values of the subgraph are declared with.
@kernel("higher_order.wrap .tag_activation_checkpoint .wrap_activation_checkpoint .wrap_with_autocast")
@kernel("higher_order.wrap_with_set_grad_enabled")
def wrap(*args: Any, **options: Any) -> Any:
    place = [*map(callable, args)].index(True)  # options of the region come before the subgraph, its operands after it
    return args[place](*args[place + 1 :])


@kernel("higher_order.out_dtype")
def out_dtype(op: Callable[..., Any], output_dtype: Any, *args: Any, **named: Any) -> Any:
    return cast(op(*mapped(args, lambda array: cast(array, output_dtype)), **named), output_dtype)


@kernel("higher_order.with_effects")
def with_effects(token: Any, op: Callable[..., Any], *args: Any, **named: Any) -> Any:
    # The token orders calls; it is an empty tensor, of whatever element type the program declares.
    token, result = np.zeros(0, np.float32), op(*args, **named)
    return (token, *result) if isinstance(result, tuple) else (token, result)


# Operators that write, as functions: their arguments are copied, and the copies returned.


@kernel("higher_order.auto_functionalized")
def auto_functionalized(_mutable_op: Any, /, **named: Any) -> Any:
    return functional(_mutable_op, *mutated_by(_mutable_op))(**named)


@kernel("higher_order.auto_functionalized_v2")
def auto_functionalized_v2(_mutable_op: Any, /, _all_bases: Sequence[Any] = (), **named: Any) -> Any:
    bases = _fresh(_all_bases)
    options = {key: value for key, value in named.items() if key.startswith("_")}
    arguments = {key: value for key, value in named.items() if key not in options}
    for key, index in options.items():
        if key.endswith("_base_index") and index is not None:
            name = key[1:].removesuffix("_base_index")
            arguments[name] = _view_of(bases, int(index), name, options)
    result = _mutable_op(**arguments)
    return (*(result if isinstance(result, tuple) else (result,)), *bases)


def _view_of(bases: Sequence[Any], index: int, name: str, options: dict[str, Any]) -> Any:
    """Return the view of a base that an argument was."""
    require(0 <= index < len(bases), f"expected an index below {len(bases)}, got {index}")
    base, prefix = bases[index], f"_{name}_"
    if options.get(f"{prefix}alias", True) and f"{prefix}size" not in options and f"{prefix}slice_dim" not in options:
        return base
    if f"{prefix}slice_dim" in options:
        return slice_(base, *(options[f"{prefix}slice_{part}"] for part in ("dim", "start", "end")))
    size, stride = options[f"{prefix}size"], options[f"{prefix}stride"]
    reserve(size, base.dtype)
    return as_strided(base, size, stride, options.get(f"{prefix}storage_offset"))


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_operator.pow math.pow": partial(_number, _power),
    "_operator.lshift": partial(_number, _shift),
    "_operator.round math.round builtins.round": partial(_number, round),
    "_operator.trunc torch.sym_int": partial(_number, math.trunc),
    "_operator.__abs__ builtins.abs": partial(_number, abs),
    "builtins.max torch.sym_max": partial(_number, max),
    "builtins.min torch.sym_min": partial(_number, min),
    "torch.sym_float": partial(_number, float),
    "torch.sym_not": partial(_number, operator.not_),
    "torch.sym_ite": partial(_number, lambda condition, then, otherwise: then if condition else otherwise),
    "torch.sym_sum": partial(_number, lambda *numbers: sum(numbers[0] if len(numbers) == 1 else numbers)),
    "aten.sym_size.int aten.size.int": lambda self, dim: int(self.shape[axis_of(dim, self.ndim)]),
    "aten.sym_size.default aten.size.default": lambda self: list(self.shape),
    "aten.sym_numel.default aten.numel.default": lambda self: int(self.size),
    "aten.sym_stride.int aten.stride.int": lambda self, dim: self.strides[axis_of(dim, self.ndim)] // self.itemsize,
    "aten.sym_stride.default aten.stride.default": lambda self: [step // self.itemsize for step in self.strides],
    "aten.sym_storage_offset.default aten.storage_offset.default": lambda self: storage_of(self)[1],
    "aten.dim.default": lambda self: self.ndim,
    "aten.sym_is_contiguous.default": lambda self: bool(self.flags.c_contiguous),
    "aten.Int.Tensor": lambda a: int(item(a)),
    "aten.Float.Tensor": lambda a: float(item(a)),
    "aten.Bool.Tensor": lambda a: bool(item(a)),
    "torch._functorch.predispatch._vmap_increment_nesting ._vmap_decrement_nesting": lambda *args: None,
    "torch._functorch.predispatch.lazy_load_decompositions": lambda *args: None,
    # Of one entry; those of all are stacked behind the region.
    "torch._functorch.predispatch._remove_batch_dim": lambda a, level, batch_size, out_dim: a,
    "aten._print.default aten.promote_types.default": lambda *args: None,  # the format has no place for types
    "aten._make_dep_token.default": lambda: np.zeros(0, np.float32),
    "higher_order.invoke_subgraph": lambda subgraph, identifier, *operands: subgraph(*operands),
    "higher_order.strict_mode .run_const_graph": lambda wrapped_func, operands=(), *more: wrapped_func(*operands),
    "higher_order.hints_wrapper": lambda body_func, args=(), kwargs=None, hints=None: body_func(*args),
}
