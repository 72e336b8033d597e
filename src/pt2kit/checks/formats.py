"""Checks of format strings that a program prints: formats that read attributes of values, or print too much."""

from __future__ import annotations

import re
import string
from typing import Final

MAX_TEXT: Final = 10_000
"""Characters of one text."""

MAX_WIDTHS: Final = 10_000
"""Limit of the sum of all widths of one format, in characters."""

_FIELD: Final = re.compile(r"[A-Za-z_]\w*|\d*", re.ASCII)
_SPEC: Final = re.compile(r"[^{}\d]?[<>=^]?[ +\-]?#?(\d{0,3})[,_]?(?:\.(\d{1,3}))?[A-Za-z%]?", re.ASCII)


def text_problem(text: str) -> str | None:
    """Return why a text should not be printed; None if it is safe."""
    if not text.isprintable() or len(text) > MAX_TEXT:
        return "expected one line of printable text to print"
    return None


def format_problem(text: str) -> str | None:
    """Return why a text should not be printed as a format; None if it is safe."""
    if (problem := text_problem(text)) is not None:
        return problem
    try:
        fields = [(name, spec or "") for _, name, spec, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        return f"expected a format ({error})"
    total = 0
    for name, spec in fields:
        match = _SPEC.fullmatch(spec)
        if not _FIELD.fullmatch(name) or match is None:
            return f"expected a format of plain names and widths below 1,000, got {name[:40]!a} with {spec[:40]!a}"
        total += int(match[1] or 0) + int(match[2] or 0)
    if total > MAX_WIDTHS:
        return f"expected widths that add up to at most {MAX_WIDTHS:,}, got {total:,}"
    return None
