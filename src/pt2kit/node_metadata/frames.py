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

Origins of nodes are the metadata texts `from_node` and `custom`, JSON inside a JSON string. `from_node` (torch 2.11 and
later) is a list of the nodes that a node was made from, each with its own origins:

    {"name": "add", "target": "aten.add.Tensor", "graph_id": 1396..., "pass_name": "...", "action": "create",
    "from_node": []}

`graph_id` was the address of a graph object: it tells graphs apart within one file and means nothing outside it.
`custom` is any JSON value that the user put on the node.

References of stack traces into a table of files and lines (`co_fileinfo_ordered_list` of schema 5.3): expand and
compact.

A graph's table is a list of `{file_name, line_info_map: {line number: {name, line}}}`, and the `stack_trace` of a
node then reads "0:12;3:40": file 0 of the table at its line 12, then file 3 at its line 40. The definition of that
text is normative in docs/traces.md, with test vectors; it never left a development state of torch, so pt2kit defines
it.

Expansion restores every text byte for byte. A text that is no standard trace is kept in the node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from pt2kit.errors import LimitError, SchemaError, attempt
from pt2kit.jsontext import load_json
from pt2kit.messages import count_text
from pt2kit.node_metadata.modules import decode_name, encode_name

_HEADER = re.compile(r'File "(.*)", line (0|[1-9]\d{0,8}), in (.*)', re.ASCII)
_INDENT = "  "
_NEXT_FRAME = re.compile(r'\n  (?=File ".*", line (?:0|[1-9]\d{0,8}), in .*$)', re.ASCII | re.MULTILINE)
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
    frames = []
    for text_of_frame in _NEXT_FRAME.split(body):
        line, *own = text_of_frame.split("\n")
        if (header := _HEADER.fullmatch(line)) is None:
            raise SchemaError(f"{where}: expected a frame 'File \"...\", line N, in NAME' first, got {line[:80]!a}")
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
    return tuple(decode_name(part, ";") for part in text.split(";")) if text else ()


def dump_torch_fn(parts: Sequence[str]) -> str:
    """Return the text of a torch_fn; the same that was parsed."""
    return ";".join(encode_name(part, ";") for part in parts)


def lenient(parse: Callable[[str], T], text: str) -> T | None:
    """Return `parse(text)`, or None if the text can't be read: `lenient(parse_module_stack, text)`."""
    return attempt(parse, text)


MAX_ORIGINS = 100  # nodes that come from nodes; each pass over a graph adds one
MAX_CUSTOM_DEPTH = 400  # levels of JSON


@dataclass(frozen=True, slots=True)
class NodeSource:
    """One origin of a node.

    Args:
        name, target: of the older node; "" where torch knew none.
        graph_id: identifies its graph within this file; -1 where torch knew none.
        pass_name: the pass that made the newer node.
        action: "create", "replace", or both joined by "+".
        from_node: the older node's own origins.
    """

    name: str = ""
    target: str = ""
    graph_id: int = -1
    pass_name: str = ""
    action: str = ""
    from_node: tuple[NodeSource, ...] = ()


_KEYS = ("name", "target", "graph_id", "pass_name", "action", "from_node")


def parse_from_node(text: str, where: str = "from_node") -> tuple[NodeSource, ...] | None:
    """Return the origins of a node; None for the text "null". Missing keys take their defaults.

    Raises:
        JsonError, SchemaError: not a list of origins.
        LimitError: more than `MAX_ORIGINS` origins in a chain.

    Source: `NodeSource._from_dict` in torch/fx/traceback.py (2.13).
    """
    value = load_json(text, where, 2 * MAX_ORIGINS + 10)
    return None if value is None else _sources(value, where, 1)


def dump_from_node(sources: Sequence[NodeSource] | None) -> str:
    """Return the text torch writes for these origins.

    Raises:
        LimitError: more than `MAX_ORIGINS` origins in a chain.
    """
    depth, level = 0, [*(sources or ())]
    while level:
        if (depth := depth + 1) > MAX_ORIGINS:
            raise LimitError(f"from_node: expected at most {MAX_ORIGINS} origins in a chain, got more")
        level = [older for source in level for older in source.from_node]
    return json.dumps(None if sources is None else [asdict(source) for source in sources])


def parse_custom(text: str, where: str = "custom") -> object:
    """Return the value of `custom` metadata.

    Raises:
        JsonError: not JSON.
        LimitError: nested deeper than `MAX_CUSTOM_DEPTH`.
    """
    return load_json(text, where, MAX_CUSTOM_DEPTH)


def dump_custom(value: object, where: str = "custom") -> str:
    """Return the text of `custom` metadata.

    Raises:
        SchemaError: the value is not JSON (the message names the type that is not).
    """
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"{where}: expected a value that JSON can hold, got one it can't: {error}") from error


def _sources(value: object, where: str, depth: int) -> tuple[NodeSource, ...]:
    if not isinstance(value, list):
        raise SchemaError(f"{where}: expected a list of origins, got {type(value).__name__}")
    return tuple(_source(item, f"{where}[{i}]", depth) for i, item in enumerate(value))


def _source(value: object, where: str, depth: int) -> NodeSource:
    if depth > MAX_ORIGINS:
        raise LimitError(f"{where}: expected at most {MAX_ORIGINS} origins in a chain, got more")
    if not isinstance(value, dict) or not value.keys() <= set(_KEYS):
        got = ", ".join(map(ascii, value)) if isinstance(value, dict) else type(value).__name__
        raise SchemaError(f"{where}: expected an object with the keys {', '.join(_KEYS)}, got {got[:80]}")
    for key, item in value.items():
        kind, noun = (int, "an integer") if key == "graph_id" else (str, "text")
        if key != "from_node" and type(item) is not kind:
            raise SchemaError(f"{where}.{key}: expected {noun}, got {type(item).__name__}")
    older = value.get("from_node")
    origins = () if older is None else _sources(older, f"{where}.from_node", depth + 1)
    return NodeSource(**{**value, "from_node": origins})


# A short reference may name long lines, and many nodes the same ones: what expansion makes is bounded, per text and
# in all.
MAX_TRACE_CHARACTERS = 1 << 22
MAX_EXPANDED_CHARACTERS = 1 << 28

FileTable = Sequence[Mapping[str, object]]
"""`co_fileinfo_ordered_list` as plain JSON values."""

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_REFERENCE = re.compile(rf"{_NUMBER}:{_NUMBER}(?:;{_NUMBER}:{_NUMBER})*;?")


def is_reference(text: str) -> bool:
    """Return whether a `stack_trace` is a reference; in a graph without a table it is a text like any other."""
    return _REFERENCE.fullmatch(text) is not None


def compact(stack_traces: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Move the frames of a graph's stack traces into one table.

    Args:
        stack_traces: the `stack_trace` of every node of one graph that has one.

    Returns:
        `co_fileinfo_ordered_list` as plain JSON values, files and lines in first-seen order, and what to write in
        place of each text. Where a file shows two texts at one line, or two function names, it has several entries in
        the list.
    """
    table: list[dict[str, Any]] = []
    lines_of: dict[str, list[tuple[int, dict[str, dict[str, str]]]]] = {}
    places: dict[Frame, str] = {}
    variants: dict[tuple[str, int], int] = {}

    def add(frame: Frame) -> str:
        """Return the reference of a frame: the n-th text of one line goes into the n-th entry of its file."""
        entries = lines_of.setdefault(frame.file, [])
        variant = variants.get((frame.file, frame.line), 0)
        variants[frame.file, frame.line] = variant + 1
        if variant == len(entries):
            entries.append((len(table), {}))
            table.append({"file_name": frame.file, "line_info_map": entries[-1][1]})
        index, lines = entries[variant]
        lines[str(frame.line)] = {"name": frame.function, "line": "\n".join((frame.source or "", *frame.rest))}
        return f"{index}:{frame.line}"

    written: dict[str, str] = {}
    for text in stack_traces:
        if text in written:
            continue
        trace = _standard_trace(text)
        if trace is None:
            written[text] = _protect(text)
            continue
        for frame in trace.frames:
            if frame not in places:
                places[frame] = add(frame)
        written[text] = ";".join(places[frame] for frame in trace.frames) + (";" if trace.full else "")
    return table, [written[text] for text in stack_traces]


def expand(reference: str, table: FileTable, where: str = "stack_trace") -> str:
    """Return the stack trace of a node whose graph has a table.

    Args:
        reference: the `stack_trace` in the node's metadata.
        table: the graph's `co_fileinfo_ordered_list`.
        where: place of the text, for messages.

    Raises:
        SchemaError: a file or a line that the table does not have, or a table of another shape.
        LimitError: a text of more than `MAX_TRACE_CHARACTERS`.
    """
    if not is_reference(reference):
        return _unprotect(reference)
    full = reference.endswith(";")
    frames = []
    size = 0
    for item in reference.rstrip(";").split(";"):
        index, _, line = item.partition(":")
        file, name, source = _look_up(table, int(index), line, where)
        size += len(file) + len(name) + len(source)
        if size > MAX_TRACE_CHARACTERS:
            raise LimitError(
                f"{where}: expected at most {MAX_TRACE_CHARACTERS} characters in a trace, got {size} or more"
            )
        first, *rest = source.split("\n")
        frames.append(Frame(file, int(line), name, first if source else None, tuple(rest)))
    return dump_stack_trace(StackTrace(tuple(frames), full))


def expand_all(references: Sequence[str], table: FileTable, where: str = "stack_trace") -> list[str]:
    """Return `expand` for all nodes of a graph; equal references become one and the same text.

    Raises:
        SchemaError: as `expand`.
        LimitError: as `expand`, or more than `MAX_EXPANDED_CHARACTERS` for all nodes together.
    """
    expanded: dict[str, str] = {}
    size = 0
    for i, reference in enumerate(references):
        if reference not in expanded:
            expanded[reference] = expand(reference, table, f"{where}[{i}]")
        size += len(expanded[reference])
        if size > MAX_EXPANDED_CHARACTERS:
            raise LimitError(
                f"{where}: expected traces of at most {MAX_EXPANDED_CHARACTERS} characters in all, got {size} or more"
            )
    return [expanded[reference] for reference in references]


def _standard_trace(text: str) -> StackTrace | None:
    """Return the frames of a text that the table can hold, None for any other text."""
    trace = lenient(parse_stack_trace, text)
    # The table could not tell an empty source line from none.
    if trace is None or any(frame.source == "" or (frame.source is None and frame.rest) for frame in trace.frames):
        return None
    return trace


def _look_up(table: FileTable, index: int, line: str, where: str) -> tuple[str, str, str]:
    """Return the file name, function name and source lines that a reference "index:line" names."""
    if index >= len(table):
        raise SchemaError(f"{where}: expected a file index below {len(table)}, got {index}")
    entry = table[index]
    file = entry.get("file_name")
    lines = entry.get("line_info_map")
    if not isinstance(file, str) or not isinstance(lines, Mapping):
        raise SchemaError(
            f"{where}: expected file_name and line_info_map in co_fileinfo_ordered_list[{index}], "
            f"got {type(file).__name__} and {type(lines).__name__}"
        )
    info = lines.get(line)
    if info is None:
        raise SchemaError(
            f"{where}: expected a line that co_fileinfo_ordered_list[{index}] has, got line {line} of {len(lines)}"
        )
    name = info.get("name") if isinstance(info, Mapping) else None
    source = info.get("line") if isinstance(info, Mapping) else None
    if not isinstance(name, str) or not isinstance(source, str):
        raise SchemaError(
            f"{where}: expected name and line as texts in co_fileinfo_ordered_list[{index}] at line {line}, "
            f"got {type(name).__name__} and {type(source).__name__}"
        )
    return file, name, source


def _protect(text: str) -> str:
    return f"={text}" if is_reference(text.lstrip("=")) else text


def _unprotect(text: str) -> str:
    return text[1:] if text.startswith("=") and is_reference(text.lstrip("=")) else text
