"""Error context: an error in an operator also names the node and the model's source line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any, Final

import torch
from torch import fx

from pt2kit.bridge.callables import describe
from pt2kit.bridge.run.regions import OPERATORS, close_regions
from pt2kit.bridge.run.steps import Step, Value
from pt2kit.bridge.run.validation import original
from pt2kit.errors import Pt2Error
from pt2kit.node_metadata.frames import Frame, parse_stack_trace

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
    if len(args) > _SHOWN:
        args[_SHOWN:] = [f"and {len(args) - _SHOWN} more"]
    place = source_line(step.origin.stack_trace)
    target = original(step.target)
    operator = describe(OPERATORS.get(target, target))
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


def source_line(stack_trace: str) -> str:
    """Return the line of the model's source that a node comes from; "" if the file does not state it."""
    try:
        frames = parse_stack_trace(stack_trace).frames if stack_trace else ()
    except Pt2Error:
        return ""
    if not frames:
        return ""
    frame = _of_model(frames)
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
