"""Execution of prepared graphs with jax: kernels run once on unknown numbers, and jax compiles them.

A program is traced for each combination of input sizes, element types and Python numbers. Everything that cannot be
traced is refused then, before anything runs. What kernels require of numbers, such as indices within a dimension, is
computed with the outputs and checked after the call. Element types of 64 bits are enabled for these calls only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pt2kit.errors import OperatorError, Pt2Error, UnsupportedError
from pt2kit.messages import printable
from pt2kit.operators.facts import Mismatch
from pt2kit.runtime.arrays import RUNNING, Running
from pt2kit.runtime.execution import Plan, Step, step_name
from pt2kit.runtime.jax_arrays import READS_NUMBERS, JaxArray, input_array, lifted


class _NoRandom:
    """The generator of random numbers of programs that may not use any."""

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedError("expected operators that are not random, as jax has other generators")


@dataclass(slots=True)
class Traced:
    """A program for inputs of some sizes.

    Args:
        trace: what jax made of it.
        outputs: its outputs that are Python numbers, None for those that are arrays.
        written: the inputs that it writes.
        checks: what the numbers that it returns last must be: an error for each that is not true.
        compiled: the function that computes it, after the first call.
    """

    trace: Any
    outputs: list[Any]
    written: list[int]
    checks: list[str]
    compiled: Any = None


class JaxExecutable:
    """A graph that can be called with one value per input; returns the list of its outputs.

    Args:
        plan: the graph.
        weights: inputs that are the same in each call, and not written.
        constants: those of them whose numbers become a part of the program.
        max_bytes: bytes that one array may have.
    """

    def __init__(self, plan: Plan, weights: Collection[int], constants: Collection[int], max_bytes: int) -> None:
        self._plan, self._weights, self._constants, self._max_bytes = plan, weights, constants, max_bytes
        self._traced: dict[Any, Traced] = {}
        self._held: dict[int, Any] = {}

    def __call__(self, *inputs: Any, observe: Any = None) -> list[Any]:
        """Run the graph; NumPy arrays that the program writes to are changed.

        Raises:
            UnsupportedError: an operator that jax cannot run, or not with these inputs; nodes are to be observed.
            OperatorError: numbers that an operator refuses.
        """
        if observe is not None:
            raise UnsupportedError("observe: expected the backend numpy, got jax")
        traced = self.traced(inputs)
        arrays = [one for one in inputs if isinstance(one, np.ndarray)]
        for target in (inputs[place] for place in traced.written):
            if not target.flags.writeable:
                raise OperatorError("expected a tensor that can be written to, got a read-only one; pass a copy")
            if any(one is not target and np.may_share_memory(one, target) for one in arrays):
                raise UnsupportedError("inputs: expected no tensors that share memory with one that is written")
        with jax.enable_x64(True):
            if traced.compiled is None:
                traced.compiled = traced.trace.lower().compile()
            results, written, checks = traced.compiled([self._held_array(i, inputs[i]) for i in self._passed(inputs)])
            for message, holds in zip(traced.checks, checks, strict=True):
                if not holds:
                    raise OperatorError(message)
            for place, value in zip(traced.written, written, strict=True):
                np.copyto(inputs[place], np.asarray(value))
            found = iter(results)
            return [np.array(next(found)) if one is None else one[0] for one in traced.outputs]

    def traced(self, inputs: Sequence[Any]) -> Traced:
        """Return the program for inputs of these sizes.

        Raises:
            UnsupportedError: an operator that jax cannot run.
        """
        key = tuple(
            (one.shape, one.strides, one.dtype, same) if isinstance(one, np.ndarray) else (type(one), repr(one))
            for one, same in zip(inputs, _first_places(inputs), strict=True)
        )
        if key not in self._traced:
            self._traced[key] = self._trace(inputs)
        return self._traced[key]

    def stablehlo(self, inputs: Sequence[Any], names: Sequence[str]) -> str:
        """Return the program for inputs of these sizes as the text of a StableHLO module.

        Its arguments are the arrays among the inputs; its results are the outputs, then the inputs that it writes.

        Args:
            inputs: one value per input of the graph.
            names: of these inputs, for the comments at the beginning.

        Raises:
            UnsupportedError: an operator that jax cannot run.
        """
        made = self._trace(inputs, is_checked=False)
        passed = self._passed(inputs)
        shown = (f"{printable(names[i], 200)} {inputs[i].dtype.name}{list(inputs[i].shape)}" for i in passed)
        lines = [f"// %arg{number}: {one}" for number, one in enumerate(shown)]
        count = sum(one is None for one in made.outputs)
        lines += [f"// result {number}: output" for number in range(count)]
        lines += [f"// result {count + number}: {names[i]} after the call" for number, i in enumerate(made.written)]
        with jax.enable_x64(True):
            return "\n".join((*lines, made.trace.lower().as_text("stablehlo")))

    def _trace(self, inputs: Sequence[Any], *, is_checked: bool = True) -> Traced:
        made = Traced(None, [], [], [])
        passed, same = self._passed(inputs), _first_places(inputs)

        def compute(arrays: Any) -> Any:
            values: list[Any] = [*map(lifted, inputs)]
            for place, array in zip(passed, arrays, strict=True):
                values[place] = input_array(array, inputs[place]) if same[place] == place else values[same[place]]
            checks: list[Any] = []

            def keep(step: Step, result: Any) -> Any:
                new = call.checks[len(checks) :]
                checks.extend(new)
                made.checks += [f"node {step_name(step)}: {message}" for _, message in new]
                return lifted(result)

            call = Running(self._max_bytes, _NoRandom(), keep=keep)  # type: ignore[arg-type]
            token = RUNNING.set(call)
            try:
                results = [lifted(one) for one in self._plan(*values)]
            finally:
                RUNNING.reset(token)
            made.outputs = [None if isinstance(one, JaxArray) else (one,) for one in results]
            made.written = [
                i for i, one in enumerate(values) if isinstance(one, JaxArray) and one.is_written and same[i] == i
            ]
            return (
                [jnp.asarray(one.value) for one in results if isinstance(one, JaxArray)],
                [jnp.asarray(values[i].value) for i in made.written],
                [holds for holds, _ in checks] if is_checked else [],
            )

        shapes = [jax.ShapeDtypeStruct(inputs[i].shape, inputs[i].dtype) for i in passed]
        with jax.enable_x64(True), jax.default_matmul_precision("highest"), self._named():
            made.trace = jax.jit(compute, keep_unused=not is_checked).trace(shapes)
        return made

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the operator that cannot be traced, with the number of its nodes."""
        try:
            yield
        except (UnsupportedError, OperatorError) as error:
            if isinstance(error, OperatorError) and isinstance(error.__cause__, Pt2Error | Mismatch):
                raise
            text, targets = str(error), [step.target for step in self._plan.steps]
            if isinstance(error.__cause__, jax.errors.ConcretizationTypeError):
                text = f"{text.partition(': ')[0]}: {READS_NUMBERS}"
            named = (step.target for step in self._plan.steps if text.startswith(f"node {step_name(step)}"))
            got = next((f", got {target} ({targets.count(target)})" for target in named), "")
            raise UnsupportedError(f"expected operators that jax can run{got}: {text}") from error

    def _passed(self, inputs: Sequence[Any]) -> list[int]:
        """Return the inputs that are arguments of the compiled function."""
        return [i for i, one in enumerate(inputs) if isinstance(one, np.ndarray) and i not in self._constants]

    def _held_array(self, place: int, array: Any) -> Any:
        if place not in self._weights:
            return jnp.asarray(array)
        if place not in self._held:
            self._held[place] = jnp.asarray(array)
        return self._held[place]


def _first_places(inputs: Sequence[Any]) -> list[int]:
    """Return the first place where each array is among the inputs; -1 for other values."""
    first = {id(one): place for place, one in reversed([*enumerate(inputs)]) if isinstance(one, np.ndarray)}
    return [first.get(id(one), -1) for one in inputs]
