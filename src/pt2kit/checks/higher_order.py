"""Checks of higher-order operators against their subgraphs (rule T7), and of regions of graphs (rules X14 and G18).

`pt2kit.operators.higher_order` has for each operator which of its arguments are subgraphs, what each of these gets, and
which results are those of the call. Values are counted, lists of them entry by entry.

Regions are what a graph opens and closes at run time: gradients, autocast, vmap, jvp. Each call that opens a region has
one that closes it, in the same graph and in reverse order; gradients are left on, as a process has them. What does not
keep to that leaves the process changed after the program has run (X14).

Between `_vmap_increment_nesting` and `_vmap_decrement_nesting`, `_add_batch_dim` hides a dimension of a tensor, which
all that is computed from it lacks until `_remove_batch_dim` gives it back. Behind the region torch fails on it, or
takes it for a batch of a later region (G18).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.calls import higher_order_name, singles
from pt2kit.checks.findings import ProgramContext
from pt2kit.errors import Problem
from pt2kit.graph.argument_values import arguments, plain
from pt2kit.graph.traversal import Scope, Step, graphs
from pt2kit.messages import count_text, quote
from pt2kit.operators.higher_order import (
    BRANCH,
    CLOSES,
    FUNCTIONS,
    HIDES,
    HIGHER_ORDER,
    LOOP,
    OPAQUE,
    OPENS,
    PREDISPATCH,
    RETURNS_SINGLE,
    SHOWS,
    SLICED,
    UNFOLLOWED,
    WRITING,
    Calls,
)
from pt2kit.schema.names import OPS
from pt2kit.tensors.dtypes import short_name

_Passed = Sequence[tuple[str, Any]]
"""The kind and the name of each value that a subgraph gets; of a constant, the constant."""


def _entries(argument: schema.Argument) -> _Passed | None:
    """Return the entries of an argument that is a list: "as_tensor" is the kind of those of "as_tensors", else the
    arm."""
    if not isinstance(argument.value, list):
        return None
    arm = "as_tensor" if argument.type == "as_tensors" else argument.type
    kinds = [entry.type if arm == "as_optional_tensors" else arm for entry in argument.value]
    return list(zip(kinds, plain(argument, str), strict=True))


_Error = tuple[str, str, str]
"""An error of a call: the rule, the place behind that of the node, and the message."""

_PREDICATES: Final = frozenset(("as_tensor", "as_bool", "as_sym_bool"))


def higher_order_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield calls whose numbers of operands or results differ from those of their subgraphs.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for step in context.steps():
        if (name := higher_order_name(step.node.target)) is not None:
            for rule, place, message in _errors(step.node, name, step.scope.graph):
                yield Problem(f"{step.where}{place}", rule, message)


def _errors(node: schema.Node, name: str, outer: schema.Graph) -> Iterator[_Error]:
    """Yield the errors of one call of a higher-order operator in a graph."""
    convention = HIGHER_ORDER.get(name, UNFOLLOWED)
    if convention.runs is not OPAQUE:
        yield from _subgraph_errors(node, name, outer, convention)
    elif (message := _leading(node, name)) is not None:
        yield "T7", ".inputs", message
    elif name == "auto_functionalized_v2":
        yield from _bases(node)
    if not node.is_hop_single_tensor_return and len(node.outputs) == 1 and (arm := node.outputs[0].type) not in _ALONE:
        # A tuple of results that is declared as one list: torch reads the values one by one.
        yield "T6", ".outputs[0]", f"expected one value as the only result of {quote(node.target)}, got {arm}"
    if name in RETURNS_SINGLE:
        yield from _flag_errors(node, name, RETURNS_SINGLE[name])


_ALONE: Final = frozenset(("as_none", "as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool"))
"""Arms of the only result of a higher-order operator.

Source: `deserialize_outputs` in torch/_export/serde/serialize.py, 2.13.
"""

_LEADING: Final[Mapping[str, tuple[str | None, ...]]] = MappingProxyType(
    {
        "auto_functionalized": ("as_operator",),
        "auto_functionalized_v2": ("as_operator",),
        "out_dtype": ("as_operator", "as_scalar_type"),
        "with_effects": (None, "as_operator"),
    }
)
"""Operator that calls another one -> the arms of its first arguments; None for any."""


def _leading(node: schema.Node, name: str) -> str | None:
    """Return what is wrong with the first arguments of an operator that calls another one."""
    given: list[Any] = [named.arg for named in node.inputs]
    for position, arm in enumerate(_LEADING.get(name, ())):
        got = given[position].type if position < len(given) else "none"
        if arm is not None and got != arm:
            return f"expected {arm} as argument {position} of {name}, got {got}"
        if arm == "as_operator" and not _may_call(name, target := given[position].value, given[position + 1 :]):
            return f"expected an operator with a schema as argument {position} of {name}, got {quote(target)}"
    return None


def _may_call(name: str, target: str, arguments: Sequence[schema.Argument]) -> bool:
    """Return whether an operator may call another one: of other higher-order ones, nothing checks the arguments."""
    called = higher_order_name(target)
    if called is None or name != "with_effects":
        return called is None and target.startswith((OPS, "#"))
    is_subgraph = called == "invoke_subgraph" and arguments[:1] and arguments[0].as_graph is not UNSET
    return bool(is_subgraph) or called in WRITING


def _subgraph_errors(node: schema.Node, name: str, outer: schema.Graph, convention: Calls) -> Iterator[_Error]:
    """Yield the contradictions between a call and its subgraphs."""
    # Options that go by name are not for the subgraph.
    positional = [named.arg for named in node.inputs if named.is_placed]
    if len(positional) < (least := convention.least):
        yield "T7", ".inputs", f"expected at least {count_text(least, 'argument')} of {name}, got {len(positional)}"
        return
    for position in convention.graphs:
        if (argument := positional[position]).as_graph is UNSET:
            message = f"expected a subgraph as argument {position} of {name}, got {argument.type}"
            yield "T7", f".inputs[{position}]", message
            return
    graphs: list[schema.Graph] = [positional[position].value.graph for position in convention.graphs]
    if convention.runs is BRANCH:
        yield from _predicate_errors(name, outer, positional[0])
    bound = convention.bind(positional, _entries)
    values: list[Any] = [one.value for one in bound]
    passed = [one if isinstance(one, tuple) else (one.type, plain(one, str)) for one in values]
    for position, graph in zip(convention.graphs, graphs, strict=True):
        if len(graph.inputs) != len(passed):
            expected = f"a subgraph that takes {count_text(len(passed), 'value')}, as {name} passes"
            message = f"expected {expected}, got one that takes {len(graph.inputs)}"
            yield "T7", f".inputs[{position}].arg.as_graph.graph.inputs", message
    for graph in graphs:
        yield from _input_errors(name, outer, passed, [one.role is SLICED for one in bound], graph)
    for number, (kind, _) in enumerate(passed):
        wanted = {graph.inputs[number].type for graph in graphs if len(graph.inputs) == len(passed)}
        if "as_tensor" in wanted and kind != "as_tensor":
            yield "T7", ".inputs", f"expected {name} to pass a tensor as value {number}, got {kind}"
    if convention.runs is LOOP:
        place, condition = f".inputs[{convention.graphs[0]}].arg.as_graph.graph", graphs[0]
        meta = condition.tensor_values.get(next(chain.from_iterable(map(arguments, condition.outputs)), ""))
        if not condition.is_single_tensor_return:
            yield "T7", f"{place}.is_single_tensor_return", f"expected true, as {name} asks for one value, got false"
        elif meta is not None and (meta.dtype is not schema.ScalarType.BOOL or meta.sizes):
            got = f"{short_name(meta.dtype)} of {count_text(len(meta.sizes), 'dimension')}"
            yield "T7", f"{place}.outputs", f"expected a bool without dimensions as the condition of {name}, got {got}"
    if convention.results is not None:
        yield from _result_errors(node, name, outer, graphs, convention, convention.results)


def _predicate_errors(name: str, outer: schema.Graph, predicate: schema.Argument) -> Iterator[_Error]:
    """Yield that the first argument of a call cannot select a branch."""
    if predicate.type not in _PREDICATES:
        message = f"expected a tensor or a truth value for {name} to choose by, got {predicate.type}"
        yield "T7", ".inputs[0]", message
    elif predicate.type == "as_tensor" and not singles(outer)(predicate.value.name):
        yield "T7", ".inputs[0]", f"expected a tensor of one element for {name} to choose by, got another"


def _input_errors(
    name: str, outer: schema.Graph, passed: _Passed, sliced: Sequence[bool], graph: schema.Graph
) -> Iterator[_Error]:
    """Yield operands whose dtype (T11) or sizes (T8) differ from those of the subgraph's input.

    Args:
        name: the operator.
        outer: the graph of the call.
        passed: the operands.
        sliced: of each, whether the subgraph gets slices of it, whose sizes are not compared.
        graph: the subgraph.
    """
    for (kind, value), is_sliced, taken in zip(passed, sliced, graph.inputs, strict=False):
        given = outer.tensor_values.get(value) if kind == "as_tensor" else None
        inner = graph.tensor_values.get(taken.as_tensor.name) if taken.as_tensor is not UNSET else None
        if given is not None and inner is not None and given.dtype is not inner.dtype:
            expected = f"{name} to pass {short_name(inner.dtype)} for {quote(taken.value.name)}"
            yield "T11", ".inputs", f"expected {expected}, got {short_name(given.dtype)}"
        elif given is not None and inner is not None and not is_sliced and not _may_be(given, inner):
            message = f"expected {name} to pass a tensor of the sizes of {quote(taken.value.name)}, got {quote(value)}"
            yield "T8", ".inputs", message


def _result_errors(
    node: schema.Node, name: str, outer: schema.Graph, graphs: Sequence[schema.Graph], convention: Calls, gives: int
) -> Iterator[_Error]:
    counts, got = [sum(map(_count, graph.outputs)) for graph in graphs], sum(map(_count, node.outputs))
    if got != counts[gives]:
        expected = f"{count_text(counts[gives], 'result')} of {name}, as many as its subgraph gives"
        yield "T7", ".outputs", f"expected {expected}, got {got}"
    elif not convention.is_stacked and (other := _differing(node, outer, graphs)) is not None:
        message = f"expected {quote(other)} as a subgraph gives it, got another type or other sizes declared"
        yield "T7", ".outputs", message
    yield from _flag_errors(node, name, graphs[gives].is_single_tensor_return)
    if convention.runs is BRANCH:
        if len({graph.is_single_tensor_return for graph in graphs}) > 1:
            message = "expected branches that both return a single tensor or both a list, got one of each"
            yield "T7", ".inputs", message
        if len(set(counts)) > 1:
            message = f"expected branches with equally many results, got {' and '.join(map(str, counts))}"
            yield "T7", ".inputs", message


def _differing(node: schema.Node, outer: schema.Graph, graphs: Sequence[schema.Graph]) -> str | None:
    """Return a result that the graph declares differently from a subgraph that returns it; None if there is none."""
    names = [name for output in node.outputs for name in arguments(output)]
    for graph in graphs:
        inner = [output.as_tensor.name if output.as_tensor is not UNSET else None for output in graph.outputs]
        for name, inner_name in zip(names, inner, strict=True) if len(inner) == len(names) else ():
            if (meta := outer.tensor_values.get(name)) is None:
                continue
            got = graph.tensor_values.get(inner_name) if inner_name is not None else None
            if inner_name is None or (got is not None and not _may_be(meta, got)):
                return name
    return None


def _may_be(one: schema.TensorMeta, other: schema.TensorMeta) -> bool:
    """Return whether two tensors may be the same, as far as plain numbers decide."""
    pairs = [(a.as_int, b.as_int) for a, b in zip(one.sizes, other.sizes, strict=False)]
    same = all(a == b or not isinstance(a, int) or not isinstance(b, int) for a, b in pairs)
    return one.dtype is other.dtype and len(one.sizes) == len(other.sizes) and same


def _bases(node: schema.Node) -> Iterator[_Error]:
    """Check the bases that `auto_functionalized_v2` writes to: each argument names one tensor of a list, or a part of
    it."""
    count = next((_count(named.arg) for named in reversed(node.inputs) if named.name == "_all_bases"), 0)
    for position, named in enumerate(node.inputs):
        number = named.arg.as_int
        if named.name.endswith("_base_index") and isinstance(number, int) and not 0 <= number < count:
            expected = f"the number of one of {count_text(count, 'base')} as {quote(named.name)}"
            yield "T7", f".inputs[{position}].arg", f"expected {expected}, got {str(number)[:24]}"


def _flag_errors(node: schema.Node, name: str, single: bool) -> Iterator[_Error]:
    """Yield that a node declares other results than its subgraphs have; contradictions in the node itself are left to
    G13."""
    is_certain = single or [output.type for output in node.outputs] == ["as_tensor"]
    if bool(node.is_hop_single_tensor_return) is not single and node.outputs and is_certain:
        expected, what, got = ("true", "a single tensor", "false") if single else ("false", "a list of results", "true")
        yield "T7", ".is_hop_single_tensor_return", f"expected {expected}, as {name} returns {what}, got {got}"


def _count(argument: schema.Argument) -> int:
    """Return how many values an argument holds: the entries of a list, else one."""
    value: Any = argument.value
    return len(value) if isinstance(value, list) else 1


_CLOSES: Final = {name: function.opens for name, function in FUNCTIONS.items() if function.opens}
"""Closing call of a region -> its opening call."""
_OPENS: Final = frozenset(_CLOSES.values())
_DUAL: Final = f"{PREDISPATCH}_enter_dual_level"
_LEVELS: Final = frozenset(target for target in _CLOSES if target.startswith(PREDISPATCH))
"""Closing calls of a level: with other arguments than torch writes they fail, and the level stays open."""
_GRADIENTS: Final = "torch._C._set_grad_enabled"
_WATCHED: Final = _OPENS.union(_CLOSES, (_GRADIENTS,))


def region_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield regions that a program does not close, or closes without having opened them.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for scope in graphs(context.program, context.graph_place):
        for step, message in unbalanced(scope):
            yield Problem(step.where, "X14", message, "safety")


def unbalanced(scope: Scope) -> Iterator[tuple[Step, str]]:
    """Yield the nodes of one graph that open or close a region without its counterpart, each with a message."""
    opened: list[Step] = []
    watched = [Step(scope, number, node) for number, node in enumerate(scope.graph.nodes) if node.target in _WATCHED]
    gradients = [step for step in watched if step.node.target == _GRADIENTS]
    for step in watched:
        node = step.node
        if node.target in _OPENS:
            if node.target == _DUAL and any(other.node.target == _DUAL for other in opened):
                yield step, "expected one level of dual numbers at a time, got a second one, where torch fails"
            opened.append(step)
        elif node.target in _CLOSES:
            if not opened or opened[-1].node.target != _CLOSES[node.target]:
                last = opened[-1].node.target if opened else "none"
                yield step, f"expected to close the region that was opened last, got {node.target} after {last}"
            else:
                opened.pop()
                is_first = all(named.name == "level" and named.arg.as_int == 0 for named in node.inputs)
                if node.target in _LEVELS and not is_first:
                    yield step, "expected no argument but level=0, got others, where torch fails and closes nothing"
    for step in opened:
        yield step, f"expected a call in this graph that closes what {step.node.target} opens, got none"
    if gradients and (len(gradients) % 2 or not _turns_on(gradients[-1])):
        state = "on" if _turns_on(gradients[-1]) else "off"
        got = f"{count_text(len(gradients), 'call')}, the last of which turns them {state}"
        yield gradients[-1], f"expected gradients to be turned off and on again in pairs, got {got}"


def _turns_on(step: Step) -> bool:
    return any(named.arg.as_bool is True for named in step.node.inputs)


def escape_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield, for each graph, the first use of a value outside of its region of vmap.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).

    Cost: linear in the nodes.
    """
    for scope in graphs(context.program, context.graph_place):
        if any(node.target == OPENS for node in scope.graph.nodes):
            yield from _escaped_from(scope)


def _escaped_from(scope: Scope) -> Iterator[Problem]:
    opened: list[int] = []
    regions_of: dict[str, set[int]] = {}
    for number, node in enumerate(scope.graph.nodes):
        regions: set[int] = set()
        for named in node.inputs:
            for name in arguments(named.arg):
                regions |= regions_of.get(name, set())
                if not regions <= {*opened}:
                    yield Problem(f"{scope.where}.nodes[{number}]", "G18", _message(name))
                    return
        if node.target == OPENS:
            opened.append(number)
        elif node.target == CLOSES and opened:
            opened.pop()
        elif node.target == HIDES:
            regions.update(opened[-1:])
        elif node.target == SHOWS:
            regions.difference_update(opened[-1:])
        if regions:
            regions_of.update((name, regions) for output in node.outputs for name in arguments(output))
    for position, output in enumerate(scope.graph.outputs):
        for name in arguments(output):
            if name in regions_of:
                yield Problem(f"{scope.where}.outputs[{position}]", "G18", _message(name))


def _message(name: str) -> str:
    return f"expected a value that is not of a region of vmap which is closed already, got {quote(name)}"
