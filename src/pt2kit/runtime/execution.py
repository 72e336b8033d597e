"""Execution of prepared graphs: calls each kernel in turn, keeps the values that are still needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias

import numpy as np

from pt2kit.errors import GraphError, LimitError, OperatorError, Pt2Error
from pt2kit.messages import count_text, printable
from pt2kit.operators.facts import Mismatch
from pt2kit.operators.higher_order import SHOWS
from pt2kit.runtime.arrays import ARRAYS, DType, Running, cast, flattened, in_order, mapped, running
from pt2kit.runtime.kernels.joining import stack
from pt2kit.runtime.kernels.views import narrow
from pt2kit.runtime.table import Kernel

Given: TypeAlias = Mapping[str | int, Any]
"""The arguments of a call, by their names, and those by place before them, by their numbers."""

Observer: TypeAlias = Callable[[int, list[Any], Given], None]
"""Gets the number of a node, the values that it returned, and its arguments; may write to the arrays it returned."""


class Slot(int):
    """The place of a value among those of a graph, in an argument."""


def filled(argument: Any, values: Sequence[Any]) -> Any:
    """Return an argument with the values of a graph in place of slots."""
    return mapped(argument, values.__getitem__, Slot)


@dataclass(frozen=True, slots=True)
class Result:
    """One value that a node defines.

    Args:
        slot: where it is kept.
        dtype: the element type of a tensor.
        order: its dimensions as they must be in memory, outermost first; None if no call looks at that.
    """

    slot: int
    dtype: DType | None
    order: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One node.

    Args:
        kernel: what computes it.
        positional: the arguments that have no name, with slots for values.
        named: name -> argument.
        results: the values that it defines.
        last: values that no later step uses.
        label, target: of the node, for messages.
        number: of the node among those of the graph.
        is_batched: whether it depends on the entry of the batch, in a region of vmap.
        inner: the nodes of the region of vmap that the node opens, up to the one that closes it.
    """

    kernel: Kernel
    positional: list[Any]
    named: dict[str, Any]
    results: tuple[Any, ...]
    last: tuple[int, ...]
    label: str
    target: str
    number: int = 0
    is_batched: bool = False
    inner: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A graph that can be called with one value per input; returns the list of its outputs.

    Args:
        count: how many values it has; its inputs come first.
        inputs: how many inputs it takes.
        steps: its nodes, in order.
        outputs: its outputs, with slots for values.
        name: what messages call it; "" for the root.
    """

    count: int
    inputs: int
    steps: tuple[Step, ...]
    outputs: list[Any]
    name: str = ""

    def __call__(self, *inputs: Any, observe: Observer | None = None) -> list[Any]:
        """Run the graph, within the limits of the call that is running.

        Args:
            inputs: one value per input; arrays may be written to if the program does so.
            observe: called after each node, but not for those of subgraphs.

        Raises:
            GraphError: another number of inputs.
            OperatorError: a kernel refuses its operands.
            LimitError: an array or the whole call is larger than allowed.
        """
        if len(inputs) != self.inputs:
            raise GraphError(
                f"graph {printable(self.name, 80)}: expected {count_text(self.inputs, 'value')}, got {len(inputs)}"
            )
        values: list[Any] = [None] * self.count
        values[: len(inputs)] = inputs
        _run_steps(self.steps, values, running(), observe)
        outputs: list[Any] = filled(self.outputs, values)
        return outputs


def _run_steps(steps: Sequence[Step], values: list[Any], call: Running, observe: Observer | None) -> None:
    deadline = call.deadline
    for step in steps:
        if deadline is not None and monotonic() > deadline:
            raise LimitError(
                f"node {step_name(step)}: expected the call to end in time, got the timeout; pass a larger one"
            )
        done: Sequence[Step] = (step,)
        try:
            if step.inner:
                done = _run_region(step, values, call)
            else:
                result = step.kernel(*filled(step.positional, values), **filled(step.named, values))
                _finish(step, result, values, call)
        except Exception as error:
            raise _placed(error, step) from error
        if observe is not None:
            given = filled({**dict(enumerate(step.positional)), **step.named}, values)
            for one in done:
                observe(one.number, [values[result.slot] for result in _defined(one)], given)
        for slot in step.last:
            values[slot] = None


def _run_region(region: Step, values: list[Any], call: Running) -> Sequence[Step]:
    """Run the nodes of a vmap for each entry of its batch, and stack what they give back; return those that do that.

    Nodes that do not depend on the batch run once. In an empty batch they all do, on an entry of zeros.
    """
    size = filled(region.positional[0], values)
    shown = [one for one in region.inner if one.target == SHOWS]
    entries: list[list[Any]] = [[] for _ in shown]
    for place in range(size) or (-1,):
        call.entries.append(place)
        try:
            _run_steps([one for one in region.inner if place < 1 or one.is_batched], values, call, None)
        finally:
            call.entries.pop()
        for found, step in zip(entries, shown, strict=True):
            found += [values[one.slot] for one in _defined(step)]
    for found, step in zip(entries, shown, strict=True):
        try:
            stacked = stack(found, axis := int(filled(step.positional[3], values)))
            _finish(step, narrow(stacked, axis, 0, size), values, call)
        except Exception as error:
            raise _placed(error, step) from error
    return shown


def _defined(step: Step) -> list[Result]:
    """Return the values that a node defines, those in lists one by one."""
    return [one for one in flattened(step.results) if one is not None]


def step_name(step: Step) -> str:
    """Return what messages call a node."""
    return f"{printable(step.label, 80)} ({printable(step.target, 80)})"


def _placed(error: Exception, step: Step) -> Pt2Error:
    """Return an error of a kernel as one of ours, with the node in front; inside subgraphs the innermost node alone."""
    where = f"node {step_name(step)}"
    if isinstance(error, Pt2Error):
        text = str(error)
        return error if text.startswith("node ") else type(error)(f"{where}: {text}")
    if isinstance(error, Mismatch):
        return OperatorError(f"{where}: {error}")
    if isinstance(error, MemoryError):
        return LimitError(f"{where}: expected memory for its results, got none")
    if isinstance(error, RecursionError):
        return LimitError(f"{where}: expected calls that nest less deep")
    said = printable(f"{type(error).__name__}: {error}", 300)  # whatever NumPy says of operands that a program combines
    return OperatorError(f"{where}: expected operands that the operator accepts, got {said}")


def _finish(step: Step, result: Any, values: list[Any], call: Running) -> None:
    """Keep what a kernel returned."""
    if call.keep is not None:
        result = call.keep(step, result)
    _store(step.results, result, values, call.max_bytes)


def _store(declared: Sequence[Any], result: Any, values: list[Any], limit: int) -> None:
    """Keep what a kernel returned under the values that its node declares, in lists of results one by one.

    Raises:
        OperatorError: other results than are declared.
    """
    several = isinstance(result, list | tuple)
    if len(declared) == 1:
        declared, result = flattened(declared), flattened(result)
    if isinstance(result, list | tuple) and len(result) >= len(declared):
        for one, value in zip(declared, result, strict=False):
            if isinstance(one, Result):
                _keep(one, value, values, limit)
            elif isinstance(one, list):
                _store([one], value, values, limit)
    elif any(one is not None for one in declared):
        got = len(result) if several else "one"
        raise OperatorError(f"expected {count_text(len(declared), 'result')} as the program declares, got {got}")


def _keep(declared: Result, value: Any, values: list[Any], limit: int) -> None:
    dtype = declared.dtype
    if dtype is not None:
        if not isinstance(value, ARRAYS):
            value = np.asarray(value)
        if value.nbytes > limit:
            raise LimitError(f"expected a result of at most {limit:,} bytes, got {value.nbytes:,}; pass a larger limit")
        if value.dtype != dtype:
            value = cast(value, dtype)
        if declared.order is not None and value.ndim == len(declared.order):
            value = in_order(value, declared.order)
    elif isinstance(value, (ARRAYS, np.generic)):
        value = value.item()
    values[declared.slot] = value
