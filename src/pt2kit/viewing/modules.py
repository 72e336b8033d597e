"""Module calls of nodes, from their `nn_module_stack`; or guessed from the parameters they use if a file has no stacks.

A guess puts a node that uses parameters into their module, and the nodes between two such nodes into the module that
contains both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pt2kit.graph.argument_values import arguments
from pt2kit.node_metadata.lenience import lenient
from pt2kit.node_metadata.modules import parse_module_stack
from pt2kit.node_metadata.tree import MAX_MODULE_DEPTH, NO_MODULE, module_fqn
from pt2kit.schema import Graph, Node

REPEATED_CALL: Final = re.compile(r"@\d+(?=\W*$)")


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a module on the way from the root to a node.

    Args:
        name: its name in the caller, with the number of a repeated call: "relu@1".
        fqn: its dotted name from the root, without that number.
        type: qualified name of its class; "" if the file does not name it.
    """

    name: str
    fqn: str
    type: str


def module_calls(text: str) -> tuple[ModuleCall, ...] | None:
    """Return the module calls that a node's `nn_module_stack` names, outermost first; None if it names none at all.

    Containers between two calls (the `layers` of `layers.0`) are calls too, of no known type.
    """
    entries = lenient(parse_module_stack, text) if text else None
    if not entries or all(entry.path == NO_MODULE for entry in entries):
        return None
    calls, before = list[ModuleCall](), ""
    for entry in entries:
        fqn = module_fqn(entry.path)
        if entry.path == NO_MODULE or fqn in ("", before):
            continue
        inside = not before or fqn.startswith(f"{before}.")
        *outer, name = fqn.removeprefix(f"{before}.").split(".") if inside else [fqn]
        repeated = REPEATED_CALL.search(entry.key) or REPEATED_CALL.search(entry.path)
        calls += named_calls(outer, before)
        calls.append(ModuleCall(f"{name}{repeated.group() if repeated else ''}", fqn, entry.type))
        before = fqn
    return tuple(calls[:MAX_MODULE_DEPTH])


def root_type(text: str) -> str:
    """Return the class of the root module that a stack names; "" if it names none."""
    entries = lenient(parse_module_stack, text) or ()
    return next((entry.type for entry in entries if entry.path != NO_MODULE and not module_fqn(entry.path)), "")


def named_calls(parts: Sequence[str], before: str = "") -> list[ModuleCall]:
    """Return a call for each part of a dotted name of which nothing else is known."""
    calls = list[ModuleCall]()
    for part in parts[:MAX_MODULE_DEPTH]:
        before = f"{before}.{part}" if before else part
        calls.append(ModuleCall(part, before, ""))
    return calls


def guessed_modules(graph: Graph, owners: Mapping[str, str]) -> list[str]:
    """Return a module for each node of a graph that names none.

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
    """Return the module that contains all parameters of a node; None if it uses none."""
    names = [owners[name] for named in node.inputs for name in arguments(named.arg) if name in owners]
    return None if not names else common(*names)


def common(first: str, *others: str) -> str:
    """Return the dotted name that several begin with."""
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
