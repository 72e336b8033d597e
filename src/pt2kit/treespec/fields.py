"""Named tuples of a spec by their field names: the file's table, stand-in classes, inputs of a class that changed.

A file says which fields a named tuple had when it was saved. A class may since have gained, lost or reordered fields;
values are then matched by name: fields that the other side does not know are dropped, fields that it needs must be
there.
"""

from __future__ import annotations

import keyword
import unicodedata
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from pt2kit.errors import GraphError, SchemaError
from pt2kit.messages import printable
from pt2kit.treespec.kinds import MAPPINGS, NAMEDTUPLE, FieldTable, child_keys, namedtuple_fields, namedtuple_name
from pt2kit.treespec.spec import TreeSpec, leaf_count, walk

T = TypeVar("T")


def collect_fields(
    specs: Iterable[TreeSpec], where: str = "treespec", fields: FieldTable | None = None
) -> dict[str, tuple[str, ...] | None]:
    """The named tuple types that occur in specs and their field names, in first-seen order.

    Args:
        specs: any specs of one program.
        where: place, for messages.
        fields: the file's table; specs of torch 2.1 to 2.3 carry the names themselves.

    Returns:
        Type name -> field names, None where the file does not say (torch 2.4 to 2.6).

    Raises:
        SchemaError: a type that has two sets of fields, or a context that is none.
    """
    found: dict[str, tuple[str, ...] | None] = {}
    for spec in specs:
        for node in walk(spec):
            name = namedtuple_name(node, where)
            if name is None:
                continue
            names = namedtuple_fields(node, where, fields)
            if found.setdefault(name, names) != names:
                raise SchemaError(
                    f"{where}: expected one set of fields for the named tuple {printable(name)}, "
                    f"got {_listed(found[name] or ())} and {_listed(names or ())}"
                )
    return found


def stand_in(name: str, names: Sequence[str], where: str = "treespec") -> type[tuple[object, ...]]:
    """A new named tuple class in place of one that cannot be imported.

    Args:
        name: the registered type name; the class is called by its last part.
        names: its fields.
        where: place, for messages.

    Raises:
        SchemaError: a field that is not a plain identifier. `collections.namedtuple` pastes the names into source, so
        they
            are checked here first.
    """
    for field in names:
        if not _is_field(field):
            raise SchemaError(
                f"{where}: expected field names of {printable(name)} that are identifiers without a leading "
                f"underscore, got {field!a}"
            )
    plain = [unicodedata.normalize("NFKC", field) for field in names]  # what Python's own parser makes of them
    if len(set(plain)) < len(plain):
        raise SchemaError(f"{where}: expected distinct field names of {printable(name)}, got {_listed(names)}")
    last = name.rpartition(".")[2]
    class_name = last if last.isidentifier() and not keyword.iskeyword(last) else "NamedTuple"
    return namedtuple(class_name, plain, module="pt2kit.treespec.stand_in")


def adapt_values(
    values: Sequence[T],
    source: Sequence[str],
    target: Sequence[str],
    where: str,
    defaults: Mapping[str, T] | None = None,
) -> tuple[T, ...]:
    """The values of one named tuple in the order of another version of its class.

    Args:
        values: one value per name of `source`.
        source: the fields that the values have (of the class today for inputs, of the file for outputs).
        target: the fields that are wanted (of the file for inputs, of the class today for outputs).
        where: place of the value, for messages.
        defaults: values for wanted fields that are missing.

    Raises:
        GraphError: wanted fields that are neither there nor have a default; all are listed.
    """
    if len(values) != len(source):
        raise GraphError(f"{where}: expected {len(source)} values for the fields {_listed(source)}, got {len(values)}")
    by_name = {**(defaults or {}), **dict(zip(source, values, strict=True))}
    missing = [name for name in target if name not in by_name]
    if missing:
        raise GraphError(
            f"{where}: expected a named tuple with the fields {_listed(target)}, "
            f"got one with {_listed(source)}: missing {_listed(missing)}; pass a value that has them"
        )
    return tuple(by_name[name] for name in target)


def adapt_leaves(
    leaves: Sequence[T],
    received: TreeSpec,
    expected: TreeSpec,
    where: str,
    *,
    received_fields: FieldTable | None = None,
    expected_fields: FieldTable | None = None,
) -> list[T]:
    """Flat values of one structure in the order of another; fields of named tuples and the order of keys may differ.

    Args:
        leaves: the values that `received` describes.
        received: the structure of the values (of the classes of today, for inputs).
        expected: the structure that is wanted (the file's `in_spec`, for inputs).
        where: place, for messages.
        received_fields, expected_fields: field names of the named tuples on either side.

    Raises:
        GraphError: another type, another number of children, other keys, or missing fields, with the path.
    """
    if leaf_count(received) != len(leaves):
        raise GraphError(f"{where}: expected {leaf_count(received)} leaves, got {len(leaves)}")
    out: list[T] = []
    stack = [(received, expected, where, 0)]
    while stack:
        have, want, place, start = stack.pop()
        if have.type != want.type:
            raise GraphError(f"{place}: expected {_type_name(want)}, got {_type_name(have)}")
        if want.is_leaf:
            out.append(leaves[start])
            continue
        starts = _leaf_starts(have, start)
        chosen = _match_children(have, want, place, received_fields, expected_fields)
        for i, j in reversed(list(enumerate(chosen))):
            stack.append((have.children[j], want.children[i], f"{place}: child {i}", starts[j]))
    return out


def _leaf_starts(spec: TreeSpec, start: int) -> list[int]:
    starts = []
    for child in spec.children:
        starts.append(start)
        start += leaf_count(child)
    return starts


def _match_children(
    have: TreeSpec, want: TreeSpec, place: str, have_fields: FieldTable | None, want_fields: FieldTable | None
) -> Sequence[int]:
    """For every child of `want`, the index of the child of `have` that stands for it."""
    if want.type == NAMEDTUPLE:
        if namedtuple_name(have, place) != namedtuple_name(want, place):
            raise GraphError(f"{place}: expected {_type_name(want)}, got {_type_name(have)}")
        source = namedtuple_fields(have, place, have_fields)
        target = namedtuple_fields(want, place, want_fields)
        if source is not None and target is not None:
            child_keys(have, place, have_fields), child_keys(want, place, want_fields)
            return adapt_values(range(len(source)), source, target, place)
    elif want.type in MAPPINGS:
        keys = {key.value: j for j, key in enumerate(child_keys(have, place))}
        wanted = [key.value for key in child_keys(want, place)]
        if keys.keys() != set(wanted):
            raise GraphError(f"{place}: expected the keys {_listed(wanted)}, got {_listed(list(keys))}")
        return [keys[key] for key in wanted]
    if len(have.children) != len(want.children):
        raise GraphError(
            f"{place}: expected {len(want.children)} children of {_type_name(want)}, got {len(have.children)}"
        )
    return range(len(want.children))


def _type_name(spec: TreeSpec) -> str:
    if spec.is_leaf:
        return "a leaf"
    name = namedtuple_name(spec) if spec.type == NAMEDTUPLE else None
    return printable(f"{spec.type} {name}" if name else str(spec.type))


def _is_field(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def _listed(names: Sequence[object]) -> str:
    shown = ", ".join(printable(name if isinstance(name, str) else repr(name), 40) for name in names[:12])
    return f"({shown}, ... {len(names)} in all)" if len(names) > 12 else f"({shown})"
