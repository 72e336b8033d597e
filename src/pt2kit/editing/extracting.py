"""Extraction of a part of a program, between named values or of one module, as a program of its own."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from pt2kit import schema
from pt2kit.dataflow.domain import effects_of
from pt2kit.editing.editor import Editor, Source, edit, package_alone
from pt2kit.editing.graphs import Graph, Node, Slot, Value
from pt2kit.editing.interface import USER, Input, Output, tuple_of, values_of
from pt2kit.errors import GraphError, UnsupportedError
from pt2kit.front_door import registered
from pt2kit.graph.reading import readable_size
from pt2kit.messages import quote
from pt2kit.node_metadata.modules import module_fqn, stated_modules
from pt2kit.package.open import Package


@dataclass(slots=True)
class _Cut:
    """The part that is extracted from a program.

    Args:
        nodes: those that are kept.
        ins: values that the caller passes, in order.
        outs: values that the caller gets.
        weights: other inputs of the program that are kept.
        call: what the caller passes, in order: those values, and constants that were asked for by name.
        sizes: sym_int values that are asked of an input's tensor: value -> (tensor, dimension).
        is_module: whether it is a module by its path.
    """

    nodes: list[Node]
    ins: list[Value]
    outs: list[Value]
    weights: list[Input]
    call: list[Input]
    sizes: dict[Value, tuple[Value, int]] = field(default_factory=dict)
    is_module: bool = False


def extract(
    source: Source,
    module: str | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    model: str | None = None,
    prove: bool = False,
) -> Any:
    """Cut a part out of a program: a module by its path, or the nodes between values.

    Weights keep their names; only those that are used go along. Calls that write to memory which is read later are
    included. A value is what it is where the last of the named inputs, or of the named outputs, is computed. Dead code
    (for example, of an unrolled scan) and sample inputs are left out.

    Args:
        source: as `edit` takes it.
        module: the path of a module ("layers.3.mlp"), found by the nodes' module stacks.
        inputs: the names of values, and of constants of the call, that the caller is to pass, in order; where it is
            None, the program's own inputs that are needed. Sizes of other inputs are read of these where they can.
        outputs: the names of values that the caller is to get; where it is None, the program's own.
        model: which program of a package.
        prove: run the whole program and the part on random inputs, and return nothing if values differ.

    Returns:
        A program where a program was given, else a package with this one program, for `pt2kit.write`.

    Raises:
        ProofError: with `prove`, values differ. UnsupportedError: arguments that do not go together, or, with
            `prove`, the program has operators that cannot be run.
        GraphError: a name that the program does not have, or something that is needed and not among the inputs.
        Pt2Error: the source cannot be read.
    """
    editor = edit(source, model)
    if module is not None and (inputs is not None or outputs is not None):
        raise UnsupportedError("extract: expected a module or names of values, got both")
    cut = _module_cut(editor, module) if module is not None else _values_cut(editor, inputs, outputs)
    _apply(editor, cut)
    program = editor.check()
    if not editor.has_weights:
        if prove:
            raise UnsupportedError("extract: expected a package to prove, got a program alone")
        return program
    package = _package(editor, program, cut)
    if prove:
        registered("prove_part")(editor.source_package, editor.model, package)
    return package


def _values_cut(editor: Editor, inputs: Sequence[str] | None, outputs: Sequence[str] | None) -> _Cut:
    graph = editor.graph
    users = values_of(editor.user_inputs)
    outs = values_of(editor.user_outputs) if outputs is None else [graph.value(name) for name in outputs]
    constants = {one.name: one for one in editor.inputs if one.kind == "constant_input" and one.value is None}
    ins = [graph.value(name) for name in inputs if name not in constants] if inputs is not None else list(users)
    others = [one for one in users if one not in ins]
    asked = [node.output for one in others for node in one.users if node.op == "aten.sym_size.int"]
    sizes = _sizes_of([value for value in asked if value not in ins], ins)
    goals = [*outs, *(graph.outputs if outputs is None else ())]
    ends = [one.producer.order for one in outs if one.producer]
    memory = _Memory(graph, set(ins), max(ends, default=0) if outputs is not None else math.inf)
    memory.stops = {*ins, *sizes}  # where sizes are asked for is not where the part begins
    acting = _acting(memory, users)
    goals += [value for node in acting for value in node.outputs]
    kept = _needed(memory, goals, [node for node in acting if not node.outputs])
    for node in kept:
        if once := memory.written_before(node):
            raise GraphError(
                f"extract: expected inputs that nothing writes to before the last of them, got {_listed(once)}, which "
                f"{node.label} writes to; name its result"
            )
    _check_shared(graph, memory, ins, kept)
    used = {value for node in kept for value in node.inputs} | set(outs)
    made = {value for node in kept for value in node.outputs}
    missing = [value for value in users if value in used and value not in made and value not in ins]
    if inputs is None:
        # A program that is cut at its outputs alone still takes what it took, where that is used.
        ins = [value for value in ins if value in used or outputs is None]
    elif missing:
        raise GraphError(f"extract: expected all that is needed among the inputs, got none of {_listed(missing)}")
    _check_overwritten(memory, kept, {*graph.inputs} | memory.stops)
    passed = ins if inputs is None else [constants[name] if name in constants else graph.value(name) for name in inputs]
    call = [one if isinstance(one, Input) else Input.of(one) for one in passed]
    sizes = {value: place for value, place in sizes.items() if value in used}
    return _Cut(kept, ins, outs, _weights(editor, used, set(ins)), call, sizes)


class _Memory:
    """Which values of a graph may share memory, seen from a part of it.

    Args:
        graph: the graph.
        stops: values that the caller passes: each has memory of its own.
        end: the order of the last node of the part; infinite for that of the graph.

    Attributes:
        first, last: the orders of the first and the last node that computes one of `stops`; 0 if none does. What
            writes to them before the last has done so.
        writers: the nodes that may write, with the values in whose memory.
    """

    def __init__(self, graph: Graph, stops: Set[Value], end: float = math.inf) -> None:
        self.graph, self.stops, self.end = graph, stops, end
        orders = [value.producer.order for value in stops if value.producer]
        self.first, self.last = min(orders, default=0), max(orders, default=0)
        self._owners: dict[Value, Set[Value]] = {}
        for node in graph.nodes:
            parameters = {parameter for _, parameter in effects_of(node.target, "").aliases}
            shared = [value for slot in node.slots if slot.name in parameters for value in slot.values]
            if shared:
                owners = self.owners(shared)
                self._owners.update((value, owners) for value in node.outputs if value not in stops)
        self.writers = {node: self._written(node) for node in graph.nodes if node.writes}

    def is_between(self, node: Node) -> bool:
        """Return whether a node is between the first of `stops` and the end of the part."""
        return self.first <= node.order <= self.end

    def owners(self, values: Iterable[Value]) -> set[Value]:
        """Return the values in whose memory some values may be: these themselves, if they are no views."""
        return {owner for value in values for owner in self._owners.get(value, (value,))}

    def _written(self, node: Node) -> set[Value]:
        parameters = effects_of(node.target, "").written
        values = [value for slot in node.slots if slot.name in parameters for value in slot.values] or node.inputs
        return self.owners(values)

    def written_before(self, node: Node) -> list[Value]:
        """Return the values that the caller passes after the node has written to them."""
        written = self.writers.get(node, ()) if node.order < self.last else ()
        return [one for one in written if one in self.stops and one.producer is not None]


def _check_overwritten(memory: _Memory, kept: Sequence[Node], given: Set[Value]) -> None:
    """Refuse nodes that read what is given before something writes to it that the part does not repeat.

    Raises:
        GraphError: there is such a node.
    """
    done = [
        (node, written & given)
        for node, written in memory.writers.items()
        if node.order <= memory.last and effects_of(node.target, "").written  # unknown operators may write nothing
    ]
    chosen = set(kept)
    for node in kept:
        read = memory.owners(node.inputs)
        for writer, written in done:
            if node.order < writer.order and writer not in chosen and (lost := read & written):
                raise GraphError(
                    f"extract: expected inputs that are computed before {writer.label} writes to {_listed([*lost])}, "
                    f"which {node.label} reads as it was; name its result"
                )


def _check_shared(graph: Graph, memory: _Memory, ins: Iterable[Value], kept: Sequence[Node]) -> None:
    """Refuse inputs that share memory with what the part computes itself, if one is read after a write to the other.

    Raises:
        GraphError: there is such an input.
    """
    whole = _Memory(graph, set())
    for value in ins:
        if value.producer is None or (owners := whole.owners([value])) == {value}:
            continue
        for writer, written in whole.writers.items():
            if writer.order <= value.producer.order or not written & owners:
                continue
            is_through = value in memory.writers[writer]
            for one in (one for node in kept if node.order > writer.order for one in node.inputs):
                if whole.owners([one]) & owners and (value in memory.owners([one])) != is_through:
                    raise GraphError(
                        f"extract: expected inputs with memory of their own, got {quote(value.name)}, which shares "
                        f"what {writer.label} writes with {quote(one.name)}; name that"
                    )


def written_weights(editor: Editor) -> set[str]:
    """Return the names of weights that a program writes to: in its graph, or by its outputs."""
    memory = _Memory(editor.graph, set())
    values = {owner for written in memory.writers.values() for owner in written}
    mutated = {one.target for one in editor.outputs if one.kind.endswith("mutation") and one.target}
    return mutated | {one.target for one in editor.inputs if one.target and one.value in values}


def _acting(memory: _Memory, users: Iterable[Value]) -> list[Node]:
    """Return nodes of the extracted part that act, and whose operands are available there.

    These are nodes without results (assertions, prints), and those that write to inputs of the program; the signature
    may not list them (training IR). What is computed from other inputs of the program is not available, nor is memory
    that something computed from them is written to.
    """
    given, outside = {*memory.graph.inputs}, set(users) - memory.stops
    acting_nodes = []
    for node in memory.graph.nodes:
        if node.order > memory.end:
            break
        written = memory.writers.get(node, set())
        if not outside.isdisjoint((*node.inputs, *memory.owners(node.inputs))):
            outside.update(value for value in node.outputs if value not in memory.stops)
            outside |= written
        elif memory.is_between(node) and (not node.outputs or given & written):
            acting_nodes.append(node)
    return [node for node in acting_nodes if outside.isdisjoint(memory.owners(node.outputs))]


def _needed(memory: _Memory, goals: Sequence[Value], nodes: Iterable[Node] = ()) -> list[Node]:
    """Return the nodes that some values depend on, back to the given ones.

    Nodes that write are needed where something reads the memory later; a result is read where the part ends.
    """
    chosen, wanted, read = set(nodes), set(goals) - memory.stops, memory.owners(goals)
    needed = []
    for node in reversed(memory.graph.nodes):  # those that read what this one writes have been found
        written = memory.writers.get(node, set())
        is_read = node.order < memory.end and not read.isdisjoint(written) and not memory.written_before(node)
        if node in chosen or is_read or not wanted.isdisjoint(node.outputs):
            wanted.update(set(node.inputs) - memory.stops)
            read |= memory.owners(node.inputs)
            needed.append(node)
    return needed[::-1]


def _module_cut(editor: Editor, path: str) -> _Cut:
    kept = [node for node in editor.graph.nodes if _is_inside(node, path)]
    if not kept:
        known = sorted({one for node in editor.graph.nodes for one in _modules(node) if one})
        raise GraphError(
            f"extract({quote(path)}): expected the path of a module with nodes, got another; there is "
            f"{', '.join(known[:12]) or 'none'}"
        )
    inside = {value for node in kept for value in node.outputs}
    used = list(dict.fromkeys(value for node in kept for value in node.inputs))
    stored = {one.value for one in editor.inputs if not one.is_user}
    ins = [value for value in used if value not in inside and value not in stored]
    chosen = set(kept)
    outs = [
        value
        for node in kept
        for value in node.outputs
        if value.is_output or any(user not in chosen for user in value.users)
    ]
    sizes = _sizes_of(ins, ins)
    ins = [value for value in ins if value not in sizes]
    weights = _weights(editor, set(used), set(ins))
    return _Cut(kept, ins, outs, weights, list(map(Input.of, ins)), sizes, is_module=True)


def _sizes_of(values: Iterable[Value], tensors: Iterable[Value]) -> dict[Value, tuple[Value, int]]:
    """Return the tensor and dimension whose size each sym_int among some values is, whatever their hints."""
    places: dict[int | str, tuple[Value, int]] = {}
    for tensor in tensors:
        for dim, size in enumerate(tensor.shape or ()):
            places.setdefault(size, (tensor, dim))
    numbers = {value: readable_size(value.meta) for value in values if value.kind == "sym_int"}
    return {value: places[size] for value, size in numbers.items() if size in places}


def _weights(editor: Editor, used: set[Value], ins: set[Value]) -> list[Input]:
    """Return the weights, constants and tokens that are needed."""
    return [one for one in editor.inputs if not one.is_user and one.value in used and one.value not in ins]


def _apply(editor: Editor, cut: _Cut) -> None:
    """Reduce the program to the part."""
    is_same = values_of(editor.user_outputs) == cut.outs
    results = editor.user_outputs if is_same else [Output.of(value) for value in cut.outs]
    is_whole = is_same and not cut.sizes and _is_whole_call(editor, cut)
    call = editor.user_inputs if is_whole else cut.call
    outputs = _outputs(editor, cut, [*cut.weights, *call], results)
    if cut.is_module:
        editor.calls.keep_modules({path for node in cut.nodes for path in _modules(node)})
    if not is_whole:
        is_named = editor.calls.arg_names or not editor.user_inputs  # files up to torch 2.5 do not name them
        outs = results[0] if len(cut.outs) == 1 else tuple_of(results)
        editor.calls.restart(call, {}, outs, [one.name for one in call] if is_named else None)
        editor.namedtuple_fields, editor.guards = {}, []
    for one in editor.outputs:
        one.slot.detach()
    for one in outputs:
        one.slot.attach()
    editor.inputs[:], editor.outputs[:] = [*cut.weights, *call], outputs
    kept = set(cut.nodes)
    for value in cut.ins:
        if value.producer in kept:  # for its other results
            _release(editor, value, value.producer)
    editor.graph.keep(kept)
    for value, (tensor, dim) in reversed(cut.sizes.items()):
        size = editor.graph.prepend("aten.sym_size.int", tensor, dim, meta=value.meta, name=value.name, metadata={})
        for slot, position in list(value.uses):
            slot.put(position, size.output)


def _release(editor: Editor, value: Value, node: Node) -> None:
    """Let a node define a value that nothing uses instead of one of its results, which becomes an input."""
    # torch gives such names to unused results.
    unused = editor.graph.names.unique(f"{node.name or value.name}_unused_{node.outputs.index(value)}")
    other = editor.graph.define(unused, value.kind, value.meta, node)
    for slot in node.outputs_:
        slot.values = [other if one is value else one for one in slot.values]
    if node.name == value.name:
        editor.graph.name_node(node, unused)
    value.producer = None


def _is_whole_call(editor: Editor, cut: _Cut) -> bool:
    """Return whether the caller passes the same arguments: all of them, or all values if no constant was asked for."""
    own = editor.user_inputs
    asked = [one.name for one in cut.call]
    return asked in ([one.name for one in own], [one.name for one in own if one.value is not None])


def _outputs(editor: Editor, cut: _Cut, ins: Collection[Input], results: Iterable[Output]) -> list[Output]:
    """Return the outputs: tokens, writes to inputs, then what the caller gets, then gradients."""
    made = {value for node in cut.nodes for value in node.outputs} | {one.value for one in ins}
    targets = {one.target for one in ins if one.target}
    outputs: list[Output] = []
    tokens = [one for one in ins if one.kind == "token"]
    for one in editor.outputs:
        if one.is_user or one.value not in made:
            continue
        is_of_input = one.input is not None and one.input.value in cut.ins
        if (one.kind == "token" and tokens) or one.target in targets or is_of_input:
            outputs.append(one)
    kept = sum(one.kind == "token" for one in outputs)
    for token in tokens[kept:]:
        last = next((node.outputs[0] for node in reversed(cut.nodes) if "with_effects" in node.target), token.value)
        if last is not None:
            spec = schema.OutputSpec(token=schema.OutputTokenSpec(schema.TokenArgument(last.name)))
            outputs.insert(0, Output(spec, Slot.of(last), {}))
    place = sum(one.group < USER for one in outputs)
    return [*outputs[:place], *results, *outputs[place:]]


def _modules(node: Node) -> list[str]:
    return [module_fqn(entry.path) for entry in stated_modules(node.metadata.get("nn_module_stack", ""))]


def _is_inside(node: Node, path: str) -> bool:
    return any(one == path or one.startswith(f"{path}.") for one in _modules(node))


def _package(editor: Editor, program: schema.ExportedProgram, cut: _Cut) -> Package:
    """Return the package of a part of a program, with the weights that it uses."""
    used = {one.target for one in cut.weights}
    used |= {value.name for node in cut.nodes for value in node.inputs if value.kind == "custom_obj"}
    for table in (editor.weights, editor.constants):
        table.payloads = {name: payload for name, payload in table.items() if name in used}
    return package_alone(editor, program)


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(quote(value.name) for value in values[:6])
