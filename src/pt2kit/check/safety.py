"""A package -> what torch would execute, or resolve by a name from the file, on loading it (rules X1 to X9).

Each finding is a `Problem` of kind "safety". Real files have some: sample inputs are always a pickle. The message says
whether what is inside is plain data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pt2kit import symbols, treespec
from pt2kit.archive import names
from pt2kit.archive.pickled import globals_in, is_plain
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph.walk import graphs, walk
from pt2kit.package import Package
from pt2kit.schema import ExportedProgram, Graph, InputSpec, OutputSpec, SymExpr
from pt2kit.tensors.opaque import OpaquePayload

_USUAL_TARGET = re.compile(
    r"torch\.ops\.\w+\.\w+(\.\w+)?|(_operator|math)\.\w+|torch\.sym_\w+|torch\._sym_sqrt|torch\._higher_order_ops\.[\w.]+"
)
_PATH = re.compile(r"[^\"'\\\n\r()=;]*")
_IMPORTING_CONTEXT = re.compile(r'"(?:__enum__|fqn|default_factory_module)"')


def safety_findings(package: Package) -> Iterator[Problem]:
    """Iterate what torch would run or resolve on loading a package, in the order of the rules; runs nothing.

    What cannot be read is passed over: reading it raises elsewhere.
    """
    for model in package.layout.models:
        yield from _sample_inputs(package, model)
        yield from _pickled_payloads(package, model)
    for model in package.layout.models:
        try:
            program = package.programs[model]
        except Pt2Error:
            continue
        where = names.model_json(model)
        for rule in (_guards, _expressions, _pasted_names, _targets):
            yield from rule(program, where)
        yield from _tree_specs(program, where)
    yield from _compiled_code(package)


def _sample_inputs(package: Package, model: str) -> Iterator[Problem]:
    record = names.sample_inputs(model)
    full = package.layout.record(record)
    if full in package.records:
        yield Problem(record, "X1", f"torch unpickles the sample inputs: {_pickle_text(package, full)}", "safety")


def _pickle_text(package: Package, record: str) -> str:
    try:
        found = globals_in(package.archive.read(record), record)
    except Pt2Error as error:
        return f"cannot be read as data ({error})"
    odd = [name for name in found if not is_plain(name)]
    return f"calls {', '.join(odd)}" if odd else "plain data"


def _pickled_payloads(package: Package, model: str) -> Iterator[Problem]:
    for payloads in (package.weights, package.constants):
        try:
            found = payloads(model)
        except Pt2Error:
            continue
        for name, payload in found.items():
            if isinstance(payload, OpaquePayload):
                rule = "X2" if payload.kind == "pickle" else "X3"
                text = _pickle_text(package, payload.record)
                yield Problem(payload.record, rule, f"torch unpickles {name!r} ({payload.kind}): {text}", "safety")


def _guards(program: ExportedProgram, where: str) -> Iterator[Problem]:
    if not program.guards_code:
        return
    odd = [text for text in program.guards_code if not _is_condition(text)]
    verdict = f"{len(odd)} of them no plain conditions: {odd[0][:80]!r}" if odd else "all of them plain conditions"
    message = f"torch compiles {len(program.guards_code)} guards, {verdict}"
    yield Problem(f"{where}: $.guards_code", "X4", message, "safety")


def _is_condition(text: str) -> bool:
    try:
        symbols.parse_guard(text)
    except Pt2Error:
        return False
    return True


def _expressions(program: ExportedProgram, where: str) -> Iterator[Problem]:
    for text in dict.fromkeys(_expression_texts(program)):
        try:
            symbols.parse(text)
        except Pt2Error:
            yield Problem(where, "X5", f"torch evaluates the expression {text[:80]!r}", "safety")


def _expression_texts(program: ExportedProgram) -> Iterator[str]:
    yield from program.range_constraints
    for scope in graphs(program):
        for value in _symbolic_values(scope.graph):
            if isinstance(value, SymExpr):
                yield value.expr_str


def _symbolic_values(graph: Graph) -> Iterator[object]:
    for meta in graph.tensor_values.values():
        yield from (size.value for size in (*meta.sizes, *meta.strides, meta.storage_offset))
    for values in (graph.sym_int_values, graph.sym_float_values, graph.sym_bool_values):
        yield from (value.value for value in values.values())


def _pasted_names(program: ExportedProgram, where: str) -> Iterator[Problem]:
    for place, name in _names(program):
        if not _PATH.fullmatch(name):
            yield Problem(f"{where}: {place}", "X6", f"torch pastes the name {name[:80]!r} into source", "safety")


def _names(program: ExportedProgram) -> Iterator[tuple[str, str]]:
    module = program.graph_module
    for scope in graphs(program):
        for number, argument in enumerate(scope.graph.inputs):
            name = getattr(argument.value, "name", None)
            yield from [(f"{scope.where}.inputs[{number}]", name)] if isinstance(name, str) else []
    yield from _spec_names("input_specs", module.signature.input_specs)
    yield from _spec_names("output_specs", module.signature.output_specs)
    for number, entry in enumerate(module.module_call_graph):
        for name in (entry.signature.forward_arg_names or ()) if entry.signature else ():
            yield f"$.graph_module.module_call_graph[{number}].signature.forward_arg_names", name
    for step in walk(program):
        for named in step.node.inputs:
            yield f"{step.where}.inputs", named.name
            if named.arg.type == "as_graph":
                yield f"{step.where}.inputs", named.arg.value.name


def _spec_names(field: str, specs: Iterable[InputSpec | OutputSpec]) -> Iterator[tuple[str, str]]:
    for number, spec in enumerate(specs):
        for key in ("parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name"):
            if (name := getattr(spec.value, key, None)) is not None:
                yield f"$.graph_module.signature.{field}[{number}]", name


def _targets(program: ExportedProgram, where: str) -> Iterator[Problem]:
    for step in walk(program):
        targets = [step.node.target]
        targets += [named.arg.value for named in step.node.inputs if named.arg.type == "as_operator"]
        for target in targets:
            if not _USUAL_TARGET.fullmatch(target) and not target.startswith("#"):
                text = f"torch looks up {target[:80]!r} attribute by attribute"
                yield Problem(f"{where}: {step.where}.target", "X7", text, "safety")


def _tree_specs(program: ExportedProgram, where: str) -> Iterator[Problem]:
    for number, entry in enumerate(program.graph_module.module_call_graph):
        place = f"{where}: $.graph_module.module_call_graph[{number}]"
        for text in (entry.signature.in_spec, entry.signature.out_spec) if entry.signature else ():
            try:
                spec = treespec.parse(text, place)
            except Pt2Error:
                continue
            for node in treespec.walk(spec):
                if node.context and _IMPORTING_CONTEXT.search(node.context):
                    message = f"torch imports what the context of {node.type} names: {node.context[:80]!r}"
                    yield Problem(place, "X9", message, "safety")


def _compiled_code(package: Package) -> Iterator[Problem]:
    found: dict[str, int] = {}
    for record in package.records:
        model = names.aotinductor_model(record.removeprefix(package.layout.root))
        if model is not None:
            found[model] = found.get(model, 0) + 1
    for model, count in found.items():
        folder = names.aotinductor(model, "")
        yield Problem(folder, "X8", f"torch loads compiled code ({count} records) into the process", "safety")
