"""What `checks` finds in the calls of a program -> the refusal of its load: prints, open regions, provenance, sizes.

Which calls those are is said by `checks`, which collects all of them; here the first of each kind ends the load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.operators import Operator
from pt2kit.bridge.read.refusals import refused
from pt2kit.bridge.read.uninitialized import signature_of
from pt2kit.checks.formats import format_problem, text_problem
from pt2kit.checks.known_targets import HIGHER_ORDER, plain_target
from pt2kit.checks.provenance import is_concerned, unvouched_calls
from pt2kit.checks.regions import unbalanced
from pt2kit.checks.sizes import size_problem
from pt2kit.checks.stored_numbers import Tables, stored_inputs
from pt2kit.errors import GraphError, LimitError, OperatorError
from pt2kit.graph.argument_values import leaves
from pt2kit.graph.traversal import Scope, node_label

_PRINT: Final = "torch.ops.aten._print.default"
_FORMAT: Final = f"{HIGHER_ORDER}print"


def check_printing(scope: Scope) -> None:
    """Refuse a graph that prints what may not be printed.

    Raises:
        OperatorError: the first node that does (X12).
    """
    targets = {node.target for node in scope.graph.nodes}
    concerned = {target for target in targets if plain_target(target).startswith((_PRINT, HIGHER_ORDER))}
    for number, node in enumerate(scope.graph.nodes if concerned else ()):
        if node.target in concerned:
            _check(node, f"{scope.where}.nodes[{number}]: node {node_label(node, number)} ({node.target})")


def _check(node: schema.Node, where: str) -> None:
    arguments = [leaf for named in node.inputs for _, leaf in leaves(named.arg)]
    operators = [leaf.as_operator for leaf in arguments if leaf.as_operator is not UNSET]
    called = {plain_target(target) for target in (node.target, *operators)}
    if not called & {_PRINT, _FORMAT}:
        return
    for leaf in arguments:
        if leaf.as_string is UNSET:
            continue
        problem = format_problem(leaf.as_string) if _FORMAT in called else text_problem(leaf.as_string)
        if problem is not None:
            raise refused(OperatorError, f"{where}: {problem}, got {leaf.as_string[:80]!a}", "X12")


def check_regions(scope: Scope) -> None:
    """Refuse a graph that would leave the process changed.

    Raises:
        OperatorError: the first node that opens or closes what is not closed or open (X14).
    """
    for step, message in unbalanced(scope):
        where = f"{step.where}: node {node_label(step.node, step.number)} ({step.node.target})"
        raise refused(OperatorError, f"{where}: {message}", "X14")


def check_provenance(
    module: schema.GraphModule,
    scopes: Sequence[Scope],
    operators: Mapping[str, Operator],
    tables: Tables,
    trust: Set[str],
) -> None:
    """Refuse a program with a call that trusts an argument which nobody vouches for.

    Args:
        module: the program.
        scopes: its graphs, the root first.
        operators: target -> operator.
        tables: gives its payloads, those that are the file's.
        trust: operators ("aten.max_pool2d_with_indices_backward") whose calls are taken as they are, or "X10".

    Raises:
        OperatorError: the first such call (X10).
    """
    if "X10" in trust or not is_concerned(operators, (node for scope in scopes for node in scope.graph.nodes)):
        return
    stored = stored_inputs(module, tables)
    for finding in unvouched_calls(scopes[0], lambda target: signature_of(operators[target]), stored):
        if finding.operator not in trust:
            node = finding.step.node
            where = f"{finding.step.where}: node {node_label(node, finding.step.number)} ({node.target})"
            raise OperatorError(
                f"{where}: {finding.message}; if you trust the file, pass trust=({finding.operator!r},)", rule="X10"
            )


def check_sizes(scope: Scope, *, unbounded: bool = False) -> None:
    """Hold every call against the sizes that the graph declares.

    Args:
        scope: the graph.
        unbounded: let calls create as much as they say.

    Raises:
        GraphError: a call and the declared sizes contradict each other (T8).
        LimitError: a call creates too much out of numbers (T9).
    """
    for number, node in enumerate(scope.graph.nodes):
        if (problem := size_problem(node, scope.graph.tensor_values)) is None:
            continue
        rule, wrong = problem
        where = f"{scope.where}.nodes[{number}]: node {node_label(node, number)} ({node.target})"
        if rule != "T9":
            raise GraphError(f"{where}: {wrong}", rule=rule)
        if not unbounded:
            raise refused(LimitError, f"{where}: {wrong}", rule)
