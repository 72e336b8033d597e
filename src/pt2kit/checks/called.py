"""Called targets of nodes: their own, and operators passed to higher-order operators, each once."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET

from pt2kit import schema
from pt2kit.checks.known_targets import higher_order_name
from pt2kit.graph.argument_values import leaves


def called_targets(nodes: Iterable[schema.Node]) -> set[str]:
    """Return the targets; a program has few different ones, so checks of targets look at each once.

    Raises:
        LimitError: dicts of arguments nest too deep (G11).
    """
    targets: set[str] = set()
    higher: set[str] = set()
    for node in nodes:
        if node.target not in targets:
            targets.add(node.target)
            if higher_order_name(node.target) is not None:
                higher.add(node.target)
        if node.target in higher:
            operators = [leaf.as_operator for named in node.inputs for _, leaf in leaves(named.arg)]
            targets.update(target for target in operators if target is not UNSET)
    return targets
