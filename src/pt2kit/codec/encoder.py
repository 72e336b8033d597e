"""Write objects of the schema as JSON bytes or plain trees, and compare what would be written with a text (`gives`).

Comparing works in pieces of some ten kilobytes: a program's text has megabytes, and touching that much new memory takes
longer than writing and comparing it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from json.encoder import encode_basestring_ascii
from typing import Any

import msgspec
from msgspec import Raw, Struct

from pt2kit.codec.shapes import LEVELS, StructShape, Unknown, put_back, shape
from pt2kit.errors import SchemaError

_CHUNK = 64
"""Entries of a long list or dict that are written at a time."""

_Piece = tuple[bytes, int]
"""Text, and how many bytes at each of its ends do not count."""


def encode(value: Any, unknown: Iterable[Unknown] = ()) -> bytes:
    """Write an object of the schema as compact UTF-8 JSON; the same object has the same bytes.

    Args:
        value: a struct of the schema. Infinities and nan become the strings "Infinity", "-Infinity", "NaN".
        unknown: keys that `decode` could not place, to be written back where they were. It belongs to the program as it
            was read: pass it with that program only.

    Raises:
        SchemaError: an unknown key's place is no longer there, or text holds a lone surrogate.
    """
    try:
        if not (unknown := tuple(unknown)):
            return _ENCODER.encode(value)
        tree = to_tree(value)
        put_back(tree, unknown, as_text=True)
        return _ENCODER.encode(tree)
    except UnicodeEncodeError as error:
        raise SchemaError(f"expected Unicode text, got a lone surrogate in {error.object[:60]!r}") from None


def encode_sorted(value: Any) -> bytes:
    """Write an object of the schema, or a plain tree, with all keys in order: equal values have the same bytes."""
    return _SORTED.encode(value)


def encode_indented(value: Any) -> bytes:
    """Write an object of the schema, a dataclass or a tree as JSON for people: two blanks per level."""
    return msgspec.json.format(encode(value), indent=2)


def to_tree(value: Any) -> Any:
    """Turn an object of the schema into the plain tree that its JSON would parse to; nothing is shared with it."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def plain_float(value: float) -> float | str:
    """Return a float as the format's JSON has it: the three values that are no numbers there as texts."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain(value: Any) -> Any:
    """Return the plain form of values unsupported by the encoder: float subclasses, values of unknown keys."""
    if not isinstance(value, float):
        raise TypeError(f"expected an object of the schema, got {type(value).__name__}")
    return plain_float(value)


def _spell(value: Any) -> Any:
    plain = _plain(value)
    return plain if isinstance(plain, str) else msgspec.Raw(repr(plain).encode())


@dataclass(frozen=True, slots=True)
class Style:
    """Spacing and escaping of a writer's JSON text.

    Args:
        comma, colon: the text after values and after keys.
        ascii_only: whether it escapes all other characters.
        scratch: memory that each piece is written to, so that none has to be allocated. Belongs to one thread.
    """

    comma: bytes
    colon: bytes
    ascii_only: bool
    scratch: bytearray = field(default_factory=bytearray)

    def text(self, value: Any) -> bytes:
        """Return a value in this style."""
        _ENCODER.encode_into(value, self.scratch)
        written: bytes | bytearray = self.scratch
        if self.ascii_only and not written.isascii():
            written = _with_ascii_escapes(written)
        return msgspec.json.format(written, indent=0) if self.colon == b": " else bytes(written)


def gives(value: Any, data: bytes | memoryview) -> bool:
    """Return whether `value`, written in some style, has the bytes of `data`.

    The style is compact or with blanks after `,` and `:`, escaped or not.

    Args:
        value: an object of the schema, or a raw view of one (`interning`): its `Raw` entries count as written.
        data: JSON text; not copied as a whole.
    """
    comma, colon = separators(data)
    return any(_matches(value, data, Style(comma, colon, ascii_only)) for ascii_only in (True, False))


def separators(data: bytes | memoryview) -> tuple[bytes, bytes]:
    """Return the separators that the writer of a JSON text put after values and after keys, judged by its first key."""
    head = bytes(data[:200])
    return (b", ", b": ") if head.find(b": ") == head.find(b":") else (b",", b":")


def _matches(value: Any, data: bytes | memoryview, style: Style) -> bool:
    view, position = memoryview(data), 0
    for text, skipped in _pieces(value, style, LEVELS):
        length = len(text) - 2 * skipped
        part = view[position : position + length]
        # Two views are compared byte by byte; bytes and a view in one call, and without a copy.
        if len(part) != length or not text.startswith(part, skipped):
            return False
        position += length
    return position == len(view)


def _pieces(value: Any, style: Style, levels: int) -> Iterator[_Piece]:
    match value:
        case Struct() if levels and isinstance(struct := shape(type(value)), StructShape) and not struct.is_union:
            opening = b"{"
            for name in value.__struct_fields__:
                yield opening + b'"' + name.encode() + b'"' + style.colon, 0
                yield from _pieces(getattr(value, name), style, levels - 1)
                opening = style.comma
            yield b"}", 0
        case list() if value and isinstance(value[0], Raw):
            yield from _written(iter(value), b"[", b"]", style)
        case list() if len(value) > _CHUNK:
            groups = (value[start : start + _CHUNK] for start in range(0, len(value), _CHUNK))
            yield from _joined(groups, b"[", b"]", style)
        case dict() if value and isinstance(next(iter(value.values())), Raw):
            entries = (_key(key, style) + raw for key, raw in value.items())
            yield from _written(entries, b"{", b"}", style)
        case dict() if len(value) > _CHUNK:
            items = iter(value.items())
            yield from _joined(iter(lambda: dict(islice(items, _CHUNK)), {}), b"{", b"}", style)
        case _:
            yield style.text(value), 0


def _joined(groups: Iterator[Any], opening: bytes, closing: bytes, style: Style) -> Iterator[_Piece]:
    """Yield groups of entries as one list or object: the brackets around each group do not count."""
    for group in groups:
        yield opening, 0
        yield style.text(group), 1
        opening = style.comma
    yield closing, 0


def _written(entries: Iterator[bytes | Raw], opening: bytes, closing: bytes, style: Style) -> Iterator[_Piece]:
    """Yield a list or object of entries that are written already."""
    while group := list(islice(entries, _CHUNK)):
        yield opening + style.comma.join(group), 0
        opening = style.comma
    yield closing, 0


def _key(key: str, style: Style) -> bytes:
    """Return the text before a value of an object."""
    # The encoder is slow for single texts, and Python writes these few characters as it does.
    is_plain = key.isascii() and key.isprintable()
    return (encode_basestring_ascii(key).encode() if is_plain else style.text(key)) + style.colon


def _with_ascii_escapes(text: bytes | bytearray) -> bytes:
    r"""Write non-ASCII characters of JSON text as \uXXXX, as torch does, leaving the rest."""
    escaped = encode_basestring_ascii(text.decode())[1:-1]
    return escaped.replace('\\"', '"').replace("\\\\", "\\").encode()


_ENCODER = msgspec.json.Encoder(enc_hook=_spell)
_SORTED = msgspec.json.Encoder(enc_hook=_spell, order="sorted")
