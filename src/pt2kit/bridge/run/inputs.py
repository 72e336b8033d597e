"""Arguments of a call -> the values that a graph takes, in its order, if they have the structure that was exported.

Source: `_check_inputs_match` in torch/export/_unlift.py and `reorder_kwargs` in torch/export/_tree_utils.py, 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pt2kit.bridge.placeholder_types import stand_in_name
from pt2kit.bridge.torch_names import SAME_CONTAINERS, child_specs, pytree
from pt2kit.errors import InputError

_SHOWN: Final = 200


class InputTree:
    """The structure of a program's inputs.

    Args:
        spec: of (arguments, keyword arguments).
        names: what the arguments are called, then the keyword arguments.
    """

    def __init__(self, spec: pytree.TreeSpec, names: Sequence[str]) -> None:
        self.spec = spec
        positional, by_name = child_specs(spec)
        self.names = tuple(names)
        self.count = len(child_specs(positional))
        self.keywords = tuple(by_name.context)

    def leaves(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """The values in the arguments, in the order of the structure.

        Raises:
            InputError: another structure.
        """
        if len(args) != self.count:
            raise InputError(f"inputs: expected {self.count} positional argument(s), got {len(args)}")
        if kwargs.keys() != set(self.keywords):
            expected = ", ".join(self.keywords) or "none"
            raise InputError(f"inputs: expected the keyword argument(s) {expected}, got {', '.join(kwargs) or 'none'}")
        inputs = (args, {name: kwargs[name] for name in self.keywords})
        leaves: list[Any]
        leaves, spec = pytree.tree_flatten(inputs)
        if spec == self.spec:
            return leaves
        leaves = []
        for value, child, name in zip((*args, *inputs[1].values()), map_children(self.spec), self.names, strict=True):
            _flatten(value, child, name, leaves)
        return leaves


def map_children(spec: pytree.TreeSpec) -> list[pytree.TreeSpec]:
    """The specs of the arguments, and of the keyword arguments."""
    positional, by_name = child_specs(spec)
    return [*child_specs(positional), *child_specs(by_name)]


def _flatten(value: Any, spec: pytree.TreeSpec, where: str, found: list[Any]) -> None:
    """Append the leaves of a value that may have its keys in another order, or be a subclass of what was exported."""
    inner, actual = pytree.tree_flatten(value, is_leaf=lambda part: part is not value)
    if spec == actual:
        found += inner
        return
    children = child_specs(spec)
    kind, got = (SAME_CONTAINERS.get(tree_spec.type, tree_spec.type) for tree_spec in (spec, actual))
    if kind is not got or len(children) != len(inner):
        raise InputError(f"input {where}: expected {_describe(spec)}, got {_describe(actual)}")
    keys: Sequence[Any] = range(len(children))
    if kind is dict:
        if set(spec.context) != set(actual.context):
            raise InputError(f"input {where}: expected the keys {spec.context}, got {actual.context}"[:_SHOWN])
        by_key = dict(zip(actual.context, inner, strict=True))
        keys = spec.context
        inner = [by_key[key] for key in keys]
    elif spec.context != actual.context and not _is_stood_for(spec.context, actual.context):
        raise InputError(f"input {where}: expected {_describe(spec)}, got {_describe(actual)}")
    for part, child, key in zip(inner, children, keys, strict=True):
        _flatten(part, child, f"{where}[{key!r}]", found)


def _is_stood_for(kind: Any, actual: Any) -> bool:
    """Whether a class of named tuples has the fields of one that nobody has registered."""
    return stand_in_name(kind) is not None and getattr(actual, "_fields", None) == kind._fields


def _describe(spec: pytree.TreeSpec) -> str:
    """A container, or what is none, in words."""
    children = child_specs(spec)
    if spec.type is None:
        return "a value"
    context = f" {spec.context!r}" if spec.context else ""
    return f"a {spec.type.__name__}{context} of {len(children)}"[:_SHOWN]


Unflatten = Callable[[Sequence[Any]], Any]


def output_tree(spec: pytree.TreeSpec) -> Unflatten:
    """What puts the outputs of a graph into their containers."""
    return lambda results: pytree.tree_unflatten(results, spec)
