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
from pt2kit.checks.subject import Subject
from pt2kit.errors import Problem
from pt2kit.graph import Step
from pt2kit.schema import ArgumentKind

_HIGHER_ORDER: Final = "torch.ops.higher_order."

Counts = Sequence[int]
"""How many values each positional argument of a call holds."""


@dataclass(frozen=True, slots=True)
class Convention:
    """How an operator calls its subgraphs.

    Args:
        graphs: which positional arguments are subgraphs.
        arguments: how many positional arguments there are at least.
        takes: counts of the arguments -> how many values each subgraph takes.
        gives: index into `graphs` of the subgraph whose results are those of the call; None where they are others.
    """

    graphs: tuple[int, ...]
    arguments: int
    takes: Callable[[Counts], int]
    gives: int | None = 0


def _rest(start: int) -> Callable[[Counts], int]:
    return lambda counts: sum(counts[start:])


def _at(*positions: int) -> Callable[[Counts], int]:
    return lambda counts: sum(counts[position] for position in positions)


CONVENTIONS: Final[Mapping[str, Convention]] = MappingProxyType(
    {
        "cond": Convention((1, 2), 4, _at(3)),
        "while_loop": Convention((0, 1), 4, _at(2, 3), gives=1),
        "while_loop_stack_output": Convention((0, 1), 4, _at(2, 3), gives=None),
        "map_impl": Convention((0,), 3, _at(1, 2)),
        "scan": Convention((0,), 4, _at(1, 2, 3)),
        "associative_scan": Convention((0,), 3, lambda counts: 2 * counts[1] + counts[2]),
        "invoke_subgraph": Convention((0,), 2, _rest(2)),
        "wrap_with_set_grad_enabled": Convention((1,), 2, _rest(2)),
        "wrap_with_autocast": Convention((4,), 5, _rest(5)),
        "strict_mode": Convention((0,), 2, _at(1)),
        "tag_activation_checkpoint": Convention((0,), 1, _rest(1)),
        "wrap_activation_checkpoint": Convention((0,), 1, _rest(1)),
        "wrap": Convention((0,), 1, _rest(1)),
    }
)
"""Name of a higher-order operator -> its convention.

Source: torch/_higher_order_ops, 2.13; the same in the files of all earlier releases.
"""


def higher_order_problems(subject: Subject) -> Iterator[Problem]:
    """Iterate calls that pass other numbers of values than their subgraphs take or give.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for step in subject.steps():
        if step.node.target.startswith(_HIGHER_ORDER):
            convention = CONVENTIONS.get(step.node.target.removeprefix(_HIGHER_ORDER))
            if convention is not None:
                yield from _check(step, convention)


def _check(step: Step, convention: Convention) -> Iterator[Problem]:
    node = step.node
    # Options that go by name are not for the subgraph.
    given = [named.arg for named in node.inputs if not named.name or named.kind is ArgumentKind.POSITIONAL]
    if len(given) < convention.arguments:
        message = f"expected at least {convention.arguments} arguments of {_name(node)}, got {len(given)}"
        yield Problem(f"{step.where}.inputs", "T7", message)
        return
    graphs: list[schema.Graph] = []
    for position in convention.graphs:
        argument = given[position]
        if argument.as_graph is UNSET:
            message = f"expected a subgraph as argument {position} of {_name(node)}, got {argument.type}"
            yield Problem(f"{step.where}.inputs[{position}]", "T7", message)
            return
        graphs.append(argument.as_graph.graph)
    passed = convention.takes([_count(argument) for argument in given])
    for position, graph in zip(convention.graphs, graphs, strict=True):
        if len(graph.inputs) != passed:
            message = (
                f"expected a subgraph that takes {passed} values, as {_name(node)} passes, got one that takes "
                f"{len(graph.inputs)}"
            )
            yield Problem(f"{step.where}.inputs[{position}].arg.as_graph.graph.inputs", "T7", message)
    if convention.gives is not None:
        yield from _results(step, graphs, convention.gives)


def _results(step: Step, graphs: Sequence[schema.Graph], gives: int) -> Iterator[Problem]:
    node = step.node
    given = sum(_count(output) for output in graphs[gives].outputs)
    got = sum(_count(output) for output in node.outputs)
    if got != given:
        message = f"expected {given} results of {_name(node)}, as many as its subgraph gives, got {got}"
        yield Problem(f"{step.where}.outputs", "T7", message)
    if _name(node) == "cond":
        others = [sum(_count(output) for output in graph.outputs) for graph in graphs]
        if len(set(others)) > 1:
            message = f"expected branches with equally many results, got {' and '.join(map(str, others))}"
            yield Problem(f"{step.where}.inputs", "T7", message)


def _count(argument: schema.Argument) -> int:
    """How many values an argument holds: the entries of a list, else one."""
    held: Any = argument.value
    return len(held) if isinstance(held, list) else 1


def _name(node: schema.Node) -> str:
    return node.target.removeprefix(_HIGHER_ORDER)
