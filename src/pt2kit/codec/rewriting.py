"""An object and a text -> whether writing the object gives that text, in one of the styles that writers use.

Works in pieces of some ten kilobytes: a program's text has megabytes, and touching that much new memory takes longer
than writing and comparing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from json.encoder import encode_basestring_ascii
from typing import Any

import msgspec
from msgspec import Struct

from pt2kit.codec.encoder import encode
from pt2kit.codec.shape import StructShape, shape

_GROUP = 32
"""Entries of a long list or dict that are written at a time."""
_LEVELS = 3
"""Levels of objects whose fields are written one by one: the program, its graph module, its graph."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a writer spaces and escapes JSON text."""

    comma: bytes
    colon: bytes
    ascii_only: bool

    def text(self, value: Any) -> bytes:
        """A value in this style."""
        written = encode(value)
        if self.ascii_only and not written.isascii():
            written = _with_ascii_escapes(written)
        return msgspec.json.format(written, indent=0) if self.colon == b": " else written


def gives(value: Any, data: bytes | memoryview) -> bool:
    """Whether writing `value` gives the bytes of `data`: compact or with blanks after `,` and `:`, escaped or not.

    Args:
        value: an object of the schema.
        data: JSON text; not copied as a whole.
    """
    head = bytes(data[:200])
    spaced = head.find(b": ") == head.find(b":")
    comma, colon = (b", ", b": ") if spaced else (b",", b":")
    return any(_matches(value, data, Style(comma, colon, ascii_only)) for ascii_only in (True, False))


def _matches(value: Any, data: bytes | memoryview, style: Style) -> bool:
    position = 0
    for piece in _pieces(value, style, _LEVELS):
        end = position + len(piece)
        # A view compares itself byte by byte; bytes are compared at once.
        if bytes(data[position:end]) != piece:
            return False
        position = end
    return position == len(data)


def _pieces(value: Any, style: Style, levels: int) -> Iterator[bytes]:
    match value:
        case Struct() if levels and isinstance(found := shape(type(value)), StructShape) and not found.is_union:
            opening = b"{"
            for name in value.__struct_fields__:
                yield opening + b'"' + name.encode() + b'"' + style.colon
                yield from _pieces(getattr(value, name), style, levels - 1)
                opening = style.comma
            yield b"}"
        case list() if len(value) > _GROUP:
            groups = (value[start : start + _GROUP] for start in range(0, len(value), _GROUP))
            yield from _joined(groups, b"[", b"]", style)
        case dict() if len(value) > _GROUP:
            entries = iter(value.items())
            yield from _joined(iter(lambda: dict(islice(entries, _GROUP)), {}), b"{", b"}", style)
        case _:
            yield style.text(value)


def _joined(groups: Iterator[Any], opening: bytes, closing: bytes, style: Style) -> Iterator[bytes]:
    """Groups of entries as one list or object: the brackets around each group are taken off."""
    for group in groups:
        yield opening
        yield style.text(group)[1:-1]
        opening = style.comma
    yield closing


def _with_ascii_escapes(text: bytes) -> bytes:
    r"""Write non-ASCII characters of JSON text as \uXXXX, as torch does, leaving the rest."""
    escaped = encode_basestring_ascii(text.decode())[1:-1]
    return escaped.replace('\\"', '"').replace("\\\\", "\\").encode()
