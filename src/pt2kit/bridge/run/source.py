"""`Steps` -> one Python function that takes the inputs and gives the outputs.

The source holds numbers of ours alone: `v7` is a variable, `t3` an entry of the table of operators, constants and
keyword names. A value is let go of after its last use, so memory is that of the program, not of all its values; its
variable is then another value's. Inputs are the caller's, who holds them until the call ends.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from pt2kit.bridge.run.failures import Stopped
from pt2kit.bridge.run.steps import Step, Steps, Value, values_in

FILE: Final = "<program of a .pt2 file>"
"""What the code of these functions says it comes from."""
_FIRST_LINE: Final = 2
"""Of the first step; each takes one line."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A function and what its lines are.

    Args:
        function: takes the inputs by place, gives a tuple of the outputs, or the one output.
        steps: the step of each line, from `_FIRST_LINE` on.
        variables: number of a value -> number of its variable.
    """

    function: Callable[..., Any]
    steps: Sequence[Step]
    variables: Mapping[int, int]

    def stopped(self, trace: TracebackType) -> Stopped | None:
        """The step at which the function stopped, and the values there."""
        index = trace.tb_lineno - _FIRST_LINE
        if not 0 <= index < len(self.steps):
            return None
        known = trace.tb_frame.f_locals
        return Stopped(self.steps[index], lambda value: known.get(f"v{self.variables[value.number]}"))


def compile_steps(steps: Steps, parameters: Sequence[int]) -> Compiled:
    """Compile a graph.

    Args:
        steps: the graph.
        parameters: the numbers of its inputs, in the order in which the function takes them; all that are used.

    Cost: about 30 microseconds per step.
    """
    kept, dying = _lifetimes(steps)
    writer = _Writer(steps.inputs)
    lines = [f"def run({', '.join(f'v{number}' for number in parameters)}):"]
    for step, dead in zip(kept, dying, strict=True):
        lines.append(writer.line(step, dead))
    lines.append(f" return {writer.outputs(steps)}")
    namespace = writer.table
    exec(compile("\n".join(lines), FILE, "exec"), namespace)  # noqa: S102  nothing of the file stands in it
    return Compiled(namespace.pop("run"), kept, writer.variables)


def _lifetimes(steps: Steps) -> tuple[list[Step], list[list[int]]]:
    """The steps that have an effect or a use, and for each the numbers of the values that nothing uses after it."""
    seen = {value.number for value in values_in(steps.outputs)}
    kept: list[Step] = []
    dying: list[list[int]] = []
    for step in reversed(steps.steps):
        if step.target is operator.getitem and step.result.number not in seen:
            continue  # a part of a result that nobody looks at
        last = []
        if step.result.number not in seen:
            last.append(step.result.number)
            seen.add(step.result.number)
        for value in values_in((step.args, step.kwargs)):
            if value.number not in seen:
                last.append(value.number)
                seen.add(value.number)
        kept.append(step)
        dying.append(last)
    kept.reverse()
    dying.reverse()
    return kept, dying


class _Writer:
    """Writes lines, and fills the table that they refer to."""

    def __init__(self, inputs: int) -> None:
        self.table: dict[str, Any] = {}
        self.variables = {number: number for number in range(inputs)}
        self._inputs = inputs
        self._known: dict[Any, str] = {}
        self._free: list[int] = []
        self._count = inputs

    def line(self, step: Step, dead: Sequence[int]) -> str:
        """One step, and the end of the values that die with it; its result takes the variable of one of these."""
        parts = [self._text(arg) for arg in step.args]
        if step.target is operator.getitem:
            call = f"{parts[0]}[{parts[1]}]"
        else:
            if step.kwargs:
                varies = bool(values_in(step.kwargs))
                parts.append(f"**{self._mapping(step.kwargs) if varies else self._entry(step.kwargs)}")
            call = f"{self._entry(step.target)}({', '.join(parts)})"
        result = step.result.number
        freed = sorted(number for number in dead if number != result)
        if result not in dead:
            variable = self.variables[result] = self.variables[freed.pop()] if freed else self._unused()
            call = f"v{variable}={call}"
        self._free += [self.variables[number] for number in freed]
        ended = [f"v{self.variables[number]}" for number in freed if number >= self._inputs]
        return f" {call};del {','.join(ended)}" if ended else f" {call}"

    def _unused(self) -> int:
        """A variable that holds nothing that is used any more."""
        if self._free:
            return self._free.pop()
        self._count += 1
        return self._count - 1

    def outputs(self, steps: Steps) -> str:
        """What the function gives."""
        parts = [self._text(output) for output in steps.outputs]
        return parts[0] if steps.is_single else f"({''.join(f'{part},' for part in parts)})"

    def _text(self, held: Any) -> str:
        if type(held) is Value:
            return f"v{self.variables[held.number]}"
        if type(held) is list:
            return f"[{','.join(map(self._text, held))}]"
        if type(held) is tuple and values_in(held):
            return f"({''.join(f'{self._text(item)},' for item in held)})"
        if type(held) is dict:
            return self._mapping(held)
        return self._entry(held)

    def _mapping(self, held: Any) -> str:
        """A dict; its keys are of the file, so they come from the table."""
        return f"{{{','.join(f'{self._entry(key)}:{self._text(item)}' for key, item in held.items())}}}"

    def _entry(self, held: Any) -> str:
        """The name of a table's entry; plain constants and functions that are the same share one."""
        key: Any = (type(held), held) if type(held) in (int, bool, str, type(None)) else id(held)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"t{len(self._known)}"
            self.table[name] = held
        return name
