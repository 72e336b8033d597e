"""Stack traces and source functions of nodes (`stack_trace`, `source_fn_stack`, `torch_fn`), parsed and printed.

A stack trace is parsed to frames, outermost first.

      File "/home/me/model.py", line 12, in forward
        return self.fc(x)
               ^^^^^^^^^^

That is Python's own traceback text. torch stores it *full* (as above: every frame indented by two spaces, a newline at
the end; torch 2.1 to 2.3, and strict export later) or *stripped* (no white space at either end; torch 2.4 on). Other
texts occur ("NoneType: None") and are not frames: `parse_stack_trace` refuses them, and a caller keeps them as they
are.

Source functions are parsed to names:

    source_fn_stack     name,target;name,target     the functions of the user's code a node comes from, outermost first
    source_fn           name,target                 the same up to torch 2.1, one entry
    torch_fn            name;kind.function          a unique name of the call, and what was called

torch escapes nothing; names with separators are written with percent escapes (see `modules.encode_name`).

`lenient` returns None for a text that cannot be read, for views that show what they can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pt2kit.errors import Pt2Error, SchemaError
from pt2kit.messages import count_text
from pt2kit.node_metadata.modules import decode_name, encode_name

_HEADER = re.compile(r'File "(.*)", line (0|[1-9]\d{0,8}), in (.*)', re.ASCII)
_INDENT = "  "
_SOURCE_INDENT = "    "

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a stack trace.

    Args:
        file: as Python names it: a path, or "<eval_with_key>.12" for generated code.
        line: the line number.
        function: name of the function.
        source: the source line without indentation; None if the text has none.
        rest: any further lines up to the next frame, as they are (carets, continued lines, "[Previous line repeated
        ...]").
    """

    file: str
    line: int
    function: str
    source: str | None = None
    rest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StackTrace:
    """Frames, outermost first, and whether the text is full (indented, newline at the end) or stripped."""

    frames: tuple[Frame, ...]
    full: bool


def parse_stack_trace(text: str, where: str = "stack_trace") -> StackTrace:
    """Divide a stack trace into frames; `dump_stack_trace` returns the identical text.

    Raises:
        SchemaError: the text does not begin with a frame.
    """
    full = text.startswith(f'{_INDENT}File "') and text.endswith("\n")
    body = text[len(_INDENT) : -1] if full else text
    lines = body.split("\n")
    header = _HEADER.fullmatch(lines[0])
    if header is None:
        raise SchemaError(f"{where}: expected a frame 'File \"...\", line N, in NAME' first, got {lines[0][:80]!a}")
    frames: list[Frame] = []
    own: list[str] = []
    for line in lines[1:]:
        following = _HEADER.fullmatch(line[len(_INDENT) :]) if line.startswith(f"{_INDENT}File ") else None
        if following is None:
            own.append(line)
        else:
            frames.append(_frame(header, own))
            header, own = following, []
    frames.append(_frame(header, own))
    return StackTrace(tuple(frames), full)


def dump_stack_trace(trace: StackTrace) -> str:
    """Return the text of a stack trace, in its form."""
    body = f"\n{_INDENT}".join(frame_text(frame) for frame in trace.frames)
    return f"{_INDENT}{body}\n" if trace.full else body


def frame_text(frame: Frame) -> str:
    """Return the lines of one frame; the first without its indentation."""
    lines = [f'File "{frame.file}", line {frame.line}, in {frame.function}']
    if frame.source is not None:
        lines.append(f"{_SOURCE_INDENT}{frame.source}")
    return "\n".join((*lines, *frame.rest))


def _frame(header: re.Match[str], own: Sequence[str]) -> Frame:
    file, line, function = header.groups()
    if own and own[0].startswith(_SOURCE_INDENT):
        return Frame(file, int(line), function, own[0][len(_SOURCE_INDENT) :], tuple(own[1:]))
    return Frame(file, int(line), function, None, tuple(own))


@dataclass(frozen=True, slots=True)
class SourceFn:
    """One function of a source_fn_stack.

    Args:
        name: name of the node in the graph that the user's code was captured in.
        target: the function: "torch.nn.modules.linear.Linear", "_operator.add", "relu". A name, never resolved here.
    """

    name: str
    target: str


def parse_source_fn_stack(text: str, where: str = "source_fn_stack") -> tuple[SourceFn, ...]:
    """Return the entries of a source_fn_stack (or of source_fn, which has one); () for an empty text.

    Raises:
        SchemaError: an entry without exactly one comma, which torch does not read either.
    """
    if not text:
        return ()
    entries = []
    for i, piece in enumerate(text.split(";")):
        parts = piece.split(",")
        if len(parts) != 2:
            raise SchemaError(
                f"{where}: expected entry {i} to be name,target, got {count_text(len(parts), 'part')}: {piece[:80]!a}"
            )
        entries.append(SourceFn(*(decode_name(part, ",;") for part in parts)))
    return tuple(entries)


def dump_source_fn_stack(entries: Sequence[SourceFn]) -> str:
    """Return the text of a source_fn_stack; the same that was parsed."""
    return ";".join(f"{encode_name(entry.name, ',;')},{encode_name(entry.target, ',;')}" for entry in entries)


def parse_torch_fn(text: str) -> tuple[str, ...]:
    """Return the parts of a torch_fn, by convention the name of the call and "kind.function"; () for an empty text."""
    parts = text.split(";") if text else ()
    return tuple(parts) if "%" not in text else tuple(decode_name(part, ";") for part in parts)


def dump_torch_fn(parts: Sequence[str]) -> str:
    """Return the text of a torch_fn; the same that was parsed."""
    return ";".join(encode_name(part, ";") for part in parts)


def lenient(parse: Callable[[str], T], text: str) -> T | None:
    """Return `parse(text)`, or None if the text can't be read: `lenient(parse_module_stack, text)`."""
    try:
        return parse(text)
    except Pt2Error:
        return None
