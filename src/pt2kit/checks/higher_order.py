"""Calls of higher-order operators against the subgraphs that they carry: what goes in and comes out (rule T7).

`CONVENTIONS` says for each operator which of its arguments are subgraphs, what each of these takes, and what the call
gives back. Values are counted, lists of them entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.known_targets import higher_order_name
from pt2kit.checks.program_context import ProgramContext
from pt2kit.errors import Problem
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Step
from pt2kit.messages import quote
from pt2kit.schema import ArgumentKind

Arguments = Sequence[schema.Argument]
"""The positional arguments of a call."""


@dataclass(frozen=True, slots=True)
class Convention:
    """How an operator calls its subgraphs.

    Args:
        graphs: which positional arguments are subgraphs.
        arguments: how many positional arguments there are at least.
        passed: the arguments -> the kinds of the values that each subgraph gets (`_kinds`).
        gives: index into `graphs` of the subgraph whose results are those of the call; None where they are others.
        singles: indices into `graphs` of the subgraphs that return one value, not a list of them.
    """

    graphs: tuple[int, ...]
    arguments: int
    passed: Callable[[Arguments], list[str]]
    gives: int | None = 0
    singles: tuple[int, ...] = ()


def _rest(start: int) -> Callable[[Arguments], list[str]]:
    """Each argument is passed on."""
    return lambda arguments: [kind for argument in arguments[start:] for kind in _kinds(argument)]


def _lists(start: int) -> Callable[[Arguments], list[str]]:
    """The arguments that are lists are passed on, entry by entry; options stand between them."""
    return lambda arguments: [kind for argument in arguments[start:] for kind in _list_kinds(argument)]


def _list_kinds(argument: schema.Argument) -> list[str]:
    return _kinds(argument) if isinstance(argument.value, list) else []


def _kinds(argument: schema.Argument) -> list[str]:
    """The kind of each value that an argument holds: "as_tensor" for each entry of "as_tensors", else the arm."""
    value: Any = argument.value
    if not isinstance(value, list):
        return [argument.type]
    if argument.type == "as_optional_tensors":
        return [entry.type for entry in value]
    return ["as_tensor" if argument.type == "as_tensors" else argument.type] * len(value)


CONVENTIONS: Final[Mapping[str, Convention]] = MappingProxyType(
    {
        "cond": Convention((1, 2), 4, _lists(3)),
        "while_loop": Convention((0, 1), 4, _lists(2), gives=1, singles=(0,)),
        "while_loop_stack_output": Convention((0, 1), 4, _lists(2), gives=None, singles=(0,)),
        "map_impl": Convention((0,), 3, _lists(1)),
        # Up to torch 2.6 a dimension and a direction stand between the lists.
        "scan": Convention((0,), 4, _lists(1)),
        "associative_scan": Convention((0,), 3, lambda arguments: _list_kinds(arguments[1]) + _lists(1)(arguments)),
        "invoke_subgraph": Convention((0,), 2, _rest(2)),
        "wrap_with_set_grad_enabled": Convention((1,), 2, _rest(2)),
        "wrap_with_autocast": Convention((4,), 5, _rest(5)),
        "strict_mode": Convention((0,), 2, _lists(1)),
        "tag_activation_checkpoint": Convention((0,), 1, _rest(1)),
        "wrap_activation_checkpoint": Convention((0,), 1, _rest(1)),
        "wrap": Convention((0,), 1, _rest(1)),
    }
)
"""Name of a higher-order operator -> its convention.

Source: torch/_higher_order_ops, 2.13 and 2.6; the same in the files of all other releases.
"""

SINGLE: Final[Mapping[str, bool]] = MappingProxyType(
    {"out_dtype": True, "auto_functionalized": False, "auto_functionalized_v2": False, "with_effects": False}
)
"""Operators without subgraphs -> whether they return a single tensor, or a list of results."""


_PREDICATES: Final = frozenset(("as_tensor", "as_bool", "as_sym_bool"))

_SAME_RESULTS: Final = frozenset(
    (
        *("cond", "invoke_subgraph", "wrap_with_set_grad_enabled", "wrap_with_autocast", "strict_mode", "wrap"),
        *("tag_activation_checkpoint", "wrap_activation_checkpoint"),
    )
)
"""Operators whose results are those of their subgraph, as they are."""


def higher_order_problems(context: ProgramContext) -> Iterator[Problem]:
    """Iterate calls that pass other numbers of values than their subgraphs take or give.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for step in context.steps():
        name = higher_order_name(step.node.target)
        if name is not None:
            if (convention := CONVENTIONS.get(name)) is not None:
                yield from _check(step, convention)
            elif name == "out_dtype" and [n.arg.type for n in step.node.inputs[:2]] != [
                "as_operator",
                "as_scalar_type",
            ]:
                message = "expected an operator and an element type as the first arguments of out_dtype, got others"
                yield Problem(f"{step.where}.inputs", "T7", message)
            elif name == "auto_functionalized_v2":
                yield from _bases(step)
            if name in SINGLE and _contradicts(step.node, SINGLE[name]):
                yield _other_return(step, SINGLE[name])


def _check(step: Step, convention: Convention) -> Iterator[Problem]:
    node = step.node
    # Options that go by name are not for the subgraph.
    positional = [named.arg for named in node.inputs if not named.name or named.kind is ArgumentKind.POSITIONAL]
    if len(positional) < convention.arguments:
        message = f"expected at least {convention.arguments} arguments of {_name(node)}, got {len(positional)}"
        yield Problem(f"{step.where}.inputs", "T7", message)
        return
    graphs: list[schema.Graph] = []
    for position in convention.graphs:
        argument = positional[position]
        if argument.as_graph is UNSET:
            message = f"expected a subgraph as argument {position} of {_name(node)}, got {argument.type}"
            yield Problem(f"{step.where}.inputs[{position}]", "T7", message)
            return
        graphs.append(argument.as_graph.graph)
    if _name(node) == "cond" and positional[0].type not in _PREDICATES:
        message = f"expected a tensor or a truth value for cond to choose by, got {positional[0].type}"
        yield Problem(f"{step.where}.inputs[0]", "T7", message)
    passed = convention.passed(positional)
    for position, graph in zip(convention.graphs, graphs, strict=True):
        place = f"{step.where}.inputs[{position}].arg.as_graph.graph.inputs"
        if len(graph.inputs) != len(passed):
            message = (
                f"expected a subgraph that takes {len(passed)} values, as {_name(node)} passes, got one that takes "
                f"{len(graph.inputs)}"
            )
            yield Problem(place, "T7", message)
    for number, kind in enumerate(passed):
        wanted = {graph.inputs[number].type for graph in graphs if len(graph.inputs) == len(passed)}
        if "as_tensor" in wanted and kind != "as_tensor":
            message = f"expected {_name(node)} to pass a tensor as value {number}, got {kind}"
            yield Problem(f"{step.where}.inputs", "T7", message)
    for position, index in ((convention.graphs[index], index) for index in convention.singles):
        if not graphs[index].is_single_tensor_return:
            place = f"{step.where}.inputs[{position}].arg.as_graph.graph.is_single_tensor_return"
            yield Problem(place, "T7", f"expected true, as {_name(node)} asks for one value, got false")
    if convention.gives is not None:
        yield from _results(step, graphs, convention.gives)


def _results(step: Step, graphs: Sequence[schema.Graph], gives: int) -> Iterator[Problem]:
    node = step.node
    expected = sum(_count(output) for output in graphs[gives].outputs)
    got = sum(_count(output) for output in node.outputs)
    if got != expected:
        message = f"expected {expected} results of {_name(node)}, as many as its subgraph gives, got {got}"
        yield Problem(f"{step.where}.outputs", "T7", message)
    elif _name(node) in _SAME_RESULTS:
        yield from _result_metas(step, graphs)
    single = graphs[gives].is_single_tensor_return
    if _contradicts(node, single):
        yield _other_return(step, single)
    if _name(node) == "cond":
        if len({graph.is_single_tensor_return for graph in graphs}) > 1:
            message = "expected branches that both return a single tensor or both a list, got one of each"
            yield Problem(f"{step.where}.inputs", "T7", message)
        others = [sum(_count(output) for output in graph.outputs) for graph in graphs]
        if len(set(others)) > 1:
            message = f"expected branches with equally many results, got {' and '.join(map(str, others))}"
            yield Problem(f"{step.where}.inputs", "T7", message)


def _result_metas(step: Step, graphs: Sequence[schema.Graph]) -> Iterator[Problem]:
    """Results that the graph declares otherwise than the subgraphs that give them."""
    outer = [name for output in step.node.outputs for name in arguments(output)]
    for graph in graphs:
        inner = [output.value.name if output.type == "as_tensor" else None for output in graph.outputs]
        if len(inner) != len(outer):
            continue
        for name, inner_name in zip(outer, inner, strict=True):
            meta = step.scope.graph.tensor_values.get(name)
            if meta is None:
                continue
            got = graph.tensor_values.get(inner_name) if inner_name is not None else None
            if inner_name is None or (got is not None and not _may_be(meta, got)):
                message = f"expected {quote(name)} as a subgraph gives it, got another type or other sizes declared"
                yield Problem(f"{step.where}.outputs", "T7", message)
                return


def _may_be(one: schema.TensorMeta, other: schema.TensorMeta) -> bool:
    """Whether two tensors may be the same, as far as plain numbers decide."""
    pairs = [(a.as_int, b.as_int) for a, b in zip(one.sizes, other.sizes, strict=False)]
    same = all(a == b or not isinstance(a, int) or not isinstance(b, int) for a, b in pairs)
    return one.dtype is other.dtype and len(one.sizes) == len(other.sizes) and same


def _bases(step: Step) -> Iterator[Problem]:
    """What `auto_functionalized_v2` writes to: each argument says which tensor of a list it is, or is a part of."""
    call = {named.name: named.arg for named in step.node.inputs}
    count = _count(call["_all_bases"]) if "_all_bases" in call else 0
    for position, named in enumerate(step.node.inputs):
        number = named.arg.as_int
        if named.name.endswith("_base_index") and isinstance(number, int) and not 0 <= number < count:
            message = f"expected the number of one of {count} bases as {quote(named.name)}, got {str(number)[:24]}"
            yield Problem(f"{step.where}.inputs[{position}].arg", "T7", message)


def _contradicts(node: schema.Node, single: bool) -> bool:
    """Whether a node says otherwise of its results than what it calls; where it contradicts itself, G13 says so."""
    if bool(node.is_hop_single_tensor_return) is single or not node.outputs:
        return False
    return single or [output.type for output in node.outputs] == ["as_tensor"]


def _other_return(step: Step, single: bool) -> Problem:
    expected, got = ("true", "false") if single else ("false", "true")
    what = "a single tensor" if single else "a list of results"
    message = f"expected {expected}, as {_name(step.node)} returns {what}, got {got}"
    return Problem(f"{step.where}.is_hop_single_tensor_return", "T7", message)


def _count(argument: schema.Argument) -> int:
    """How many values an argument holds: the entries of a list, else one."""
    value: Any = argument.value
    return len(value) if isinstance(value, list) else 1


def _name(node: schema.Node) -> str:
    return higher_order_name(node.target) or node.target
