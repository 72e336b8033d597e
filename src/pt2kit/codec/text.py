"""Strict JSON parser, bytes to a plain tree: one document, UTF-8, no key twice, bounded depth."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from pt2kit.errors import JsonError, LimitError
from pt2kit.jsontext import Path, children, depth, path_text, structure
from pt2kit.messages import count_text

MAX_DEPTH = 512
"""Levels of JSON nesting. A program needs about 12, and 9 more for each level of nested subgraphs."""

MAX_DIGITS = 4300
"""Limit of digits of an integer: that of the interpreter itself by default."""


def parse(data: bytes | memoryview, where: str, *, bare_literals: bool = False) -> Any:
    """Turn JSON bytes into a plain tree.

    Args:
        data: UTF-8 text; copied.
        where: the record's name, for messages.
        bare_literals: accept `Infinity`, `-Infinity` and `NaN` without quotes, as torch up to 2.6 wrote them.

    Raises:
        JsonError: not one JSON document, a key twice in one object, a number out of range, bad Unicode.
        LimitError: nested deeper than `MAX_DEPTH`.
    """
    raw = bytes(data)
    text = _decode_utf8(raw, where)
    check_depth(raw, where)
    try:
        tree = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        tree = _parse_slowly(text, where, bare_literals)
    if _colons(msgspec.json.encode(tree)) != _colons(raw):
        _refuse_duplicates(text, where)
    return tree


def parse_again(data: bytes | memoryview, where: str) -> Any:
    """Turn JSON bytes that the typed decoder has read already into a plain tree, as `parse`.

    The typed decoder skips the values of unknown keys, so here they may still be refused; the caller checks their
    depth. Floats are `SpelledByPython`, so that `written` reproduces most texts, which shows that no object has a
    key twice.
    """
    raw = bytes(data)
    try:
        tree = _AS_SPELLED.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return parse(data, where)
    # Of equal keys a parser keeps one: written again, the tree has fewer colons than the text.
    text = written(tree)
    if text != msgspec.json.format(raw, indent=-1) and _colons(text) != _colons(raw):
        _refuse_duplicates(raw.decode(), where)
    return tree


def written(tree: Any) -> bytes:
    """Write the result of `parse_again`, compactly."""
    return _SPELLING.encode(tree)


class SpelledByPython(float):
    """A float that is written as Python, so torch, spells it, which is with another exponent than the encoder's."""

    __slots__ = ()


_AS_SPELLED = msgspec.json.Decoder(float_hook=SpelledByPython)
_SPELLING = msgspec.json.Encoder(enc_hook=lambda number: msgspec.Raw(float.__repr__(number).encode()))


def _parse_slowly(text: str, where: str, bare_literals: bool) -> Any:
    """Parse text that the fast parser refuses: unquoted numbers that JSON lacks, and errors to explain."""
    try:
        tree = json.loads(text, parse_constant=float if bare_literals else _refuse_literal, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise JsonError(f"{where}: byte {len(text[: error.pos].encode())}: not JSON: {error.msg}", rule="J1") from None
    except ValueError as error:
        raise JsonError(f"{where}: {_long_integer(text) or error}", rule="J1") from None
    _refuse_lone_surrogates(tree, where)
    return tree


def check_depth(raw: bytes, where: str, above: int = 0) -> None:
    """Refuse text that is nested deeper than `MAX_DEPTH`.

    Args:
        raw: JSON text.
        where: the record's name, for messages.
        above: levels that the text is nested in.

    Raises:
        LimitError: it is; both numbers are in the message.
    """
    if (levels := above + depth(raw)) > MAX_DEPTH:
        raise LimitError(f"{where}: expected at most {MAX_DEPTH} levels of nesting, got {levels}", rule="J3")


def _colons(raw: bytes) -> int:
    return structure(raw).count(b":")


def _decode_utf8(raw: bytes, where: str) -> str:
    if not raw.strip():
        raise JsonError(f"{where}: expected a JSON document, got {count_text(len(raw), 'byte')} of nothing", rule="J1")
    if raw.startswith(b"\xef\xbb\xbf"):
        raise JsonError(f"{where}: byte 0: expected JSON, got a byte-order mark", rule="J1")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        got = raw[error.start : error.start + 1].hex()
        raise JsonError(
            f"{where}: byte {error.start}: expected UTF-8, got 0x{got} ({error.reason})", rule="J1"
        ) from None


def _refuse_duplicates(text: str, where: str) -> None:
    """Raise the error that names the key that is there twice, and its place."""
    duplicates: list[tuple[dict[str, Any], str]] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            duplicates.append((built, next(key for key in built if counts[key] > 1)))
        return built

    tree = json.loads(text, object_pairs_hook=build)
    for holder, key in duplicates[:1]:
        place = path_text(next(path for node, path in _nodes(tree) if node is holder))
        raise JsonError(f"{where}: {place}: expected each key once, got {key!r} twice", rule="J2")


def _long_integer(text: str) -> str:
    """Return the message for an integer with more digits than the interpreter converts; "" if there is none."""
    match = re.search(rf"\d{{{MAX_DIGITS + 1},}}", text)
    return f"expected an integer of at most {MAX_DIGITS} digits, got one of {len(match[0])}" if match else ""


def _refuse_literal(text: str) -> NoReturn:
    raise ValueError(f'expected a JSON number, got the bare word {text}; write "{text}"')


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"expected a number within 64-bit floats, got {text[:40]}")
    return value


def _nodes(tree: Any) -> Iterator[tuple[Any, Path]]:
    """Yield every part of a tree with its path."""
    stack: list[tuple[Any, Path]] = [(tree, ())]
    while stack:
        node, path = stack.pop()
        yield node, path
        stack += [(child, (*path, key)) for key, child in children(node)]


def _refuse_lone_surrogates(tree: Any, where: str) -> None:
    for node, path in _nodes(tree):
        texts = [node] if isinstance(node, str) else list(node) if isinstance(node, dict) else []
        for text in texts:
            if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
                raise JsonError(f"{where}: {path_text(path)}: expected Unicode text, got a lone surrogate", rule="J1")
