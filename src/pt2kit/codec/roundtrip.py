"""An object and a text -> whether writing the object gives that text, in one of the styles that writers use.

Works in pieces of some ten kilobytes: a program's text has megabytes, and touching that much new memory takes longer
than writing and comparing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from json.encoder import encode_basestring_ascii
from typing import Any

import msgspec
from msgspec import Raw, Struct

from pt2kit.codec.encoder import encode_into
from pt2kit.codec.interning import LEVELS
from pt2kit.codec.shape import StructShape, shape

_CHUNK = 64
"""Entries of a long list or dict that are written at a time."""

_Piece = tuple[bytes, int]
"""Text, and how many bytes at each of its ends do not count."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a writer spaces and escapes JSON text.

    Args:
        comma, colon: what it writes after values and after keys.
        ascii_only: whether it escapes all other characters.
        scratch: memory that each piece is written to, so that none has to be asked for. Belongs to one thread.
    """

    comma: bytes
    colon: bytes
    ascii_only: bool
    scratch: bytearray = field(default_factory=bytearray)

    def text(self, value: Any) -> bytes:
        """A value in this style."""
        encode_into(value, self.scratch)
        written: bytes | bytearray = self.scratch
        if self.ascii_only and not written.isascii():
            written = _with_ascii_escapes(written)
        return msgspec.json.format(written, indent=0) if self.colon == b": " else bytes(written)


def gives(value: Any, data: bytes | memoryview) -> bool:
    """Whether writing `value` gives the bytes of `data`: compact or with blanks after `,` and `:`, escaped or not.

    Args:
        value: an object of the schema, or a raw view of one (`interning`): its `Raw` entries are taken for written.
        data: JSON text; not copied as a whole.
    """
    comma, colon = separators(data)
    return any(_matches(value, data, Style(comma, colon, ascii_only)) for ascii_only in (True, False))


def separators(data: bytes | memoryview) -> tuple[bytes, bytes]:
    """What the writer of a JSON text put after values and after keys, to judge by its first key."""
    head = bytes(data[:200])
    return (b", ", b": ") if head.find(b": ") == head.find(b":") else (b",", b":")


def _matches(value: Any, data: bytes | memoryview, style: Style) -> bool:
    view, position = memoryview(data), 0
    for text, skipped in _pieces(value, style, LEVELS):
        length = len(text) - 2 * skipped
        part = view[position : position + length]
        # Two views are compared byte by byte; bytes with a view at once, and without a copy.
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
        case list() if len(value) > _CHUNK:
            groups = (value[start : start + _CHUNK] for start in range(0, len(value), _CHUNK))
            yield from _joined(groups, b"[", b"]", style)
        case dict() if value and isinstance(next(iter(value.values())), Raw):
            yield from _raw_entries(value, style)
        case dict() if len(value) > _CHUNK:
            entries = iter(value.items())
            yield from _joined(iter(lambda: dict(islice(entries, _CHUNK)), {}), b"{", b"}", style)
        case _:
            yield style.text(value), 0


def _joined(groups: Iterator[Any], opening: bytes, closing: bytes, style: Style) -> Iterator[_Piece]:
    """Groups of entries as one list or object: the brackets around each group do not count."""
    for group in groups:
        yield opening, 0
        yield style.text(group), 1
        opening = style.comma
    yield closing, 0


def _raw_entries(value: dict[str, Raw], style: Style) -> Iterator[_Piece]:
    """An object of entries that are written already."""
    keys, raws, opening = list(value), list(value.values()), b"{"
    for start in range(0, len(keys), _CHUNK):
        heads = _heads(keys[start : start + _CHUNK], opening, style)
        yield b"".join(chain.from_iterable(zip(heads, raws[start : start + _CHUNK], strict=True))), 0
        opening = style.comma
    yield b"}", 0


def _heads(keys: list[str], opening: bytes, style: Style) -> list[bytes]:
    """What stands before the values of an object: the `opening` or a comma, a key, a colon."""
    together = "_".join(keys)
    if together.isascii() and ("_" + together).isidentifier():  # No letter of any key needs an escape.
        between = b'"%b\n%b"' % (style.colon, style.comma)
        return (opening + b'"' + between.join(map(str.encode, keys)) + b'"' + style.colon).split(b"\n")
    commas = chain([opening], repeat(style.comma))
    return [comma + style.text(key) + style.colon for comma, key in zip(commas, keys, strict=False)]


def _with_ascii_escapes(text: bytes | bytearray) -> bytes:
    r"""Write non-ASCII characters of JSON text as \uXXXX, as torch does, leaving the rest."""
    escaped = encode_basestring_ascii(text.decode())[1:-1]
    return escaped.replace('\\"', '"').replace("\\\\", "\\").encode()
