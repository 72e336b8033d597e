"""Summary of a package as data: programs, inputs, outputs, weights, operators, module tree; reads no tensor bytes.

Everything here is plain and frozen: `pt2 show --json` prints it as it is, and `report.py` makes text of it. The fields
are the keys of that JSON; `docs/cli.md` lists them.

The module tree of a program has the nodes, tensors and sizes of each module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pt2kit import codec
from pt2kit.checks.safety import safety_findings
from pt2kit.errors import Problem, Pt2Error, attempt
from pt2kit.graph.traversal import is_custom, operator_counts, operator_namespace, walk
from pt2kit.messages import printable
from pt2kit.node_metadata.modules import ModuleNode, module_tree, stated_modules
from pt2kit.package.open import Package
from pt2kit.package.stored import Payload
from pt2kit.schema import ExportedProgram
from pt2kit.schema.names import OPS, target_of
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.text.format import dotted
from pt2kit.text.payloads import NOTHING, Amount, TensorGroup, amount_of, group_of, stored_bytes, sum_of
from pt2kit.text.values import CallSummary, ValueTexts, summarize_call

_MUTATIONS = {"buffer_mutation": "buffer", "parameter_mutation": "parameter", "user_input_mutation": "input"}
_GRADIENTS = {"gradient_to_parameter": "parameter", "gradient_to_user_input": "input"}


@dataclass(frozen=True, slots=True)
class ModuleSummary:
    """One module and those below it.

    Args:
        name: its name in its parent; "" for the root.
        fqn: its dotted name from the root.
        type: qualified name of its class, None where the file does not show it.
        nodes: how many nodes were traced directly in it.
        tensors: full names of the parameters and buffers that it holds itself.
        own: the amount of these.
        total: the amount of these and of those of all modules below it.
        children: its submodules.
    """

    name: str
    fqn: str
    type: str | None
    nodes: int
    tensors: tuple[str, ...]
    own: Amount
    total: Amount
    children: tuple[ModuleSummary, ...]


def summarize_modules(program: ExportedProgram, tensors: Mapping[str, Payload]) -> ModuleSummary | None:
    """Build the module tree of a program; None if the file's module metadata cannot be read.

    Args:
        program: its nodes say in which modules they were traced.
        tensors: parameters and buffers by name.
    """
    stacks = (stated_modules(step.node.metadata.get("nn_module_stack", "")) for step in walk(program))
    fqns = [entry.fqn for entry in program.graph_module.module_call_graph]
    root = attempt(module_tree, stacks, fqns, tensors)
    amounts = {name: amount_of(payload) for name, payload in tensors.items()}
    return None if root is None else _with_sizes(root, amounts)


def _with_sizes(node: ModuleNode, amounts: Mapping[str, Amount]) -> ModuleSummary:
    """Add the sizes of all modules; trees are at most `node_metadata.modules.MAX_MODULE_DEPTH` deep."""
    children = tuple(_with_sizes(child, amounts) for child in node.children)
    own = sum_of(amounts.get(name, NOTHING) for name in node.parameters)
    total = own + sum_of(child.total for child in children)
    return ModuleSummary(node.name, node.fqn, node.type, node.nodes, node.parameters, own, total, children)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A dynamic size: its name and its inclusive range; None is unbounded."""

    name: str
    min: int | None
    max: int | None


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """Summary of one program of a package.

    Args:
        name: the model's name.
        schema_version: the version it was stored in.
        torch_version: the torch that exported it, as it says itself.
        verifiers: the dialects it claims.
        opset_version: operator namespace -> version.
        call: how it is called; None where that contradicts itself (see `problems`).
        symbols: the dynamic sizes.
        guards: how many conditions the inputs must meet besides.
        nodes: calls, those in subgraphs included.
        operators: namespace -> operator -> how often; most frequent first.
        custom_namespaces: those that torch does not bring.
        in_place: operators that change their argument, as their names say, and how often they are called.
        parameters: the parameters.
        buffers: the buffers, not persistent ones among them.
        constants: lifted tensor constants and custom objects.
        stored_bytes: bytes of the records of all of them; tied tensors count once.
        without_data: how many of them are stated and have no numbers.
        mutations: what a call changes, as the signature states it ("buffer bn.running_mean").
        gradients: what the program gives gradients of ("parameter fc.weight").
        lifted: constants, custom objects and buffers that are not persistent, with their types.
        modules: the module tree; None where what the file says of it cannot be read.
        delegates: name of a delegate of the container it is in -> its methods; schema 8.6 alone has them.
        devices: device of the graph -> device to use, as the container says.
        oldest_version: the oldest released schema version that it could be converted to; "" where nobody asked.
        unknown: places of keys that this build does not know.
        problems: what could not be read or contradicts itself.
    """

    name: str
    schema_version: str
    torch_version: str
    verifiers: tuple[str, ...]
    opset_version: Mapping[str, int]
    call: CallSummary | None
    symbols: tuple[Symbol, ...]
    guards: int
    nodes: int
    operators: Mapping[str, Mapping[str, int]]
    custom_namespaces: tuple[str, ...]
    in_place: Mapping[str, int]
    parameters: TensorGroup
    buffers: TensorGroup
    constants: TensorGroup
    stored_bytes: int
    without_data: int
    mutations: tuple[str, ...]
    gradients: tuple[str, ...]
    lifted: tuple[str, ...]
    modules: ModuleSummary | None
    delegates: Mapping[str, tuple[str, ...]]
    devices: Mapping[str, str]
    oldest_version: str
    unknown: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of a package.

    Args:
        file: as it was named; what does not print is escaped.
        bytes: size of the file.
        producer: the torch that wrote it, as far as the file tells.
        layout: the releases that write its layout.
        root: its root folder.
        records: how many.
        models: its programs.
        extra_files: name -> bytes.
        external: external file -> bytes of the weights that are in it.
        compiled: compiled models in the package.
        safety: what torch would run, or import by a name from the file, on loading it.
    """

    file: str
    bytes: int
    producer: str
    layout: str
    root: str
    records: int
    models: tuple[ModelSummary, ...]
    extra_files: Mapping[str, int]
    external: Mapping[str, int]
    compiled: tuple[str, ...]
    safety: tuple[Problem, ...]


def summarize(package: Package, *, oldest: bool = False) -> Summary:
    """Summarize a package; decodes its programs, reads no tensor bytes.

    Args:
        package: open.
        oldest: also find the oldest version that each program could be converted to. Cost: 0.4 s per 1,000 nodes.

    Raises:
        Pt2Error: a program cannot be read. Lesser errors (a signature that contradicts itself, payloads that are
            missing) are reported in `ModelSummary.problems`.
    """
    records = package.layout.extra_files()
    extra = {name: package.records[records[name]].size for name in package.extra_files}
    external: Counter[str] = Counter()
    for row in package.external.values():
        external[row.url] += row.nbytes
    return Summary(
        file=printable(package.name, 1000),
        bytes=package.archive.source.size,
        producer=package.producer,
        layout=package.layout.releases,
        root=package.layout.root,
        records=len(package.records),
        models=tuple(summarize_model(package, model, oldest=oldest) for model in package.layout.models),
        extra_files=extra,
        external=dict(external),
        compiled=package.compiled,
        safety=tuple(safety_findings(package)),
    )


def summarize_model(package: Package, model: str, *, oldest: bool = False) -> ModelSummary:
    """Summarize one program of a package.

    Args:
        package: open.
        model: which.
        oldest: as in `summarize`.

    Raises:
        KeyError: no such program.
        Pt2Error: it cannot be read.
    """
    stored = package.stored[model]
    program, texts, problems = stored.program, ValueTexts(stored.program), list[str]()
    operators = _operators(program)
    tensors = _Tensors(package, model, program, problems)
    container = stored.model
    return ModelSummary(
        name=model,
        schema_version=stored.version,
        torch_version=program.torch_version,
        verifiers=tuple(program.verifiers),
        opset_version=program.opset_version,
        call=_call(program, texts, problems),
        symbols=tuple(
            Symbol(texts.expression(name), limits.min_val, limits.max_val)
            for name, limits in program.range_constraints.items()
        ),
        guards=len(program.guards_code),
        nodes=sum(count for counts in operators.values() for count in counts.values()),
        operators=operators,
        custom_namespaces=tuple(name for name, counts in operators.items() if is_custom(next(iter(counts)))),
        in_place=_in_place(operators),
        parameters=group_of(tensors.parameters),
        buffers=group_of(tensors.buffers),
        constants=group_of(tensors.constants),
        stored_bytes=stored_bytes(tensors.all.values()),
        without_data=sum(isinstance(payload, MetaView) for payload in tensors.all.values()),
        mutations=tuple(_targets(program, _MUTATIONS)),
        gradients=tuple(_targets(program, _GRADIENTS)),
        lifted=tuple(_lifted(program, texts, tensors.constants)),
        modules=summarize_modules(program, {**tensors.parameters, **tensors.buffers}),
        delegates={name: tuple(methods) for name, methods in container.delegates.items()} if container else {},
        devices=dict(container.devices) if container else {},
        oldest_version=_oldest(program, model) if oldest else "",
        unknown=tensors.unknown,
        problems=tuple(problems),
    )


_NO_CHANGE = frozenset(("detach_", "requires_grad_"))


class _Tensors:
    """The payloads of a model by what they are to it. What cannot be read is put among `problems`."""

    def __init__(self, package: Package, model: str, program: ExportedProgram, problems: list[str]) -> None:
        weights: Mapping[str, Payload] = {}
        constants: Mapping[str, Payload] = {}
        self.unknown = tuple(map(str, package.stored[model].unknown))
        try:
            weights, constants = package.weights(model), package.constants(model)
            self.unknown = package.unknown(model)
        except Pt2Error as error:
            problems.append(str(error))
        specs = program.graph_module.signature.input_specs
        fleeting = {spec.value.buffer_name for spec in specs if spec.type == "buffer" and not spec.value.persistent}
        self.parameters = {name: payload for name, payload in weights.items() if payload.is_param}
        self.buffers = {name: payload for name, payload in weights.items() if not payload.is_param}
        self.buffers |= {name: payload for name, payload in constants.items() if name in fleeting}
        self.constants = {name: payload for name, payload in constants.items() if name not in fleeting}

    @property
    def all(self) -> dict[str, Payload]:
        """Return every payload. A name is unique in a program."""
        return {**self.parameters, **self.buffers, **self.constants}


def _oldest(program: ExportedProgram, model: str) -> str:
    from pt2kit.versions.program import oldest_version  # Nothing else here needs the steps between versions.

    return oldest_version(codec.to_tree(program), model)


def _call(program: ExportedProgram, texts: ValueTexts, problems: list[str]) -> CallSummary | None:
    try:
        return summarize_call(program, texts)
    except Pt2Error as error:
        problems.append(str(error))
        return None


def _operators(program: ExportedProgram) -> dict[str, dict[str, int]]:
    counts = operator_counts(program)
    by_namespace: dict[str, dict[str, int]] = {}
    for target, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        by_namespace.setdefault(operator_namespace(target), {})[target] = count
    return dict(sorted(by_namespace.items(), key=lambda item: -sum(item[1].values())))


def _in_place(operators: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the calls whose operator's name ends with an underscore, torch's convention for in-place operators."""
    in_place = {}
    for counts in operators.values():
        for target, count in counts.items():
            name = target.removeprefix(OPS).split(".")[1:2]
            if name and name[0].endswith("_") and not name[0].endswith("__") and name[0] not in _NO_CHANGE:
                in_place[target] = count
    return in_place


def _targets(program: ExportedProgram, kinds: Mapping[str, str]) -> Iterator[str]:
    for spec in program.graph_module.signature.output_specs:
        if (kind := kinds.get(spec.type)) is not None:
            yield f"{kind} {dotted(str(target_of(spec)))}"


def _lifted(program: ExportedProgram, texts: ValueTexts, constants: Mapping[str, Payload]) -> Iterator[str]:
    graph = program.graph_module.graph
    for spec in program.graph_module.signature.input_specs:
        fleeting = spec.type == "buffer" and not spec.value.persistent
        if not fleeting and spec.type not in ("tensor_constant", "custom_obj"):
            continue
        name = str(target_of(spec))
        payload = constants.get(name)
        known = payload.describe() if isinstance(payload, OpaquePayload) else "object"
        kind = texts.named(graph, spec.value.arg.name) or known
        yield f"{dotted(name)}: {kind}{' (buffer, not persistent)' if fleeting else ''}"
