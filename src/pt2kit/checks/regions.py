"""Regions that a graph opens and closes at run time: gradients, autocast, vmap, jvp (rules X14 and G18).

Each call that opens a region has one that closes it, in the same graph and in reverse order; gradients are left on, as
a process has them. What does not keep to that leaves the process changed after the program has run (X14).

Between `_vmap_increment_nesting` and `_vmap_decrement_nesting`, `_add_batch_dim` hides a dimension of a tensor, which
all that is computed from it lacks until `_remove_batch_dim` gives it back. Behind the region torch fails on it, or
takes it for a batch of a later region (G18).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.findings import ProgramContext
from pt2kit.errors import Problem
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Scope, Step, graphs
from pt2kit.messages import quote
from pt2kit.operators.higher_order import CLOSES, FUNCTIONS, HIDES, OPENS, PREDISPATCH, SHOWS

RULE: Final = "X14"
ESCAPE_RULE: Final = "G18"
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
            yield Problem(step.where, RULE, message, "safety")


def unbalanced(scope: Scope) -> Iterator[tuple[Step, str]]:
    """Yield the nodes of one graph that open or close a region without its counterpart, each with a message."""
    opened: list[Step] = []
    gradients: list[Step] = []
    for number, node in enumerate(scope.graph.nodes):
        if node.target not in _WATCHED:
            continue
        step = Step(scope, number, node)
        if node.target == _GRADIENTS:
            gradients.append(step)
        elif node.target in _OPENS:
            if node.target == _DUAL and any(other.node.target == _DUAL for other in opened):
                yield step, "expected one level of dual numbers at a time, got a second one, where torch fails"
            opened.append(step)
        elif node.target in _CLOSES:
            if not opened or opened[-1].node.target != _CLOSES[node.target]:
                last = opened[-1].node.target if opened else "none"
                yield step, f"expected to close the region that was opened last, got {node.target} after {last}"
            else:
                opened.pop()
                if node.target in _LEVELS and not all(map(_is_first_level, node.inputs)):
                    yield step, "expected no argument but level=0, got others, where torch fails and closes nothing"
    for step in opened:
        yield step, f"expected a call in this graph that closes what {step.node.target} opens, got none"
    if gradients and (len(gradients) % 2 or not _turns_on(gradients[-1])):
        count = len(gradients)
        got = f"{count} call{'' if count == 1 else 's'}, the last of which turns them {_state(gradients[-1])}"
        yield gradients[-1], f"expected gradients to be turned off and on again in pairs, got {got}"


def _is_first_level(named: schema.NamedArgument) -> bool:
    return named.name == "level" and named.arg.as_int == 0


def _turns_on(step: Step) -> bool:
    return any(named.arg.as_bool is not UNSET and named.arg.as_bool is True for named in step.node.inputs)


def _state(step: Step) -> str:
    return "on" if _turns_on(step) else "off"


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
                    yield Problem(f"{scope.where}.nodes[{number}]", ESCAPE_RULE, _message(name))
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
                yield Problem(f"{scope.where}.outputs[{position}]", ESCAPE_RULE, _message(name))


def _message(name: str) -> str:
    return f"expected a value that is not of a region of vmap which is closed already, got {quote(name)}"
