"""Validation of a plain tree against the frozen table of its version: whether it conforms, and what does not.

Trees are in their canonical form (see `encoding`): every field written out, unions with one key, infinities as strings,
a range without an end as None whatever the release wrote.

Predicates of a version's types are the fast part: whether a tree conforms to the frozen table. A predicate does not say
why not: `misfits` walks again for that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

from pt2kit.errors import LimitError, SchemaError
from pt2kit.jsontext import Path, path_text
from pt2kit.messages import printable
from pt2kit.schema.fieldtable import (
    AnyOf,
    Definition,
    DictOf,
    Field,
    ListOf,
    Nullable,
    Ref,
    Scalar,
    TupleOf,
    Type,
    frozen_table,
    type_text,
)
from pt2kit.schema.wire import SPELLED_FLOATS

Predicate = Callable[[Any], bool]

_OPEN_ENDED: Final = Nullable(Scalar("int"))
_KINDS: Final[Mapping[str, type]] = {"str": str, "int": int, "float": float, "bool": bool, "bytes": str}

_LONGEST: Final = 80


def canonical_type(type_name: str, field: Field) -> Type:
    """Return the type of a field in a canonical tree: the table's, except for the ends of a range."""
    return _OPEN_ENDED if type_name == "RangeConstraint" else field.type


# One set of predicates per version; they are pure functions of a frozen table.
@functools.cache
def predicates(version: str, *, exact: bool = True) -> Mapping[str, Predicate]:
    """Return a predicate for each type, by name: whether a value is of that type.

    Args:
        version: the name of the table.
        exact: refuse the keys of structs that the table does not know.
    """
    by_name: dict[str, Predicate] = {}
    for name, definition in frozen_table(version).definitions.items():
        by_name[name] = _type_predicate(definition, version, by_name, exact)
    return MappingProxyType(by_name)


def predicate(kind: Type, version: str) -> Predicate:
    """Return a predicate: whether a value is of a type, in a version."""
    return _predicate(kind, version, predicates(version))


def _predicate(kind: Type, version: str, known: Mapping[str, Predicate]) -> Predicate:
    match kind:
        case Scalar(name):
            return SCALARS[name]
        case Ref(name):
            return known[name] if name in known else lambda value: known[name](value)
        case ListOf(item):
            entries = _all_of(item, _predicate(item, version, known))
            return lambda value: type(value) is list and entries(value)
        case DictOf(item):
            entries = _all_of(item, _predicate(item, version, known))
            return lambda value: type(value) is dict and entries(value.values())
        case Nullable(inner):
            entry = _predicate(inner, version, known)
            return lambda value: value is None or entry(value)
        case TupleOf(items):
            each = tuple(_predicate(item, version, known) for item in items)
            return lambda value: (
                type(value) is list
                and len(value) == len(each)
                and all(fits(item) for fits, item in zip(each, value, strict=True))
            )
        case AnyOf(arms):
            # An alternative has no keys that it does not know. It is looked up late: the table may be incomplete now.
            return lambda value: any(predicate(arm, version)(value) for arm in arms)


def _all_of(item: Type, entry: Predicate) -> Predicate:
    """Return a predicate on the entries of a list, or the values of a dict: whether each is of a type."""
    if (plain := plain_kind(item)) is None:
        return lambda values: all(map(entry, values))
    only = frozenset((plain,))
    return lambda values: set(map(type, values)) <= only or all(map(entry, values))


def plain_kind(kind: Type) -> type | None:
    """Return a Python type whose every value is of a type of the table; None if there is none."""
    match kind:
        case Nullable(inner):
            return plain_kind(inner)
        case Scalar(name):
            return _KINDS[name]
        case _:
            return None


def _type_predicate(definition: Definition, version: str, known: Mapping[str, Predicate], exact: bool) -> Predicate:
    if definition.kind == "enum":
        members = frozenset(member.value for member in definition.members.values())
        return lambda value: type(value) in (int, str) and value in members
    types = {key: canonical_type(definition.name, field) for key, field in definition.fields.items()}
    fields = {key: _predicate(kind, version, known) for key, kind in types.items()}
    kinds = {key: plain for key, kind in types.items() if (plain := plain_kind(kind)) is not None}
    if definition.kind == "union":
        return _union(fields, kinds)
    required = frozenset(key for key, field in definition.fields.items() if field.default is None)
    return _struct(fields, kinds, required, frozenset(fields) if exact else None)


def _struct(
    fields: Mapping[str, Predicate], kinds: Mapping[str, type], required: frozenset[str], names: frozenset[str] | None
) -> Predicate:
    entries = tuple((key, kinds.get(key), fits) for key, fits in fields.items())

    def struct(value: Any) -> bool:
        if type(value) is not dict or not required <= value.keys() or (names is not None and not value.keys() <= names):
            return False
        for key, kind, fits in entries:
            if key in value and type(entry := value[key]) is not kind and not fits(entry):
                return False
        return True

    return struct


def _union(fields: Mapping[str, Predicate], kinds: Mapping[str, type]) -> Predicate:
    def union(value: Any) -> bool:
        if type(value) is not dict or len(value) != 1:
            return False
        [(arm, content)] = value.items()
        if type(content) is kinds.get(arm):
            return True
        fits = fields.get(arm)
        return fits is not None and fits(content)

    return union


def _is_float(value: Any) -> bool:
    kind = type(value)
    return kind is float or kind is int or (kind is str and value in SPELLED_FLOATS)


def _is_of(kind: type) -> Predicate:
    return lambda value: type(value) is kind


SCALARS: Final[Mapping[str, Predicate]] = {**{name: _is_of(kind) for name, kind in _KINDS.items()}, "float": _is_float}
"""Scalar type -> whether a value is one."""


def check_tree(tree: Any, version: str, where: str, *, root: str = "") -> None:
    """Refuse a tree that does not fit the table of its version; unknown keys are accepted.

    Args:
        tree: in canonical form; not changed.
        version: the name of the table ("5.3").
        where: the record's name, for messages.
        root: the type of the tree; "" for a whole program.

    Raises:
        SchemaError: it does not; the first mismatch is named (M1).
        LimitError: nested too deep for this interpreter.

    Cost: 0.05 s for 3,000 nodes.
    """
    with within_stack(where):
        if predicates(version, exact=False)[root or frozen_table(version).root](tree):
            return
        first = next(misfits(tree, version, root=root), None)
    if first is not None:
        raise SchemaError(f"{where}: schema {version}: {first}", rule="M1")


def fits(tree: Any, version: str, *, root: str = "") -> bool:
    """Return whether a tree fits the table of a version exactly, without unknown keys; faster than `misfits`."""
    return predicates(version)[root or frozen_table(version).root](tree)


def misfits(tree: Any, version: str, *, root: str = "") -> Iterator[str]:
    """Yield a message for each place of a tree that the table of a version does not allow, in the tree's order.

    Keys that the table does not know are accepted, as by `check_tree`.
    """
    return _walk(tree, Ref(root or frozen_table(version).root), version, ())


@contextmanager
def within_stack(where: str) -> Iterator[None]:
    """Refuse a tree that this interpreter cannot traverse.

    Args:
        where: the record's name, for messages.

    Raises:
        LimitError: the block ran out of stack.
    """
    try:
        yield
    except RecursionError:
        message = f"{where}: expected a tree that fits this interpreter's stack, got one nested deeper"
        raise LimitError(message, rule="M2") from None


def _walk(value: Any, kind: Type, version: str, path: Path) -> Iterator[str]:
    match kind:
        case Ref(name):
            yield from _walk_type(value, name, version, path)
        case Nullable(inner):
            if value is not None:
                yield from _walk(value, inner, version, path)
        case ListOf(item) if isinstance(value, list):
            for index, entry in enumerate(value):
                yield from _walk(entry, item, version, (*path, index))
        case DictOf(item) if isinstance(value, dict):
            for name, entry in value.items():
                yield from _walk(entry, item, version, (*path, name))
        case TupleOf(items) if isinstance(value, list) and len(value) == len(items):
            for index, (entry, item) in enumerate(zip(value, items, strict=True)):
                yield from _walk(entry, item, version, (*path, index))
        case Scalar() | AnyOf() if predicate(kind, version)(value):
            return
        case _:
            yield _message(path, type_text(kind).replace(" or ", " | "), value)


def _walk_type(value: Any, name: str, version: str, path: Path) -> Iterator[str]:
    definition = frozen_table(version).definitions[name]
    if definition.kind == "enum":
        members = [member.value for member in definition.members.values()]
        if isinstance(value, bool) or not isinstance(value, int | str) or value not in members:
            yield _message(path, f"a member of {name}", value)
    elif not isinstance(value, dict):
        yield _message(path, name, value)
    elif definition.kind == "union" and len(value) != 1:
        yield _message(path, f"exactly one arm of {name}", ", ".join(map(str, value)) or "none")
    else:
        for field in value:
            if field in definition.fields:
                kind = canonical_type(name, definition.fields[field])
                yield from _walk(value[field], kind, version, (*path, field))
            elif definition.kind == "union":
                yield _message((*path, field), f"an arm of {name}", str(field))
        for field, described in definition.fields.items() if definition.kind == "struct" else ():
            if field not in value and described.default is None:
                yield _message(path, f"the key {printable(field, _LONGEST)} of {name}", "none")


def _message(path: Path, expected: str, value: Any) -> str:
    got = value if isinstance(value, str) else type(value).__name__ if isinstance(value, dict | list) else repr(value)
    return f"{path_text(path)}: expected {expected}, got {printable(got, _LONGEST)}"
