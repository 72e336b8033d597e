"""Drawing of a program: the columns of a page, the program's node of each drawn node, and numbers on nodes.

parameters, buffers, constants   chips at the nodes that use them
other inputs, outputs            nodes of their own
modules                          nested boxes, as `pt2 show` has them
cond, while_loop, scan, map      a box with the operator and a box for each of its graphs

Numbers on nodes are columns, too: costs, errors of two runs, and numbers of the user's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pt2kit.canonical.form import writes_inside
from pt2kit.errors import Pt2Error, SchemaError
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Scope, Step, carried, graphs, join, node_label, walk
from pt2kit.graph.values import node_outputs
from pt2kit.messages import kind_of, quote
from pt2kit.node_metadata.frames import lenient, parse_stack_trace
from pt2kit.package.open import Package
from pt2kit.schema import Argument, ConstantValue, ExportedProgram, InputSpec, OutputSpec
from pt2kit.symbols.polynomials import hint
from pt2kit.text.payloads import Entry, entries_of
from pt2kit.text.tensor_totals import elements_of
from pt2kit.text.values import ValueTexts, argument_text
from pt2kit.viewing.columns import (
    CALL,
    INPUT,
    MODULE,
    OPERATION,
    OUTPUT,
    REMOVED,
    SUBGRAPH,
    Boxes,
    Nodes,
    Pairs,
    Picture,
    Texts,
    Values,
    Weights,
)
from pt2kit.viewing.modules import (
    Calls,
    ModuleCall,
    group_repeats,
    guessed_modules,
    module_calls,
    named_calls,
    root_type,
)
from pt2kit.viewing.notes import leaf_names, node_note

if TYPE_CHECKING:
    from pt2kit.comparing.runs import RunComparison


HELD: Final[Mapping[str, str]] = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
    "custom_obj": "custom_obj_name",
}
"""Kind of input -> the field with the name of what the archive holds for it."""

CALLER: Final = frozenset({"user_input", "constant_input", "user_output", "loss_output"})
"""Kinds of inputs and outputs that a caller passes and gets."""

CONSTANTS: Final = frozenset({"as_int", "as_float", "as_bool", "as_string", "as_none"})

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
    names: Mapping[int, list[str]]
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
    return _Artist(program, entries).draw(problem)


class _Artist:
    """The columns while they are made."""

    def __init__(self, program: ExportedProgram, entries: list[Entry]) -> None:
        self.program = program
        self.entries = entries
        self.texts, self.types = Texts(), ValueTexts(program)
        self.boxes, self.nodes, self.values, self.weights = Boxes(), Nodes(), Values(), Weights()
        self.edges, self.carries, self.chips = Pairs(), Pairs(), Pairs()
        self.steps: list[Step | None] = []
        self.scopes: list[Scope] = []
        self.names: dict[int, list[str]] = {}
        self.calls = Calls()
        self.stacks: dict[str, tuple[ModuleCall, ...] | None] = {}  # text of a module stack -> its calls
        self.module_boxes: dict[str, int] = {}  # dotted name -> box of its first call, in the root graph
        self.homes: dict[str, tuple[int, tuple[ModuleCall, ...]]] = {}  # path of a subgraph -> its box, its caller
        self.keys = leaf_names(program)
        self.calls_by_box: dict[tuple[int, str], int] = {}  # (box, name of a call in it) -> its box
        self.owners: list[str] = []  # weight -> dotted name of the module that holds it
        self._sources: dict[str, int] = {}

    def draw(self, problem: str) -> Drawing:
        """Draw the program in one traversal."""
        self.module_boxes[""] = self.boxes.add(-1, 0, 0, 0, MODULE, 0, -1)
        for step in walk(self.program):
            text = step.node.metadata.get("nn_module_stack", "")
            if text not in self.stacks:
                self.stacks[text] = module_calls(text)
                if self.stacks[text] is not None and not self.boxes.type[0]:
                    self.boxes.type[0] = self.texts(root_type(text))
        self._draw_weights()
        guessed = all(calls is None for calls in self.stacks.values())
        for scope in graphs(self.program):
            self._draw_graph(scope, guessed)
        self.weights.box[:] = [self._box_of_name(name) for name in self.owners]
        picture = Picture(
            self.texts.list, self.boxes, self.nodes, self.values, self.weights,
            self.edges, self.carries, self.chips, guessed and len(self.module_boxes) > 1,
        )  # fmt: skip
        group_repeats(picture, self.calls, self.texts, self._writes)
        return Drawing(picture, self.program, self.types, self.steps, self.scopes, self.names, self.entries, problem)

    def _draw_weights(self) -> None:
        first: dict[str, int] = {}
        for number, entry in enumerate(self.entries):
            payload = entry.payload
            record = getattr(payload, "record", "") or f"#{number}"
            sizes = payload.nbytes, elements_of(payload)
            self._add_weight(entry.name, entry.kind, payload.describe(), *sizes, first.setdefault(record, number))

    def _add_weight(self, name: str, kind: str, type: str, nbytes: int, elements: int, first: int) -> int:
        self.owners.append(name.rpartition(".")[0])
        texts = self.texts
        return self.weights.add(texts(name), texts(kind), texts(type), nbytes, elements, 0, first, 0)

    def _box_of_name(self, fqn: str) -> int:
        """Return the box of a module that holds tensors; a module that is never called gets one without nodes."""
        if fqn not in self.module_boxes:
            _Places(self, 0, ()).box(named_calls(fqn.split(".")))
        return self.module_boxes.get(fqn, 0)

    def _draw_graph(self, scope: Scope, guessed: bool) -> None:
        """Draw one graph: its inputs, its nodes, its outputs, and the edges between them."""
        home, around = self.homes.get(scope.path, (0, ()))
        places = _Places(self, home, around)
        known: dict[str, int] = {}
        weight_by_value = self._draw_inputs(scope, home, known)
        modules = guessed_modules(scope.graph, self._owners(weight_by_value)) if guessed and scope.depth == 0 else None
        for number, node in enumerate(scope.graph.nodes):
            step = Step(scope, number, node)
            calls = self.stacks[node.metadata.get("nn_module_stack", "")] if modules is None else None
            if modules is not None and modules[number]:
                calls = tuple(named_calls(modules[number].split(".")))
            self._draw_step(step, places, calls or around, known, weight_by_value)
        self._draw_outputs(scope, home, known, weight_by_value)

    def _owners(self, held: Mapping[str, int]) -> dict[str, str]:
        return {name: self.owners[weight] for name, weight in held.items()}

    def _draw_inputs(self, scope: Scope, home: int, known: dict[str, int]) -> dict[str, int]:
        """Draw the inputs of a graph; returns those that are tensors of the archive, by value."""
        specs = self.program.graph_module.signature.input_specs if scope.depth == 0 else ()
        numbers = {entry.name: number for number, entry in enumerate(self.entries)}
        keys = iter(self.keys[0])
        weight_by_value: dict[str, int] = {}
        for position, argument in enumerate(scope.graph.inputs):
            spec = specs[position] if position < len(specs) else None
            names = list(dict.fromkeys(arguments(argument)))
            if spec is not None and spec.type in HELD:
                name = getattr(spec.value, HELD[spec.type])
                if name not in numbers:
                    # The archive should hold it and does not: known from the graph alone.
                    kind = self.types.named(scope.graph, names[0]) if names else ""
                    numbers[name] = self._add_weight(name, spec.type, kind, 0, 0, len(self.owners))
                weight_by_value |= dict.fromkeys(names, numbers[name])
                continue
            label = names[0] if names else f"input {position}"
            node = self._add_end(INPUT, scope, label, spec, home, keys)
            self.names[node] = names
            for name in names:
                known[name] = self._value(scope, node, name)
        return weight_by_value

    def _draw_step(
        self,
        step: Step,
        places: _Places,
        calls: tuple[ModuleCall, ...],
        known: dict[str, int],
        held: Mapping[str, int],
    ) -> None:
        scope, number, node = step
        box = places.box(calls)
        inner = list(carried(step))
        if inner:
            label = self.texts(node_label(node, number))
            path = self.texts(f"{step.path}()")
            box = self.boxes.add(box, label, self.texts(node.target), path, CALL, 0, len(self.steps))
        note = node_note(node, scope.graph.tensor_values, self.types)
        drawn = self._add(OPERATION, scope, node_label(node, number), node.target, box, step, note)
        for below in inner:
            name = self.texts(below.path.rpartition("/")[2])
            home = self.boxes.add(box, name, 0, self.texts(f"{below.path}()"), SUBGRAPH, 0, drawn)
            self.homes[below.path] = home, calls
        used = [name for named in node.inputs for name in arguments(named.arg)]
        self._use(drawn, list(dict.fromkeys(used)), known, held)
        self.calls.add(drawn, node, used, held, inner)
        for result in dict.fromkeys(node_outputs(node)):
            known[result] = self._value(scope, drawn, result)

    def _writes(self, drawn: int) -> bool:
        step = self.steps[drawn]
        return step is not None and writes_inside(step.node)

    def _draw_outputs(self, scope: Scope, home: int, known: Mapping[str, int], held: Mapping[str, int]) -> None:
        specs = self.program.graph_module.signature.output_specs if scope.depth == 0 else ()
        keys = iter(self.keys[1])
        for position, argument in enumerate(scope.graph.outputs):
            spec = specs[position] if position < len(specs) else None
            node = self._add_end(OUTPUT, scope, _output_name(argument, spec, position), spec, home, keys)
            self.names[node] = list(dict.fromkeys(arguments(argument)))
            self._use(node, self.names[node], known, held)

    def _add_end(
        self, kind: int, scope: Scope, label: str, spec: InputSpec | OutputSpec | None, box: int, keys: Iterator[str]
    ) -> int:
        """Draw an input or output; its note is the name that callers use, and the value of a constant."""
        key = next(keys, "") if spec is not None and spec.type in CALLER else ""
        argument = getattr(spec.value, "arg", None) or getattr(spec.value, "value", None) if spec is not None else None
        if isinstance(argument, Argument | ConstantValue) and argument.type in CONSTANTS:
            key = f"{key or join(scope.path, label)} = {argument_text(argument)}"
        return self._add(kind, scope, label, spec.type if spec is not None else "", box, None, key)

    def _use(self, node: int, used: list[str], known: Mapping[str, int], held: Mapping[str, int]) -> None:
        for name in used:
            if name in held:
                self.chips.add(held[name], node)
            elif name in known:
                self.edges.add(known[name], node)

    def _add(self, kind: int, scope: Scope, label: str, target: str, box: int, step: Step | None, note: str) -> int:
        self.steps.append(step)
        self.scopes.append(scope)
        source = self._source(step.node.metadata.get("stack_trace", "")) if step else 0
        name = self.texts(join(scope.path, label))
        node = self.nodes.add(kind, name, self.texts(target), source, box, 0, self.texts(note))
        if kind == INPUT and scope.path in self.homes:
            self.carries.add(self.boxes.node[self.homes[scope.path][0]], node)
        return node

    def _value(self, scope: Scope, node: int, name: str) -> int:
        return self.values.add(node, self.texts(name), self.texts(self.types.named(scope.graph, name)))

    def _source(self, trace: str) -> int:
        """Return the location in the model's code that created a node: the innermost frame; few traces differ."""
        number = self._sources.get(trace)
        if number is None:
            parsed = lenient(parse_stack_trace, trace) if trace else None
            text = f"{parsed.frames[-1].file}:{parsed.frames[-1].line}" if parsed else ""
            number = self._sources[trace] = self.texts(text)
        return number


class _Places:
    """Boxes of module calls in one graph, created when a node needs them; a subgraph has boxes of its own.

    Args:
        artist: the columns.
        home: the box of the graph.
        around: the module calls in which the operator of a subgraph is; they are outside its box.
    """

    def __init__(self, artist: _Artist, home: int, around: Sequence[ModuleCall]) -> None:
        self._artist, self._home, self._around = artist, home, around
        self._known: dict[Sequence[ModuleCall], int] = {}

    def box(self, calls: Sequence[ModuleCall]) -> int:
        """Return the innermost box of nested module calls."""
        calls = tuple(calls)
        if calls not in self._known:
            artist, boxes, box = self._artist, self._artist.boxes, self._home
            inside = len([1 for one, other in zip(calls, self._around, strict=False) if one == other])
            for call in calls[inside:]:
                key = box, call.name
                if key not in artist.calls_by_box:
                    above, text = artist.texts.list[boxes.path[box]], artist.texts
                    path = text(f"{above}.{call.name}" if above else call.name)
                    artist.calls_by_box[key] = boxes.add(box, text(call.name.partition("@")[0]), 0, path, MODULE, 0, -1)
                box = artist.calls_by_box[key]
                boxes.type[box] = boxes.type[box] or artist.texts(call.type)
                if self._home == 0:
                    artist.module_boxes.setdefault(call.fqn, box)
            self._known[calls] = box
        return self._known[calls]


def _output_name(argument: Argument, spec: OutputSpec | None, position: int) -> str:
    """Return the name of an output: the target of its mutation, or its value."""
    fields = ("buffer_name", "parameter_name", "user_input_name")
    target = next((getattr(spec.value, key) for key in fields if hasattr(spec.value, key)), "") if spec else ""
    return target or next(arguments(argument), f"output {position}")


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
