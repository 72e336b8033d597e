"""Intermediate representation of a program: operators over numbered values, with all names of the file resolved.

Both ways of running a graph start from `Steps` (`emitters.py`): the source of a Python function, and a module of
torch.fx for subgraphs. No name of the file is in it.

Regions of a program are subgraphs that run in a mode, and calls that open and close a mode of the process. Higher-order
operators that only run a subgraph in a mode become functions that do so, without torch's compiler. torch's own import
its compiler when they are called, which takes seconds, to keep it from looking inside. Where the compiler or another
export is at work they are called as they are.

An error in an operator also names the node and the model's source line (`Stopped`).

Source: `WrapWithSetGradEnabled` and `WrapWithAutocast` in torch/_higher_order_ops/wrap.py, 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, MappingProxyType, TracebackType
from typing import Any, Final

import torch
from msgspec import Struct
from torch import fx

from pt2kit.bridge.callables import describe
from pt2kit.bridge.run.validation import original, replacing
from pt2kit.bridge.torch_names import find_function, find_higher_order
from pt2kit.messages import listed
from pt2kit.node_metadata.frames import Frame, lenient, parse_stack_trace
from pt2kit.operators.higher_order import FUNCTIONS, PREDISPATCH

# Structs, because each node makes three of these: a frozen dataclass takes five times as long to make.


class Value(Struct, frozen=True, gc=False):
    """A value of a graph, by its number: inputs first, then results in the order of the steps."""

    number: int


class Origin(Struct, frozen=True, gc=False):
    """The node that a step comes from, for messages.

    Args:
        label: its name, or its place where it has none.
        stack_trace: the lines of the model's source, as the file has them; "" where it has none.
    """

    label: str
    stack_trace: str


class Step(Struct, frozen=True):
    """One call.

    Args:
        target: the callable.
        args, kwargs: values, subgraphs, constants, and lists, tuples and dicts of these.
        result: the value that the call returns.
        origin: its node.
    """

    target: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    result: Value
    origin: Origin


@dataclass(frozen=True, slots=True)
class Steps:
    """A graph.

    Args:
        inputs: the number of its inputs, which are numbered from 0.
        steps: its calls, in order.
        outputs: its results: values, constants, and containers of them.
        is_single: it returns the one output itself, not a tuple of it.
    """

    inputs: int
    steps: Sequence[Step]
    outputs: Sequence[Any]
    is_single: bool = False


def values_in(held: Any) -> list[Value]:
    """Return the values in an argument and its nested containers, each as often as it occurs."""
    values: list[Value] = []
    pending = [held]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is Value:
            values.append(item)
        elif kind is tuple or kind is list:
            pending += item
        elif kind is dict:
            pending += item.values()
    return values


def _in_mode(target: Callable[..., Any], mode: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return a function that runs a subgraph in a mode, of which the first arguments are `count` parameters."""

    def run(*args: Any) -> Any:
        if torch.compiler.is_compiling():
            return target(*args)
        with mode(*args[:count]):
            return args[count](*args[count + 1 :])

    return replacing(target, run)


REGIONS: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = MappingProxyType(
    {
        target: _in_mode(target, mode, count)
        for name, mode, count in (
            ("wrap_with_set_grad_enabled", torch.set_grad_enabled, 1),
            ("wrap_with_autocast", torch.autocast, 4),
        )
        if (target := find_higher_order(name))
    }
)
"""Callable that is used instead of each operator."""

_PARAMETERS: Final = {f"{PREDISPATCH}_exit_dual_level": "level", "torch.amp.autocast_mode._exit_autocast": "mode"}
_CLOSERS: Final[Mapping[Callable[..., Any], tuple[Callable[..., Any], str | None]]] = MappingProxyType(
    {
        opener: (closer, _PARAMETERS.get(name))
        for name, function in FUNCTIONS.items()
        if (opener := find_function(function.opens)) and (closer := find_function(name))
    }
)
"""Callable that closes a region, with its parameter for the value that opening returned, by the one that opens it."""


def close_regions(steps: Iterable[Step], read: Callable[[Value], Any]) -> None:
    """Close the regions that a call opened and did not close because it stopped in between, innermost first.

    Args:
        steps: those that were run. Regions in it are nested (rule X14).
        read: returns a value.
    """
    opened: list[Step] = []
    closers = {closer for closer, _ in _CLOSERS.values()}
    for step in steps:
        if step.target in _CLOSERS:
            opened.append(step)
        elif step.target in closers and opened:
            opened.pop()
    for step in reversed(opened):
        closer, parameter = _CLOSERS[step.target]
        closer(**({} if parameter is None else {parameter: read(step.result) or 0}))


_SHOWN = 12
_LINE = 120
_OF_TORCH: Final = re.compile(r"[/\\](site|dist)-packages[/\\]torch[/\\]")


@dataclass(frozen=True, slots=True)
class Stopped:
    """Position at which a function that runs a graph stopped.

    Args:
        before: the steps that it had run.
        step: the step that it was at.
        read: returns a value at that time.
    """

    before: Sequence[Step]
    step: Step
    read: Callable[[Value], Any]


def explain(
    error: BaseException, code: CodeType, stopped: Callable[[TracebackType], Stopped | None], *, had_grad: bool
) -> None:
    """Add to an error its position in the program, and restore the state of the process before the call.

    The position is the node, its operator, its arguments, and the line of the model's source. Regions that the call had
    opened (vmap, jvp, autocast) are closed.

    Args:
        error: changed in place, so that handlers of its type still catch it; unchanged if it was
            not raised by a step. Inside a subgraph it gets the node there first, then the node that runs the
            subgraph.
        code: of the function that runs a graph.
        stopped: a place in that function -> the step that it is, and the values there; None if it is none.
        had_grad: whether gradients were enabled before the call.
    """
    torch.set_grad_enabled(had_grad)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is code:
            place = stopped(trace)
            if place is not None:
                close_regions(place.before, place.read)
                if isinstance(error, Exception):
                    _add(error, _text(place.step, place.read))
            return
        trace = trace.tb_next


def _text(step: Step, read: Callable[[Value], Any]) -> str:
    args = [_shown(arg, read) for arg in step.args]
    args += [f"{name}={_shown(arg, read)}" for name, arg in step.kwargs.items()]
    operator, place = describe(original(step.target)), source_line(step.origin.stack_trace)
    return f"in the node {step.origin.label} ({operator}), called with ({listed(args, _SHOWN)}){place}"


def _shown(held: Any, read: Callable[[Value], Any]) -> str:
    if isinstance(held, Value):
        return _shown(read(held), read)
    if isinstance(held, torch.Tensor):
        return f"{str(held.dtype).removeprefix('torch.')}{list(held.shape)}"
    if isinstance(held, (list, tuple)):
        return f"[{', '.join(_shown(item, read) for item in held[:_SHOWN])}]"
    if held is None or isinstance(held, (bool, int, float, str, torch.dtype, torch.device)):
        return repr(held)[:40]
    if isinstance(held, fx.GraphModule):
        return "a subgraph"
    return f"a {type(held).__name__}"


def source_line(stack_trace: str) -> str:
    """Return the line of the model's source that a node comes from; "" if the file does not state it."""
    trace = lenient(parse_stack_trace, stack_trace) if stack_trace else None
    if trace is None:
        return ""
    frame = _of_model(trace.frames)
    return f", from {frame.file}:{frame.line}, in {frame.function}{f': {frame.source[:_LINE]}' if frame.source else ''}"


def _of_model(frames: Sequence[Frame]) -> Frame:
    """Return the innermost frame of the model itself; of torch or of generated code only if there is no other."""
    written = [frame for frame in frames if not frame.file.startswith("<")]
    own = [frame for frame in written if not _OF_TORCH.search(frame.file)]
    return (own or written or frames)[-1]


def _add(error: Exception, text: str) -> None:
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{text}",)
    elif hasattr(error, "add_note"):  # Python 3.11
        error.add_note(text)
