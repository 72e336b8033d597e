"""Memory that nothing was written to: what `empty` gives, let out before it is filled (rule X11).

The program is followed call by call (`following.py`, `following_graphs.py`) with a shadow of each tensor
(`shadows.py`), which says which of its elements were written. What is computed from unwritten elements counts as
unwritten, until nobody uses it: only what a program returns, leaves in its inputs, or shows in another way lets memory
out.
"""

from __future__ import annotations

from collections.abc import Iterator

from pt2kit.checks import reading_table, schemas
from pt2kit.checks.called import called_targets
from pt2kit.checks.following import Find, Follower
from pt2kit.checks.following_graphs import run_graphs
from pt2kit.checks.memory_findings import Findings
from pt2kit.checks.plain_calls import names_of
from pt2kit.checks.program_context import Subject
from pt2kit.checks.shadows import Memory, Shadow
from pt2kit.errors import Problem
from pt2kit.graph.traversal import Scope, graphs, root
from pt2kit.messages import quote


def uninitialised_problems(subject: Subject) -> Iterator[Problem]:
    """Iterate how memory that nothing was written to gets out of a program.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    scope = root(subject.program, subject.graph_place)
    for use in find_uses(scope, lambda target: schemas.find(target, subject.release)).uses:
        place = f"{scope.where}.outputs[{use.position}]" if use.step is None else use.step.where
        of = "" if use.origin == use.value else f" (it comes from {quote(use.origin)})"
        said = f"{'reads' if use.step else 'returns'} {quote(use.value)}, whose memory nothing was written to{of}"
        yield Problem(place, "X11", said, "safety")


def find_uses(scope: Scope, find: Find) -> Findings:
    """Find how memory that nothing was written to gets out of a program.

    Args:
        scope: its root graph.
        find: what says which signature an operator has.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    found = Findings()
    nodes = (node for inner in graphs(scope.graph, scope.where) for node in inner.graph.nodes)
    if not any(map(reading_table.is_source, called_targets(nodes))):
        return found
    inputs = names_of(scope.graph.inputs)
    follower = Follower(scope, find, found, {name: Shadow(Memory(name), whole=True) for name in inputs}, run_graphs)
    follower.run()
    for position, output in enumerate(scope.graph.outputs):
        for name in names_of([output]):
            follower.let_out(name, position)
    for name in inputs:
        follower.let_out(name, 0)
    found.uses = list({(use.step and use.step.where, use.value): use for use in found.uses}.values())
    return found
