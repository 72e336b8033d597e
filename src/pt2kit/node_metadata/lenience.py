"""Lenient parsing of node metadata: None for a text that cannot be read, for views that show what they can."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pt2kit.errors import Pt2Error

T = TypeVar("T")


def lenient(parse: Callable[[str], T], text: str) -> T | None:
    """Return `parse(text)`, or None if the text can't be read: `lenient(parse_module_stack, text)`."""
    try:
        return parse(text)
    except Pt2Error:
        return None
