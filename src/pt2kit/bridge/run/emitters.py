"""The two ways to run `Steps`: one Python function from the inputs to the outputs, and a `torch.fx.GraphModule`.

The source of the function holds only numbers that pt2kit assigns: `v7` is a value, `t3` an entry of the table of
operators, constants and keyword names. Values are deleted after their last use, so memory is that of the program, not
of all its values. Inputs are the caller's, who holds them until the call ends.

A module is the subgraph argument of higher-order operators. torch looks inside the modules that it passes to control
flow, for autograd, `torch.compile` and another export, so a subgraph is a graph of torch.fx here, too. Its values have
no metadata, because nothing that runs it asks for them; but in torch 2.9 autograd asks for that of its inputs.

Fake values are made on demand (`values_on_demand`): they need sympy and torch's compiler, whose import takes a second
that other programs need not wait for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import fx
from torch.fx.node import map_aggregate

from pt2kit import schema
from pt2kit.bridge.read.graph_reader import value_name
from pt2kit.bridge.read.tensors import Devices
from pt2kit.bridge.run.steps import Step, Steps, Stopped, Value, explain, values_in
from pt2kit.bridge.torch_names import append_call

if TYPE_CHECKING:
    from pt2kit.bridge.read.values import Values

FILE: Final = "<program of a .pt2 file>"
"""File name in the code of these functions."""
_FIRST_LINE: Final = 2
"""Line of the first step; each takes one line."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Compiled function and the steps of its lines.

    Args:
        function: accepts the inputs by position, returns a tuple of the outputs, or the one output.
        steps: the step of each line, from `_FIRST_LINE` on.
    """

    function: Callable[..., Any]
    steps: Sequence[Step]

    def stopped(self, trace: TracebackType) -> Stopped | None:
        """Return the step at which the function stopped, and the values there."""
        index = trace.tb_lineno - _FIRST_LINE
        if not 0 <= index < len(self.steps):
            return None
        return _stopped_at(self.steps, index, trace)


def _stopped_at(steps: Sequence[Step], index: int, trace: TracebackType) -> Stopped:
    """Return a step, and the values there, which are variables of their numbers."""
    known = trace.tb_frame.f_locals
    return Stopped(steps[:index], steps[index], lambda value: known.get(f"v{value.number}"))


def compile_steps(steps: Steps, parameters: Sequence[int]) -> Compiled:
    """Compile a graph.

    Args:
        steps: the graph.
        parameters: the numbers of its inputs, in the order of the function's parameters; all that are used.

    Cost: about 30 microseconds per step.
    """
    kept, dying = _lifetimes(steps)
    writer = _Writer()
    lines = [f"def run({', '.join(f'v{number}' for number in parameters)}):"]
    for step, dead in zip(kept, dying, strict=True):
        lines.append(writer.line(step, [number for number in dead if number >= steps.inputs]))
    lines.append(f" return {writer.outputs(steps)}")
    namespace = writer.table
    exec(compile("\n".join(lines), FILE, "exec"), namespace)  # noqa: S102  no text of the file is in it
    return Compiled(namespace.pop("run"), kept)


def _lifetimes(steps: Steps) -> tuple[list[Step], list[list[int]]]:
    """Return the steps with an effect or a use, and for each the numbers of the values that are dead after it."""
    seen = {value.number for value in values_in(steps.outputs)}
    kept: list[Step] = []
    dying: list[list[int]] = []
    for step in reversed(steps.steps):
        if step.target is operator.getitem and step.result.number not in seen:
            continue  # an unused part of a result
        last = []
        for value in (step.result, *values_in((step.args, step.kwargs))):
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

    def __init__(self) -> None:
        self.table: dict[str, Any] = {}
        self._known: dict[Any, str] = {}

    def line(self, step: Step, dead: Sequence[int]) -> str:
        """Return one step, and the deletion of the values after their last use."""
        parts = [self._text(arg) for arg in step.args]
        if step.target is operator.getitem:
            call = f"{parts[0]}[{parts[1]}]"
        else:
            if step.kwargs:
                varies = bool(values_in(step.kwargs))
                parts.append(f"**{self._mapping(step.kwargs) if varies else self._entry(step.kwargs)}")
            call = f"{self._entry(step.target)}({', '.join(parts)})"
        result = step.result.number
        if result not in dead:
            call = f"v{result}={call}"
        ended = [f"v{number}" for number in dead if number != result]
        return f" {call};del {','.join(ended)}" if ended else f" {call}"

    def outputs(self, steps: Steps) -> str:
        """Return the text of the function's outputs."""
        parts = [self._text(output) for output in steps.outputs]
        return parts[0] if steps.is_single else f"({''.join(f'{part},' for part in parts)})"

    def _text(self, held: Any) -> str:
        if type(held) is Value:
            return f"v{held.number}"
        if type(held) is list:
            return f"[{','.join(map(self._text, held))}]"
        if type(held) is tuple and values_in(held):
            return f"({''.join(f'{self._text(item)},' for item in held)})"
        if type(held) is dict:
            return self._mapping(held)
        return self._entry(held)

    def _mapping(self, held: Any) -> str:
        """Return the text of a dict; its keys are of the file, so they come from the table."""
        return f"{{{','.join(f'{self._entry(key)}:{self._text(item)}' for key, item in held.items())}}}"

    def _entry(self, held: Any) -> str:
        """Return the name of a table's entry; plain constants and functions that are the same share one."""
        key: Any = (type(held), held) if type(held) in (int, bool, str, type(None)) else id(held)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"t{len(self._known)}"
            self.table[name] = held
        return name


_STEPS: Final = "pt2kit.steps"
"""Key of a subgraph's steps in its `meta`, which copies of it share."""


class Subgraph(fx.GraphModule):  # type: ignore[misc]
    """A subgraph that adds to an error inside it which of its nodes that was."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        if torch.compiler.is_dynamo_compiling():
            return super().__call__(*args, **kwargs)
        had_grad = torch.is_grad_enabled()
        try:
            return super().__call__(*args, **kwargs)
        except BaseException as error:
            explain(error, type(self).forward.__code__, self._stopped, had_grad=had_grad)
            raise

    @property
    def steps(self) -> Sequence[Step]:
        """Return the steps that it runs."""
        found: Sequence[Step] = self.meta[_STEPS]
        return found

    def _stopped(self, trace: TracebackType) -> Stopped | None:
        """Return the step at which it stopped: the first without a result. A freed variable is None."""
        known, steps = trace.tb_frame.f_locals, self.steps
        index = next((n for n, step in enumerate(steps) if f"v{step.result.number}" not in known), None)
        return None if index is None else _stopped_at(steps, index, trace)


def subgraph_module(steps: Steps, inputs: Sequence[Any] = (), outputs: Sequence[Any] = ()) -> Subgraph:
    """Build a subgraph.

    Args:
        steps: the graph; subgraphs in it are modules already.
        inputs, outputs: fake values of these, where the installed torch asks for them.

    Cost: about 100 microseconds per step.
    """
    graph = fx.Graph()
    owner = torch.nn.Module()
    nodes: dict[int, fx.Node] = {}
    subgraphs: dict[int, str] = {}

    def live(held: Any) -> Any:
        if isinstance(held, Value):
            return nodes[held.number]
        if isinstance(held, fx.GraphModule):
            name = subgraphs.setdefault(id(held), f"graph_{len(subgraphs)}")
            owner.add_module(name, held)
            return graph.create_node("get_attr", name)
        return held

    for number in range(steps.inputs):
        nodes[number] = graph.placeholder(f"v{number}")
        if inputs:
            nodes[number].meta["val"] = inputs[number]
    for step in steps.steps:
        args, kwargs = map_aggregate(tuple(step.args), live), map_aggregate(step.kwargs, live)
        nodes[step.result.number] = append_call(graph, step.target, args, kwargs, f"v{step.result.number}")
    for value, fake in zip(steps.outputs, outputs, strict=bool(outputs)):
        if isinstance(value, Value):
            nodes[value.number].meta.setdefault("val", fake)
    results: Any = map_aggregate(tuple(steps.outputs), live)
    graph.output(results[0] if steps.is_single else results)
    module = Subgraph(owner, graph)
    module.meta[_STEPS] = steps.steps
    return module


def values_on_demand(ranges: Mapping[str, schema.RangeConstraint], devices: Devices) -> Callable[[], Values]:
    """Return a function that returns what makes the fake values of a program, made by the first call.

    Args:
        ranges: symbol -> range.
        devices: where its tensors go.
    """

    @cache
    def values() -> Values:
        from pt2kit.bridge.read.values import Shapes, Values

        return Values(Shapes(ranges), devices)

    return values


def fakes_of(arguments: Sequence[schema.Argument], graph: schema.Graph, values: Values, where: str) -> list[Any]:
    """Return the fake tensors and symbolic numbers of a subgraph's inputs or outputs; None for other arguments."""
    names = [value_name(argument) or "" for argument in arguments]
    metas = [graph.tensor_values.get(name) or graph.sym_int_values.get(name) for name in names]
    return [None if meta is None else values.value(meta, f"{where}[{number}]") for number, meta in enumerate(metas)]
