"""Parse JSON text inside a string with a limit on its nesting, and paths into the result.

For JSON that stands inside a string of the format: tree specs, their contexts, metadata. `codec` reads whole records,
and shares the count of levels. Strict where Python's `json` is lax: an object may not name a key twice. Bare `NaN` and
`Infinity` pass, because Python writers put them into contexts.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

from pt2kit.errors import JsonError, LimitError

Path = tuple[str | int, ...]
"""Keys and indices from the top of a tree to a place in it."""

_OUTSIDE_STRINGS = b"[]{}:"
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_NOT_STRUCTURE = bytes(set(range(256)) - set(_OUTSIDE_STRINGS + b'"'))
_STEPS = bytes(1 if char in b"[{" else 0xFF if char in b"]}" else 0 for char in range(256))
"""The change of the level of nesting by each character, as a signed byte."""


def load_json(text: str, where: str, max_depth: int) -> object:
    """Parse JSON text into dicts, lists, strings, numbers, booleans and None.

    Args:
        text: one JSON value.
        where: place of the text, for messages.
        max_depth: levels of arrays and objects allowed.

    Raises:
        JsonError: not JSON, or an object with the same key twice.
        LimitError: nested deeper than `max_depth`.
    """
    levels = depth(text.encode("utf-8", "surrogatepass"))
    if levels > max_depth:
        raise LimitError(f"{where}: expected JSON nested at most {max_depth} levels deep, got {levels}")

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        value = dict(items)
        if len(value) < len(items):
            keys = [key for key, _ in items]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise JsonError(f"{where}: expected every key of an object once, got {twice!r} {keys.count(twice)} times")
        return value

    try:
        value: object = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise JsonError(f"{where}: expected JSON, got {error.msg!r} at character {error.pos}") from error
    except ValueError as error:  # an integer with more digits than Python converts
        raise JsonError(f"{where}: expected JSON with numbers of ordinary size, got {error}") from error
    except RecursionError as error:
        raise LimitError(f"{where}: expected JSON that fits the caller's stack, got {levels} levels") from error
    return value


def depth(raw: bytes) -> int:
    """Count the levels of nesting of JSON text; brackets inside strings do not count. Linear."""
    return max(accumulate(memoryview(structure(raw).translate(_STEPS, b":")).cast("b")), default=0)


def structure(raw: bytes, dropped: bytes = _NOT_STRUCTURE) -> bytes:
    """Return the brackets and colons of JSON text outside strings, or other marks. A few passes in C, none per token.

    Args:
        raw: the text.
        dropped: all characters but the marks and quotes.
    """
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return re.sub(rb'"[^"]*"', b"", raw.translate(None, dropped).replace(b'""', b""))


def path_text(path: Path) -> str:
    """Write a path as `$.graph.nodes[3].name`; keys that are not plain names are quoted."""
    parts = ["$"]
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _PLAIN_NAME.fullmatch(step):
            parts.append(f".{step}")
        else:
            parts.append(f"[{json.dumps(step)}]")
    return "".join(parts)


def children(node: Any) -> list[tuple[str | int, Any]]:
    """Return the (key or index, child) pairs of a tree's node; none for a leaf."""
    if isinstance(node, dict):
        return list(node.items())
    return list(enumerate(node)) if isinstance(node, list) else []
