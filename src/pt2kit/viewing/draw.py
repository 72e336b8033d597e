"""Drawing of a program: the columns of a page, the program's node of each drawn node, and numbers on nodes.

parameters, buffers, constants   chips at the nodes that use them
other inputs, outputs            nodes of their own
modules                          nested boxes, as `pt2 show` has them
cond, while_loop, scan, map      a box with the operator and a box for each of its graphs

Numbers on nodes are columns, too: costs, errors of two runs, and numbers of the user's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, Final, TypeVar

from pt2kit.canonical.form import Keep, writes_inside
from pt2kit.diffs.fingerprints import Interner
from pt2kit.errors import Pt2Error, SchemaError
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Scope, Step, carried, graphs, join, node_label, node_outputs, walk
from pt2kit.messages import kind_of, quote
from pt2kit.node_metadata.frames import lenient, parse_stack_trace
from pt2kit.package.open import Package
from pt2kit.schema import Argument, ConstantValue, ExportedProgram, InputSpec, OutputSpec
from pt2kit.schema.names import target_of
from pt2kit.symbols.polynomials import hint
from pt2kit.text.payloads import Entry, elements_of, entries_of
from pt2kit.text.values import ValueTexts, argument_text
from pt2kit.viewing.columns import (
    CALL,
    INPUT,
    MODULE,
    OPERATION,
    OUTPUT,
    REMOVED,
    SUBGRAPH,
    Picture,
    Texts,
)
from pt2kit.viewing.modules import (
    ModuleCall,
    call_shape,
    group_repeats,
    guessed_modules,
    module_calls,
    named_calls,
    root_type,
)
from pt2kit.viewing.notes import leaf_names, node_note

if TYPE_CHECKING:
    from pt2kit.comparing.runs import RunComparison


CALLER: Final = frozenset({"user_input", "constant_input", "user_output", "loss_output"})
"""Kinds of inputs and outputs that a caller passes and gets."""

CONSTANTS: Final = frozenset({"as_int", "as_float", "as_bool", "as_string", "as_none"})

S = TypeVar("S")

Data = Mapping[str, Mapping[str, float]]
"""Name of a column -> name of a node -> its number."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawn program.

    Args:
        picture: what is drawn.
        program: the program.
        texts: describes its values.
        steps: for each node of the picture, the call; None for inputs and outputs.
        scopes: the graph of each node.
        names: input or output -> the values that it is.
        entries: the tensors, in the picture's order.
        problem: why the tensors could not be listed; "" where they could.
    """

    picture: Picture
    program: ExportedProgram
    texts: ValueTexts
    steps: list[Step | None]
    scopes: list[Scope]
    names: dict[int, list[str]]
    entries: list[Entry]
    problem: str


def draw(package: Package, model: str) -> Drawing:
    """Draw one program of a package; reads no tensor bytes.

    Raises:
        KeyError: no such program.
        Pt2Error: it cannot be read.

    Cost: linear in the arguments of nodes; 2,400 nodes take 0.1 s.
    """
    program, entries, problem = package.programs[model], list[Entry](), ""
    try:
        entries = entries_of(package, model, constants=True)
    except Pt2Error as error:
        problem = str(error)
    return _Artist(Drawing(Picture(), program, ValueTexts(program), [], [], {}, entries, problem)).draw()


class _Artist:
    """A drawing while it is made."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing, self.picture = drawing, drawing.picture
        self.texts = Texts(self.picture.texts)
        self.shapes: dict[int, int] = {}  # drawn call -> number of what it is
        self.number, self.keep = Interner(), Keep()
        self.stacks: dict[str, tuple[ModuleCall, ...] | None] = {}  # text of a module stack -> its calls
        self.module_boxes: dict[str, int] = {}  # dotted name -> box of its first call, in the root graph
        self.homes: dict[str, tuple[int, tuple[ModuleCall, ...]]] = {}  # path of a subgraph -> its box, its caller
        self.keys = leaf_names(drawing.program)
        self.calls_by_box: dict[tuple[int, str], int] = {}  # (box, name of a call in it) -> its box
        self.owners: list[str] = []  # weight -> dotted name of the module that holds it
        self.held: dict[str, int] = {}  # name of a tensor in the archive -> its weight

    def draw(self) -> Drawing:
        """Draw the program in one traversal."""
        program, boxes = self.drawing.program, self.picture.boxes
        self.module_boxes[""] = boxes.add(-1, 0, 0, 0, MODULE, 0, -1)
        for step in walk(program):
            text = step.node.metadata.get("nn_module_stack", "")
            if text not in self.stacks:
                self.stacks[text] = module_calls(text)
                if self.stacks[text] is not None and not boxes.type[0]:
                    boxes.type[0] = self.texts(root_type(text))
        first: dict[str, int] = {}
        for number, entry in enumerate(self.drawing.entries):
            payload = entry.payload
            record = getattr(payload, "record", "") or f"#{number}"
            sizes = payload.nbytes, elements_of(payload)
            self.add_weight(entry.name, entry.kind, payload.describe(), *sizes, first.setdefault(record, number))
        guessed = all(calls is None for calls in self.stacks.values())
        for scope in graphs(program):
            _Graph(self, scope).draw(guessed)
        self.picture.weights.box[:] = [self._box_of_name(name) for name in self.owners]
        picture = replace(self.picture, guessed=guessed and len(self.module_boxes) > 1)
        group_repeats(picture, self.shapes, self.texts, self._writes)
        return replace(self.drawing, picture=picture)

    def add_weight(self, name: str, kind: str, type: str, nbytes: int, elements: int, first: int) -> None:
        """Add a tensor of the archive."""
        self.owners.append(name.rpartition(".")[0])
        labels = map(self.texts, (name, kind, type))
        self.held[name] = self.picture.weights.add(*labels, nbytes, elements, 0, first, 0)

    def _box_of_name(self, fqn: str) -> int:
        """Return the box of a module that holds tensors; a module that is never called gets one without nodes."""
        if fqn not in self.module_boxes:
            _Graph(self, Scope(self.drawing.program.graph_module.graph, "", "")).box(tuple(named_calls(fqn.split("."))))
        return self.module_boxes.get(fqn, 0)

    def _writes(self, drawn: int) -> bool:
        step = self.drawing.steps[drawn]
        return step is not None and writes_inside(step.node)

    @cache  # noqa: B019 - for as long as one program is drawn; few traces differ
    def source(self, trace: str) -> int:
        """Return the location in the model's code that created a node: the innermost frame."""
        parsed = lenient(parse_stack_trace, trace) if trace else None
        return self.texts(f"{parsed.frames[-1].file}:{parsed.frames[-1].line}" if parsed else "")


class _Graph:
    """One graph while it is drawn: its inputs, its nodes, its outputs, and the edges between them.

    Args:
        artist: the columns.
        scope: the graph.
    """

    def __init__(self, artist: _Artist, scope: Scope) -> None:
        self._artist, self._scope = artist, scope
        self._home, self._around = artist.homes.get(scope.path, (0, ()))  # its box; the calls that are outside that box
        self._known: dict[str, int] = {}  # value -> its number
        self._held: dict[str, int] = {}  # value -> the tensor of the archive that it is
        self._boxes: dict[tuple[ModuleCall, ...], int] = {}

    def draw(self, guessed: bool) -> None:
        """Draw the graph; if modules are guessed, those of the root graph's nodes."""
        artist, graph = self._artist, self._scope.graph
        signature = artist.drawing.program.graph_module.signature
        self._draw_inputs(self._specs(signature.input_specs))
        modules: list[str] | None = None
        if guessed and self._scope.depth == 0:
            modules = guessed_modules(graph, {name: artist.owners[weight] for name, weight in self._held.items()})
        for number, node in enumerate(graph.nodes):
            if modules is None:
                calls = artist.stacks[node.metadata.get("nn_module_stack", "")]
            else:
                calls = tuple(named_calls(modules[number].split("."))) if modules[number] else None
            self._draw_step(Step(self._scope, number, node), calls or self._around)
        self._draw_outputs(self._specs(signature.output_specs))

    def _specs(self, specs: Sequence[S]) -> Iterator[S | None]:
        """Return the specs of the inputs or outputs; a subgraph has none."""
        return chain(specs if self._scope.depth == 0 else (), repeat(None))

    def _draw_inputs(self, specs: Iterator[InputSpec | None]) -> None:
        artist, graph, keys = self._artist, self._scope.graph, iter(self._artist.keys[0])
        for position, (argument, spec) in enumerate(zip(graph.inputs, specs, strict=False)):
            names = list(dict.fromkeys(arguments(argument)))
            if spec is not None and (name := target_of(spec)) is not None:
                if name not in artist.held:
                    # The archive should hold it and does not: known from the graph alone.
                    kind = artist.drawing.texts.named(graph, names[0]) if names else ""
                    artist.add_weight(name, spec.type, kind, 0, 0, len(artist.owners))
                self._held |= dict.fromkeys(names, artist.held[name])
            else:
                node = self._add_end(INPUT, names[0] if names else f"input {position}", spec, keys, names)
                self._define(node, names)

    def _draw_step(self, step: Step, calls: tuple[ModuleCall, ...]) -> None:
        artist, node, text = self._artist, step.node, self._artist.texts
        box, label = self.box(calls), node_label(node, step.number)
        inner = list(carried(step))
        if inner:
            name, path = text(label), text(f"{step.path}()")
            box = artist.picture.boxes.add(box, name, text(node.target), path, CALL, 0, len(artist.drawing.steps))
        note = node_note(node, self._scope.graph.tensor_values, artist.drawing.texts)
        drawn = self._add(OPERATION, label, node.target, box, step, note)
        for below in inner:
            name = text(below.path.rpartition("/")[2])
            home = artist.picture.boxes.add(box, name, 0, text(f"{below.path}()"), SUBGRAPH, 0, drawn)
            artist.homes[below.path] = home, calls
        used = [name for named in node.inputs for name in arguments(named.arg)]
        self._use(drawn, dict.fromkeys(used))
        artist.shapes[drawn] = artist.number(call_shape(step, used, self._held, artist.keep))
        self._define(drawn, dict.fromkeys(node_outputs(node)))

    def _draw_outputs(self, specs: Iterator[OutputSpec | None]) -> None:
        keys = iter(self._artist.keys[1])
        for position, (argument, spec) in enumerate(zip(self._scope.graph.outputs, specs, strict=False)):
            names = list(dict.fromkeys(arguments(argument)))
            label = (target_of(spec) if spec is not None else "") or (names[0] if names else f"output {position}")
            self._use(self._add_end(OUTPUT, label, spec, keys, names), names)

    def _add_end(
        self, kind: int, label: str, spec: InputSpec | OutputSpec | None, keys: Iterator[str], names: list[str]
    ) -> int:
        """Draw an input or output; its note is the name that callers use, and the value of a constant."""
        key = next(keys, "") if spec is not None and spec.type in CALLER else ""
        argument = getattr(spec.value, "arg", None) or getattr(spec.value, "value", None) if spec is not None else None
        if isinstance(argument, Argument | ConstantValue) and argument.type in CONSTANTS:
            key = f"{key or join(self._scope.path, label)} = {argument_text(argument)}"
        node = self._add(kind, label, spec.type if spec is not None else "", self._home, None, key)
        self._artist.drawing.names[node] = names
        return node

    def _use(self, node: int, used: Iterable[str]) -> None:
        picture = self._artist.picture
        for name in used:
            if name in self._held:
                picture.chips.add(self._held[name], node)
            elif name in self._known:
                picture.edges.add(self._known[name], node)

    def _define(self, node: int, names: Iterable[str]) -> None:
        artist, graph = self._artist, self._scope.graph
        for name in names:
            kind = artist.drawing.texts.named(graph, name)
            self._known[name] = artist.picture.values.add(node, artist.texts(name), artist.texts(kind))

    def _add(self, kind: int, label: str, target: str, box: int, step: Step | None, note: str) -> int:
        artist, text, path = self._artist, self._artist.texts, self._scope.path
        picture = artist.picture
        artist.drawing.steps.append(step)
        artist.drawing.scopes.append(self._scope)
        source = artist.source(step.node.metadata.get("stack_trace", "")) if step else 0
        node = picture.nodes.add(kind, text(join(path, label)), text(target), source, box, 0, text(note))
        if kind == INPUT and path in artist.homes:
            picture.carries.add(picture.boxes.node[self._home], node)
        return node

    def box(self, calls: tuple[ModuleCall, ...]) -> int:
        """Return the innermost box of nested module calls, created when a node needs it."""
        if calls not in self._boxes:
            artist, boxes, text, box = self._artist, self._artist.picture.boxes, self._artist.texts, self._home
            inside = len([1 for one, other in zip(calls, self._around, strict=False) if one == other])
            for call in calls[inside:]:
                key = box, call.name
                if key not in artist.calls_by_box:
                    above = text.list[boxes.path[box]]
                    path = text(f"{above}.{call.name}" if above else call.name)
                    artist.calls_by_box[key] = boxes.add(box, text(call.name.partition("@")[0]), 0, path, MODULE, 0, -1)
                box = artist.calls_by_box[key]
                boxes.type[box] = boxes.type[box] or text(call.type)
                if self._home == 0:
                    artist.module_boxes.setdefault(call.fqn, box)
            self._boxes[calls] = box
        return self._boxes[calls]


def node_costs(package: Package, model: str, drawing: Drawing) -> dict[str, list[int | None]]:
    """Return columns of costs at the sizes of the export, a number for each drawn node; None if there is none.

    Raises:
        Pt2Error: the costs of the program cannot be counted.
    """
    from pt2kit.costs.count import cost  # the operators, which a picture does not need

    nodes, texts = drawing.picture.nodes, drawing.picture.texts
    known = {one.path: one for one in cost(package, model=model).nodes}
    columns = zip(nodes.kind, nodes.status, nodes.name, strict=True)
    drawn = [
        known.get(texts[name]) if kind == OPERATION and status != REMOVED else None for kind, status, name in columns
    ]
    return {
        "FLOPs": [None if one is None else hint(one.flops) for one in drawn],
        "bytes moved": [None if one is None else hint(one.read + one.written) for one in drawn],
        "activation memory": [None if one is None else hint(one.live) for one in drawn],
    }


def run_errors(found: RunComparison) -> Data:
    """Return the errors of a comparison of two runs as columns, by the name of the new node."""
    rows = [node for node in found.nodes if math.isfinite(node.error.max)]
    return {
        "largest error": {node.new: node.error.max for node in rows},
        "mean error": {node.new: node.error.mean for node in rows},
        "1 - cosine": {node.new: max(0.0, 1 - node.error.cosine) for node in rows},
    }


def checked_data(found: object, where: str) -> Data:
    """Return numbers for nodes.

    Args:
        found: `{node: number}`, several columns `{column: {node: number}}`, or what `compare_runs` returns.
        where: what messages call it.

    Raises:
        SchemaError: it is none of these.
    """
    if not isinstance(found, Mapping):
        from pt2kit.comparing.runs import RunComparison  # the runtime

        if isinstance(found, RunComparison):
            return run_errors(found)
    columns = found if isinstance(found, Mapping) and all(isinstance(row, Mapping) for row in found.values()) else None
    data: Data = columns if columns is not None else {"data": found}  # type: ignore[dict-item]
    for column, row in data.items():
        if not isinstance(row, Mapping):
            raise SchemaError(f"{where}: expected an object of numbers by the name of a node, got {kind_of(row)}")
        for node, number in row.items():
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise SchemaError(
                    f"{where}: {quote(column)}: {quote(node)}: expected a finite number, got {kind_of(number)}"
                )
    return data
