"""Sample inputs: a torch.save file read as `(args, kwargs)`, plain containers with tensor views in them.

The pickle is read as data. The program's tree spec supplies what it lacks: the field names of named tuples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec import Struct

from pt2kit import schema, treespec
from pt2kit.errors import (
    GraphError,
    JsonError,
    LimitError,
    PayloadError,
    SchemaError,
    UnsupportedError,
    VersionError,
    attempt,
)
from pt2kit.package.pickle_free_inputs import PickleFreeInputs
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import NamedTuple, Opaque, Size, TensorLike, size_items
from pt2kit.tensors.pickled import from_pickled
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
    if (
        any(isinstance(one, NamedTuple) for one in _everything(value))
        and (call := _by_tree_spec(value, where, program(), convert)) is not None
    ):
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
    match value:
        case tuple((tuple() as args, dict() as kwargs)) if all(isinstance(key, str) for key in kwargs):
            return args, kwargs
    raise PayloadError(f"{where}: expected (args, kwargs), a tuple and a dict, got a {type(value).__name__}")


def _by_tree_spec(value: Any, where: str, program: schema.ExportedProgram, convert: _Converter) -> Call | None:
    """Return the value in the structure that the program states; None if it states another one."""
    with suppress(GraphError, SchemaError, JsonError, VersionError, LimitError):
        spec, fields = in_spec(program, where)
        leaves = treespec.flatten(value, spec, where, fields=fields, expand=open_container)
        built: Any = treespec.unflatten([convert(leaf) for leaf in leaves], spec, where, fields=fields)
        return attempt(check_call, built, where)
    return None


def in_spec(program: schema.ExportedProgram, where: str) -> tuple[treespec.TreeSpec, treespec.FieldTable]:
    """Return the structure of a program's inputs, and the fields of the named tuples in it."""
    module = program.graph_module
    fields = {name: row.field_names for name, row in module.treespec_namedtuple_fields.items()}
    root = next((entry.signature for entry in module.module_call_graph if entry.fqn == ""), None)
    return treespec.parse(root.in_spec if root else "", f"{where}: in_spec"), fields


def open_container(kind: str, value: object) -> Sequence[object] | None:
    """Return the children of a described named tuple or size where a tree spec has a container; None for others."""
    if isinstance(value, NamedTuple) and kind in (NAMEDTUPLE, value.class_name):
        return value.values
    return size_items(kind, value)


def _everything(value: Any) -> Iterator[Any]:
    """Yield a value and everything in its containers, in order; shared containers are looked into once."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        yield current
        if (children := _children(current)) and id(current) not in seen:
            seen.add(id(current))
            stack += reversed(children)


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
    views: dict[int, Any] = field(default_factory=dict)
    memo: dict[int, Any] = field(default_factory=dict)

    def __call__(self, value: Any) -> Any:
        for leaf in _everything(value):
            if isinstance(leaf, TensorLike) and id(leaf) not in self.views:
                name = f"sample input {len(self.views)}"
                self.views[id(leaf)] = from_pickled(leaf, name=name, where=self.where)
            elif isinstance(leaf, Size):
                self.memo[id(leaf)] = leaf.sizes
            elif isinstance(leaf, Struct) and not isinstance(leaf, NamedTuple | TensorLike):
                self.memo[id(leaf)] = leaf
        self.memo |= self.views
        return deepcopy(value, self.memo)
