"""Modules (`nn.Module`) among a program's inputs, as nodes of tree specs; validation of its guards (`guards_code`).

export flattens an `nn.Module` input into its parameters and buffers. A tree spec then has the module's class as a
container type, which torch registers for as long as it needs it. Here such a class is found by its name only if the
caller trusts that name.

The text of each guard is proven to be only a condition on the inputs before torch runs it (rule X4).

torch writes more guards itself when a program becomes a module: from the structure of the example inputs, whose keys it
pastes into source, and from inputs that are constants, whose texts it pastes as well. `guardable` decides whether that
is safe; a program without example inputs gets no such guards.
"""

from __future__ import annotations

import logging
import math
import pkgutil
from collections.abc import Iterable, Sequence, Set
from itertools import chain
from typing import Any, Final

import torch

from pt2kit import treespec
from pt2kit.bridge.read.names import is_pasted_safely
from pt2kit.bridge.read.reading import refused
from pt2kit.bridge.torch_names import pytree, walk_specs
from pt2kit.checks.growth import MAX_OPEN_POWERS
from pt2kit.errors import LimitError, Pt2Error, SchemaError, UnsupportedError, attempt
from pt2kit.messages import count_text
from pt2kit.signature.specs import ConstantArgument, InputSpec
from pt2kit.symbols.guards import parse_guard
from pt2kit.treespec.spec import TreeSpec

_LOG: Final = logging.getLogger(__name__)
RULE: Final = "X4"


class Prototype:
    """Replaces the original module in the context of a spec, as torch's own prototype does once that is gone.

    Args:
        kind: the module's class; torch compares prototypes by it, under the name `_proto_cls`.
    """

    __slots__ = ("_proto_cls", "module")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, kind: type[torch.nn.Module]) -> None:
        self._proto_cls = kind
        self.module: torch.nn.Module | None = None
        """A module of that class, for passes that put modules together again."""

    def __eq__(self, other: object) -> bool:
        return getattr(other, "_proto_cls", None) is self._proto_cls

    def __call__(self) -> torch.nn.Module | None:
        """Return the module, if there is one."""
        return self.module


def find_module_class(name: str, trust: Set[str]) -> type[torch.nn.Module] | None:
    """Return the module class of that name, imported if need be; None if the caller does not trust it or it is none.

    Raises:
        UnsupportedError: it is trusted and cannot be imported.
    """
    if name not in trust:
        return None
    try:
        module_class = pkgutil.resolve_name(":".join(name.rsplit(".", 1)))
    except (ImportError, AttributeError, ValueError) as error:
        raise UnsupportedError(f"trust: expected {name!r} to be importable, got: {error}") from error
    return module_class if isinstance(module_class, type) and issubclass(module_class, torch.nn.Module) else None


def is_module(node: TreeSpec) -> bool:
    """Return whether a container is a module among the inputs: its context is the names of its tensors, and null."""
    stored = attempt(treespec.inner_context, node)
    return isinstance(stored, list) and len(stored) == 2 and isinstance(stored[0], list) and stored[1] is None


def attach_modules(specs: Iterable[pytree.TreeSpec], example_inputs: Any) -> None:
    """Attach the modules among the example inputs to the prototypes in live specs; the first of each class."""
    module_by_type: dict[type, torch.nn.Module] = {}
    for leaf in pytree.tree_leaves(example_inputs):
        if isinstance(leaf, torch.nn.Module):
            module_by_type.setdefault(type(leaf), leaf)
    for spec in chain.from_iterable(map(walk_specs, specs)) if module_by_type else ():
        if spec.type in module_by_type and isinstance(spec.context, list):
            for item in spec.context:
                if isinstance(item, Prototype):
                    item.module = module_by_type[spec.type]


def module_context(node: TreeSpec, kind: type[torch.nn.Module], where: str) -> list[Any]:
    """Return the live context of a module: the names of its tensors, and its prototype.

    Raises:
        SchemaError: not one name for each child.

    Source: `register_module_as_pytree_input_node` in torch/_export/utils.py, 2.13.
    """
    stored = treespec.inner_context(node, where)
    keys = stored[0] if isinstance(stored, list) and len(stored) == 2 else None
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise SchemaError(f"{where}: {node.type}: expected the names of a module's tensors as context")
    if len(keys) != len(node.children):
        raise SchemaError(f"{where}: {node.type}: expected {count_text(len(keys), 'tensor')}, got {len(node.children)}")
    return [list(keys), Prototype(kind)]


def check_guards(guards: Sequence[str], where: str = "$.guards_code") -> list[str]:
    """Return the guards of a program, each checked by the grammar of `pt2kit.symbols.parse_guard`.

    Raises:
        ExpressionError: an entry is no such condition.
        LimitError: it is larger than an expression may be.
    """
    open_powers = 0
    for index, text in enumerate(guards):
        try:
            guard = parse_guard(text, where=f"{where}[{index}]")
            open_powers += guard.open_powers
            if open_powers > MAX_OPEN_POWERS:
                raise LimitError(
                    f"{where}: expected at most {MAX_OPEN_POWERS} powers whose exponent is a size, got more"
                )
        except Pt2Error as error:
            raise refused(type(error), error.message, RULE) from error
    return list(guards)


def guardable(example_inputs: Any, inputs: Sequence[InputSpec]) -> Any:
    """Return example inputs if torch can write guards from them without changing the meaning of its source, else None.

    Args:
        example_inputs: arguments and keyword arguments, live; or None.
        inputs: of the signature; constants among them are pasted.

    Source: `_convert_guards_code_to_fn` and `_get_input_guards_for_graph` in torch/export/_unlift.py, 2.13.
    """
    if example_inputs is None:
        return None
    constants = [spec.arg.value for spec in inputs if isinstance(spec.arg, ConstantArgument)]
    steps = (step for path, _ in pytree.tree_leaves_with_path(example_inputs) for step in path)
    if all(not value or is_pasted_safely(value) for value in constants if isinstance(value, str)) and all(
        map(_is_plain_step, steps)
    ):
        return example_inputs
    _LOG.warning("example inputs are left out: torch could not write guards from their keys or constants")
    return None


def _is_plain_step(step: Any) -> bool:
    """Return whether a path step to an input is written as an index, an attribute, or a key of plain literals."""
    if isinstance(step, pytree.SequenceKey):
        return type(step.idx) is int
    if isinstance(step, pytree.GetAttrKey):
        return isinstance(step.name, str) and step.name.isidentifier()
    return isinstance(step, pytree.MappingKey) and _is_plain_key(step.key)


def _is_plain_key(key: Any) -> bool:
    if type(key) is tuple:
        return all(_is_plain_key(part) for part in key)
    if type(key) is str:
        return not key or is_pasted_safely(key)
    return key is None or type(key) in (int, bool) or (type(key) is float and math.isfinite(key))
