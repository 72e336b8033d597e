"""The stored sample inputs -> `ep.example_inputs`: their leaves, in the structure that the program's `in_spec` has.

The pickle is read as descriptions of everything in it, known or not; nothing it names is imported or called. The tree
spec says which containers the values were in, so objects of registered classes are rebuilt by what is registered. Inputs
with anything else in them are left out: a program runs without.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from torch.utils import _pytree as pytree

from pt2kit import treespec
from pt2kit.archive import pickle_values as data
from pt2kit.archive.pickled import globals_in, read_payload
from pt2kit.bridge.read.pickled_values import PickledValues
from pt2kit.errors import Pt2Error
from pt2kit.treespec import FieldTable, TreeSpec
from pt2kit.treespec.kinds import NAMEDTUPLE

_LOG: Final = logging.getLogger(__name__)


def read_sample_inputs(
    payload: memoryview,
    where: str,
    stored: TreeSpec,
    fields: FieldTable,
    live: pytree.TreeSpec,
    values: PickledValues,
    sources: Sequence[int | None] | None = None,
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The example inputs of a program.

    Args:
        payload: the record; it may be empty.
        where: its name, for messages.
        stored: the `in_spec` of the file.
        fields: its named-tuple field table.
        live: the same structure with the classes of this process.
        values: makes live values.
        sources: for each leaf of `live` the leaf of `stored` that it is, None for one that the file does not have; None
            where they are the same.

    Returns:
        Arguments and keyword arguments, or None where there are none, or none that can be rebuilt (the log says why).
    """
    if not payload:
        return None
    try:
        described = read_payload(payload, where, trust=frozenset(globals_in(payload, where)))
        leaves = treespec.flatten(described, stored, where, fields=fields, expand=_Expand(stored, where, fields))
        made = [values.live(leaf) for leaf in leaves]
    except Pt2Error as error:
        _LOG.warning("sample inputs are left out: %s", error)
        return None
    if sources is not None:
        made = [None if source is None else made[source] for source in sources]
    args, kwargs = pytree.tree_unflatten(made, live)
    return args, kwargs


class _Expand:
    """Opens described objects that the spec has as containers: named tuples, and objects by their fields."""

    def __init__(self, spec: TreeSpec, where: str, fields: FieldTable) -> None:
        self._names: dict[str, tuple[str, ...] | None] = {}
        for node in treespec.walk(spec):
            if not node.is_leaf:
                keys = treespec.child_keys(node, where, fields)
                named = tuple(str(key.value) for key in keys) if all(key.kind == "field" for key in keys) else None
                known = self._names.setdefault(str(node.type), named)
                if known != named:
                    self._names[str(node.type)] = None

    def __call__(self, kind: str, value: object) -> Sequence[object] | None:
        if isinstance(value, data.NamedTuple) and kind == NAMEDTUPLE:
            return value.values
        if isinstance(value, data.Opaque) and isinstance(value.state, dict):
            names = self._names.get(kind)
            if names and all(name in value.state for name in names):
                return [value.state[name] for name in names]
        return None
