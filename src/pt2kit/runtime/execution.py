"""Execution of prepared graphs: calls each kernel in turn, keeps the values that are still needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, TypeAlias

import numpy as np

from pt2kit.errors import GraphError, LimitError, OperatorError, Pt2Error
from pt2kit.messages import count_text, printable
from pt2kit.operators.higher_order import SHOWS
from pt2kit.runtime.arrays import ARRAYS, Running, cast, in_order, running
from pt2kit.runtime.kernels.joining import stack
from pt2kit.runtime.kernels.views import narrow
from pt2kit.runtime.plan import Plan, Result, Step, prepare
from pt2kit.schema import Graph

Observer: TypeAlias = Callable[[int, list[Any]], None]


class Executable:
    """A graph that can be called with one value per input; returns the list of its outputs."""

    __slots__ = ("plan",)

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __call__(self, *inputs: Any) -> list[Any]:
        """Run the graph.

        Raises:
            GraphError: another number of inputs.
            OperatorError: a kernel refuses its operands.
            LimitError: an array or the whole call is larger than allowed.
        """
        return run(self.plan, inputs, running())


def executable(graph: Graph, where: str, release: str = "") -> Executable:
    """Prepare a graph and its subgraphs.

    Args:
        graph: the graph.
        where: its place, for messages.
        release: of torch, whose operators it calls; the newest by default.

    Raises:
        Pt2Error: as `prepare`.
    """
    return Executable(prepare(graph, Executable, where, release))


def run(plan: Plan, inputs: Sequence[Any], call: Running) -> list[Any]:
    """Run a prepared graph.

    Args:
        plan: the graph.
        inputs: one value per input; arrays may be written to if the program does so.
        call: its limits.

    Raises:
        Pt2Error: as `Executable.__call__`.
    """
    if len(inputs) != plan.inputs:
        raise GraphError(
            f"graph {printable(plan.name, 80)}: expected {count_text(plan.inputs, 'value')}, got {len(inputs)}"
        )
    values: list[Any] = [None] * plan.count
    values[: len(inputs)] = inputs
    _run_steps(plan.steps, values, call, call.observe if plan.is_root else None)
    return [read(values) for read in plan.outputs]


def _run_steps(steps: Sequence[Step], values: list[Any], call: Running, observe: Observer | None) -> None:
    deadline, limit = call.deadline, call.max_bytes
    for step in steps:
        if deadline is not None and monotonic() > deadline:
            raise LimitError(
                f"node {step_name(step)}: expected the call to end in time, got the timeout; pass a larger one"
            )
        try:
            if step.inner:
                _run_region(step, values, call, observe)
                continue
            arguments = {**step.constants}
            for name, read in step.reads:
                arguments[name] = read(values)
            result = step.kernel(*(read(values) for read in step.positional), **arguments)
            arguments.clear()
            if call.keep is not None:
                result = call.keep(step, result)
            _store(step.results, result, values, limit)
        except Exception as error:
            raise _placed(error, step) from error
        if observe is not None:
            observe(step.number, [values[one.slot] for one in _flat(step.results)])
        for slot in step.last:
            values[slot] = None


def _run_region(region: Step, values: list[Any], call: Running, observe: Observer | None) -> None:
    """Run the nodes of a vmap for each entry of its batch, and stack what they give back.

    Nodes that do not depend on the batch run once. In an empty batch they all do, on an entry of zeros.
    """
    size = region.positional[0](values)
    shown = [one for one in region.inner if one.target == SHOWS]
    entries: list[list[Any]] = [[] for _ in shown]
    for place in range(size) if size else (-1,):
        call.entries.append(place)
        try:
            _run_steps([one for one in region.inner if place < 1 or one.is_batched], values, call, None)
        finally:
            call.entries.pop()
        for found, step in zip(entries, shown, strict=True):
            found += [values[one.slot] for one in _flat(step.results)]
    for found, step in zip(entries, shown, strict=True):
        try:
            stacked = stack(found, axis := int(step.positional[3](values)))
            result = narrow(stacked, axis, 0, size)
            _store(step.results, result if call.keep is None else call.keep(step, result), values, call.max_bytes)
        except Exception as error:
            raise _placed(error, step) from error
        if observe is not None:
            observe(step.number, [values[one.slot] for one in _flat(step.results)])
    for slot in region.last:
        values[slot] = None


def _flat(results: Sequence[Any]) -> list[Result]:
    """Return the values that a node defines, those in lists one by one."""
    found: list[Result] = []
    for one in results:
        found += _flat(one) if isinstance(one, list) else [one] if one is not None else []
    return found


def step_name(step: Step) -> str:
    """Return what messages call a node."""
    return f"{printable(step.label, 80)} ({printable(step.target, 80)})"


def _placed(error: Exception, step: Step) -> Pt2Error:
    """Return an error of a kernel as one of ours, with the node in front; inside subgraphs the innermost node alone."""
    where = f"node {step_name(step)}"
    if isinstance(error, Pt2Error):
        text = str(error)
        return error if text.startswith("node ") else type(error)(f"{where}: {text}")
    if isinstance(error, MemoryError):
        return LimitError(f"{where}: expected memory for its results, got none")
    if isinstance(error, RecursionError):
        return LimitError(f"{where}: expected calls that nest less deep")
    said = printable(f"{type(error).__name__}: {error}", 300)  # whatever NumPy says of operands that a program combines
    return OperatorError(f"{where}: expected operands that the operator accepts, got {said}")


def _store(declared: Sequence[Any], result: Any, values: list[Any], limit: int) -> None:
    """Keep what a kernel returned under the values that its node declares, in lists of results one by one.

    Raises:
        OperatorError: other results than are declared.
    """
    several = isinstance(result, list | tuple)
    if len(declared) == 1:
        if type(declared[0]) is Result and not several:  # what most operators return
            return _keep(declared[0], result, values, limit)
        if isinstance(declared[0], list):
            is_nested = type(result) is tuple and len(result) == 1 and isinstance(result[0], list | tuple)
            declared, result = declared[0], result[0] if is_nested else result
    if all(one is None for one in declared):
        return None
    if not isinstance(result, list | tuple) or len(result) < len(declared):
        got = len(result) if several else "one"
        raise OperatorError(f"expected {count_text(len(declared), 'result')} as the program declares, got {got}")
    for one, value in zip(declared, result, strict=False):
        if type(one) is Result:
            _keep(one, value, values, limit)
        elif isinstance(one, list):
            _store(one, value, values, limit)
    return None


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
