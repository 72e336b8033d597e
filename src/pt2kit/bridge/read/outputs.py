"""The outputs a node declares -> the values they become: the node itself, or one getitem node for each of several.

fx nodes have one value each. A call with several results has a tuple, or a list, and each result that the file names is
an `operator.getitem` node on it. The value of the call itself then holds the descriptions of all of them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET
from torch import fx

from pt2kit import schema
from pt2kit.bridge.read.scope import Scope, append_call
from pt2kit.bridge.serialized_names import StoredName
from pt2kit.bridge.torch_names import called_name, rename
from pt2kit.errors import GraphError

_LISTS: Final = frozenset(("as_tensors", "as_sym_ints", "as_sym_floats", "as_sym_bools", "as_optional_tensors"))


def single_name(outputs: list[schema.Argument]) -> str | None:
    """The name of the one value that a node with these outputs is; None if it has none, several, or a list."""
    return _name(outputs[0]) if len(outputs) == 1 else None


def name_outputs(
    scope: Scope,
    node: fx.Node,
    outputs: list[schema.Argument],
    meta: Mapping[str, Any],
    *,
    unpack: bool,
    stored: str | None,
) -> None:
    """Give a node's results their names and descriptions; `node.meta["val"]` is set if there are any.

    Args:
        scope: the graph.
        node: the node that was just made.
        outputs: what it declares.
        meta: the node's metadata, which its getitem nodes share.
        unpack: its one output is inside a tuple.
        stored: the name that the file has for the node.

    Raises:
        GraphError: an output that names no value, or one that is taken or not described.
    """
    if not outputs:
        return
    if len(outputs) == 1 and outputs[0].as_none is not UNSET:
        node.meta["val"] = None
        _rename_unused(scope, node, stored)
        return
    name = None if unpack else single_name(outputs)
    if name is not None:
        scope.define(name, node)
        return
    if len(outputs) == 1 and not unpack and outputs[0].type in _LISTS:
        described = _items(scope, node, _entries(scope, outputs[0]), meta)
    else:
        described = _items(scope, node, outputs, meta)
    node.meta["val"] = tuple(described)


def _rename_unused(scope: Scope, node: fx.Node, stored: str | None) -> None:
    """A node without a result is called after what it calls, as by torch's reader; it keeps the file's name beside."""
    called = f"{called_name(scope.graph, node.target)}_unused"
    if stored and re.fullmatch(rf"{re.escape(called)}(_\d+)?", stored):
        node.name = stored
    else:
        rename(node, called)
        if stored:
            node.name = StoredName(node.name, stored)


def _items(scope: Scope, node: fx.Node, outputs: list[schema.Argument], meta: Mapping[str, Any]) -> list[Any]:
    """Make the getitem node of each result; gives their descriptions."""
    described: list[Any] = []
    for index, output in enumerate(outputs):
        arm = output.type
        if arm in _LISTS:
            item = _getitem(scope, node, index, None)
            value: Any = _items(scope, item, _entries(scope, output), meta)
            item.meta["val"] = value
        elif arm == "as_none":
            item = _getitem(scope, node, index, "as_none")
            value = item.meta["val"] = None
        else:
            name = _name(output)
            if name is None:
                raise GraphError(f"{scope.place}: outputs[{index}]: expected a named value, got {arm}")
            item = _getitem(scope, node, index, name)
            value = scope.define(name, item)
        item.meta.update(meta)
        described.append(value)
    return described


def _getitem(scope: Scope, node: fx.Node, index: int, name: str | None) -> fx.Node:
    return append_call(scope.graph, operator.getitem, (node, index), name=name)


def _entries(scope: Scope, output: schema.Argument) -> list[schema.Argument]:
    """The entries of a list of results, as outputs of their own."""
    arm = output.type
    if arm == "as_tensors":
        return [schema.Argument(as_tensor=item) for item in output.as_tensors]  # type: ignore[union-attr]
    if arm == "as_optional_tensors":
        return [
            schema.Argument(as_none=True) if item.as_tensor is UNSET else schema.Argument(as_tensor=item.as_tensor)
            for item in output.as_optional_tensors  # type: ignore[union-attr]
        ]
    return [schema.Argument(**{_SINGLE[arm]: item}) for item in getattr(output, arm)]


_SINGLE: Final[Mapping[str, str]] = MappingProxyType(
    {"as_sym_ints": "as_sym_int", "as_sym_floats": "as_sym_float", "as_sym_bools": "as_sym_bool"}
)


def _name(output: schema.Argument) -> str | None:
    """The name of the value that an output is, or None where it names none."""
    if output.as_tensor is not UNSET:
        return output.as_tensor.name
    if output.as_custom_obj is not UNSET:
        return output.as_custom_obj.name
    for symbolic in (output.as_sym_int, output.as_sym_bool, output.as_sym_float):
        if symbolic is not UNSET:
            return None if symbolic.as_name is UNSET else symbolic.as_name
    if output.as_optional_tensor is not UNSET and output.as_optional_tensor.as_tensor is not UNSET:
        return output.as_optional_tensor.as_tensor.name
    return None
