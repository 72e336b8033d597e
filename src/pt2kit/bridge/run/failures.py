"""An error in an operator -> the same error, which also says where in the program it happened."""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from pt2kit.bridge.callables import describe
from pt2kit.bridge.run.regions import OPERATORS
from pt2kit.bridge.run.source import Compiled
from pt2kit.bridge.run.steps import Step, Value
from pt2kit.errors import Pt2Error
from pt2kit.node_metadata.frames import parse_stack_trace

_SHOWN = 12


def explain(error: Exception, compiled: Compiled) -> None:
    """Add to an error the node, its operator, what it was called with, and the line of the model's source.

    The error stays the object that it is: who catches one of its type still does. It is left alone where it was not
    raised by a step.
    """
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is compiled.function.__code__:
            step = compiled.step_at(trace.tb_lineno)
            if step is not None:
                _add(error, _text(step, trace.tb_frame))
            return
        trace = trace.tb_next


def _text(step: Step, frame: FrameType) -> str:
    values = frame.f_locals
    args = [_shown(arg, values) for arg in step.args]
    args += [f"{name}={_shown(arg, values)}" for name, arg in step.kwargs.items()]
    if len(args) > _SHOWN:
        args[_SHOWN:] = [f"and {len(args) - _SHOWN} more"]
    place = _source_line(step.origin.stack_trace)
    operator = describe(OPERATORS.get(step.target, step.target))
    return f"in the node {step.origin.label} ({operator}), called with ({', '.join(args)}){place}"


def _shown(held: Any, values: dict[str, Any]) -> str:
    if isinstance(held, Value):
        return _shown(values.get(f"v{held.number}"), {})
    if isinstance(held, torch.Tensor):
        return f"{str(held.dtype).removeprefix('torch.')}{list(held.shape)}"
    if isinstance(held, (list, tuple)):
        return f"[{', '.join(_shown(item, values) for item in held[:_SHOWN])}]"
    if held is None or isinstance(held, (bool, int, float, str, torch.dtype, torch.device)):
        return repr(held)[:40]
    return f"a {type(held).__name__}"


def _source_line(stack_trace: str) -> str:
    """Where in the model's source a node comes from; "" where the file does not say."""
    try:
        frames = parse_stack_trace(stack_trace).frames if stack_trace else ()
    except Pt2Error:
        return ""
    if not frames:
        return ""
    last = frames[-1]
    return f", from {last.file}:{last.line}, in {last.function}{f': {last.source}' if last.source else ''}"


def _add(error: Exception, text: str) -> None:
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{text}",)
    elif hasattr(error, "add_note"):  # Python 3.11
        error.add_note(text)
