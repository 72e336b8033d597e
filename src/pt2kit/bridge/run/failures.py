"""An error in an operator -> the same error, which also says where in the program it happened."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any, Final

import torch
from torch import fx

from pt2kit.bridge.callables import describe
from pt2kit.bridge.run.regions import OPERATORS
from pt2kit.bridge.run.steps import Step, Value
from pt2kit.errors import Pt2Error
from pt2kit.node_metadata.frames import Frame, parse_stack_trace

_SHOWN = 12
_LINE = 120
_OF_TORCH: Final = re.compile(r"[/\\](site|dist)-packages[/\\]torch[/\\]")


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where a function that runs a graph stopped.

    Args:
        step: the step that it was at.
        read: what a value was then.
    """

    step: Step
    read: Callable[[Value], Any]


def explain(error: Exception, code: CodeType, stopped: Callable[[TracebackType], Stopped | None]) -> None:
    """Add to an error the node, its operator, what it was called with, and the line of the model's source.

    Args:
        error: stays the object that it is, so that who catches one of its type still does; it is left alone where it
            was not raised by a step. Inside a subgraph it gets the node there first, then the node that runs the
            subgraph.
        code: of the function that runs a graph.
        stopped: a place in that function -> the step that it is, and the values there; None where it is none.
    """
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is code:
            place = stopped(trace)
            if place is not None:
                _add(error, _text(place.step, place.read))
            return
        trace = trace.tb_next


def _text(step: Step, read: Callable[[Value], Any]) -> str:
    args = [_shown(arg, read) for arg in step.args]
    args += [f"{name}={_shown(arg, read)}" for name, arg in step.kwargs.items()]
    if len(args) > _SHOWN:
        args[_SHOWN:] = [f"and {len(args) - _SHOWN} more"]
    place = _source_line(step.origin.stack_trace)
    operator = describe(OPERATORS.get(step.target, step.target))
    return f"in the node {step.origin.label} ({operator}), called with ({', '.join(args)}){place}"


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


def _source_line(stack_trace: str) -> str:
    """Where in the model's source a node comes from; "" where the file does not say."""
    try:
        frames = parse_stack_trace(stack_trace).frames if stack_trace else ()
    except Pt2Error:
        return ""
    if not frames:
        return ""
    frame = _of_model(frames)
    return f", from {frame.file}:{frame.line}, in {frame.function}{f': {frame.source[:_LINE]}' if frame.source else ''}"


def _of_model(frames: Sequence[Frame]) -> Frame:
    """The innermost frame of the model itself; of torch or of generated code only where there is no other."""
    written = [frame for frame in frames if not frame.file.startswith("<")]
    own = [frame for frame in written if not _OF_TORCH.search(frame.file)]
    return (own or written or frames)[-1]


def _add(error: Exception, text: str) -> None:
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{text}",)
    elif hasattr(error, "add_note"):  # Python 3.11
        error.add_note(text)
