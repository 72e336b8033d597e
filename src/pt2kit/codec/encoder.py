"""Objects of the schema -> JSON bytes or plain trees, in the schema's field order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from pt2kit.codec.unknown import Unknown, put_back
from pt2kit.errors import SchemaError


def encode(value: Any, unknown: Iterable[Unknown] = ()) -> bytes:
    """Write an object of the schema as compact UTF-8 JSON; the same object gives the same bytes.

    Args:
        value: a struct of the schema. Infinities and nan become the strings "Infinity", "-Infinity", "NaN".
        unknown: what `decode` could not place, to be written back where it was. It belongs to the program as it was
            read: pass it with that program only.

    Raises:
        SchemaError: an unknown key's place is no longer there, or text holds a lone surrogate.
    """
    try:
        if not (unknown := tuple(unknown)):
            return _ENCODER.encode(value)
        tree = to_tree(value)
        put_back(tree, unknown)
        return _ENCODER.encode(tree)
    except UnicodeEncodeError as error:
        raise _lone_surrogate(error) from None


def encode_into(value: Any, buffer: bytearray) -> None:
    """As `encode`, into a buffer whose content is replaced."""
    try:
        _ENCODER.encode_into(value, buffer)
    except UnicodeEncodeError as error:
        raise _lone_surrogate(error) from None


def encode_sorted(value: Any) -> bytes:
    """Write an object of the schema, or a plain tree, with all keys in order: what is equal gives the same bytes."""
    return _SORTED.encode(value)


def encode_indented(value: Any) -> bytes:
    """Write an object of the schema, a dataclass or a tree as JSON for people: two blanks per level."""
    return msgspec.json.format(encode(value), indent=2)


def to_tree(value: Any) -> Any:
    """Turn an object of the schema into the plain tree that its JSON would parse to; nothing is shared with it."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    """The plain form of what the encoder does not know: a subclass of float, or what came in with an unknown key."""
    if not isinstance(value, float):
        raise TypeError(f"expected an object of the schema, got {type(value).__name__}")
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _spell(value: Any) -> Any:
    plain = _plain(value)
    return plain if isinstance(plain, str) else msgspec.Raw(repr(plain).encode())


def _lone_surrogate(error: UnicodeEncodeError) -> SchemaError:
    return SchemaError(f"expected Unicode text, got a lone surrogate in {error.object[:60]!r}")


_ENCODER = msgspec.json.Encoder(enc_hook=_spell)
_SORTED = msgspec.json.Encoder(enc_hook=_spell, order="sorted")
