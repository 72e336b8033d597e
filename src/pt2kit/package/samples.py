"""Sample inputs: a torch.save file read as `(args, kwargs)`, plain containers with tensor views in them.

The pickle is read as data. The program's tree spec supplies what it lacks: the field names of named tuples.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from pt2kit import schema, treespec
from pt2kit.errors import (
    GraphError,
    JsonError,
    LimitError,
    PayloadError,
    SchemaError,
    UnsupportedError,
    VersionError,
)
from pt2kit.package.pickle_free_inputs import PickleFreeInputs
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import NamedTuple, Opaque, PickledStorage, Size, TensorLike, size_items
from pt2kit.tensors.pickled import from_pickled
from pt2kit.tensors.view import Storage
from pt2kit.treespec.containers import NAMEDTUPLE

Call: TypeAlias = "tuple[tuple[Any, ...], dict[str, Any]]"
"""Arguments and keyword arguments."""


def read_sample_inputs(data: memoryview, where: str, program: Callable[[], schema.ExportedProgram]) -> Call:
    """Read sample inputs; tensors are described, their bytes read on access.

    Args:
        data: the record.
        where: its name, for messages.
        program: returns the program they belong to.

    Returns:
        Arguments and keyword arguments. Containers are new; tensors that share a storage share it here. Named tuples
        are of placeholder classes with the fields that the file states, or `NamedTuple` descriptions if it states none.

    Raises:
        UnsupportedError: they hold more than data; the message names their types.
        PayloadError: a malformed payload, or something other than arguments and keyword arguments.
        ArchiveError, LimitError: as `pickles.reader.read_payload`.
        Pt2Error: the program cannot be read, where it is needed.
    """
    value = read_payload(data, where)
    check_call(value, where)
    convert = _Converter(where)
    if _holds(value, NamedTuple) and (call := _by_tree_spec(value, where, program(), convert)) is not None:
        return call
    args, kwargs = convert(value)
    return args, kwargs


def view_pickle_free_inputs(moved: PickleFreeInputs, program: Callable[[], schema.ExportedProgram]) -> Call:
    """Return sample inputs that were moved out of their pickle.

    Args:
        moved: the result of `read_pickle_free_inputs`.
        program: returns the program they belong to.

    Returns:
        as `read_sample_inputs`; containers are new, and those of registered classes `treespec.Node` descriptions.

    Raises:
        UnsupportedError: fake tensors, which have no numbers.
        PayloadError: other leaves than the program's tree spec has.
        Pt2Error: the program cannot be read, where it is needed.
    """
    if any(isinstance(leaf, Opaque) for leaf in moved.leaves):
        raise UnsupportedError(f"{moved.where}: expected tensors with numbers, got fake ones; pt2kit.load gives those")
    spec, fields = in_spec(program(), moved.where)
    try:
        built: Any = treespec.unflatten(moved.leaves, spec, moved.where, fields=fields)
    except GraphError as error:
        raise PayloadError(str(error)) from error
    return check_call(built, moved.where)


def check_call(value: Any, where: str) -> Call:
    """Return a value as arguments and keyword arguments.

    Raises:
        PayloadError: it is something else.
    """
    if not _is_call(value):
        raise PayloadError(f"{where}: expected (args, kwargs), a tuple and a dict, got a {type(value).__name__}")
    args, kwargs = value
    return args, kwargs


def _is_call(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], tuple)
        and isinstance(value[1], dict)
        and all(isinstance(key, str) for key in value[1])
    )


def _by_tree_spec(value: Any, where: str, program: schema.ExportedProgram, convert: _Converter) -> Call | None:
    """Return the value in the structure that the program states; None if it states another one."""
    with suppress(GraphError, SchemaError, JsonError, VersionError, LimitError):
        spec, fields = in_spec(program, where)
        leaves = treespec.flatten(value, spec, where, fields=fields, expand=open_container)
        built: Any = treespec.unflatten([convert(leaf) for leaf in leaves], spec, where, fields=fields)
        return built if _is_call(built) else None
    return None


def in_spec(program: schema.ExportedProgram, where: str) -> tuple[treespec.TreeSpec, treespec.FieldTable]:
    """Return the structure of a program's inputs, and the fields of the named tuples in it."""
    module = program.graph_module
    fields = {name: row.field_names for name, row in module.treespec_namedtuple_fields.items()}
    root = next((entry.signature for entry in module.module_call_graph if entry.fqn == ""), None)
    return treespec.parse(root.in_spec if root else "", f"{where}: in_spec"), fields


def open_container(kind: str, value: object) -> Sequence[object] | None:
    """Return the children of a described named tuple or size where a tree spec has a container; None for others."""
    return value.values if kind == NAMEDTUPLE and isinstance(value, NamedTuple) else size_items(kind, value)


def _holds(value: Any, kind: type) -> bool:
    """Return whether a value of some type is anywhere in a tree of containers; shared values are visited once."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if isinstance(current, kind):
            return True
        if (children := _children(current)) and id(current) not in seen:
            seen.add(id(current))
            stack += children
    return False


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, NamedTuple):
        return value.values
    return list(value) if isinstance(value, list | tuple | deque) else ()


@dataclass(slots=True)
class _Converter:
    """Replaces the descriptions of tensors in a tree by views; shared values remain shared.

    The reader of pickles has bounded depth and size, and refused cycles. Its result is alive as long as this is used.
    """

    where: str
    storages: dict[PickledStorage, Storage] = field(default_factory=dict)
    made: dict[int, Any] = field(default_factory=dict)
    tensors: int = 0

    def __call__(self, value: Any) -> Any:
        if id(value) in self.made:
            return self.made[id(value)]
        if not (children := _children(value)):
            return self._leaf(value)
        made = self.made[id(value)] = _rebuilt(value, [self(child) for child in children])
        return made

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, TensorLike):
            name = f"sample input {self.tensors}"
            self.tensors += 1
            view = self.made[id(value)] = from_pickled(value, name=name, where=self.where, storages=self.storages)
            return view
        if isinstance(value, Size):
            return value.sizes
        # An empty container is a leaf here, and must not be shared with what was read.
        return _rebuilt(value, []) if isinstance(value, Mapping | list | deque) else value


def _rebuilt(value: Any, children: Sequence[Any]) -> Any:
    """Return a container of the same kind with other children."""
    if isinstance(value, NamedTuple):
        return NamedTuple(value.class_name, tuple(children))
    if isinstance(value, tuple):
        return tuple(children)
    if isinstance(value, deque):
        return deque(children, value.maxlen)
    if isinstance(value, list):
        return list(children)
    items = zip(islice(value, len(children)), children, strict=True)
    if isinstance(value, OrderedDict):
        return OrderedDict(items)
    if isinstance(value, defaultdict):
        return defaultdict(value.default_factory, items)
    return dict(items)
