"""The outputs a node declares -> the values they become: the node itself, or one getitem node for each of several.

fx nodes have one value each. A call with several results has a tuple, or a list, and each result that the file names is
an `operator.getitem` node on it. The value of the call itself then holds the descriptions of all of them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET
from torch import fx

from pt2kit import schema
from pt2kit.bridge.read.append import append_call
from pt2kit.bridge.read.results import LISTS, result_entries, single_name, value_name
from pt2kit.bridge.read.scope import Scope
from pt2kit.bridge.serialized_names import StoredName
from pt2kit.bridge.torch_names import called_name, rename
from pt2kit.errors import GraphError


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
    if len(outputs) == 1 and not unpack and outputs[0].type in LISTS:
        described = _items(scope, node, result_entries(outputs[0]), meta)
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
        if arm in LISTS:
            item = _getitem(scope, node, index, None)
            value: Any = _items(scope, item, result_entries(output), meta)
            item.meta["val"] = value
        elif arm == "as_none":
            item = _getitem(scope, node, index, "as_none")
            value = item.meta["val"] = None
        else:
            name = value_name(output)
            if name is None:
                raise GraphError(f"{scope.place}: outputs[{index}]: expected a named value, got {arm}")
            item = _getitem(scope, node, index, name)
            value = scope.define(name, item)
        item.meta.update(meta)
        described.append(value)
    return described


def _getitem(scope: Scope, node: fx.Node, index: int, name: str | None) -> fx.Node:
    return append_call(scope.graph, operator.getitem, (node, index), name=name)
