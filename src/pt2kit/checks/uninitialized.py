"""Memory that nothing was written to: what `empty` gives, let out before it is filled (rule X11).

The program is followed call by call (`following.py`, `following_graphs.py`) with a shadow of each tensor
(`shadows.py`), which says which of its elements were written. What is computed from unwritten elements counts as
unwritten, until nobody uses it: only what a program returns, leaves in its inputs, or shows in another way lets memory
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pt2kit.checks import known_numbers, reading_table, schemas
from pt2kit.checks.called import called_targets
from pt2kit.checks.following import Find, Follower
from pt2kit.checks.following_graphs import run_graphs
from pt2kit.checks.memory_findings import Findings
from pt2kit.checks.plain_calls import names_of
from pt2kit.checks.program_context import ProgramContext
from pt2kit.checks.shadows import Memory, Shadow
from pt2kit.checks.stored_numbers import StoredInputs, Tables, stored_inputs
from pt2kit.errors import Problem
from pt2kit.graph.traversal import Scope, graphs, root
from pt2kit.messages import quote
from pt2kit.tensors.view import TensorView


def uninitialised_problems(context: ProgramContext, tables: Tables) -> Iterator[Problem]:
    """Iterate how memory that nothing was written to gets out of a program.

    Args:
        context: the program.
        tables: gives its payloads; asked where it makes such memory.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    scope = root(context.program, context.graph_place)
    findings = find_uses(
        scope,
        lambda target: schemas.find(target, context.release),
        lambda: stored_inputs(context.program.graph_module, tables),
    )
    for use in findings.uses:
        place = f"{scope.where}.outputs[{use.position}]" if use.step is None else use.step.where
        of = "" if use.origin == use.value else f" (it comes from {quote(use.origin)})"
        said = f"{'reads' if use.step else 'returns'} {quote(use.value)}, whose memory nothing was written to{of}"
        yield Problem(place, "X11", said, "safety")


def find_uses(scope: Scope, find: Find, stored: Callable[[], StoredInputs]) -> Findings:
    """Find how memory that nothing was written to gets out of a program.

    Args:
        scope: its root graph.
        find: what says which signature an operator has.
        stored: gives the inputs that the file fills: where a program writes may be said by their numbers.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    nodes = (node for inner in graphs(scope.graph, scope.where) for node in inner.graph.nodes)
    if not any(map(reading_table.is_source, called_targets(nodes))):
        return Findings()
    known = stored()
    views = {name: payload for name, payload in known.payloads.items() if isinstance(payload, TensorView)}
    findings, changed = _follow(scope, find, views)
    changed |= known.written
    storages = {id(view.storage) for name, view in views.items() if name in changed}
    if storages:  # What a program writes to has other numbers the next time.
        kept = {name: view for name, view in views.items() if id(view.storage) not in storages}
        findings, _ = _follow(scope, find, kept)
    return findings


def _follow(scope: Scope, find: Find, stored: Mapping[str, TensorView]) -> tuple[Findings, set[str]]:
    """Follow a program: what was found, and the inputs that it may write to."""
    findings = Findings()
    inputs = names_of(scope.graph.inputs)
    first = {name: Memory(name) for name in inputs}
    shadows = {name: Shadow(memory, whole=True) for name, memory in first.items()}
    follower = Follower(scope, find, findings, shadows, run_graphs)
    storages = set()
    for name in stored:
        if name in first and (numbers := known_numbers.stored(stored[name])) is not None:
            follower.know(name, numbers, stored[name].sizes)
            storages.add(id(stored[name].storage))
    for name, view in stored.items():
        if name in first and id(view.storage) in storages:
            first[name].may_be |= {first[name]}  # other tensors over the same bytes
    follower.run()
    for position, output in enumerate(scope.graph.outputs):
        for name in names_of([output]):
            follower.let_out(name, position)
    for name in inputs:
        follower.let_out(name, 0)
    findings.uses = list({(use.step and use.step.where, use.value): use for use in findings.uses}.values())
    return findings, {name for name in inputs if first[name].changed}
