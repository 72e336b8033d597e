"""References of stack traces into a table of files and lines (`co_fileinfo_ordered_list` of schema 5.3): expand and
compact.

A graph's table is a list of `{file_name, line_info_map: {line number: {name, line}}}`, and the `stack_trace` of a
node then reads "0:12;3:40": file 0 of the table at its line 12, then file 3 at its line 40. The definition of that
text is normative in docs/traces.md, with test vectors; it never left a development state of torch, so pt2kit defines
it.

Expansion restores every text byte for byte. A text that is no standard trace is kept in the node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pt2kit.errors import LimitError, SchemaError
from pt2kit.node_metadata.frames import Frame, StackTrace, dump_stack_trace, parse_stack_trace

# A short reference may name long lines, and many nodes the same ones: what expansion makes is bounded, per text and
# in all.
MAX_TRACE_CHARACTERS = 1 << 22
MAX_EXPANDED_CHARACTERS = 1 << 28

FileTable = Sequence[Mapping[str, object]]
"""`co_fileinfo_ordered_list` as plain JSON values."""

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_REFERENCE = re.compile(rf"{_NUMBER}:{_NUMBER}(?:;{_NUMBER}:{_NUMBER})*;?")
_SOURCE_INDENT = "\n    "


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
        lines[str(frame.line)] = _line_info(frame)
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
    try:
        trace = parse_stack_trace(text)
    except SchemaError:
        return None
    for frame in trace.frames:
        if frame.source == "" or (frame.source is None and frame.rest):
            return None  # the table could not tell an empty source line from none
    return trace


def _line_info(frame: Frame) -> dict[str, str]:
    return {"name": frame.function, "line": "\n".join((frame.source or "", *frame.rest))}


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
