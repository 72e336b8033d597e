"""Nodes -> the modules they stand in; where a file does not say, a guess from the parameters they use.

A guess puts a node that uses parameters into their module, and the nodes between two such into what both stand in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pt2kit.errors import LimitError
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import walk
from pt2kit.package.stored import Payload
from pt2kit.schema import ExportedProgram, Graph, Node
from pt2kit.text.modules import ModuleSummary, summarize_modules
from pt2kit.text.program import module_of


def stated_modules(program: ExportedProgram) -> dict[str, str]:
    """The text of each distinct module stack -> the dotted name of its innermost module.

    Raises:
        LimitError: subgraphs nest too deep.
    """
    module_by_stack: dict[str, str] = {}
    for step in walk(program):
        text = step.node.metadata.get("nn_module_stack", "")
        if text not in module_by_stack:
            module_by_stack[text] = module_of(step.node)
    return module_by_stack


def module_summary(program: ExportedProgram, tensors: Mapping[str, Payload]) -> ModuleSummary | None:
    """The tree of modules as `pt2 show` has it; None where it can't be put together."""
    try:
        return summarize_modules(program, tensors)
    except LimitError:
        return None


def guessed_modules(graph: Graph, owners: Mapping[str, str]) -> list[str]:
    """A module for each node of a graph that names none.

    Args:
        graph: its nodes, in order.
        owners: value of a parameter or buffer -> the module that holds it.
    """
    anchors = [_anchor(node, owners) for node in graph.nodes]
    following: list[str | None] = [None] * len(anchors)
    later: str | None = None
    for number in reversed(range(len(anchors))):
        following[number] = later
        later = anchors[number] if anchors[number] is not None else later
    modules, before = list[str](), None
    for anchor, after in zip(anchors, following, strict=True):
        if anchor is not None:
            before = anchor
            modules.append(anchor)
        else:
            modules.append(common(before, after) if before is not None and after is not None else "")
    return modules


def _anchor(node: Node, owners: Mapping[str, str]) -> str | None:
    """What all parameters that a node uses stand in; None where it uses none."""
    names = [owners[name] for named in node.inputs for name in arguments(named.arg) if name in owners]
    return None if not names else common(*names)


def common(first: str, *others: str) -> str:
    """The dotted name that several begin with."""
    parts: Sequence[str] = first.split(".")
    for other in others:
        pairs = zip(parts, other.split("."), strict=False)
        parts = [a for a, b in _while_equal(pairs)]
    return ".".join(parts)


def _while_equal(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for a, b in pairs:
        if a != b:
            return
        yield a, b
