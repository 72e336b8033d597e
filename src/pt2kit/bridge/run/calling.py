"""Calling convention of a program's module, from its signature, its tree specs and its guards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch

from pt2kit import schema
from pt2kit.bridge.placeholder_types import Placeholder
from pt2kit.bridge.read.checked import Checked
from pt2kit.bridge.read.module_calls import WHERE
from pt2kit.bridge.run.conditions import Condition, Conditions, Input, guard_condition, read_source
from pt2kit.bridge.run.inputs import InputTree, OutputTree, map_children
from pt2kit.bridge.run.module import Convention
from pt2kit.bridge.torch_names import child_specs, pytree
from pt2kit.errors import GraphError
from pt2kit.signature.specs import InputKind
from pt2kit.symbols.guards import Source, parse_guard

Path = tuple[Any, ...]


def convention_of(program: schema.ExportedProgram, checked: Checked, call: Any, examples: Any) -> Convention:
    """Return the calling convention of a program.

    Args:
        program: has the ranges of its symbols.
        checked: the program, checked.
        call: the live signature of its root: tree specs, and names of arguments.
        examples: its example inputs; None where it has none, and then torch's own module has no guards either.

    Raises:
        GraphError: a guard over something that is no input.
    """
    tree = InputTree(call.in_spec, _names(call))
    graph = checked.module.graph
    specs = checked.signature.input_specs
    arguments = [graph.inputs[index] for index, spec in enumerate(specs) if spec.kind is InputKind.USER_INPUT]
    paths = _paths(tree, examples)
    inputs = [Input(_path_text(path), argument, path) for path, argument in zip(paths, arguments, strict=False)]
    written = Conditions(inputs, graph, program.range_constraints, is_guarded=examples is not None)
    conditions = list(written.found)
    if examples is not None:
        conditions += [_guard(text, inputs, f"$.guards_code[{n}]") for n, text in enumerate(checked.guards)]
    modules = frozenset(type(leaf) for leaf in pytree.tree_leaves(examples) if isinstance(leaf, torch.nn.Module))
    out_spec, where = checked.specs[0][1], f"{WHERE}[0].signature.out_spec"
    outputs = OutputTree(call.out_spec, lambda: checked.tree_specs.read(out_spec, where))
    return Convention(tree, conditions, outputs, modules)


def _names(call: Any) -> list[str]:
    """Return the names of the arguments, then of the keyword arguments.

    Source: `_get_codegen` in torch/export/_unlift.py, 2.13.
    """
    positional, by_name = child_specs(call.in_spec)
    if call.forward_arg_names:
        return list(call.forward_arg_names)
    return [*(f"arg_{index}" for index in range(len(child_specs(positional)))), *by_name.context]


def _paths(tree: InputTree, examples: Any) -> list[Path]:
    """Return the path to each value from the names of the arguments, through the example inputs if there are some."""
    if examples is not None:
        args, kwargs = examples
        by_name: Any = dict(zip(tree.names, (*args, *(kwargs[name] for name in tree.keywords)), strict=True))
    else:
        # Not by an object of the structure: constructors of containers may inspect their arguments.
        return [
            (name, *path)
            for name, child in zip(tree.names, map_children(tree.spec), strict=True)
            for path in _spec_paths(child)
        ]
    return [tuple(map(_step, path)) for path, _ in pytree.tree_leaves_with_path(by_name)]


def _spec_paths(spec: pytree.TreeSpec) -> list[Path]:
    """Return the path to each leaf of a structure, from its description alone."""
    children = child_specs(spec)
    if spec.type is None:
        return [()]
    context = spec.context
    steps: Sequence[Any] = range(len(children))
    if spec.type is Placeholder:
        kind, steps = context
        steps = [(step,) for step in steps] if kind.has_fields else steps
    elif spec.type is pytree.namedtuple or pytree.is_namedtuple_class(spec.type):
        steps = [(name,) for name in getattr(context, "_fields", steps)]
    else:
        keys = context[1] if spec.type is defaultdict and isinstance(context, list) and len(context) == 2 else context
        if isinstance(keys, (list, tuple)) and len(keys) == len(children):
            steps = keys
    return [(step, *path) for step, child in zip(steps, children, strict=True) for path in _spec_paths(child)]


def _step(key: Any) -> Any:
    """Return a step on a path as guards have it: an index or key, or (name,) for an attribute."""
    if isinstance(key, pytree.SequenceKey):
        return key.idx
    return (key.name,) if isinstance(key, pytree.GetAttrKey) else getattr(key, "key", None)


def _path_text(path: Path) -> str:
    return str(path[0]) + "".join(
        f".{step[0]}" if isinstance(step, tuple) and len(step) == 1 else f"[{step!r}]" for step in path[1:]
    )


def _guard(text: str, inputs: Sequence[Input], where: str) -> Condition:
    guard = parse_guard(text, where=where)
    values = {}
    for source in guard.sources:
        index = _find(source, inputs)
        if index is None:
            raise GraphError(f"{where}: expected references to inputs, got {source.text[:80]!a}")
        values[source.text] = read_source(source.what, index, source.index)
    return guard_condition(text, guard.expr, values)


def _find(source: Source, inputs: Sequence[Input]) -> int | None:
    """Return the input that a guard refers to: by its index in the list of all, or by its path.

    Source: `_force_ep_signature_match` and `_force_gm_signature_match` in torch/export/_unlift.py, 2.13.
    """
    path = source.path
    if len(path) == 2 and path[0] == "flat_args" and isinstance(path[1], int):
        return path[1] if path[1] < len(inputs) else None
    paths = [user_input.path for user_input in inputs]
    if path in paths:
        return paths.index(path)
    if len(path) >= 2 and isinstance(path[1], int) and (joined := (f"{path[0]}_{path[1]}", *path[2:])) in paths:
        return paths.index(joined)
    return None
