"""Typed JSON decoder: objects of the schema in one pass; unknown keys are kept with them.

The typed decoder is fast but keeps the last of two equal keys and does not report whether a key was left out. So its
result is written again: if that equals the original text, nothing was lost; a text in lines is made compact first.
After any other difference, such as another order of keys, the text is read once more as a plain tree, which refuses
equal keys, and compared with the result to find the unknown keys. Values that the typed decoder refuses are
converted from a tree, which explains the error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from pt2kit.codec.encoder import encode, encode_sorted, gives, separators, to_tree
from pt2kit.codec.shapes import (
    LEVELS,
    DictShape,
    Found,
    ListShape,
    Share,
    StructShape,
    Unknown,
    materialize,
    shape,
    skeleton_of,
    take_out,
    take_out_outer,
)
from pt2kit.codec.text import check_depth, parse, parse_again, written
from pt2kit.collector import no_collection
from pt2kit.errors import LimitError, SchemaError
from pt2kit.jsontext import Path, path_text

T = TypeVar("T")

_INTERN_MIN_BYTES = 1 << 16
"""Bytes of text from which on looking for entries that repeat costs less than it saves."""


@dataclass(frozen=True, slots=True)
class Decoded(Generic[T]):
    """A decoded object, and the keys of its JSON that are not in the schema."""

    value: T
    unknown: tuple[Unknown, ...] = ()


def decode(data: bytes | memoryview, cls: type[T], where: str, share: Share | None = None) -> Decoded[T]:
    """Decode JSON bytes as a type of the schema.

    Args:
        data: UTF-8 text; not copied.
        cls: the type, such as `schema.ExportedProgram`.
        where: the record's name, for messages.
        share: replaces equal parts of the entries of lists by one object while they are read.

    Raises:
        JsonError: not one JSON document, or a key twice in one object.
        SchemaError: JSON of another shape, with the path of the first mismatch.
        LimitError: nested too deep.
    """
    try:
        compact = msgspec.json.format(data, indent=-1) if _has_other_blanks(data) else data
        value, is_whole = _decode_typed(compact, cls, share or {})
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return convert(parse(data, where), cls, where)
    if is_whole:
        return Decoded(value)
    with no_collection():
        unknown = _unknown(parse_again(compact, where), value, cls)
    keys = tuple(Unknown(path, written(tree)) for path, tree in unknown)
    for key in keys:  # The typed pass has skipped their values.
        check_depth(key.text, where, len(key.path))
        parse(key.text, f"{where}: {key}")
    return Decoded(value, keys)


def _unknown(tree: Any, value: Any, cls: Any) -> list[Found]:
    """Return the keys of a tree that are not in the object made of it.

    The whole is searched if some are deep inside.
    """
    outer = take_out_outer(tree, cls, LEVELS)
    is_in_order = list(tree) == list(getattr(value, "__struct_fields__", ()))
    if gives(value, written(tree)) if is_in_order else encode_sorted(value) == encode_sorted(tree):
        return outer
    return sorted((*outer, *take_out(tree, to_tree(value))), key=lambda item: item[0])


def _has_other_blanks(data: bytes | memoryview) -> bool:
    """Return whether a text certainly has other blanks than one after each comma and colon, or none: lines, for one."""
    raw = bytes(data)
    return raw[:1].isspace() or raw[-1:].isspace() or any(blank in raw for blank in (b"\n", b"\t", b"\r"))


def _decode_typed(data: bytes | memoryview, cls: Any, share: Share) -> tuple[Any, bool]:
    """Decode a text, and return whether writing the result reproduces the text, so that nothing of it was lost."""
    skeleton = skeleton_of(cls, frozenset(share)) if len(data) >= _INTERN_MIN_BYTES else None
    value = msgspec.json.decode(data, type=skeleton.raw_view if skeleton else cls)
    whole = [gives(value, data)]
    if skeleton is None:
        return value, whole[0]
    comma, _ = separators(data)

    def decode_list(texts: list[bytes], kind: Any) -> list[Any]:
        joined = b"[" + comma.join(texts) + b"]"
        values: list[Any] = msgspec.json.decode(joined, type=list[kind])
        whole.append(all(whole) and gives(values, joined))
        return values

    return materialize(value, skeleton, decode_list, share), all(whole)


def convert(tree: Any, cls: type[T], where: str) -> Decoded[T]:
    """Turn a plain tree into a type of the schema.

    Args:
        tree: as `parse` returns it; unknown keys are removed from it in place.
        cls: the type.
        where: the record's name, for messages.

    Raises:
        SchemaError: the tree has another shape, with the path of the first mismatch.
    """
    try:
        value = msgspec.convert(tree, cls)
        unknown = take_out(tree, to_tree(value))
        return Decoded(value, tuple(Unknown(path, encode(child)) for path, child in unknown))
    except msgspec.ValidationError as error:
        message, path = _explain(error, tree, cls)
        rule = "J4" if message.startswith("expected exactly one key") else "J5"
        raise SchemaError(f"{where}: {path_text(path)}: {message}", rule=rule) from None
    except RecursionError:
        raise LimitError(f"{where}: nested deeper than this interpreter's recursion limit", rule="J3") from None


def _explain(error: msgspec.ValidationError, tree: Any, cls: Any) -> tuple[str, Path]:
    """Return the message of a failed conversion in the project's words, and the full path of its place."""
    message, _, place = str(error).partition(" - at `$")
    steps = re.findall(r"\.(\w+)|\[(\d+)\]|(\[\.\.\.\])", place)
    path: list[str | int] = []
    for name, index, any_key in steps:
        step: str | int = _failing_key(tree, cls) if any_key else name or int(index)
        path.append(step)
        tree, cls = _descend(tree, cls, step)
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL)
    if unknown and isinstance(struct := shape(cls), StructShape):
        return f"expected exactly one key of {', '.join(struct.keys)}, got {unknown[1]!r}", tuple(path)
    message = re.sub(r"^Invalid enum value (.*)$", r"expected a number of the enum, got \1", message)
    message = re.sub(r"^Object missing required field `(.*)`$", r"expected the key \1, got none", message)
    return message[:1].lower() + message[1:].replace("`", ""), tuple(path)


def _descend(tree: Any, cls: Any, step: str | int) -> tuple[Any, Any]:
    match shape(cls):
        case StructShape(_, keys, _):
            return tree[step], keys[str(step)]
        case ListShape(inner) | DictShape(inner):
            return tree[step], inner
    return None, None


def _failing_key(tree: dict[str, Any], cls: Any) -> str:
    """Return the first key of a free-keyed object whose value does not convert."""
    kind = shape(cls)
    for key, child in tree.items():
        try:
            msgspec.convert(child, kind.inner if isinstance(kind, DictShape) else Any)
        except msgspec.ValidationError:
            return key
    return "..."
