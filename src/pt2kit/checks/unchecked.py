"""Checks of unchecked kernels' arguments (rule X10), and of uninitialized memory that a program returns (rule X11).

Unchecked kernels use indices without bounds checks, or trust sizes. `pt2kit.load_module` validates the actual arguments
of each call; what a file shows of them is literals, stored tensors that are passed on directly, and sizes: those that
the result rules compute from the inputs, else the declared ones. If that contradicts the requirement of the kernel
(`pt2kit.operators.requirements`), no run can be right.

Uninitialized memory is the result of `empty` and similar operators. Rule X11 is simple: a result of such an operator,
or a view of it, is an output of the root graph, and no call writes to it or to a view of it. `pt2kit.load_module` fills
such memory with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from pt2kit import schema
from pt2kit.checks.calls import higher_order_name, named_operators
from pt2kit.checks.findings import ProgramContext
from pt2kit.checks.stored_inputs import numbers_of
from pt2kit.dataflow.domain import Call as SizedCall
from pt2kit.dataflow.domain import Sizes, effects_of
from pt2kit.dataflow.engine import run
from pt2kit.errors import GraphError, LimitError, Problem
from pt2kit.graph.argument_values import arguments, arguments_of, plain
from pt2kit.graph.traversal import Scope, Step, graphs, root
from pt2kit.messages import quote
from pt2kit.operators import schemas
from pt2kit.operators.demands import Call, Demand, Operand
from pt2kit.operators.facts import UNKNOWN, Tensor
from pt2kit.operators.kernel_rules import find_rule, is_needed
from pt2kit.operators.metas import Symbols
from pt2kit.operators.requirements import UNINITIALIZED, Row, find_requirement, name_of
from pt2kit.operators.schemas import INPLACE_VIEW, overloads_with
from pt2kit.operators.symbolic import ARGUMENT_ERRORS
from pt2kit.package.stored import Payload
from pt2kit.schema import Layout
from pt2kit.schema.names import OPS
from pt2kit.schema.operators import Operator
from pt2kit.schema.versions import release_of
from pt2kit.symbols.polynomials import Size

Find = Callable[[str], Operator | None]
"""Target of a node -> its signature; None for what is no operator."""

_EFFECTS: Final = "with_effects"


@dataclass(frozen=True, slots=True)
class Finding:
    """A call of an unchecked kernel.

    Args:
        step: the call.
        operator: "aten.max_pool2d_with_indices_backward".
        message: what is wrong with it.
        is_wrong: the file shows that; otherwise only a run tells.
    """

    step: Step
    operator: str
    message: str
    is_wrong: bool


def _array(numbers: Sequence[Any], like: Any) -> Any:
    import numpy as np

    return np.array(numbers, dtype=np.int64)


def is_concerned(targets: Iterable[str]) -> bool:
    """Return whether a program calls an unchecked kernel."""
    return any(find_requirement(target) is not None for target in targets)


def kernel_findings(
    root: Scope, find: Find, stored: Mapping[str, Payload | None], program: schema.ExportedProgram | None = None
) -> Iterator[Finding]:
    """Yield the calls of unchecked kernels that are wrong by what the file states, and those that only a run can judge.

    Args:
        root: the root graph.
        find: target of a node -> its signature.
        stored: what the file stores for inputs that the program leaves as they are (`unchanged_inputs`).
        program: whose root graph it is, to compute sizes from its inputs; None to judge by declared sizes alone.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    symbols = Symbols()
    needed = _needed_calls(root, find, symbols)
    computed = _computed(program, needed) if program is not None and needed else {}
    known = dict(stored) if needed else {}
    for scope in graphs(root.graph, root.where):
        for number, node in enumerate(scope.graph.nodes):
            step = Step(scope, number, node)
            _forget(known, node, find)
            if id(node) in needed:
                row, declared = needed[id(node)]
                found = computed.get(id(node), [{}])
                judged = (_judge(step, row, declared, known, operands) for operands in found)
                yield from islice(filter(None, judged), 1)
            elif (name := higher_order_name(node.target)) is not None:
                yield from _passed_on(step, name, find, symbols)
        known = {}  # Names of subgraphs are others.


def _needed_calls(root: Scope, find: Find, symbols: Symbols) -> dict[int, tuple[Row, Mapping[str, Any]]]:
    """Return the calls of unchecked kernels that need a rule by their constants, by id of the node.

    Returns:
        id -> row of the kernel, and the arguments by parameter, with facts that the file declares for values.
    """
    calls: dict[int, tuple[Row, Mapping[str, Any]]] = {}
    for scope in graphs(root.graph, root.where):
        for node in scope.graph.nodes:
            if (row := find_requirement(node.target)) is not None:
                operator = find(node.target)
                declared: dict[str, Any] = dict.fromkeys(operator.parameters if operator else ())
                declared |= arguments_of(node, partial(symbols.value, scope.graph))
                if is_needed(row.requires, declared):
                    calls[id(node)] = row, declared
    return calls


def _passed_on(step: Step, name: str, find: Find, symbols: Symbols) -> Iterator[Finding]:
    """Yield unchecked kernels that a higher-order operator gets as an argument, and calls itself."""
    # Their arguments have their own names, or follow the operator and a token or type, whatever these are named.
    given = [plain(named.arg, lambda value: symbols.value(step.scope.graph, value)) for named in step.node.inputs]
    named = dict(zip([one.name for one in step.node.inputs], given, strict=True))
    for target in named_operators(step.node):
        row, operator = find_requirement(target), find(target)
        placed = dict(zip(operator.parameters if operator else (), given[2:], strict=False))
        if row is not None and any(is_needed(row.requires, given) for given in (named, placed)):
            message = f"called through higher_order.{name}, where its arguments cannot be validated"
            yield Finding(step, name_of(target), message, is_wrong=name != _EFFECTS)


def _judge(
    step: Step,
    row: Row,
    declared: Mapping[str, Any],
    known: Mapping[str, Payload | None],
    computed: Mapping[str, Any],
) -> Finding | None:
    """Return what is wrong with a call, or that only a run can judge it.

    Args:
        step: the call.
        row: of the kernel.
        declared: its arguments by parameter, with facts that the file declares for values.
        known: what the file stores for values, as far as these have not changed.
        computed: facts of the operands by parameter, as far as they were computed.
    """
    name, stored = name_of(step.node.target), _numbers(known, step.node)
    given = {key: _described(fact, computed.get(key), stored.get(key)) for key, fact in declared.items()}
    call = Call(given, _array)
    if (demand := _broken(row, call)) is not None:
        return Finding(step, name, f"{demand.argument}: expected {demand.expected}", is_wrong=True)
    if call.unknown:
        trusted = " and ".join(dict.fromkeys(call.trusted)) or "its arguments"
        return Finding(step, name, f"{trusted} only known in a run", is_wrong=False)
    return None


def _described(declared: Any, computed: Any, numbers: Any = None) -> Any:
    """Return an argument as rules take it: computed, else declared; None for what is not known.

    Args:
        declared: the argument, with facts that the file declares for values.
        computed: the same with facts that were computed.
        numbers: the elements of a tensor, if they are known.
    """
    if isinstance(declared, Tensor):
        fact = computed if isinstance(computed, Tensor) else declared
        sizes, strides = fact.sizes, declared.strides if fact.strides is None else fact.strides
        if fact.rank == declared.rank:
            sizes = tuple(
                [own if isinstance(own, int) else size for own, size in zip(sizes, declared.sizes, strict=True)]
            )
        known = None if strides is None else _whole(strides)
        return Operand(_whole(sizes), known, numbers, declared.dtype)
    if isinstance(declared, tuple):
        is_computed = isinstance(computed, (list, tuple)) and len(computed) == len(declared)
        return [_described(*pair) for pair in zip(declared, computed if is_computed else declared, strict=True)]
    if isinstance(declared, Layout):
        return declared.name
    if isinstance(declared, (int, float, str)) and not isinstance(declared, Enum):
        return declared
    return computed if type(computed) is int else None


def _whole(numbers: Sequence[Size]) -> tuple[int | None, ...]:
    return tuple([number if isinstance(number, int) else None for number in numbers])


def _broken(row: Row, call: Call) -> Demand | None:
    """Return the first demand that does not hold."""
    try:
        return next((demand for demand in find_rule(row.requires)(call) if not demand.holds), None)
    except ARGUMENT_ERRORS:  # Rule T5 reports such arguments.
        call.unknown = True
        return None


def _forget(known: dict[str, Payload | None], node: schema.Node, find: Find) -> None:
    """Remove the stored tensors that a call may write to, or whose memory it may give another name."""
    for named in node.inputs if known else ():
        if names := [name for name in arguments(named.arg) if name in known]:
            operator = find(node.target)
            parameter = None if operator is None else operator.parameters.get(named.name)
            for name in names if parameter is None or parameter.type.alias else ():
                known.pop(name, None)


def _numbers(known: Mapping[str, Payload | None], node: schema.Node) -> dict[str, Any]:
    """Return the numbers of the stored tensors that are arguments of a call, as far as they are known."""
    named_once = ((named.name, list(arguments(named.arg))) for named in node.inputs)
    return {key: numbers_of(known[names[0]]) for key, names in named_once if len(names) == 1 and names[0] in known}


class _Computing(Sizes):
    """Sizes computed from the inputs of a program, and the facts that each call of an unchecked kernel gets.

    Attributes:
        seen: id of a node -> the facts of its arguments, for each time that it is called.
    """

    def __init__(self, program: schema.ExportedProgram) -> None:
        super().__init__(program)
        self.seen: dict[int, list[Mapping[str, Any]]] = {}

    def call(self, call: SizedCall) -> Sequence[Any]:
        if find_requirement(call.target) is not None:
            self.seen.setdefault(id(call.node), []).append(call.arguments)
        return super().call(call)

    def write(self, fact: Any, call: SizedCall, parameter: str) -> Any:
        """Return the fact, or nothing if the call may give the tensor other sizes."""
        return UNKNOWN if may_resize(call, parameter) else fact


def may_resize(call: SizedCall, parameter: str) -> bool:
    """Return whether a call that writes an argument may give it other sizes, or another storage."""
    operator = schemas.find(call.target, "")
    into = None if operator is None else operator.parameters.get(parameter)
    is_result = into is not None and into.is_keyword_only  # torch resizes `out=`.
    return is_result or call.target.removeprefix(OPS) in overloads_with(INPLACE_VIEW)


def _computed(program: schema.ExportedProgram, calls: Container[int]) -> Mapping[int, Sequence[Mapping[str, Any]]]:
    """Return the facts that calls of unchecked kernels get, by node; only what leads to `calls` (ids) is analyzed."""
    graph = program.graph_module.graph
    release = release_of(program.torch_version)
    needed: set[str] = set()
    kept: list[schema.Node] = []
    for node in reversed(graph.nodes):
        results = [name for output in node.outputs for name in arguments(output)]
        is_wanted = id(node) in calls or higher_order_name(node.target) is not None
        if is_wanted or not needed.isdisjoint(results) or effects_of(node.target, release).written:
            kept.append(node)
            needed.update(name for named in node.inputs for name in arguments(named.arg))
    domain = _Computing(program)
    try:
        run(replace(graph, nodes=kept[::-1], outputs=[]), domain, release=release)
    except (GraphError, LimitError):  # rules of their own
        return {}
    return domain.seen


def text_of(finding: Finding) -> str:
    """Return the message of `check` for a call."""
    said = "torch calls" if finding.is_wrong else "torch does not validate"
    return f"{said} {quote(finding.operator)}: {finding.message}"


def uninitialized_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield the outputs of a program that may be uninitialized memory.

    Args:
        context: the program.
    """
    scope = root(context.program, context.graph_place)
    if not any(name_of(node.target) in UNINITIALIZED for node in scope.graph.nodes):
        return
    source = _sources(scope.graph, context.release)
    for position, output in enumerate(scope.graph.outputs):
        for name in arguments(output):
            if name in source:
                of = "" if source[name] == name else f", a view of {quote(source[name])}"
                message = f"returns {quote(name)}{of}, which may be uninitialized memory: nothing is written to it"
                yield Problem(f"{scope.where}.outputs[{position}]", "X11", message, "warning")


def _sources(graph: schema.Graph, release: str) -> dict[str, str]:
    """Return the values of uninitialized memory that nothing is written to -> the value that it comes from."""
    source: dict[str, str] = {}
    written: set[str] = set()
    for node in graph.nodes:
        results = [name for output in node.outputs for name in arguments(output)]
        if name_of(node.target) in UNINITIALIZED:
            source.update((name, name) for name in results)
            continue
        operator = schemas.find(node.target, release) if node.target.startswith(OPS) else None
        for named in node.inputs:
            known = [name for name in arguments(named.arg) if name in source]
            parameter = None if operator is None else operator.parameters.get(named.name)
            if parameter is None or parameter.type.is_written:
                written.update(source[name] for name in known)
            elif parameter.type.alias and known:
                source.update((name, source[known[0]]) for name in results)
    return {name: origin for name, origin in source.items() if origin not in written}
