"""Lines of text -> the same lines with the colours they have on a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TextIO

import click

_LABEL: Final = re.compile(r"  (?=.{12} )[a-z][a-z ]{12}(?=\S)")
_WARNING: Final = re.compile(r"  (?:X\d+ |unknown keys |problems  )")
_PARTS: Final = re.compile(
    r"(?P<value>%(?:\w+|\"(?:[^\"\\]|\\.)*\"))"
    r"|(?P<type>\b[fiucb][a-z0-9]+\[[^\]]*\])"
    r"|(?P<custom>\(custom\))"
    r"|(?P<comment>  # .*$)"
)
_STYLES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "value": {"fg": "green"},
        "type": {"fg": "blue"},
        "custom": {"fg": "magenta"},
        "comment": {"dim": True},
    }
)


def wants_colour(stream: TextIO | None) -> bool:
    """Whether a stream gets colours: a terminal that shows them, or any by FORCE_COLOR; none by NO_COLOR.

    Source: https://no-color.org and https://force-color.org.
    """
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def colour(line: str) -> str:
    """A line with the styles of its parts; the caller has escaped what does not print."""
    if line and not line.startswith(" "):
        return click.style(line, bold=True)
    if _WARNING.match(line):
        return click.style(line, fg="yellow")
    label = _LABEL.match(line)
    start = label.end() if label else 0
    return (click.style(label[0], fg="cyan") if label else "") + _PARTS.sub(_styled, line[start:])


def _styled(match: re.Match[str]) -> str:
    return click.style(match[0], **_STYLES[str(match.lastgroup)])
