"""Details in the viewer's side panel: drawn nodes, facts of the program, and findings of `check` with their nodes.

A node has arguments, values, source lines and metadata. Facts of the program are its call, trees, signature, symbols
and guards. Each finding has the drawn node, value's node or tensor that it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pt2kit import treespec
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph.argument_values import arguments
from pt2kit.node_metadata.frames import lenient, parse_stack_trace
from pt2kit.node_metadata.modules import parse_module_stack
from pt2kit.package.open import Package
from pt2kit.schema import (
    Argument,
    CustomObjArgument,
    ExportedProgram,
    Graph,
    InputSpec,
    OutputSpec,
    TensorArgument,
    TokenArgument,
)
from pt2kit.schema.names import target_of
from pt2kit.text.values import ValueTexts, argument_text, device_text, summarize_call
from pt2kit.viewing.draw import CALLER, Drawing

CHUNK: Final = 256
"""Nodes whose details one answer has."""

MAX_ITEMS: Final = 200
"""Values, frames or lines of metadata of one node that are sent; the page says how many there are."""

MAX_METADATA: Final = 8000
"""Characters of one text of metadata that are sent."""

MAX_ROWS: Final = 20_000
"""Rows of one table that are sent; the last one says how many are left out."""

_VALUE_NAMES: Final = ("name", "as_name")

Row = tuple[str, ...]

NODE: Final = re.compile(r"(?:.*)\.nodes\[\d+\]", re.DOTALL)
VALUE: Final = re.compile(r"_values(?:\.([\w$]+)|\[['\"](.+?)['\"]\])")
ROOT: Final = "$.graph_module.graph"


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
        metadata: the other entries, as lines.
    """

    arguments: tuple[ArgumentDetail, ...]
    results: tuple[ValueDetail, ...]
    frames: tuple[FrameDetail, ...]
    modules: tuple[tuple[str, str], ...]
    metadata: tuple[tuple[str, list[str]], ...]


def node_details(drawing: Drawing, chunk: int) -> list[NodeDetail]:
    """Return the details of the nodes number `chunk * CHUNK` and following.

    Raises:
        GraphError, LimitError: arguments that cannot be walked.
    """
    numbers = range(len(drawing.steps))[chunk * CHUNK : (chunk + 1) * CHUNK]
    return [_detail(drawing, number) for number in numbers]


def _detail(drawing: Drawing, number: int) -> NodeDetail:
    step, scope, texts = drawing.steps[number], drawing.scopes[number], drawing.texts
    if step is None:
        return NodeDetail((), tuple(_values(scope.graph, drawing.names[number], texts)), (), (), ())
    node = step.node
    argument_details = tuple(
        ArgumentDetail(named.name, argument_text(named.arg), tuple(_argument_values(scope.graph, named.arg, texts)))
        for named in node.inputs[:MAX_ITEMS]
    )
    results = [value for output in node.outputs[:MAX_ITEMS] for value in _argument_values(scope.graph, output, texts)]
    metadata = node.metadata
    trace = lenient(parse_stack_trace, metadata.get("stack_trace", ""))
    modules = lenient(parse_module_stack, metadata.get("nn_module_stack", ""))
    read = {"stack_trace": trace, "nn_module_stack": modules}
    frames = trace.frames[-MAX_ITEMS:] if trace is not None else ()
    rest = [(key, text) for key, text in metadata.items() if read.get(key) is None]
    return NodeDetail(
        argument_details,
        tuple(results),
        tuple(FrameDetail(frame.file, frame.line, frame.function, frame.source or "") for frame in frames),
        tuple((entry.path, entry.type or "") for entry in (modules or ())[:MAX_ITEMS]),
        tuple((key, text[:MAX_METADATA].split("\n")) for key, text in rest[:MAX_ITEMS]),
    )


def _argument_values(graph: Graph, argument: Argument, texts: ValueTexts) -> Iterator[ValueDetail]:
    return _values(graph, list(arguments(argument))[:MAX_ITEMS], texts)


def _values(graph: Graph, names: list[str], texts: ValueTexts) -> Iterator[ValueDetail]:
    for name in names:
        meta = graph.tensor_values.get(name)
        if meta is None:
            yield ValueDetail(name, texts.named(graph, name))
            continue
        strides, offset = f"[{', '.join(map(texts.size, meta.strides))}]", texts.size(meta.storage_offset)
        place = device_text(meta.device), meta.layout.name, meta.requires_grad
        yield ValueDetail(name, texts.meta(meta), strides, offset, *place)


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a program as a whole.

    Args:
        about: (what, text): schema, torch, dialects, operator sets, counts.
        call: the lines of the call as a Python signature; none where it contradicts itself.
        tree: (depth, key, type) of the containers and leaves of inputs and outputs.
        inputs, outputs: (kind, value, what it stands for, type) in the order of the graph.
        symbols: (name, range).
        guards: conditions that inputs must meet besides.
        problems: what could not be read.
    """

    about: list[Row]
    call: list[str]
    tree: list[tuple[int, str, str]]
    inputs: list[Row]
    outputs: list[Row]
    symbols: list[tuple[str, str]]
    guards: list[str]
    problems: list[str]


def program_facts(package: Package, model: str, problem: str = "") -> Facts:
    """Collect the facts of a program.

    Args:
        package: open.
        model: which program.
        problem: what was found before; "" for nothing.

    Raises:
        Pt2Error: the program cannot be read. What contradicts itself is reported in `problems`.
    """
    stored = package.stored[model]
    program = stored.program
    texts, problems = ValueTexts(program), [problem] if problem else []
    call, tree = list[str](), list[tuple[int, str, str]]()
    try:
        call = summarize_call(program, texts).text.split("\n")
        tree = list(_tree(program, texts))
    except Pt2Error as error:
        problems.append(str(error))
    signature = program.graph_module.signature
    return Facts(
        about=_about(package, program, stored.version),
        call=call[:MAX_ROWS],
        tree=tree[:MAX_ROWS],
        inputs=_limited([_input(spec, program, texts) for spec in signature.input_specs[:MAX_ROWS]]),
        outputs=_limited([_input(spec, program, texts) for spec in signature.output_specs[:MAX_ROWS]]),
        symbols=[*texts.ranges()][:MAX_ROWS],
        guards=program.guards_code[:MAX_ROWS],
        problems=problems,
    )


def _about(package: Package, program: ExportedProgram, version: str) -> list[Row]:
    sets = ", ".join(f"{name} {number}" for name, number in program.opset_version.items())
    rows = [
        ("file", package.name),
        ("written by", package.producer),
        ("schema", version),
        ("exported by", f"torch {program.torch_version}"),
        ("dialect", ", ".join(program.verifiers)),
        ("operator sets", sets),
    ]
    return [(what, text) for what, text in rows if text]


def _limited(rows: list[Row]) -> list[Row]:
    return rows if len(rows) < MAX_ROWS else [*rows[: MAX_ROWS - 1], ("…", "more are left out", "", "")]


def _input(spec: InputSpec | OutputSpec, program: ExportedProgram, texts: ValueTexts) -> Row:
    """Return one row of the signature."""
    content: Any = spec.value
    argument = getattr(content, "arg", None)
    named = [getattr(one, key, None) for one in (argument, getattr(argument, "value", None)) for key in _VALUE_NAMES]
    name = next((name for name in named if isinstance(name, str)), "")
    stands_for = target_of(spec) or getattr(content, "name", "")
    if name or isinstance(argument, TensorArgument | TokenArgument | CustomObjArgument):
        kind = texts.named(program.graph_module.graph, name)
    else:
        kind = argument_text(argument if argument is not None else content.value)
    note = " (not persistent)" if getattr(content, "persistent", True) is False else ""
    return spec.type, name, f"{stands_for}{note}", kind


def _tree(program: ExportedProgram, texts: ValueTexts) -> Iterator[tuple[int, str, str]]:
    """Yield the containers and leaves of the call's arguments, then of its result."""
    module = program.graph_module
    root = next((entry.signature for entry in module.module_call_graph if entry.fqn == ""), None)
    if root is None:
        return
    fields = {key: row.field_names for key, row in module.treespec_namedtuple_fields.items()}
    signature = module.signature
    rows = ("inputs", root.in_spec, signature.input_specs), ("outputs", root.out_spec, signature.output_specs)
    for title, text, specs in rows:
        leaves = iter([_input(spec, program, texts)[3] for spec in specs if spec.type in CALLER])
        stack = [(0, title, treespec.parse(text, title))]
        while stack:
            depth, key, node = stack.pop()
            yield depth, key, next(leaves, "?") if node.is_leaf else (node.type or "").removeprefix("builtins.")
            keys = () if node.is_leaf else map(str, treespec.child_keys(node, title, fields))
            stack += reversed([(depth + 1, *child) for child in zip(keys, node.children, strict=True)])


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Args:
        kind: "error", "warning", "note" or "safety".
        rule: its id.
        place, message: as `pt2 check` prints them.
        node: the drawn node, -1 where it names none.
    """

    kind: str
    rule: str
    place: str
    message: str
    node: int


def findings(package: Package, model: str, drawing: Drawing, problems: Sequence[Problem]) -> list[Finding]:
    """Find the nodes that problems are about.

    Args:
        package: open.
        model: the drawn program; what is about other programs is left out.
        drawing: the program.
        problems: what `check` found in the package.
    """
    record = package.relative(package.layout.program_record(model))
    others = {
        package.relative(package.layout.program_record(other)) for other in package.layout.models if other != model
    } - {record}
    places = {step.where: number for number, step in enumerate(drawing.steps) if step is not None}
    values = _nodes_by_value(drawing)
    return [
        Finding(problem.kind, problem.rule, problem.loc, problem.message, _node(problem.loc, places, values))
        for problem in problems
        if problem.loc.partition(": ")[0] not in others
    ]


def _nodes_by_value(drawing: Drawing) -> dict[str, int]:
    """Return name of a value of the root graph -> the node that defines it."""
    values, texts = drawing.picture.values, drawing.picture.texts
    node_by_name: dict[str, int] = {}
    for node, name in zip(values.node, values.name, strict=True):
        if drawing.scopes[node].depth == 0:
            node_by_name.setdefault(texts[name], node)
    return node_by_name


def _node(loc: str, places: dict[str, int], values: dict[str, int]) -> int:
    start = loc.find(ROOT)
    if start < 0:
        return -1
    path = loc[start:]
    while (match := NODE.match(path)) is not None:
        if match.group() in places:
            return places[match.group()]
        path = path[: match.end() - 1]
    value = VALUE.search(loc)
    return values.get(value.group(1) or value.group(2), -1) if value else -1
