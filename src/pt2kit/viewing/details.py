"""Details of a drawn node: arguments, values, source lines, metadata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pt2kit.graph.argument_values import arguments
from pt2kit.messages import printable
from pt2kit.node_metadata.frames import parse_stack_trace
from pt2kit.node_metadata.lenience import lenient
from pt2kit.node_metadata.modules import parse_module_stack
from pt2kit.schema import Argument, Graph, TensorMeta
from pt2kit.text.arguments import argument_text
from pt2kit.text.values import ValueTexts, device_text
from pt2kit.viewing.columns import MAX_TEXT
from pt2kit.viewing.draw import Drawing

CHUNK: Final = 256
"""Nodes whose details one answer has."""

MAX_ITEMS: Final = 200
"""Values, frames or lines of metadata of one node that are sent; the page says how many there are."""

MAX_ARGUMENT: Final = 4000


@dataclass(frozen=True, slots=True)
class ValueDetail:
    """One value: its name and type, and of a tensor what the type leaves out."""

    name: str
    type: str
    strides: str = ""
    offset: str = ""
    device: str = ""
    layout: str = ""
    requires_grad: bool = False


@dataclass(frozen=True, slots=True)
class ArgumentDetail:
    """One argument: its name in the operator's schema, its text, the values it names."""

    name: str
    text: str
    values: tuple[ValueDetail, ...]


@dataclass(frozen=True, slots=True)
class FrameDetail:
    """One frame of a stack trace."""

    file: str
    line: int
    function: str
    source: str


@dataclass(frozen=True, slots=True)
class NodeDetail:
    """One node.

    Args:
        arguments: in the order of the file.
        results: the values it defines.
        frames: of its stack trace, outermost first.
        modules: path and class of each module it was traced in, outermost first.
        metadata: the other entries, unchanged.
    """

    arguments: tuple[ArgumentDetail, ...]
    results: tuple[ValueDetail, ...]
    frames: tuple[FrameDetail, ...]
    modules: tuple[tuple[str, str], ...]
    metadata: tuple[tuple[str, str], ...]


def node_details(drawing: Drawing, chunk: int) -> list[NodeDetail]:
    """Return the details of the nodes number `chunk * CHUNK` and following.

    Raises:
        GraphError, LimitError: arguments that cannot be walked.
    """
    last = min((chunk + 1) * CHUNK, len(drawing.steps))
    return [_detail(drawing, number) for number in range(chunk * CHUNK, last)]


def _detail(drawing: Drawing, number: int) -> NodeDetail:
    step, scope, texts = drawing.steps[number], drawing.scopes[number], drawing.texts
    if step is None:
        return NodeDetail((), tuple(_values(scope.graph, drawing.names[number], texts)), (), (), ())
    node = step.node
    argument_details = tuple(
        ArgumentDetail(
            printable(named.name, MAX_TEXT),
            printable(argument_text(named.arg), MAX_ARGUMENT),
            tuple(_argument_values(scope.graph, named.arg, texts)),
        )
        for named in node.inputs[:MAX_ITEMS]
    )
    results = [value for output in node.outputs[:MAX_ITEMS] for value in _argument_values(scope.graph, output, texts)]
    metadata = node.metadata
    return NodeDetail(
        argument_details,
        tuple(results),
        tuple(_frames(metadata.get("stack_trace", ""))),
        tuple(_modules(metadata.get("nn_module_stack", ""))),
        tuple(_rest(metadata)),
    )


def _argument_values(graph: Graph, argument: Argument, texts: ValueTexts) -> Iterator[ValueDetail]:
    return _values(graph, list(arguments(argument))[:MAX_ITEMS], texts)


def _values(graph: Graph, names: list[str], texts: ValueTexts) -> Iterator[ValueDetail]:
    for name in names:
        meta = graph.tensor_values.get(name)
        shown = printable(name, MAX_TEXT)
        if meta is None:
            yield ValueDetail(shown, printable(texts.named(graph, name), MAX_TEXT))
        else:
            yield _tensor(shown, meta, texts)


def _tensor(name: str, meta: TensorMeta, texts: ValueTexts) -> ValueDetail:
    return ValueDetail(
        name,
        texts.meta(meta),
        f"[{', '.join(map(texts.size, meta.strides))}]",
        texts.size(meta.storage_offset),
        device_text(meta.device),
        meta.layout.name,
        meta.requires_grad,
    )


def _frames(text: str) -> Iterator[FrameDetail]:
    trace = lenient(parse_stack_trace, text) if text else None
    for frame in trace.frames[-MAX_ITEMS:] if trace else ():
        yield FrameDetail(
            printable(frame.file, MAX_TEXT),
            frame.line,
            printable(frame.function, MAX_TEXT),
            printable(frame.source or "", MAX_TEXT),
        )


def _modules(text: str) -> Iterator[tuple[str, str]]:
    for entry in (lenient(parse_module_stack, text) or ())[:MAX_ITEMS] if text else ():
        yield printable(entry.path, MAX_TEXT), printable(entry.type or "", MAX_TEXT)


def _rest(metadata: dict[str, str]) -> Iterator[tuple[str, str]]:
    for key, text in list(metadata.items())[:MAX_ITEMS]:
        if not _is_read(key, text):
            lines = "\n".join(printable(line, MAX_TEXT) for line in text[: 4 * MAX_TEXT].split("\n"))
            yield printable(key, MAX_TEXT), lines


def _is_read(key: str, text: str) -> bool:
    """Return whether a text of metadata is shown parsed."""
    if key == "stack_trace":
        return lenient(parse_stack_trace, text) is not None
    return key == "nn_module_stack" and lenient(parse_module_stack, text) is not None
