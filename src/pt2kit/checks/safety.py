"""A package -> what torch would execute, or resolve by a name from the file, on loading it (rules X1 to X9).

Each finding is a `Problem` of kind "safety". Real files have some: sample inputs are always a pickle. The message says
whether what is inside is plain data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pt2kit import symbols, treespec
from pt2kit.archive import names
from pt2kit.archive.pickled import globals_in, is_plain
from pt2kit.checks.targets import is_usual
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph import Scope, graphs, walk
from pt2kit.package import Package
from pt2kit.schema import ExportedProgram, Graph, InputSpec, OutputSpec, SymExpr
from pt2kit.tensors.opaque import OpaquePayload

_PATH: Final = re.compile(r"[^\"'\\\x00-\x1f\x7f]*")
_IMPORTING_CONTEXT: Final = re.compile(r'\\?"(?:__enum__|fqn|default_factory_module)\\?"')
_SHOWN: Final = 80
_SHOWN_GLOBALS: Final = 20


def safety_findings(package: Package) -> Iterator[Problem]:
    """Iterate what torch would run or resolve on loading a package, rule by rule for each program; runs nothing.

    What cannot be read is passed over: reading it raises elsewhere.
    """
    for model in package.layout.models:
        yield from _sample_inputs(package, model)
        yield from _pickled_payloads(package, model)
        try:
            program = package.programs[model]
            scopes = list(graphs(program))
        except Pt2Error:
            continue
        where = names.model_json(model)
        yield from _guards(program, where)
        yield from _expressions(program, scopes, where)
        yield from _pasted_names(program, scopes, where)
        yield from _targets(program, where)
        yield from _tree_specs(program, where)
    yield from _compiled_code(package)


def _sample_inputs(package: Package, model: str) -> Iterator[Problem]:
    record = names.sample_inputs(model)
    full = package.layout.record(record)
    if full in package.records and package.records[full].size:
        yield Problem(record, "X1", f"torch unpickles the sample inputs: {_pickle_text(package, full)}", "safety")


def _pickle_text(package: Package, record: str) -> str:
    try:
        found = globals_in(package.archive.read(record), record)
    except Pt2Error as error:
        return f"cannot be read as data ({error})"
    odd = [name for name in found if not is_plain(name)]
    if not odd:
        return "plain data"
    more = f" and {len(odd) - _SHOWN_GLOBALS:,} more" if len(odd) > _SHOWN_GLOBALS else ""
    return f"calls {', '.join(map(_shown, odd[:_SHOWN_GLOBALS]))}{more}"


def _pickled_payloads(package: Package, model: str) -> Iterator[Problem]:
    for payloads in (package.weights, package.constants):
        try:
            found = payloads(model)
        except Pt2Error:
            continue
        for name, payload in found.items():
            if isinstance(payload, OpaquePayload):
                rule = "X2" if payload.kind == "pickle" else "X3"
                text = f"torch unpickles {_shown(name)!r} ({payload.kind}): {_pickle_text(package, payload.record)}"
                yield Problem(package.relative(payload.record), rule, text, "safety")


def _guards(program: ExportedProgram, where: str) -> Iterator[Problem]:
    if not program.guards_code:
        return
    odd = [text for text in program.guards_code if not _is_condition(text)]
    verdict = f"{len(odd)} of them no plain conditions: {_shown(odd[0])!r}" if odd else "plain conditions"
    count = len(program.guards_code)
    message = f"torch compiles {count:,} guard{'' if count == 1 else 's'}, {verdict}"
    yield Problem(f"{where}: $.guards_code", "X4", message, "safety")


def _is_condition(text: str) -> bool:
    try:
        symbols.parse_guard(text)
    except Pt2Error:
        return False
    return True


def _expressions(program: ExportedProgram, scopes: Iterable[Scope], where: str) -> Iterator[Problem]:
    texts = dict.fromkeys(program.range_constraints)
    for scope in scopes:
        texts |= dict.fromkeys(value.expr_str for value in _symbolic_values(scope.graph) if isinstance(value, SymExpr))
    for text in texts:
        try:
            symbols.parse(text)
        except Pt2Error:
            yield Problem(where, "X5", f"torch evaluates the expression {_shown(text)!r}", "safety")


def _symbolic_values(graph: Graph) -> Iterator[object]:
    for meta in graph.tensor_values.values():
        yield from (size.value for size in (*meta.sizes, *meta.strides, meta.storage_offset))
    for values in (graph.sym_int_values, graph.sym_float_values, graph.sym_bool_values):
        yield from (value.value for value in values.values())


def _pasted_names(program: ExportedProgram, scopes: Iterable[Scope], where: str) -> Iterator[Problem]:
    for place, name in _identifiers(program, scopes):
        if name and not name.isidentifier():
            yield Problem(f"{where}: {place}", "X6", f"torch pastes the name {_shown(name)!r} into source", "safety")
    for place, name in _paths(program):
        if not _PATH.fullmatch(name):
            yield Problem(f"{where}: {place}", "X6", f"torch pastes the path {_shown(name)!r} into source", "safety")


def _identifiers(program: ExportedProgram, scopes: Iterable[Scope]) -> Iterator[tuple[str, str]]:
    """Names of placeholders, of arguments of the call and of keyword arguments of nodes, each with its place."""
    for scope in scopes:
        for number, argument in enumerate(scope.graph.inputs):
            name = getattr(argument.value, "name", None)
            yield from [(f"{scope.where}.inputs[{number}]", name)] if isinstance(name, str) else []
        for number, node in enumerate(scope.graph.nodes):
            yield from ((f"{scope.where}.nodes[{number}].inputs", named.name) for named in node.inputs)
    for number, entry in enumerate(program.graph_module.module_call_graph):
        for name in (entry.signature.forward_arg_names or ()) if entry.signature else ():
            yield f"$.graph_module.module_call_graph[{number}].signature.forward_arg_names", name


def _paths(program: ExportedProgram) -> Iterator[tuple[str, str]]:
    """Dotted names of parameters, buffers, constants and subgraphs, each with its place."""
    signature = program.graph_module.signature
    yield from _spec_paths("input_specs", signature.input_specs)
    yield from _spec_paths("output_specs", signature.output_specs)
    for step in walk(program):
        for named in step.node.inputs:
            if named.arg.type == "as_graph":
                yield f"{step.where}.inputs", named.arg.value.name


def _spec_paths(field: str, specs: Iterable[InputSpec | OutputSpec]) -> Iterator[tuple[str, str]]:
    for number, spec in enumerate(specs):
        for key in ("parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name"):
            if (name := getattr(spec.value, key, None)) is not None:
                yield f"$.graph_module.signature.{field}[{number}]", name


def _targets(program: ExportedProgram, where: str) -> Iterator[Problem]:
    for step in walk(program):
        targets = [step.node.target]
        targets += [named.arg.value for named in step.node.inputs if named.arg.type == "as_operator"]
        for target in targets:
            if not is_usual(target):
                text = f"torch looks up {_shown(target)!r} attribute by attribute"
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
                    named = f"the context of {_shown(str(node.type))} names: {_shown(node.context)!r}"
                    yield Problem(place, "X9", f"torch imports what {named}", "safety")


def _compiled_code(package: Package) -> Iterator[Problem]:
    found: dict[str, int] = {}
    for record in package.records:
        if (model := names.aotinductor_model(package.relative(record))) is not None:
            found[model] = found.get(model, 0) + 1
    for model, count in found.items():
        text = f"torch loads compiled code ({count:,} record{'' if count == 1 else 's'}) into the process"
        yield Problem(names.aotinductor(model, ""), "X8", text, "safety")


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
