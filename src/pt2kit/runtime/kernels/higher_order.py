"""Kernels: operators that run subgraphs. A subgraph is called with values, and returns the list of its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from pt2kit.errors import OperatorError, UnsupportedError
from pt2kit.runtime.arrays import (
    ARRAYS,
    Array,
    ForeignArray,
    asarray,
    axis_of,
    cast,
    is_known,
    require,
    reserve,
    running,
)
from pt2kit.runtime.kernels.views import as_strided, slice_
from pt2kit.runtime.table import kernel, mutated_by

Subgraph = Callable[..., list[Any]]


def _truth(value: Any) -> bool:
    return bool(value.reshape(()) if isinstance(value, ARRAYS) else value)


def _fresh(values: Sequence[Any]) -> list[Any]:
    """Return values whose memory no later step of a loop writes to."""
    return [value.copy() if isinstance(value, ARRAYS) else value for value in values]


@kernel("higher_order.cond")
def cond(pred: Any, true_fn: Subgraph, false_fn: Subgraph, operands: Sequence[Any] = ()) -> Any:
    if is_known(pred):
        return (true_fn if _truth(pred) else false_fn)(*operands)
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
    cond_fn: Subgraph, body_fn: Subgraph, carried_inputs: Sequence[Any], additional_inputs: Sequence[Any]
) -> Iterator[list[Any]]:
    """Yield the values that a loop carries: at first, and after each turn."""
    state = _fresh(carried_inputs)
    yield state
    while _goes_on(cond_fn(*state, *additional_inputs)[0]):
        state = _fresh(body_fn(*state, *additional_inputs))
        yield state


@kernel("higher_order.while_loop")
def while_loop(
    cond_fn: Subgraph, body_fn: Subgraph, carried_inputs: Sequence[Any], additional_inputs: Sequence[Any] = ()
) -> Any:
    for state in _turns(cond_fn, body_fn, carried_inputs, additional_inputs):
        last = state
    return last


@kernel("higher_order.while_loop_stack_output")
def while_loop_stack_output(
    cond_fn: Subgraph, body_fn: Subgraph, carried_inputs: Sequence[Any], additional_inputs: Sequence[Any] = ()
) -> Any:
    _, *states = _turns(cond_fn, body_fn, carried_inputs, additional_inputs)
    return _stacked(states)


@kernel("higher_order.map_impl")
def map_impl(f: Subgraph, xs: Sequence[Array], pos_args: Sequence[Any] = ()) -> Any:
    rows = [_fresh(f(*parts, *pos_args)) for parts in zip(*xs, strict=True)]
    return _stacked(rows)


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


@kernel("higher_order.out_dtype")
def out_dtype(op: Callable[..., Any], output_dtype: Any, *args: Any, **named: Any) -> Any:
    converted = (cast(one, output_dtype) if isinstance(one, ARRAYS) else one for one in args)
    return cast(op(*converted, **named), output_dtype)


@kernel("higher_order.with_effects")
def with_effects(token: Any, op: Callable[..., Any], *args: Any, **named: Any) -> Any:
    result = op(*args, **named)
    return (token, *result) if isinstance(result, tuple) else (token, result)


# Operators that write, as functions: their arguments are copied, and the copies returned.


@kernel("higher_order.auto_functionalized")
def auto_functionalized(_mutable_op: Any, /, **named: Any) -> Any:
    written = {name: named[name].copy() for name in mutated_by(_mutable_op) if isinstance(named.get(name), ARRAYS)}
    result = _mutable_op(**(named | written))
    return (*_several(result), *written.values())


@kernel("higher_order.auto_functionalized_v2")
def auto_functionalized_v2(_mutable_op: Any, /, _all_bases: Sequence[Any] = (), **named: Any) -> Any:
    bases = [one.copy() if isinstance(one, ARRAYS) else one for one in _all_bases]
    options = {key: value for key, value in named.items() if key.startswith("_")}
    arguments = {key: value for key, value in named.items() if key not in options}
    for key, index in options.items():
        if key.endswith("_base_index") and index is not None:
            name = key[1:].removesuffix("_base_index")
            arguments[name] = _view_of(bases, int(index), name, options)
    result = _mutable_op(**arguments)
    return (*_several(result), *bases)


def _several(result: Any) -> tuple[Any, ...]:
    """Return results as a tuple; an operator without one has None, which is a result here."""
    return tuple(result) if isinstance(result, tuple) else (result,)


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
    "higher_order.tag_activation_checkpoint .wrap_activation_checkpoint .wrap": lambda wrapped_func, *args, **options: (
        wrapped_func(*args)
    ),
    # The types that autocast chooses are those that the values of the subgraph are declared with.
    "higher_order.wrap_with_autocast": lambda device_type, dtype, enabled, cache_enabled, wrapped_func, *args: (
        wrapped_func(*args)
    ),
    "higher_order.invoke_subgraph": lambda subgraph, identifier, *operands: subgraph(*operands),
    "higher_order.wrap_with_set_grad_enabled": lambda enable_grad, wrapped_func, *args: wrapped_func(*args),
    "higher_order.strict_mode .run_const_graph": lambda wrapped_func, operands=(), *more: wrapped_func(*operands),
    "higher_order.hints_wrapper": lambda body_func, args=(), kwargs=None, hints=None: body_func(*args),
}
