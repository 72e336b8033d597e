"""Sample inputs (`ep.example_inputs`): read from the file in the structure of the program's `in_spec`.

The pickle is read as descriptions of everything in it, known or unknown; nothing it names is imported or called. The
tree spec states which containers the values were in, so objects of registered classes are rebuilt by their
registered functions. Inputs with anything else in them are left out: a program runs without.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from pt2kit import treespec
from pt2kit.bridge.placeholder_types import PICKLED_NAME, stand_in_name
from pt2kit.bridge.read.pickled_values import MAX_DEPTH, PickledValues, load_trusted_inputs
from pt2kit.bridge.read.treespecs import find_enum
from pt2kit.bridge.torch_names import child_specs, pytree
from pt2kit.errors import IntegrityError, PayloadError, Pt2Error
from pt2kit.package.pickle_free_inputs import PickleFreeInputs
from pt2kit.pickles import values as data
from pt2kit.pickles.reader import globals_in, read_payload
from pt2kit.treespec.containers import NAMEDTUPLE, FieldTable
from pt2kit.treespec.spec import TreeSpec

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredInputs:
    """Sample inputs as the file has them.

    Args:
        payload: the record; it may be empty.
        where: its name, for messages.
        in_spec: their structure.
        fields: the fields of the named tuples in it.
        trust: globals whose objects may be rebuilt by unpickling.
        moved: the inputs if they are no pickle; used if `payload` is empty.
    """

    payload: memoryview
    where: str
    in_spec: TreeSpec
    fields: FieldTable
    trust: Set[str] = frozenset()
    moved: PickleFreeInputs | None = None


def read_sample_inputs(
    stored: StoredInputs, live: pytree.TreeSpec, sources: Sequence[int | None] | None, values: PickledValues
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the example inputs of a program.

    Args:
        stored: the inputs in the file.
        live: their structure in the classes of this process.
        sources: for each leaf of `live` the leaf of the stored structure that it is, None for one that the file does
            not have; None where the two are the same.
        values: makes live values.

    Returns:
        Arguments and keyword arguments, or None if there are none, or none that can be rebuilt (the log has the
        reason).
    """
    if not stored.payload and stored.moved is None:
        return None
    where = stored.where
    try:
        trusted = None
        if sources is None and stored.payload:
            trusted = load_trusted_inputs(stored.payload, where, stored.trust, values.devices)
        if isinstance(trusted, tuple) and len(trusted) == 2:
            return trusted
        made = [values.live(leaf) for leaf in _leaves(stored, live)]
    except IntegrityError:
        raise
    except Pt2Error as error:
        _LOG.warning("sample inputs are left out: %s", error)
        return None
    if sources is not None:
        made = [None if source is None else made[source] for source in sources]
    try:
        args, kwargs = pytree.tree_unflatten(made, live)
    except Exception as error:  # noqa: BLE001 - The constructor of a library's container may raise anything.
        what = type(error).__name__
        _LOG.warning("sample inputs are left out: a container could not be built: %s: %s", what, error)
        return None
    return args, kwargs


def _leaves(stored: StoredInputs, live: pytree.TreeSpec) -> Sequence[Any]:
    """Return the leaves of the stored structure, and set the pickled names of placeholder classes in `live`."""
    where, moved = stored.where, stored.moved
    if moved is not None and moved.is_flat:
        if len(moved.leaves) != (wanted := treespec.leaf_count(stored.in_spec)):
            raise PayloadError(f"{moved.where}: leaves: expected {wanted}, got {len(moved.leaves)}")
        return moved.leaves
    if moved is not None:
        described = moved.leaves[0]
    else:
        described = read_payload(stored.payload, where, trust=frozenset(globals_in(stored.payload, where)))
    expand = _Expand(stored.in_spec, where, stored.fields)
    leaves = treespec.flatten(_plain_keys(described), stored.in_spec, where, fields=stored.fields, expand=expand)
    nodes = (node for node in treespec.walk(stored.in_spec) if node.type == NAMEDTUPLE)
    opened = [treespec.namedtuple_name(node, where) for node in nodes]
    _note_pickled_names(live, dict(zip(opened, expand.named_tuples, strict=True)))
    return leaves


def _note_pickled_names(live: pytree.TreeSpec, pickled: Mapping[str | None, str]) -> None:
    todo = [live]
    while todo:
        spec = todo.pop()
        todo.extend(child_specs(spec))
        name = stand_in_name(spec.context)
        if name in pickled:
            setattr(spec.context, PICKLED_NAME, pickled[name])


def _plain_keys(value: Any, depth: int = 0) -> Any:
    """Return the same description, with the enum members among the keys of dicts as tree specs have them."""
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        items = [(_key(key), _plain_keys(item, depth + 1)) for key, item in value.items()]
        return OrderedDict(items) if isinstance(value, OrderedDict) else dict(items)
    if type(value) in (list, tuple):
        return type(value)(_plain_keys(item, depth + 1) for item in value)
    return value


def _key(key: Any) -> Any:
    """Return a dict key; an enum member is pickled as a call of its class with its value."""
    if isinstance(key, data.Opaque) and len(key.args) == 1:
        fqn = f"{key.cls.module}:{key.cls.name}"
        for member in find_enum(fqn) or ():
            if type(member.value) is type(key.args[0]) and member.value == key.args[0]:
                return treespec.EnumKey(fqn, member.name)
    return key


class _Expand:
    """Opens described objects that the spec has as containers: named tuples, and objects by their fields."""

    def __init__(self, spec: TreeSpec, where: str, fields: FieldTable) -> None:
        self.named_tuples: list[str] = []
        """The pickled name of each named tuple that was opened, in the order of `treespec.walk`."""
        self._names = treespec.names_of_fields(spec, where, fields)

    def __call__(self, kind: str, value: object) -> Sequence[object] | None:
        if isinstance(value, data.NamedTuple) and kind == NAMEDTUPLE:
            self.named_tuples.append(value.class_name)
            return value.values
        if isinstance(value, data.Opaque) and isinstance(value.state, dict):
            names = self._names.get(kind)
            if names and all(name in value.state for name in names):
                return [value.state[name] for name in names]
        return data.size_items(kind, value)
