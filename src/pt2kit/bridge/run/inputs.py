"""Flatten the arguments of a call into the inputs of a graph, if they have the exported structure.

Source: `_check_inputs_match` in torch/export/_unlift.py and `reorder_kwargs` in torch/export/_tree_utils.py, 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pt2kit.bridge.placeholder_types import Placeholder, placeholders_in, stand_in_name
from pt2kit.bridge.torch_names import SAME_CONTAINERS, child_specs, pytree
from pt2kit.errors import InputError, UnsupportedError
from pt2kit.messages import count_text

_SHOWN: Final = 200


class InputTree:
    """Structure of a program's inputs.

    Args:
        spec: of (arguments, keyword arguments).
        names: those of the arguments, then of the keyword arguments.
    """

    def __init__(self, spec: pytree.TreeSpec, names: Sequence[str]) -> None:
        self.spec = spec
        positional, by_name = child_specs(spec)
        self.names = tuple(names)
        self.count = len(child_specs(positional))
        self.keywords = tuple(by_name.context)

    def leaves(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the values in the arguments, in the order of the structure.

        Positional arguments can be passed by their names.

        Raises:
            InputError: another structure.
        """
        by_name = self.names[len(args) : self.count]
        if kwargs and all(name in kwargs for name in by_name):
            args = (*args, *(kwargs[name] for name in by_name))
            kwargs = {name: value for name, value in kwargs.items() if name not in by_name}
        if len(args) != self.count:
            names = ", ".join(self.names[: self.count])
            extra = f" and the keywords {', '.join(kwargs)}" if kwargs else ""
            count = count_text(self.count, "positional argument")
            raise InputError(f"inputs: expected {count} ({names}), got {len(args)}{extra}")
        if kwargs.keys() != set(self.keywords):
            expected = ", ".join(self.keywords) or "none"
            noun = "argument" if len(self.keywords) == 1 else "arguments"
            raise InputError(f"inputs: expected the keyword {noun} {expected}, got {', '.join(kwargs) or 'none'}")
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
    """Return the specs of the arguments, and of the keyword arguments."""
    positional, by_name = child_specs(spec)
    return [*child_specs(positional), *child_specs(by_name)]


def _flatten(value: Any, spec: pytree.TreeSpec, where: str, found: list[Any]) -> None:
    """Append the leaves of a value, whose keys may have another order, and whose type may be a subclass."""
    inner, actual = pytree.tree_flatten(value, is_leaf=lambda part: part is not value)
    if spec == actual:
        found += inner
        return
    children = child_specs(spec)
    if spec.type is Placeholder:
        inner = _placeholder_children(inner, actual, spec, where)
        keys = spec.context[1]
    else:
        inner, keys = _children(inner, actual, spec, where)
    for part, child, key in zip(inner, children, keys, strict=True):
        _flatten(part, child, f"{where}[{key!r}]", found)


def _children(
    inner: list[Any], actual: pytree.TreeSpec, spec: pytree.TreeSpec, where: str
) -> tuple[list[Any], Sequence[Any]]:
    """Return the children of a value in the order of a container, and their keys."""
    kind, got = (SAME_CONTAINERS.get(tree_spec.type, tree_spec.type) for tree_spec in (spec, actual))
    fits = kind is got and len(child_specs(spec)) == len(inner)
    if fits and kind is dict:
        if set(spec.context) != set(actual.context):
            raise InputError(f"input {where}: expected the keys {spec.context}, got {actual.context}"[:_SHOWN])
        by_key = dict(zip(actual.context, inner, strict=True))
        return [by_key[key] for key in spec.context], spec.context
    if not fits or (spec.context != actual.context and not _is_stood_for(spec.context, actual.context)):
        raise InputError(f"input {where}: expected {_describe(spec)}, got {_got(actual, inner)}")
    return inner, range(len(inner))


def _placeholder_children(inner: list[Any], actual: pytree.TreeSpec, spec: pytree.TreeSpec, where: str) -> list[Any]:
    """Return the children of a value that is passed for a container of a class that was not registered at load time.

    The value is a placeholder, a dict with its keys, a list where these are indices, or by now an object of the
    class.
    """
    kind, keys = spec.context
    if actual.type in (Placeholder, dict):
        by_key = dict(zip(actual.context[1] if actual.type is Placeholder else actual.context, inner, strict=True))
        if by_key.keys() == set(keys):
            return [by_key[key] for key in keys]
    elif len(inner) == len(keys):
        if actual.type is list and keys == tuple(range(len(keys))):
            return inner
        known = pytree.SUPPORTED_SERIALIZED_TYPES.get(actual.type)
        if known is not None and known.serialized_type_name == kind.type:
            return inner
    names = ", ".join(map(repr, keys))
    raise InputError(
        f"input {where}: expected {kind.type}, registered with torch's pytree, or a dict with the keys {names}, "
        f"got {_got(actual, inner)}"[: 2 * _SHOWN]
    )


def _is_stood_for(kind: Any, actual: Any) -> bool:
    """Return whether a class of named tuples has the fields of one that nobody has registered."""
    return stand_in_name(kind) is not None and getattr(actual, "_fields", None) == kind._fields


def _got(actual: pytree.TreeSpec, inner: Sequence[Any]) -> str:
    return type_name(inner[0]) if actual.type is None else _describe(actual)


def _describe(spec: pytree.TreeSpec) -> str:
    """Return a description of a container, or of a value that is none."""
    children = child_specs(spec)
    if spec.type is None:
        return "a tensor or number"
    if spec.type is Placeholder:
        return f"a placeholder of {spec.context[0].type}"[:_SHOWN]
    if spec.type is pytree.namedtuple:
        name = stand_in_name(spec.context) or spec.context.__name__
        return f"a namedtuple {name} of the fields {', '.join(spec.context._fields)}"[:_SHOWN]
    context = f" {spec.context!r}" if spec.context else ""
    return f"a {spec.type.__name__}{context} of {len(children)}"[:_SHOWN]


def type_name(value: Any) -> str:
    """Return the class of a value as people write it: "float", "numpy.ndarray", "None"."""
    kind = type(value)
    if value is None or kind.__module__ == "builtins":
        return "None" if value is None else kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}"


class OutputTree:
    """Puts the outputs of a graph into their containers.

    Args:
        spec: their structure.
        read: builds it again, with classes that were registered since in place of placeholders.
    """

    def __init__(self, spec: pytree.TreeSpec, read: Callable[[], pytree.TreeSpec]) -> None:
        self._spec = spec
        self._read = read
        self._missing = placeholders_in(spec)

    def __call__(self, results: Sequence[Any]) -> Any:
        """Return the outputs in their containers.

        Raises:
            UnsupportedError: gradients are among them, which torch's module does not return, either.
        """
        if self._missing and not self._missing.isdisjoint(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE):
            self._spec = self._read()
            self._missing = placeholders_in(self._spec)
        if len(results) != self._spec.num_leaves:
            expected = f"{self._spec.num_leaves}, as the call signature has"
            message = f"outputs: expected {expected}, got {len(results)}: gradients of a joint graph"
            raise UnsupportedError(f"{message}; run the file with pt2kit.Session, which returns them")
        return pytree.tree_unflatten(results, self._spec)
