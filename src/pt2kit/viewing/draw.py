"""A program and its tensors -> the columns that a page draws, and which node of the program each drawn node is.

parameters, buffers, constants   chips at the nodes that use them
other inputs, outputs            nodes of their own
modules                          nested boxes, as `pt2 show` has them
cond, while_loop, scan, map      a box with the operator and a box for each of its graphs
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pt2kit.canonical.effects import writes_inside
from pt2kit.errors import Pt2Error
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Scope, Step, carried, graphs, join, node_label
from pt2kit.graph.view import node_outputs
from pt2kit.node_metadata.frames import parse_stack_trace
from pt2kit.node_metadata.lenience import lenient
from pt2kit.node_metadata.tree import MAX_MODULE_DEPTH
from pt2kit.package.open import Package
from pt2kit.package.stored import Payload
from pt2kit.schema import Argument, ExportedProgram, InputSpec, OutputSpec
from pt2kit.text.modules import ModuleSummary
from pt2kit.text.payloads import Entry, entries_of
from pt2kit.text.tensor_totals import elements_of
from pt2kit.text.values import ValueTexts
from pt2kit.viewing.columns import (
    CALL,
    INPUT,
    OPERATION,
    OUTPUT,
    SUBGRAPH,
    Boxes,
    Nodes,
    Pairs,
    Picture,
    Texts,
    Values,
    Weights,
)
from pt2kit.viewing.modules import guessed_modules, module_summary, stated_modules
from pt2kit.viewing.repeats import Calls, group_repeats

HELD: Final[Mapping[str, str]] = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
    "custom_obj": "custom_obj_name",
}
"""Kind of input -> the field with the name of what the archive holds for it."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawn program.

    Args:
        picture: what is drawn.
        program: the program.
        texts: describes its values.
        steps: for each node of the picture, the call; None for inputs and outputs.
        scopes: the graph that each node stands in.
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
        self.stated = stated_modules(program)
        self.module_boxes: dict[str, int] = {}  # dotted name -> box, in the root graph
        self.homes: dict[str, tuple[int, str]] = {}  # path of a subgraph -> its box, the module its operator stands in
        self._sources: dict[str, int] = {}

    def draw(self, problem: str) -> Drawing:
        """Go through the program once."""
        payloads: Mapping[str, Payload] = {entry.name: entry.payload for entry in self.entries}
        self._draw_modules(payloads)
        self._draw_weights()
        guessed = not any(self.stated.values())
        for scope in graphs(self.program):
            self._draw_graph(scope, guessed)
        picture = Picture(
            self.texts.list, self.boxes, self.nodes, self.values, self.weights,
            self.edges, self.carries, self.chips, guessed and len(self.module_boxes) > 1,
        )  # fmt: skip
        group_repeats(picture, self.calls, self.texts, self._writes)
        return Drawing(picture, self.program, self.types, self.steps, self.scopes, self.names, self.entries, problem)

    def _draw_modules(self, payloads: Mapping[str, Payload]) -> None:
        summary = module_summary(self.program, payloads)
        if summary is None:
            self.module_boxes[""] = self.boxes.add(-1, 0, 0, 0)
            return
        stack: list[tuple[ModuleSummary, int]] = [(summary, -1)]
        while stack:
            module, parent = stack.pop()
            text = self.texts
            box = self.boxes.add(parent, text(module.name), text(module.type or ""), text(module.fqn))
            self.module_boxes[module.fqn] = box
            stack += [(child, box) for child in reversed(module.children)]

    def _draw_weights(self) -> None:
        first: dict[str, int] = {}
        for number, entry in enumerate(self.entries):
            payload, weights = entry.payload, self.weights
            record = getattr(payload, "record", "") or f"#{number}"
            weights.name.append(self.texts(entry.name))
            weights.kind.append(self.texts(entry.kind))
            weights.type.append(self.texts(payload.describe()))
            weights.bytes.append(payload.nbytes)
            weights.elements.append(elements_of(payload))
            weights.box.append(self._box_of_name(entry.name.rpartition(".")[0]))
            weights.first.append(first.setdefault(record, number))
            weights.status.append(0)

    def _box_of_name(self, fqn: str) -> int:
        while fqn and fqn not in self.module_boxes:
            fqn = fqn.rpartition(".")[0]
        return self.module_boxes.get(fqn, 0)

    def _draw_graph(self, scope: Scope, guessed: bool) -> None:
        """One graph: its inputs, its nodes, its outputs, and what goes from one to another."""
        home, around = self.homes.get(scope.path, (0, ""))
        places = _Places(self, home, around, guessed)
        known: dict[str, int] = {}
        weight_by_value = self._draw_inputs(scope, home, known)
        modules = guessed_modules(scope.graph, self._owners(weight_by_value)) if guessed and scope.depth == 0 else None
        for number, node in enumerate(scope.graph.nodes):
            step = Step(scope, number, node)
            fqn = modules[number] if modules else self.stated[node.metadata.get("nn_module_stack", "")]
            self._draw_step(step, places, fqn or around, known, weight_by_value)
        self._draw_outputs(scope, home, known, weight_by_value)

    def _owners(self, held: Mapping[str, int]) -> dict[str, str]:
        names = [self.texts.list[number] for number in self.weights.name]
        return {name: names[weight].rpartition(".")[0] for name, weight in held.items()}

    def _draw_inputs(self, scope: Scope, home: int, known: dict[str, int]) -> dict[str, int]:
        """Draw the inputs of a graph; returns those that are tensors of the archive, by value."""
        specs = self.program.graph_module.signature.input_specs if scope.depth == 0 else ()
        numbers = {entry.name: number for number, entry in enumerate(self.entries)}
        weight_by_value: dict[str, int] = {}
        for position, argument in enumerate(scope.graph.inputs):
            spec = specs[position] if position < len(specs) else None
            names = list(dict.fromkeys(arguments(argument)))
            if spec is not None and spec.type in HELD:
                name = getattr(spec.value, HELD[spec.type])
                if name not in numbers:
                    numbers[name] = self._missing(name, spec.type, names, scope)
                weight_by_value |= dict.fromkeys(names, numbers[name])
                continue
            node = self._add(INPUT, scope, names[0] if names else f"input {position}", _role(spec), home, None)
            self.names[node] = names
            for name in names:
                known[name] = self._value(scope, node, name)
        return weight_by_value

    def _missing(self, name: str, kind: str, values: list[str], scope: Scope) -> int:
        """A tensor that the archive should hold and does not: known from the graph alone."""
        weights = self.weights
        weights.name.append(self.texts(name))
        weights.kind.append(self.texts(kind))
        weights.type.append(self.texts(self.types.named(scope.graph, values[0]) if values else ""))
        weights.bytes.append(0)
        weights.elements.append(0)
        weights.box.append(self._box_of_name(name.rpartition(".")[0]))
        weights.first.append(len(weights.first))
        weights.status.append(0)
        return len(weights.name) - 1

    def _draw_step(self, step: Step, places: _Places, fqn: str, known: dict[str, int], held: Mapping[str, int]) -> None:
        scope, number, node = step
        box = places.box(fqn)
        inner = list(carried(step))
        if inner:
            label = self.texts(node_label(node, number))
            box = self.boxes.add(
                box, label, self.texts(node.target), self.texts(f"{step.path}()"), CALL, len(self.steps)
            )
        drawn = self._add(OPERATION, scope, node_label(node, number), node.target, box, step)
        for below in inner:
            name = self.texts(below.path.rpartition("/")[2])
            home = self.boxes.add(box, name, 0, self.texts(f"{below.path}()"), SUBGRAPH, drawn)
            self.homes[below.path] = home, fqn
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
        for position, argument in enumerate(scope.graph.outputs):
            spec = specs[position] if position < len(specs) else None
            node = self._add(OUTPUT, scope, _output_name(argument, spec, position), _role(spec), home, None)
            self.names[node] = list(dict.fromkeys(arguments(argument)))
            self._use(node, self.names[node], known, held)

    def _use(self, node: int, used: list[str], known: Mapping[str, int], held: Mapping[str, int]) -> None:
        for name in used:
            if name in held:
                self.chips.add(held[name], node)
            elif name in known:
                self.edges.add(known[name], node)

    def _add(self, kind: int, scope: Scope, label: str, target: str, box: int, step: Step | None) -> int:
        self.steps.append(step)
        self.scopes.append(scope)
        source = self._source(step.node.metadata.get("stack_trace", "")) if step else 0
        node = self.nodes.add(kind, self.texts(join(scope.path, label)), self.texts(target), source, box)
        if kind == INPUT and scope.path in self.homes:
            self.carries.add(self.boxes.node[self.homes[scope.path][0]], node)
        return node

    def _value(self, scope: Scope, node: int, name: str) -> int:
        return self.values.add(node, self.texts(name), self.texts(self.types.named(scope.graph, name)))

    def _source(self, trace: str) -> int:
        """Where the model's code made a node: the innermost frame; few traces differ."""
        number = self._sources.get(trace)
        if number is None:
            parsed = lenient(parse_stack_trace, trace) if trace else None
            text = f"{parsed.frames[-1].file}:{parsed.frames[-1].line}" if parsed else ""
            number = self._sources[trace] = self.texts(text)
        return number


class _Places:
    """Dotted names of modules -> their boxes in one graph; a subgraph has boxes of its own for what is inside it."""

    def __init__(self, artist: _Artist, home: int, around: str, guessed: bool) -> None:
        self._artist = artist
        self._guessed = guessed
        self._known = artist.module_boxes if home == 0 else {around: home}
        self._home = home
        self._around = around

    def box(self, fqn: str) -> int:
        """The box of a module, made where it is not there yet."""
        if fqn in self._known:
            return self._known[fqn]
        outside = self._around and not fqn.startswith(f"{self._around}.")
        # In the root graph what the file states is there already; what is guessed is not.
        if outside or not fqn or fqn.count(".") >= MAX_MODULE_DEPTH or (self._home == 0 and not self._guessed):
            module_box = self._home
        else:
            parent, _, name = fqn.rpartition(".")
            artist = self._artist
            above, text = self.box(parent), artist.texts
            known = artist.module_boxes.get(fqn)
            kind = artist.boxes.type[known] if known is not None else 0
            above_path = artist.texts.list[artist.boxes.path[self._home]]
            path = text(f"{above_path}.{fqn}" if above_path else fqn)
            module_box = artist.boxes.add(above, text(name), kind, path)
        self._known[fqn] = module_box
        return module_box


def _role(spec: InputSpec | OutputSpec | None) -> str:
    """What an input or an output is, as the signature says."""
    return spec.type if spec is not None else ""


def _output_name(argument: Argument, spec: OutputSpec | None, position: int) -> str:
    """What an output is called: what it changes, or the value it gives."""
    fields = ("buffer_name", "parameter_name", "user_input_name")
    target = next((getattr(spec.value, key) for key in fields if hasattr(spec.value, key)), "") if spec else ""
    return target or next(arguments(argument), f"output {position}")
