"""Module tree of a program, with the nodes, tensors and sizes of each module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pt2kit.errors import Pt2Error
from pt2kit.graph.traversal import walk
from pt2kit.node_metadata.lenience import lenient
from pt2kit.node_metadata.modules import ModuleEntry, parse_module_stack
from pt2kit.node_metadata.tree import ModuleNode, module_tree
from pt2kit.package.stored import Payload
from pt2kit.schema import ExportedProgram
from pt2kit.text.tensor_totals import NOTHING, Amount, amount_of, sum_of


@dataclass(frozen=True, slots=True)
class ModuleSummary:
    """One module and those below it.

    Args:
        name: its name in its parent; "" for the root.
        fqn: its dotted name from the root.
        type: qualified name of its class, None where the file does not show it.
        nodes: how many nodes were traced directly in it.
        tensors: full names of the parameters and buffers that it holds itself.
        own: the amount of these.
        total: the amount of these and of those of all modules below it.
        children: its submodules.
    """

    name: str
    fqn: str
    type: str | None
    nodes: int
    tensors: tuple[str, ...]
    own: Amount
    total: Amount
    children: tuple[ModuleSummary, ...]


def summarize_modules(program: ExportedProgram, tensors: Mapping[str, Payload]) -> ModuleSummary | None:
    """Build the module tree of a program; None if the file's module metadata cannot be read.

    Args:
        program: its nodes say in which modules they were traced.
        tensors: parameters and buffers by name.
    """
    stacks = _stacks(step.node.metadata.get("nn_module_stack", "") for step in walk(program))
    fqns = [entry.fqn for entry in program.graph_module.module_call_graph]
    try:
        root = module_tree(stacks, fqns, tensors)
    except Pt2Error:
        return None
    return _with_sizes(root, {name: amount_of(payload) for name, payload in tensors.items()})


def _stacks(texts: Iterable[str]) -> Iterable[tuple[ModuleEntry, ...]]:
    """Yield the module stacks of nodes; few differ, so each text is parsed once."""
    known: dict[str, tuple[ModuleEntry, ...]] = {}
    for text in texts:
        if text not in known:
            known[text] = lenient(parse_module_stack, text) or ()
        yield known[text]


def _with_sizes(node: ModuleNode, amounts: Mapping[str, Amount]) -> ModuleSummary:
    """Add the sizes of all modules; trees are at most `node_metadata.tree.MAX_MODULE_DEPTH` deep."""
    children = tuple(_with_sizes(child, amounts) for child in node.children)
    own = sum_of(amounts.get(name, NOTHING) for name in node.parameters)
    total = own + sum_of(child.total for child in children)
    return ModuleSummary(node.name, node.fqn, node.type, node.nodes, node.parameters, own, total, children)
