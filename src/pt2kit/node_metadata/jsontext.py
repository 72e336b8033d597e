"""JSON text inside metadata -> plain values, with a bound on its nesting before the parser runs."""

from __future__ import annotations

import json
import re

from pt2kit.errors import JsonError, LimitError

_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")


def load_json(text: str, where: str, max_depth: int) -> object:
    """Parse JSON text into dicts, lists, strings, numbers, booleans and None.

    Raises:
        JsonError: not JSON.
        LimitError: arrays and objects nested deeper than `max_depth`.
    """
    depth = _depth(text, max_depth)
    if depth > max_depth:
        raise LimitError(f"{where}: expected JSON nested at most {max_depth} levels deep, got {depth} or more")
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonError(f"{where}: expected JSON, got {error.msg!r} at character {error.pos}") from error
    except ValueError as error:  # an integer with more digits than Python converts
        raise JsonError(f"{where}: expected JSON with numbers of ordinary size, got {error}") from error
    except RecursionError as error:
        raise LimitError(f"{where}: expected JSON that fits the caller's stack, got {depth} levels") from error
    return value


def _depth(text: str, limit: int) -> int:
    openings = text.count("[") + text.count("{")
    if openings <= limit:
        return openings
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
        if deepest > limit:
            break
    return deepest
