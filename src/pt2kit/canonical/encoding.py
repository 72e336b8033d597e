"""Canonical encoding of schema values and plain trees as bytes, the same in every implementation. `docs/digest.md` is
normative.

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
from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from pt2kit import codec
from pt2kit.errors import LimitError, UnsupportedError
from pt2kit.schema import TensorMeta, Union

MAX_DEPTH = 128
"""Levels of values inside values. Arguments nest in dicts 32 levels deep at most, and subgraphs are hashed apart."""

_NAN = b"d\x7f\xf8\0\0\0\0\0\0"
_pack_float = struct.Struct(">d").pack


Replace = Mapping[type, Callable[[Any], Any]]
Put = Callable[[bytes], None]


def encode_value(value: Any, replace: Replace = MappingProxyType({})) -> bytes:
    """Encode a value.

    Args:
        value: structs of the schema, None, bool, int, float, str, bytes, and lists, tuples and dicts (text keys) of
            these.
        replace: type of struct -> what gives the value to encode in its place.

    Raises:
        LimitError: values nest deeper than `MAX_DEPTH`.
        UnsupportedError: a value of another type, or text with a lone surrogate.

    Cost: linear.
    """
    encoder = _Encoder(replace)
    try:
        encoder.put(value, MAX_DEPTH)
    except UnicodeEncodeError as error:
        raise UnsupportedError(f"expected Unicode text, got a lone surrogate in {error.object[:60]!r}") from None
    return b"".join(encoder.out)


class _Encoder:
    def __init__(self, replace: Replace) -> None:
        self.out: list[bytes] = []
        self._replace = replace
        self._memo: dict[bytes, bytes] = {}

    def put(self, value: Any, depth: int) -> None:
        """Append the bytes of any value, nested at most `depth` levels; enums and spelled floats as plain values."""
        if isinstance(value, str):
            self._text(value)
        elif value is None:
            self.out.append(b"n")
        elif isinstance(value, bool):
            self.out.append(b"t" if value else b"f")
        elif isinstance(value, int):
            self.out.append(b"i%d;" % value)
        elif isinstance(value, Struct):
            self._struct(value, _deeper(depth))
        elif isinstance(value, list | tuple):
            self.out.append(b"l%d:" % len(value))
            depth = _deeper(depth)
            for item in value:
                self.put(item, depth)
        elif isinstance(value, dict):
            self._dict(value, _deeper(depth))
        elif isinstance(value, float):
            self.out.append(_NAN if math.isnan(value) else b"d" + _pack_float(value))
        elif isinstance(value, bytes | bytearray | memoryview):
            self.out.append(b"b%d:%b" % (len(value), bytes(value)))
        else:
            raise UnsupportedError(f"expected a value of the schema, got {type(value).__name__}")

    def _text(self, value: str) -> None:
        text = value.encode()
        self.out.append(b"s%d:%b" % (len(text), text))

    def _dict(self, value: dict[Any, Any], depth: int) -> None:
        if not all(isinstance(key, str) for key in value):
            raise UnsupportedError("expected an object whose keys are text, got other keys")
        self.out.append(b"o%d:" % len(value))
        for key in sorted(value):  # Code points and their UTF-8 bytes have one order.
            self._text(key)
            self.put(value[key], depth)

    def _struct(self, value: Struct, depth: int) -> None:
        kind = value.__class__
        if kind in self._replace and (other := self._replace[kind](value)) is not value:
            self.put(other, depth)
        elif isinstance(value, Union):
            self.out.append(b"o1:")
            self._text(value.type)
            self.put(value.value, depth)
        elif isinstance(value, TensorMeta):
            self._often(value, depth)
        else:
            self._members(value, depth)

    def _members(self, value: Struct, depth: int) -> None:
        """Append a struct as an object of the fields that differ from their default."""
        names, get, defaults = _plan(value.__class__)
        members = [
            (name, item)
            for name, item, default in zip(names, get(value), defaults, strict=True)
            if default is NODEFAULT or item != default
        ]
        self.out.append(b"o%d:" % len(members))
        for name, item in members:
            self.out.append(name)
            self.put(item, depth)

    def _often(self, value: Struct, depth: int) -> None:
        """Append a struct of which a program has few different ones."""
        key = codec.encode(value)
        known = self._memo.get(key)
        if known is None:
            start = len(self.out)
            self._members(value, depth)
            known = self._memo[key] = b"".join(self.out[start:])
            del self.out[start:]
        self.out.append(known)


def _deeper(depth: int) -> int:
    if depth == 0:
        raise LimitError(f"expected values nested at most {MAX_DEPTH} levels deep, got more")
    return depth - 1


# A memo of a pure function over classes, which never change.
@functools.cache
def _plan(cls: type[Struct]) -> tuple[tuple[bytes, ...], Callable[[Any], tuple[Any, ...]], tuple[Any, ...]]:
    """Return the encoded names of a struct's fields, sorted, a reader of the fields in that order, and their
    defaults."""
    infos = sorted(fields(cls), key=lambda info: info.encode_name.encode())
    names = tuple(b"s%d:%b" % (len(info.encode_name.encode()), info.encode_name.encode()) for info in infos)
    defaults = tuple(info.default if info.default_factory is NODEFAULT else info.default_factory() for info in infos)
    get = attrgetter(*(info.name for info in infos))
    return names, get if len(infos) != 1 else lambda value: (get(value),), defaults
