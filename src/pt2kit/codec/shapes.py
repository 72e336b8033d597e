"""How types of the schema nest: unknown keys of a tree (of a newer minor version) are kept with their place, and
entries of a long dict that have the same text are read only once (interned).

A graph of thousands of values has some dozens of different `TensorMeta`. In the dicts of the outer objects the text of
each entry is found without reading it (`msgspec.Raw`); each text is then read once, and all entries that have it are
one object. It is frozen, and so are its lists, as those of all objects of the schema: nobody changes one value through
another. The entries of a list can be left as text as well and read some at a time: a caller that knows what they hold
can make equal parts of them one object before all of them are read (`Share`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from types import NoneType
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import fields

from pt2kit.codec.text import parse
from pt2kit.errors import SchemaError
from pt2kit.jsontext import Path, path_text


@dataclass(frozen=True, slots=True)
class StructShape:
    """An object with known keys; `is_union` where exactly one of them may be there."""

    cls: type[Struct]
    keys: Mapping[str, Any]
    is_union: bool


@dataclass(frozen=True, slots=True)
class ListShape:
    """A list whose entries all have the type `inner`."""

    inner: Any


@dataclass(frozen=True, slots=True)
class DictShape:
    """An object with free keys whose values all have the type `inner`."""

    inner: Any


def shape(annotation: Any) -> StructShape | ListShape | DictShape | None:
    """Return how values of a type nest; None for those that contain nothing."""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return _struct_shape(annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is list:
        return ListShape(args[0])
    if origin is dict:
        return DictShape(args[1])
    nested = [inner for arg in args if (inner := shape(arg)) is not None]
    return nested[0] if nested else None


# A memo of a pure function over classes, which never change.
@functools.cache
def _struct_shape(cls: type[Struct]) -> StructShape:
    infos = fields(cls)
    is_union = bool(infos) and all(info.default is UNSET for info in infos)
    return StructShape(cls, get_type_hints(cls), is_union)


Found: TypeAlias = tuple[Path, Any]
"""The place of an unknown key, and its value as a plain tree."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Key that the schema does not have, and its value as JSON text: a tree of it could take fifty times the memory.

    Args:
        path: where the key is.
        text: its value as JSON.
    """

    path: Path
    text: bytes

    @property
    def value(self) -> Any:
        """Return the value as a plain tree."""
        return parse(self.text, str(self))

    def __str__(self) -> str:
        return path_text(self.path)


def take_out_outer(tree: Any, cls: Any, levels: int, path: Path = ()) -> list[Found]:
    """Remove from a tree, in place, the keys that its type does not have, on its outer levels alone.

    Args:
        tree: the plain tree; changed.
        cls: its type.
        levels: of objects below one another, the first of which is the tree.
        path: its location.
    """
    struct = shape(cls)
    if not levels or not isinstance(tree, dict) or not isinstance(struct, StructShape) or struct.is_union:
        return []
    own = [((*path, key), tree.pop(key)) for key in list(tree) if key not in struct.keys]
    below = (take_out_outer(tree[key], struct.keys[key], levels - 1, (*path, key)) for key in list(tree))
    return sorted((*own, *chain.from_iterable(below)), key=lambda item: item[0])


def take_out(tree: Any, known: Any) -> list[Found]:
    """Remove from a tree, in place, the keys that are not in the object made of it.

    Args:
        tree: the plain tree; changed.
        known: the plain tree of the object that it was converted to, which has all other keys.

    Cost: a comparison in C for each level, and Python only for differences.
    """
    removed: list[Found] = []
    stack: list[tuple[Any, Any, Path]] = [(tree, known, ())]
    while stack:
        node, kept, path = stack.pop()
        pairs: Any = ()
        if isinstance(node, dict):
            if node.keys() != kept.keys():
                removed += [((*path, key), node.pop(key)) for key in list(node) if key not in kept]
            pairs = ((key, child, kept[key]) for key, child in node.items())
        elif isinstance(node, list):
            pairs = zip(range(len(node)), node, kept, strict=True)
        stack += [(child, other, (*path, step)) for step, child, other in pairs if child != other]
    return sorted(removed, key=lambda item: item[0])


def put_back(tree: Any, unknown: Iterable[Unknown], *, as_text: bool = False) -> None:
    """Write unknown keys into a tree, in place, where they were.

    Args:
        tree: changed.
        unknown: the keys.
        as_text: put their text there, for the encoder, and not a tree.

    Raises:
        SchemaError: the object that held one of them is no longer there.
    """
    for item in unknown:
        holder = tree
        try:
            for step in item.path[:-1]:
                holder = holder[step]
            holder[item.path[-1]] = msgspec.Raw(item.text) if as_text else item.value
        except (KeyError, IndexError, TypeError):
            raise SchemaError(
                f"{path_text(item.path)}: expected the object that held this unknown key, got nothing there; "
                "the program was changed since it was read"
            ) from None


Read: TypeAlias = Callable[[list[bytes], type[Struct]], list[Any]]
Share: TypeAlias = Mapping[type[Struct], Callable[[list[Any], dict[Any, Any]], None]]
"""Type of the entries of a list -> a function that is called with some of them and a dict of its own for that list."""

LEVELS = 3
"""Levels of objects that can be long: the program, its graph module, its graph."""
_ROWS = 1024
"""Entries of a list that are read at a time."""
_SCALARS = (str, int, float, NoneType, UnsetType)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A struct of the schema with the entries of its long dicts left as text.

    Args:
        cls: the struct.
        raw_view: a struct with the same fields, where those of `inner` and `entries` have other types.
        inner: fields that hold a struct with a skeleton.
        entries: fields that hold a dict of structs; in the raw view, a dict of `Raw`.
        rows: fields that hold a list of structs; in the raw view, a list of `Raw`.
    """

    cls: type[Struct]
    raw_view: type[Struct]
    inner: Mapping[str, Skeleton]
    entries: Mapping[str, type[Struct]]
    rows: Mapping[str, type[Struct]]


# A memo of a pure function over classes, which never change.
@functools.cache
def skeleton_of(cls: Any, shared: frozenset[type[Struct]] = frozenset(), levels: int = LEVELS) -> Skeleton | None:
    """Find the dicts of a type that can be read by their entries' texts; None where there are none."""
    struct = shape(cls)
    if not levels or not isinstance(struct, StructShape) or struct.is_union or struct.cls is not cls:
        return None
    inner = {name: part for name, kind in struct.keys.items() if (part := skeleton_of(kind, shared, levels - 1))}
    shapes = {name: shape(annotation) for name, annotation in struct.keys.items()}
    dicts = {name: kind.inner for name, kind in shapes.items() if isinstance(kind, DictShape)}
    entries = {name: inner for name, inner in dicts.items() if _can_be_shared(inner)}
    if not inner and not entries:
        return None
    lists = {name: kind.inner for name, kind in shapes.items() if isinstance(kind, ListShape)}
    rows = {name: inner for name, inner in lists.items() if inner in shared}
    types: dict[str, Any] = {name: inner[name].raw_view for name in inner}
    types |= dict.fromkeys(entries, dict[str, Raw]) | dict.fromkeys(rows, list[Raw])
    raw_view = msgspec.defstruct(
        cls.__name__,
        [(info.name, types.get(info.name, struct.keys[info.name]), _default(info)) for info in fields(cls)],
        frozen=True,
        gc=False,
    )
    return Skeleton(cls, raw_view, inner, entries, rows)


def materialize(raw_view: Struct, skeleton: Skeleton, read: Read, share: Share) -> Any:
    """Turn a decoded raw view into the struct it represents.

    Args:
        raw_view: an object of `skeleton.raw_view`.
        skeleton: what the raw view was made by.
        read: decodes texts as objects of one type, one each, in their order; its exceptions propagate.
        share: for the types of `rows`.

    Returns:
        the struct; it shares the other values. If most entries of a dict repeat, those of one text are one object.
    """
    values = {name: getattr(raw_view, name) for name in raw_view.__struct_fields__}
    for name, part in skeleton.inner.items():
        values[name] = materialize(values[name], part, read, share)
    for name, kind in skeleton.entries.items():
        values[name] = _entries(values[name], kind, read)
    for name, kind in skeleton.rows.items():
        values[name] = _rows(values[name], kind, read, share)
    return skeleton.cls(**values)


def _rows(raws: list[Raw], kind: type[Struct], read: Read, share: Share) -> list[Any]:
    rows: list[Any] = []
    known: dict[Any, Any] = {}
    for start in range(0, len(raws), _ROWS):
        some = read([bytes(raw) for raw in raws[start : start + _ROWS]], kind)
        share[kind](some, known)
        rows += some
    return rows


def _entries(raws: Mapping[str, Raw], kind: type[Struct], read: Read) -> dict[str, Any]:
    numbers: dict[bytes, int] = {}
    order = [numbers.setdefault(bytes(raw), len(numbers)) for raw in raws.values()]
    texts = list(numbers)
    if 2 * len(texts) > len(order):
        return dict(zip(raws, read([texts[number] for number in order], kind), strict=True))
    values = read(texts, kind) if texts else []
    return dict(zip(raws, map(values.__getitem__, order), strict=True))


def _default(info: Any) -> Any:
    if info.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=info.default_factory)
    return msgspec.field() if info.default is msgspec.NODEFAULT else msgspec.field(default=info.default)


def _can_be_shared(kind: Any) -> bool:
    """Return whether a type is a struct that holds nothing deeper than lists of its own, which it freezes."""
    struct = shape(kind)
    if not isinstance(struct, StructShape) or struct.cls is not kind:
        return False
    inner = (get_args(kind)[0] if get_origin(kind) is list else kind for kind in struct.keys.values())
    return all(_never_changes(annotation, ()) for annotation in inner)


def _never_changes(annotation: Any, above: tuple[type, ...]) -> bool:
    """Return whether a type's values hold no list or dict at any depth."""
    match shape(annotation):
        case StructShape(cls, keys, _) if annotation is cls and cls not in above:
            return all(_never_changes(inner, (*above, cls)) for inner in keys.values())
        case ListShape() | DictShape():
            return False
    if get_origin(annotation) is Literal:
        return True
    if arms := get_args(annotation):
        return all(_never_changes(arm, above) for arm in arms)
    return isinstance(annotation, type) and issubclass(annotation, _SCALARS)
