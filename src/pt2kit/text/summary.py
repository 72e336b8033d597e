"""A package -> what a person wants to know of it at a glance, as data; reads no tensor bytes.

Everything here is plain and frozen, so `pt2 show --json` prints it as it is and `report.py` makes text of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pt2kit import treespec
from pt2kit.archive import names
from pt2kit.check import safety_findings
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph import is_custom, operator_namespace, walk
from pt2kit.package import Package
from pt2kit.schema import Argument, ExportedProgram, InputSpec, OutputSpec
from pt2kit.tensors.view import TensorView
from pt2kit.text.arguments import argument_text
from pt2kit.text.names import dotted
from pt2kit.text.values import ValueTexts
from pt2kit.traces import ModuleNode, lenient, module_tree, parse_module_stack


@dataclass(frozen=True, slots=True)
class Amount:
    """Some tensors taken together: how many, and their elements and bytes; shared bytes count once for each."""

    tensors: int = 0
    elements: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """What one program of a package is.

    Args:
        name: the model's name.
        schema_version: the version it was stored in.
        torch_version: the torch that exported it, as it says itself.
        verifiers: the dialects it claims.
        opset: operator namespace -> version.
        signature: the call signature, readable.
        symbols: (symbol, range) of the dynamic sizes.
        guards: how many conditions the inputs must meet besides.
        nodes: calls, those in subgraphs included.
        operators: namespace -> operator -> how often.
        custom_namespaces: those that torch does not bring.
        parameters, buffers, constants: amounts.
        dtypes: element type -> amount, over all of these.
        stored_bytes: bytes of their records; tied tensors count once.
        mutations: what a call changes ("buffer bn.running_mean").
        constant_names: the lifted constants and custom objects, with their types.
        modules: the module tree; None where no node says anything.
        unknown: places of keys that this build does not know.
        problems: what could not be summarised, and why.
    """

    name: str
    schema_version: str
    torch_version: str
    verifiers: tuple[str, ...]
    opset: Mapping[str, int]
    signature: str
    symbols: tuple[tuple[str, str], ...]
    guards: int
    nodes: int
    operators: Mapping[str, Mapping[str, int]]
    custom_namespaces: tuple[str, ...]
    parameters: Amount
    buffers: Amount
    constants: Amount
    dtypes: Mapping[str, Amount]
    stored_bytes: int
    mutations: tuple[str, ...]
    constant_names: tuple[str, ...]
    modules: ModuleNode | None
    unknown: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a package is.

    Args:
        file: as it was named.
        bytes: size of the file.
        producer: the torch that wrote it, as far as the file tells.
        layout: the releases that write its layout.
        root: its root folder.
        records: how many.
        models: its programs.
        extra_files: name -> bytes.
        compiled: compiled models beside the programs.
        safety: what torch would run or resolve on loading it.
    """

    file: str
    bytes: int
    producer: str
    layout: str
    root: str
    records: int
    models: tuple[ModelSummary, ...]
    extra_files: Mapping[str, int]
    compiled: tuple[str, ...]
    safety: tuple[Problem, ...]


def summarize(package: Package) -> Summary:
    """Look through a package; decodes its programs, reads no tensor bytes.

    Raises:
        Pt2Error: a program cannot be read. Lesser trouble (a signature that contradicts itself, payloads that are
            missing) is reported in `ModelSummary.problems`.
    """
    compiled = {names.aotinductor_model(record.removeprefix(package.layout.root)) for record in package.records}
    extra = {names.extra_name(record.removeprefix(package.layout.root)): row for record, row in package.records.items()}
    return Summary(
        file=package.name,
        bytes=package.archive.source.size,
        producer=package.producer,
        layout=package.layout.releases,
        root=package.layout.root,
        records=len(package.records),
        models=tuple(summarize_model(package, model) for model in package.layout.models),
        extra_files={name: row.size for name, row in extra.items() if name},
        compiled=tuple(sorted(filter(None, compiled))),
        safety=tuple(safety_findings(package)),
    )


def summarize_model(package: Package, model: str) -> ModelSummary:
    """Look through one program of a package.

    Raises:
        Pt2Error: it cannot be read.
    """
    stored = package.stored[model]
    program, texts, problems = stored.program, ValueTexts(stored.program), list[str]()
    weights, constants = (_payloads(read, model, problems) for read in (package.weights, package.constants))
    operators = _operators(program)
    parameters = [view for view in weights.values() if view.is_param]
    buffers = [view for view in weights.values() if not view.is_param]
    tensors = [*parameters, *buffers, *constants.values()]
    storages = {view.record: view.storage.nbytes for view in tensors}
    return ModelSummary(
        name=model,
        schema_version=stored.version,
        torch_version=program.torch_version,
        verifiers=tuple(program.verifiers),
        opset=program.opset_version,
        signature=_signature(program, texts, problems),
        symbols=texts.ranges(),
        guards=len(program.guards_code),
        nodes=sum(count for found in operators.values() for count in found.values()),
        operators=operators,
        custom_namespaces=tuple(name for name, found in operators.items() if is_custom(next(iter(found)))),
        parameters=_amount(parameters),
        buffers=_amount(buffers),
        constants=_amount(constants.values()),
        dtypes=_by_dtype(tensors),
        stored_bytes=sum(storages.values()),
        mutations=tuple(_mutations(program)),
        constant_names=tuple(_constants(program, texts)),
        modules=_modules(program, weights),
        unknown=tuple(map(str, stored.unknown)),
        problems=tuple(problems),
    )


def _payloads(read: Any, model: str, problems: list[str]) -> dict[str, TensorView]:
    try:
        return {name: payload for name, payload in read(model).items() if isinstance(payload, TensorView)}
    except Pt2Error as error:
        problems.append(str(error))
        return {}


def _signature(program: ExportedProgram, texts: ValueTexts, problems: list[str]) -> str:
    signature = program.graph_module.signature
    entries = {entry.fqn: entry.signature for entry in program.graph_module.module_call_graph}
    if (root := entries.get("")) is None:
        problems.append("the module call graph has no signature for the root module")
        return ""
    inputs = [_leaf(spec, program, texts) for spec in signature.input_specs]
    outputs = [_result(spec, program, texts) for spec in signature.output_specs]
    try:
        found = treespec.call_signature(
            treespec.parse(root.in_spec, "in_spec"),
            treespec.parse(root.out_spec, "out_spec"),
            [text for text in inputs if text is not None],
            [text for text in outputs if text is not None],
            root.forward_arg_names,
            fields={key: row.field_names for key, row in program.graph_module.treespec_namedtuple_fields.items()},
        )
        return treespec.render(found, width=100)
    except Pt2Error as error:
        problems.append(f"call signature: {error}")
        return ""


def _leaf(spec: InputSpec, program: ExportedProgram, texts: ValueTexts) -> str | None:
    """What a leaf of the call's arguments is; None for inputs that the caller does not pass."""
    if spec.type == "user_input":
        return _described(spec.value.arg, program, texts)
    if spec.type == "constant_input":
        value = spec.value.value
        return "None" if value.type == "as_none" else f"{type(value.value).__name__} = {value.value!r}"
    return None


def _result(spec: OutputSpec, program: ExportedProgram, texts: ValueTexts) -> str | None:
    """What a leaf of the call's result is; None for outputs that the caller does not get."""
    if spec.type == "user_output":
        return _described(spec.value.arg, program, texts)
    if spec.type == "loss_output":
        return f"loss {texts.named(program.graph_module.graph, spec.value.arg.name)}"
    return None


def _described(argument: Argument, program: ExportedProgram, texts: ValueTexts) -> str:
    name = getattr(argument.value, "name", None) or getattr(argument.value, "as_name", None)
    if isinstance(name, str):
        return texts.named(program.graph_module.graph, name) or "?"
    text = argument_text(argument)
    return text if text == "None" else f"{_PLAIN.get(argument.type, argument.type)} = {text}"


_PLAIN = {"as_int": "int", "as_float": "float", "as_bool": "bool", "as_string": "str"}


def _operators(program: ExportedProgram) -> dict[str, dict[str, int]]:
    counts = Counter(step.node.target for step in walk(program))
    found: dict[str, dict[str, int]] = {}
    for target, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        found.setdefault(operator_namespace(target), {})[target] = count
    return dict(sorted(found.items(), key=lambda item: -sum(item[1].values())))


def _amount(views: Iterable[TensorView]) -> Amount:
    views = tuple(views)
    return Amount(len(views), sum(view.numel for view in views), sum(view.nbytes for view in views))


def _by_dtype(views: Iterable[TensorView]) -> dict[str, Amount]:
    found: dict[str, list[TensorView]] = {}
    for view in views:
        found.setdefault(view.describe().partition("[")[0], []).append(view)
    return {dtype: _amount(group) for dtype, group in sorted(found.items())}


def _mutations(program: ExportedProgram) -> Iterable[str]:
    kinds = {"buffer_mutation": "buffer", "parameter_mutation": "parameter", "user_input_mutation": "input"}
    for spec in program.graph_module.signature.output_specs:
        if (kind := kinds.get(spec.type)) is not None:
            yield f"{kind} {dotted(_target(spec))}"


def _target(spec: OutputSpec) -> str:
    keys = ("buffer_name", "parameter_name", "user_input_name")
    return str(next(getattr(spec.value, key) for key in keys if hasattr(spec.value, key)))


def _constants(program: ExportedProgram, texts: ValueTexts) -> Iterable[str]:
    graph = program.graph_module.graph
    for spec in program.graph_module.signature.input_specs:
        if spec.type == "tensor_constant":
            yield f"{dotted(spec.value.tensor_constant_name)}: {texts.named(graph, spec.value.arg.name)}"
        elif spec.type == "custom_obj":
            yield f"{dotted(spec.value.custom_obj_name)}: {texts.named(graph, spec.value.arg.name) or 'object'}"
        elif spec.type == "buffer" and not spec.value.persistent:
            text = texts.named(graph, spec.value.arg.name)
            yield f"{dotted(spec.value.buffer_name)}: {text} (buffer, not persistent)"


def _modules(program: ExportedProgram, weights: Mapping[str, TensorView]) -> ModuleNode | None:
    texts = (step.node.metadata.get("nn_module_stack", "") for step in walk(program))
    stacks = (lenient(parse_module_stack, text) or () for text in texts)
    fqns = [entry.fqn for entry in program.graph_module.module_call_graph]
    return lenient(lambda _: module_tree(stacks, fqns, weights), "")
