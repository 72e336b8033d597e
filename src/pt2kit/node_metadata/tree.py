"""Module tree of a program, from module stacks of nodes, module names and parameter names.

A stack says how the traced code reached a module, which differs by release: `L['self'].mid.n`, `L['self'].d['a-b']`,
`getattr(L['fn'], '0')`, `mid.n`, `_export_root`. `module_fqn` gives the one dotted name for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pt2kit.errors import LimitError
from pt2kit.node_metadata.modules import ModuleEntry

MAX_MODULE_DEPTH = 64  # real models nest about ten deep; deeper modules keep their dotted name as one name
MAX_MODULES = 200_000

# Entries of nodes that torch made itself, outside every module.
NO_MODULE = "_empty_nn_module_stack_from_metadata_hook"
_EXPORT_ROOT = "_export_root"

_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_HEAD = re.compile(rf"((?:getattr\()*)L\[(?:{_STRING})\]")
_STEP = re.compile(rf"\.([^.\[\](),'\"]+)|\[(\d+|{_STRING})\]|, ?({_STRING})\)")
_REPEATED_CALL = re.compile(r"@\d+")


@dataclass(frozen=True, slots=True)
class ModuleNode:
    """One module of the tree.

    Args:
        name: its name in its parent; "" for the root.
        fqn: its dotted name from the root.
        type: qualified name of its class, None where no stack shows it.
        children: its submodules, in first-seen order.
        parameters: full names of the parameters and buffers that it holds itself, in the given order.
        nodes: how many nodes were traced directly in it.
    """

    name: str
    fqn: str
    type: str | None
    children: tuple[ModuleNode, ...] = ()
    parameters: tuple[str, ...] = ()
    nodes: int = 0


@dataclass(slots=True)
class _Draft:
    name: str
    type: str | None = None
    children: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    nodes: int = 0


def module_fqn(path: str) -> str:
    """Return the dotted name of a module from the path in a stack entry; "" for the root.

    A path that is no expression of traced code is a dotted name already. Repeated calls of one module ("mid@1") count
    as it.
    """
    names = _expression_names(path)
    fqn = path if names is None else ".".join(names)
    if fqn == _EXPORT_ROOT:
        return ""
    return _REPEATED_CALL.sub("", fqn.removeprefix(f"{_EXPORT_ROOT}."))


def module_tree(
    stacks: Iterable[Sequence[ModuleEntry]], fqns: Iterable[str] = (), parameters: Iterable[str] = ()
) -> ModuleNode:
    """Build the module tree of a program.

    Args:
        stacks: the module stack of every node, in graph order.
        fqns: names from the module call graph.
        parameters: full names of parameters and buffers.

    Returns:
        The root. Every name's parents are in the tree, seen or not.

    Raises:
        LimitError: more than `MAX_MODULES` modules.

    Cost: linear in nodes times stack depth; names of one path are worked out once.
    """
    drafts = {"": _Draft("")}
    names: dict[str, str] = {}
    keys: dict[str, str] = {}
    for stack in stacks:
        innermost = None
        for entry in stack:
            if entry.path == NO_MODULE:
                continue
            if entry.path not in names:
                names[entry.path] = _ensure(drafts, module_fqn(entry.path))
            innermost = names[entry.path]
            keys.setdefault(entry.key, innermost)
            if drafts[innermost].type is None:
                drafts[innermost].type = entry.type
        if innermost is not None:
            drafts[innermost].nodes += 1
    for fqn in fqns:
        _ensure(drafts, module_fqn(fqn))
    for name in parameters:
        owner = name.rpartition(".")[0]
        fqn = keys[owner] if owner in keys and owner not in drafts else _ensure(drafts, owner)
        drafts[fqn].parameters.append(name)
    return _freeze(drafts)


def _ensure(drafts: dict[str, _Draft], fqn: str) -> str:
    """Add a module and its parents to the drafts, and return its key."""
    if fqn in drafts:
        return fqn
    parts = fqn.split(".", MAX_MODULE_DEPTH - 1)
    parent = ""
    for i, name in enumerate(parts):
        full = ".".join(parts[: i + 1])
        if full not in drafts:
            if len(drafts) >= MAX_MODULES:
                raise LimitError(f"module tree: expected at most {MAX_MODULES} modules, got more (at {full[:80]!a})")
            drafts[full] = _Draft(name)
            drafts[parent].children.append(full)
        parent = full
    return fqn


def _freeze(drafts: dict[str, _Draft]) -> ModuleNode:
    done: dict[str, ModuleNode] = {}
    for fqn, draft in reversed(drafts.items()):  # children stand after their parents
        children = tuple(done[child] for child in draft.children)
        done[fqn] = ModuleNode(draft.name, fqn, draft.type, children, tuple(draft.parameters), draft.nodes)
    return done[""]


def _expression_names(path: str) -> list[str] | None:
    """Return the names along an expression like `getattr(L['self'].blocks, '0').mlp`; None if the path is none."""
    head = _HEAD.match(path)
    if head is None:
        return None
    unclosed = head.group(1).count("getattr(")
    names: list[str] = []
    position = head.end()
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return None
        attribute, item, closing = step.groups()
        if closing is not None:
            unclosed -= 1
        if unclosed < 0:
            return None
        names.append(attribute or _unquoted(item or closing))
        position = step.end()
    return names if unclosed == 0 else None


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] in "'\"" else text
