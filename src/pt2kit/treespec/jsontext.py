"""JSON text -> plain values, for text that sits inside a JSON string of the format (tree specs and their contexts).

Strict where Python's `json` is lax: nesting is bounded before the parser runs, and an object may not name a key twice.
Bare `NaN` and `Infinity` pass, because Python writers put them into contexts.
"""

from __future__ import annotations

import json
import re

from pt2kit.errors import JsonError, LimitError

# A whole string with its escapes, or one that never ends: what is left after removing them are brackets and scalars.
_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")


def depth_of(text: str, limit: int) -> int:
    """The deepest nesting of arrays and objects in JSON text; counting stops at the first level over `limit`.

    Cost: linear in the text; nothing but two counts when the text has no more brackets than `limit`.
    """
    openings = text.count("[") + text.count("{")
    if openings <= limit:
        return openings
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
        if deepest > limit:
            return deepest
    return deepest


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
    depth = depth_of(text, max_depth)
    if depth > max_depth:
        raise LimitError(f"{where}: expected JSON nested at most {max_depth} levels deep, got {depth} or more")

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
        raise LimitError(f"{where}: expected JSON that fits the caller's stack, got {depth} levels") from error
    return value


def brief(value: object) -> str:
    """A JSON value for a message, in printable ASCII: scalars as they are, containers by what they hold."""
    if isinstance(value, dict):
        return f"an object with the keys {_cut(', '.join(map(ascii, value)))}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return _cut(ascii(value))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


def printable(text: str, limit: int = 200) -> str:
    """A name for people: characters that do not print are escaped, and long text is cut after `limit` characters."""
    shown = text if len(text) <= limit else f"{text[:limit]}..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)
