"""Checks of a schema program before anything live is built: whatever can be refused is refused here.

Both ways of building continue with the result: operators, containers, guards and tree specs. The text of each guard is
proven to be only a condition on the inputs before torch runs it (rule X4).

torch writes more guards itself when a program becomes a module: from the structure of the example inputs, whose keys it
pastes into source, and from inputs that are constants, whose texts it pastes as well. `guardable` decides whether that
is safe; a program without example inputs gets no such guards.

Operators, containers and script classes that this process lacks are listed in one error, with what to import. Calls of
unchecked kernels are found by `checks`; the first ends the load. Other unsafe calls (prints, open regions, sizes) were
refused before (`checks.refusals`).
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import torch
from torch.export.exported_program import ModuleCallEntry

from pt2kit import node_metadata, schema
from pt2kit.bridge.operators import LAYOUTS, Operator, resolve_all
from pt2kit.bridge.read.adapt import adapt_named_tuples
from pt2kit.bridge.read.names import check_path, is_pasted_safely
from pt2kit.bridge.read.reading import refused
from pt2kit.bridge.read.treespecs import (
    CONTAINER,
    ENUM,
    FACTORY,
    Missing,
    TreeSpecs,
    changed_namedtuples,
    read_module_calls,
)
from pt2kit.bridge.torch_names import Verifier, find_verifier, has_script_class, pytree
from pt2kit.checks.calls import named_operators
from pt2kit.checks.growth import MAX_OPEN_POWERS
from pt2kit.checks.stored_inputs import Tables, unchanged_inputs
from pt2kit.checks.unchecked import is_concerned, kernel_findings
from pt2kit.errors import GraphError, JsonError, LimitError, OperatorError, Pt2Error, SchemaError, UnsupportedError
from pt2kit.graph.traversal import Scope, graphs, is_custom, node_label
from pt2kit.messages import listed
from pt2kit.schema.names import ATEN_OPS, OPS
from pt2kit.signature.consistency import DEFAULT_WHERE as WHERE
from pt2kit.signature.export_signature import ExportGraphSignature, from_schema
from pt2kit.signature.specs import ConstantArgument, InputKind, InputSpec
from pt2kit.symbols.guards import parse_guard
from pt2kit.treespec.containers import FieldTable

_LOG: Final = logging.getLogger(__name__)

SHOWN: Final = 20
_OWN: Final = frozenset({"aten", "prims", "higher_order", "quantized", "torch"})
"""Namespaces of torch's own operators; "torch" for its functions."""
SCRIPT_CLASS: Final = "the script class {}"


@dataclass(frozen=True, slots=True)
class Checked:
    """A program that may be built.

    Args:
        module: the program for the current named tuples.
        signature: its signature.
        sources: where the leaves of its `in_spec` are in the file's; None where the two are the same.
        calls: its module call graph as torch has it, the root first.
        tree_specs: builds live ones.
        guards: guard expressions, proven to be only conditions on the inputs.
        scopes: its graphs, the root first.
        operators: target -> operator, for every target in it.
        verifiers: verifiers of its dialects.
        metadata: what `graph_module.meta` holds.
    """

    module: schema.GraphModule
    signature: ExportGraphSignature
    sources: tuple[int | None, ...] | None
    calls: list[ModuleCallEntry]
    tree_specs: TreeSpecs
    guards: list[str]
    scopes: Sequence[Scope]
    operators: Mapping[str, Operator]
    verifiers: Sequence[type[Verifier]]
    metadata: Mapping[str, Any]


def check_program(
    program: schema.ExportedProgram, tables: Tables, trust: Set[str] = frozenset(), *, validates: bool = False
) -> Checked:
    """Refuse a program as far as is possible without building anything.

    Args:
        program: of the current schema version.
        tables: returns its payloads, those that are the file's.
        trust: rules and operators that are not refused, and names of classes that may be imported.
        validates: whether the arguments of unchecked kernels are validated in a run.

    Raises:
        GraphError, SchemaError, ExpressionError: a program that contradicts itself.
        OperatorError: operators that are unknown or refused.
        UnsupportedError: containers that are not registered.
        LimitError: a stated limit was passed.
    """
    module, sources = program.graph_module, None
    signature = from_schema(module)
    fields = {name: tuple(definition.field_names) for name, definition in module.treespec_namedtuple_fields.items()}
    if changed := changed_namedtuples(fields):
        program, sources = adapt_named_tuples(program, fields, changed)
        module, fields = program.graph_module, fields | {name: kind._fields for name, kind in changed.items()}
        signature = from_schema(module)
    guards = list(program.guards_code) if "X4" in trust else check_guards(program.guards_code)
    specs = TreeSpecs(fields, trust)
    calls = read_module_calls(module.module_call_graph, specs)
    scopes = list(graphs(program))
    operators, missing = resolve_all(_targets(scopes), trust)
    raise_missing(missing, chain(specs.missing, missing_classes(scopes)))
    _check_dialect(program.verifiers, operators)
    check_kernels(program, scopes, operators, tables, trust, validates)
    return Checked(
        module,
        signature,
        sources,
        calls,
        specs,
        guards,
        scopes,
        operators,
        [_verifier(name) for name in program.verifiers],
        _module_metadata(module, fields),
    )


def _verifier(name: str) -> type[Verifier]:
    verifier = find_verifier(name or "ATEN")
    if verifier is None:
        raise SchemaError(f"$.verifiers: expected the dialect of a verifier (ATEN, TRAINING), got {name[:80]!a}")
    return verifier


def _check_dialect(verifiers: Sequence[str], operators: Mapping[str, Operator]) -> None:
    """Refuse operators that write to their arguments in a program of a dialect that has none.

    Raises:
        OperatorError: the first such operator (T14).
    """
    if not verifiers or "TRAINING" in verifiers:
        return
    for target, operator in operators.items():
        if operator.schema is not None and operator.schema.is_mutable and not is_custom(target):
            message = (
                f"expected the dialect TRAINING where {target} writes to its arguments, got {', '.join(verifiers)}"
            )
            raise OperatorError(f"$.verifiers: {message}", rule="T14")


def _module_metadata(module: schema.GraphModule, fields: FieldTable) -> Mapping[str, Any]:
    """Return the contents of `graph_module.meta`; the user's metadata that is not JSON is left out with a warning."""
    metadata: dict[str, Any] = {}
    if module.metadata.get("custom"):
        try:
            metadata["custom"] = node_metadata.parse_custom(module.metadata["custom"], f"{WHERE}.metadata.custom")
        except JsonError as error:
            _LOG.warning("metadata of the user is left out: %s", error)  # Rule V5 of `check`.
    metadata["treespec_namedtuple_fields"] = {name: list(names) for name, names in fields.items()}
    return metadata


def _targets(scopes: Sequence[Scope]) -> dict[str, str]:
    """Return every operator that the program names, as a call or as an argument, with the first place of it."""
    places: dict[str, str] = {}
    for graph in scopes:
        for number, node in enumerate(graph.graph.nodes):
            if node.target in places and node.target.startswith(ATEN_OPS):
                continue
            place = f"{graph.where}.nodes[{number}]: node {node_label(node, number)}"
            for target in named_operators(node):
                places.setdefault(target, place)
    return places


def check_guards(guards: Sequence[str], where: str = "$.guards_code") -> list[str]:
    """Return the guards of a program, each checked by the grammar of `pt2kit.symbols.parse_guard`.

    Raises:
        ExpressionError: an entry is no such condition.
        LimitError: it is larger than an expression may be.
    """
    open_powers = 0
    for index, text in enumerate(guards):
        try:
            guard = parse_guard(text, where=f"{where}[{index}]")
            open_powers += guard.open_powers
            if open_powers > MAX_OPEN_POWERS:
                raise LimitError(
                    f"{where}: expected at most {MAX_OPEN_POWERS} powers whose exponent is a size, got more"
                )
        except Pt2Error as error:
            raise refused(type(error), error.message, "X4") from error
    return list(guards)


def guardable(example_inputs: Any, inputs: Sequence[InputSpec]) -> Any:
    """Return example inputs if torch can write guards from them without changing the meaning of its source, else None.

    Args:
        example_inputs: arguments and keyword arguments, live; or None.
        inputs: of the signature; constants among them are pasted.

    Source: `_convert_guards_code_to_fn` and `_get_input_guards_for_graph` in torch/export/_unlift.py, 2.13.
    """
    if example_inputs is None:
        return None
    constants = [spec.arg.value for spec in inputs if isinstance(spec.arg, ConstantArgument)]
    steps = (step for path, _ in pytree.tree_leaves_with_path(example_inputs) for step in path)
    if all(not value or is_pasted_safely(value) for value in constants if isinstance(value, str)) and all(
        map(_is_plain_step, steps)
    ):
        return example_inputs
    _LOG.warning("example inputs are left out: torch could not write guards from their keys or constants")
    return None


def _is_plain_step(step: Any) -> bool:
    """Return whether a path step to an input is written as an index, an attribute, or a key of plain literals."""
    if isinstance(step, pytree.SequenceKey):
        return type(step.idx) is int
    if isinstance(step, pytree.GetAttrKey):
        return isinstance(step.name, str) and step.name.isidentifier()
    return isinstance(step, pytree.MappingKey) and _is_plain_key(step.key)


def _is_plain_key(key: Any) -> bool:
    if type(key) is tuple:
        return all(_is_plain_key(part) for part in key)
    if type(key) is str:
        return not key or is_pasted_safely(key)
    return key is None or type(key) in (int, bool) or (type(key) is float and math.isfinite(key))


def check_payloads(checked: Checked, state_dict: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
    """Refuse a signature whose parameters, buffers and constants are missing, and names that cannot be attributes.

    Args:
        checked: the program.
        state_dict: parameters and persistent buffers, live.
        constants: everything else that is live.

    Raises:
        GraphError: the first that is missing, in the wrong place, or of the wrong kind.
        UnsupportedError: a tensor that is stored in one layout and declared in another.
    """
    for index, spec in enumerate(checked.signature.input_specs):
        name = spec.target
        if name is None:
            continue
        where = f"{WHERE}.signature.input_specs[{index}]"
        check_path(name, where)
        meta = checked.module.graph.tensor_values.get(spec.arg.name)
        _check_layout(state_dict.get(name, constants.get(name)), meta, where)
        stored = name in state_dict
        if spec.kind is InputKind.PARAMETER:
            if not isinstance(state_dict.get(name), torch.nn.Parameter):
                raise GraphError(f"{where}: expected a parameter {name!a} among the weights, got none of that name")
        elif spec.kind is InputKind.BUFFER and spec.persistent:
            if not stored:
                raise GraphError(f"{where}: expected a buffer {name!a} among the weights, got none of that name")
        elif name not in constants:
            raise GraphError(f"{where}: expected {name!a} among the constants, got none of that name")
        elif stored and spec.kind is InputKind.BUFFER:
            raise GraphError(
                f"{where}: expected the buffer {name!a}, which is not persistent, among the constants only"
            )
    targets = {spec.target for spec in checked.signature.input_specs}
    for name in (*state_dict, *constants):
        if name not in targets:
            check_path(name, "payload names")


def _check_layout(value: Any, meta: schema.TensorMeta | None, where: str) -> None:
    if isinstance(value, torch.Tensor) and meta is not None and value.layout is not LAYOUTS.get(meta.layout):
        raise UnsupportedError(f"{where}: layout: expected {meta.layout.name} as in the graph, got {value.layout}")


_SCRIPT_CLASS: Final = re.compile(r"__torch__\.torch\.classes\.(\w+)\.(\w+)", re.ASCII)


def raise_missing(operators: Mapping[str, str], others: Iterable[Missing]) -> None:
    """Raise if anything is missing.

    Args:
        operators: target -> where it is first used.
        others: containers, factories, enum classes and script classes.

    Raises:
        OperatorError: operators are missing, perhaps among other things.
        SchemaError: containers are, and no operators.
        UnsupportedError: only script classes are.
    """
    names: dict[str, list[str]] = {}
    for one in dict.fromkeys(others):
        names.setdefault(one.what, []).append(one.name)
    texts = [f"the operator {text} ({where})" for text, where in operators.items()]
    texts += [what.format(name) for what in names for name in names[what]]
    if not texts:
        return
    error = OperatorError if operators else UnsupportedError if names.keys() == {SCRIPT_CLASS} else SchemaError
    raise error(
        f"expected operators, containers and classes that are known here, got {listed(texts, SHOWN, '; ')}. "
        f"{_advice(operators, names)}"
    )


def missing_classes(scopes: Iterable[Scope]) -> Iterator[Missing]:
    """Yield the script classes of the custom objects in a program's graphs that nothing has registered."""
    for scope in scopes:
        for custom in scope.graph.custom_obj_values.values():
            match = _SCRIPT_CLASS.fullmatch(custom.class_fqn)
            if match and not has_script_class(*match.groups()):
                yield Missing(SCRIPT_CLASS, custom.class_fqn)


def _advice(operators: Mapping[str, str], names: Mapping[str, Sequence[str]]) -> str:
    """Return what to do about operators and other things that are missing."""
    # A trusted function outside of torch names its module.
    modules = {text.rpartition(".")[0] for text in operators if not text.startswith("torch.")}
    modules |= {name.partition(":")[0] for name in names.get(ENUM, ())}
    namespaces = [text.removeprefix(OPS).partition(".")[0] for text in operators if text.startswith("torch.")]
    custom = sorted(set(namespaces) - _OWN)
    parts = [f"the module that registers {namespace}::…" for namespace in custom]
    parts += [f"the module {module}" for module in sorted(modules)]
    parts += ["the libraries that register the script classes"] if SCRIPT_CLASS in names else []
    advice = [f"Before loading, import {', '.join(parts)}."] if parts else []
    if not _OWN.isdisjoint(namespaces):
        advice.append(f"torch {torch.__version__} does not have {'the others' if custom else 'them'}.")
    if FACTORY in names:
        advice.append("Factories of a defaultdict can be containers and numbers of Python only.")
    if CONTAINER in names:  # of modules; all others have placeholders
        entries = ", ".join(map(repr, names[CONTAINER][:SHOWN]))
        advice.append(f"For classes of modules among the inputs, if you trust the file, pass trust=({entries},).")
    return " ".join(advice)


def check_kernels(
    program: schema.ExportedProgram,
    scopes: Sequence[Scope],
    operators: Mapping[str, Operator],
    tables: Tables,
    trust: Set[str],
    validates: bool,
) -> None:
    """Refuse a program with a call of an unchecked kernel whose arguments the file shows to be wrong.

    Args:
        program: the program.
        scopes: its graphs, the root first.
        operators: target -> operator.
        tables: reads its payloads, those that are the file's.
        trust: operators ("aten.max_pool2d_with_indices_backward") whose calls are not judged, or "X10".
        validates: whether each call is validated in a run; if not, sizes are computed from the inputs here.

    Raises:
        OperatorError: the first such call (X10).
    """
    if "X10" in trust or not is_concerned(operators):
        return
    stored = unchanged_inputs(program.graph_module, tables)
    judged = None if validates else program
    signatures = {target: operator.signature for target, operator in operators.items()}
    for finding in kernel_findings(scopes[0], signatures.get, stored, judged):
        if finding.is_wrong and finding.operator not in trust:
            step = finding.step
            where = f"{step.where}: node {node_label(step.node, step.number)} ({step.node.target})"
            raise refused(OperatorError, f"{where}: {finding.message}", "X10", [finding.operator])
