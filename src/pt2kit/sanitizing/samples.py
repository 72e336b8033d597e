"""Sample inputs of a program as JSON values and storages, or the reason why they are more than data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pt2kit import treespec
from pt2kit.errors import PayloadError, Pt2Error, UnsupportedError
from pt2kit.package.open import Package
from pt2kit.package.pickle_free_inputs import (
    FAKE_TENSOR,
    InputValues,
    PickleFreeInputs,
    encode_values,
    read_pickle_free_inputs,
    write_index,
)
from pt2kit.pickles.reader import globals_in, is_plain, read_payload
from pt2kit.pickles.values import NamedTuple, Opaque, PickledStorage, size_items
from pt2kit.schema import ExportedProgram
from pt2kit.treespec.kinds import NAMEDTUPLE


@dataclass(frozen=True, slots=True)
class Samples:
    """The sample inputs of one program, ready to be written.

    Args:
        moved: the values and their storages.
        is_flat: whether they are the leaves of the program's tree spec, in its order.
        records: names of the records that they were read from, where those were an index and raw records.
    """

    moved: InputValues
    is_flat: bool
    records: tuple[str, ...] = ()

    @property
    def storages(self) -> tuple[PickledStorage, ...]:
        """Return the storages of the tensors, in the order of their records."""
        return self.moved.storages

    def index(self, first: int) -> bytes:
        """Return the index, if the first storage has the number `first`."""
        return write_index(self.moved, is_flat=self.is_flat, first=first)


def read_samples(package: Package, model: str, record: str | None) -> Samples | None:
    """Describe the sample inputs of a program; None where it has none. Reads no tensor.

    Args:
        package: an open package.
        model: which program.
        record: the full name of their pickle, if there is one.

    Raises:
        UnsupportedError: they hold more than data; what, is named.
        Pt2Error: they cannot be read.
    """
    data = package.archive.read(record) if record is not None else memoryview(b"")
    if not data:
        moved = read_pickle_free_inputs(package.layout, model)
        return _again(moved, package, model) if moved else None
    where = package.relative(record or "")
    global_paths = globals_in(data, where)
    if all(path == FAKE_TENSOR or is_plain(path) for path in global_paths):
        value = read_payload(data, where, trust=frozenset((FAKE_TENSOR,)))
        return Samples(encode_values([_check_call(value, where)], where), False)
    try:
        return Samples(encode_values([_check_call(read_payload(data, where), where)], where), False)
    except UnsupportedError as error:
        leaves = _leaves(data, where, package.programs[model], frozenset(global_paths))
        if leaves is None:
            raise error from None
        return Samples(encode_values(leaves, where), True)


def _again(moved: PickleFreeInputs, package: Package, model: str) -> Samples:
    """Return sample inputs that an earlier sanitizing has moved."""
    if not moved.is_flat:
        _check_call(moved.leaves[0], moved.where)
    else:
        spec, _ = _in_spec(package.programs[model], moved.where)
        if len(moved.leaves) != (wanted := treespec.leaf_count(spec)):
            raise PayloadError(f"{moved.where}: expected {wanted} leaves, got {len(moved.leaves)}")
    return Samples(encode_values(moved.leaves, moved.where), moved.is_flat, moved.records)


def _check_call(value: Any, where: str) -> Any:
    match value:
        case (tuple(), dict(kwargs)) if type(value) is tuple and all(isinstance(key, str) for key in kwargs):
            return value
    raise PayloadError(f"{where}: expected (args, kwargs), a tuple and a dict, got a {type(value).__name__}")


def _leaves(data: memoryview, where: str, program: ExportedProgram, trust: frozenset[str]) -> list[Any] | None:
    """Return the leaves of inputs whose containers are objects of classes that the program's tree spec has; None if not
    so.

    Such objects are not written: the tree spec, which is part of the program, describes them.
    """
    try:
        spec, fields = _in_spec(program, where)
        opened = _Opened(spec, where, fields)
        value = read_payload(data, where, trust=trust)
        return treespec.flatten(value, spec, where, fields=fields, expand=opened)
    except Pt2Error:
        return None


def _in_spec(program: ExportedProgram, where: str) -> tuple[treespec.TreeSpec, treespec.FieldTable]:
    """Return the structure of a program's inputs, and the fields of the named tuples in it."""
    module = program.graph_module
    fields = {name: row.field_names for name, row in module.treespec_namedtuple_fields.items()}
    root = next((entry.signature for entry in module.module_call_graph if entry.fqn == ""), None)
    return treespec.parse(root.in_spec if root else "", where), fields


class _Opened:
    """Opens objects that stand where the spec has a container with named fields, if their state has all of these."""

    def __init__(self, spec: treespec.TreeSpec, where: str, fields: treespec.FieldTable) -> None:
        self._names: dict[str, tuple[str, ...] | None] = {}
        for node in treespec.walk(spec):
            if not node.is_leaf:
                keys = treespec.child_keys(node, where, fields)
                named = tuple(str(key.value) for key in keys) if all(key.kind == "field" for key in keys) else None
                if self._names.setdefault(str(node.type), named) != named:
                    self._names[str(node.type)] = None

    def __call__(self, kind: str, value: object) -> Sequence[object] | None:
        if isinstance(value, NamedTuple) and kind == NAMEDTUPLE:
            return value.values
        if isinstance(value, Opaque) and isinstance(value.state, dict) and not (value.args or value.kwargs):
            names = self._names.get(kind)
            state = value.state
            # A registered dataclass leaves fields out of the spec where they are None.
            if names and all(name in state for name in names):
                others = [item for name, item in state.items() if name not in names]
                return None if any(item is not None for item in others) else [state[name] for name in names]
        return size_items(kind, value)
