"""A value of the schema, or a plain tree -> bytes that are the same wherever they are made. `docs/digest.md` is normative.

    null            n
    false, true     f, t
    integer         i <decimal digits, with - before a negative one> ;
    float           d <8 bytes: IEEE 754 binary64, big-endian; every nan is 7ff8000000000000>
    text            s <length in bytes, decimal> : <UTF-8>
    bytes           b <length, decimal> : <bytes>
    list            l <number of items, decimal> : <items>
    object          o <number of members, decimal> : <members: the key as text, then the value; sorted by key bytes>

A struct of the schema is an object of those of its fields that differ from their default, a union an object of its one
field, an enum its number. What a later schema adds with a default therefore leaves the bytes of older programs alone.
No value's bytes are the beginning of another's, so bytes that follow one another stay apart.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from msgspec import NODEFAULT, UNSET, Struct
from msgspec.structs import fields

from pt2kit.errors import LimitError, UnsupportedError

MAX_DEPTH = 128
"""Levels of values inside values. Arguments nest in dicts 32 levels deep at most, and subgraphs are hashed apart."""

_NAN = b"d\x7f\xf8\0\0\0\0\0\0"
_pack_float = struct.Struct(">d").pack


def encode_value(value: Any) -> bytes:
    """Encode a value.

    Args:
        value: structs of the schema, None, bool, int, float, str, bytes, and lists, tuples and dicts (text keys) of
            these.

    Raises:
        LimitError: values nest deeper than `MAX_DEPTH`.
        UnsupportedError: a value of another type, or text with a lone surrogate.

    Cost: linear.
    """
    out: list[bytes] = []
    try:
        _put(value, out.append, MAX_DEPTH)
    except UnicodeEncodeError as error:
        raise UnsupportedError(f"expected Unicode text, got a lone surrogate in {error.object[:60]!r}") from None
    return b"".join(out)


Put = Callable[[bytes], None]


def _put(value: Any, put: Put, depth: int) -> None:
    """Put the bytes of any value; `depth` levels may still be below it."""
    kind = value.__class__
    if kind is str:
        text = value.encode()
        put(b"s%d:%b" % (len(text), text))
    elif kind is int:
        put(b"i%d;" % value)
    elif kind is bool:
        put(b"t" if value else b"f")
    elif value is None:
        put(b"n")
    elif isinstance(value, Struct):
        _put_struct(value, put, _deeper(depth))
    elif isinstance(value, list | tuple):
        put(b"l%d:" % len(value))
        for item in value:
            _put(item, put, _deeper(depth))
    else:
        _put_other(value, put, depth)


def _put_other(value: Any, put: Put, depth: int) -> None:
    """The rarer kinds, and subclasses of the plain ones: enums, spelled floats."""
    if isinstance(value, dict):
        put(b"o%d:" % len(value))
        for key in sorted(value, key=str.encode):
            _put(key, put, depth)
            _put(value[key], put, _deeper(depth))
    elif isinstance(value, float):
        put(_NAN if math.isnan(value) else b"d" + _pack_float(value))
    elif isinstance(value, int):
        put(b"i%d;" % int(value))
    elif isinstance(value, str):
        _put(str(value), put, depth)
    elif isinstance(value, bytes | bytearray | memoryview):
        put(b"b%d:%b" % (len(value), bytes(value)))
    else:
        raise UnsupportedError(f"expected a value of the schema, got {type(value).__name__}")


def _put_struct(value: Struct, put: Put, depth: int) -> None:
    """A struct as an object of the fields that differ from their default."""
    names, get, defaults = _plan(value.__class__)
    found = get(value)
    members = [
        (name, item)
        for name, item, default in zip(names, found, defaults, strict=True)
        if item is not UNSET and (default is NODEFAULT or item != default)
    ]
    put(b"o%d:" % len(members))
    for name, item in members:
        put(name)
        _put(item, put, depth)


def _deeper(depth: int) -> int:
    if depth == 0:
        raise LimitError(f"expected values nested at most {MAX_DEPTH} levels deep, got more")
    return depth - 1


# A memo of a pure function over classes, which never change.
@functools.cache
def _plan(cls: type[Struct]) -> tuple[tuple[bytes, ...], Callable[[Any], tuple[Any, ...]], tuple[Any, ...]]:
    """The encoded names of a struct's fields, sorted, what reads the fields in that order, and their defaults."""
    infos = sorted(fields(cls), key=lambda info: info.encode_name.encode())
    names = tuple(b"s%d:%b" % (len(info.encode_name.encode()), info.encode_name.encode()) for info in infos)
    defaults = tuple(
        info.default if info.default_factory is NODEFAULT else info.default_factory() for info in infos
    )
    get = attrgetter(*(info.name for info in infos))
    return names, get if len(infos) != 1 else lambda value: (get(value),), defaults
