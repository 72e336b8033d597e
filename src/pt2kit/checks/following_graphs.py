"""Calls of higher-order operators, followed into their subgraphs.

A subgraph that runs once works on the values around it. One that runs in a branch, or again and again, works on copies:
what it writes does not count outside, what it spoils does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks import reading_table, shadows
from pt2kit.checks.following import Follower
from pt2kit.checks.higher_order import CONVENTIONS
from pt2kit.checks.known_targets import higher_order_name
from pt2kit.checks.plain_calls import names_of
from pt2kit.checks.shadows import Memory, Shadow
from pt2kit.graph.argument_values import arguments, leaves
from pt2kit.graph.traversal import Scope, Step, carried, check_depth
from pt2kit.schema import ArgumentKind

_ONCE: Final = frozenset(
    (
        "invoke_subgraph", "invoke_quant", "invoke_quant_packed",
        "wrap_with_set_grad_enabled", "wrap_with_autocast", "strict_mode",
        "tag_activation_checkpoint", "wrap_activation_checkpoint", "wrap",
    )
)  # fmt: skip
"""Operators that run their subgraph once, as if it stood there."""
_BRANCHES: Final = frozenset(("cond",))
"""Operators that run one of their subgraphs once."""
_SHOWING: Final = frozenset(("print", "with_effects", "call_torchbind"))
"""Operators that do something with values beside what they return."""
_WRAPPING: Final = frozenset(("auto_functionalized", "auto_functionalized_v2"))
"""Operators that call one that writes into its arguments, on copies of them."""
_PARTS: Final = ("_size", "_stride", "_storage_offset", "_slice_dim", "_slice_start", "_slice_end")
"""How the arguments of `auto_functionalized_v2` end that make one that is written a part of a tensor."""


def run_graphs(follower: Follower, step: Step) -> None:
    """Follow a call of a higher-order operator.

    Raises:
        LimitError: subgraphs nest too deep (G11).
    """
    name = higher_order_name(step.node.target) or ""
    scopes = [check_depth(scope) for scope in carried(step)]
    if scopes and name in _ONCE and (bound := _bound(step, scopes[0].graph)) is not None:
        _set(follower, step, _run(follower, scopes[0], [follower.shadow(value) for value in bound]))
    elif scopes:
        _several(follower, step, scopes, name)
    else:
        _without_graphs(follower, step, name)


def _several(follower: Follower, step: Step, scopes: Sequence[Scope], name: str) -> None:
    """Subgraphs of which each may run, or run again with its own results."""
    operands = [value for named in step.node.inputs for value in arguments(named.arg)]
    tainted = next((value for value in operands if follower.shadow(value).unwritten), None)
    bounds = [_bound(step, scope.graph) if name in _BRANCHES else None for scope in scopes]
    results = []
    for scope, bound in zip(scopes, bounds, strict=True):
        count = len(scope.graph.inputs)
        if bound is not None:
            input_shadows = [follower.shadow(value) for value in bound]
        else:
            input_shadows = [follower.computed(step, [tainted] if tainted else []) for _ in range(count)]
            if tainted is None and name in CONVENTIONS and (inputs := _bound(step, scope.graph)) is not None:
                input_shadows = [follower.shadow(value) for value in inputs]  # for what is spoiled in them
        made = _on_copies(follower, scope, input_shadows)
        if any(shadow.memory.changed for shadow in input_shadows):
            for value in operands:
                follower.shadow(value).memory.change()
        if bound is None and (spoiled := _unwritten(made)) is not None:
            made = _on_copies(follower, scope, [spoiled] * count)  # another turn, with what this one gave
        results.append(made)
    inside = {value for bound in bounds for value in bound or operands}
    decides = next((value for value in operands if value not in inside and follower.shadow(value).unwritten), None)
    if name in _BRANCHES and decides is None and len({len(made) for made in results}) == 1:
        _set(follower, step, [_unwritten(each) or each[0] for each in zip(*results, strict=True)])
        return
    outcome = _unwritten([shadow for made in results for shadow in made])
    if outcome is None and tainted is not None:
        outcome = follower.computed(step, [tainted])
    _set(follower, step, [outcome or Shadow(Memory()) for _ in names_of(step.node.outputs)])


def _unwritten(given: Sequence[Shadow]) -> Shadow | None:
    return next((shadow for shadow in given if shadow.unwritten), None)


def _on_copies(follower: Follower, scope: Scope, inputs: Sequence[Shadow]) -> list[Shadow]:
    """The results of a graph that works on copies of its inputs; what it spoils is spoiled outside."""
    copies = [shadows.copied(shadow) for shadow in inputs]
    results = _run(follower, scope, copies)
    for outer, inner in zip(inputs, copies, strict=True):
        if inner.memory.changed:
            outer.memory.change()
        if inner.memory.spoiled and not outer.memory.spoiled:
            outer.memory.spoil(inner.memory.use)
    return [shadows.copied(result) for result in results]


def _run(follower: Follower, scope: Scope, inputs: Sequence[Shadow]) -> list[Shadow]:
    """The shadows of what a graph returns."""
    names = [next(iter(arguments(argument)), "") for argument in scope.graph.inputs]
    inner = Follower(scope, follower.find, follower.found, dict(zip(names, inputs, strict=True)), run_graphs)
    inner.run()
    return [inner.shadow(name) for name in names_of(scope.graph.outputs)]


def _bound(step: Step, graph: schema.Graph) -> list[str] | None:
    """What each input of a subgraph gets: names of values, "" for constants; None where that cannot be told."""
    entries: list[str] = []
    for named in step.node.inputs:
        if (named.name and named.kind is not ArgumentKind.POSITIONAL) or named.arg.as_graph is not UNSET:
            continue
        value = named.arg.value
        names = list(arguments(named.arg))
        if not isinstance(value, list):
            entries += names[:1] or [""]
        elif len(names) in (0, len(value)):
            entries += names or [""] * len(value)
        else:
            return None
    count = len(graph.inputs)
    return entries[len(entries) - count :] if len(entries) >= count else None


def _without_graphs(follower: Follower, step: Step, name: str) -> None:
    """An operator that calls another one, or a method of an object."""
    inputs, results = step.node.inputs, names_of(step.node.outputs)
    called = [leaf.as_operator for named in inputs for _, leaf in leaves(named.arg) if leaf.as_operator is not UNSET]
    if any(reading_table.is_source(target) for target in called):
        memory = Memory(next(iter(results), ""))
        memory.spoil(None)
        _set(follower, step, [Shadow(memory) for _ in results])
        return
    signature = follower.find(called[0]) if called else None
    written: set[str] = set()
    if name in _WRAPPING and signature is not None and not any(_makes_parts(named.name) for named in inputs):
        written = {parameter.name for parameter in signature.parameters.values() if parameter.type.is_written}
        written.add("_all_bases")
    read = [value for named in inputs if named.name not in written for value in arguments(named.arg)]
    for value in read if name not in _WRAPPING else ():
        follower.shadow(value).memory.change()  # what is called may write to it
    tainted = next((value for value in read if follower.shadow(value).unwritten), None)
    if tainted is not None and (name in _SHOWING or not results):
        follower.found.uses.append(follower.use(step, tainted))
    _set(follower, step, [follower.computed(step, [tainted] if tainted else []) for _ in results])


def _makes_parts(argument: str) -> bool:
    return argument.startswith("_") and argument.endswith(_PARTS)


def _set(follower: Follower, step: Step, results: Sequence[Shadow]) -> None:
    names = names_of(step.node.outputs)
    if len(results) != len(names):
        outcome = _unwritten(results)
        results = [outcome or Shadow(Memory()) for _ in names]
    follower.shadows.update(zip(names, results, strict=True))
