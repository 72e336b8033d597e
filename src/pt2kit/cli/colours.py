"""Colors and hyperlinks of printed lines, for terminals that show them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
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


_RULE: Final = re.compile(r"(?<=^  )[A-Z]\d{1,2}(?= )")
_TERMINALS_WITH_LINKS: Final = frozenset(("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"))


def wants_colour(stream: TextIO | None) -> bool:
    """Return whether a stream gets colors: a terminal that shows them, or any by FORCE_COLOR; none by NO_COLOR.

    Source: https://no-color.org and https://force-color.org.
    """
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def colour(line: str) -> str:
    """Return a line with the styles of its parts; the caller has escaped what does not print."""
    if line and not line.startswith(" "):
        return click.style(line, bold=True)
    if _WARNING.match(line):
        return click.style(linked(line), fg="yellow")
    label = _LABEL.match(line)
    start = label.end() if label else 0
    return (click.style(label[0], fg="cyan") if label else "") + _PARTS.sub(_styled, line[start:])


def linked(line: str) -> str:
    """Return a line whose rule id, if it begins with one, is a hyperlink to the page of the rule."""
    base = _pages()
    if not base:
        return line
    return _RULE.sub(lambda found: f"\x1b]8;;{base}/{found[0]}.md\x1b\\{found[0]}\x1b]8;;\x1b\\", line, count=1)


@cache
def _pages() -> str:
    """Return the URL of the folder of rule pages; "" if there is none, or the terminal shows no hyperlinks.

    PT2_DOCS names the documentation; in a checkout it is `docs/`. FORCE_HYPERLINK=1 or 0 decides for any terminal.
    """
    asked, environment = os.environ.get("FORCE_HYPERLINK", ""), os.environ
    is_known = (
        environment.get("TERM_PROGRAM") in _TERMINALS_WITH_LINKS
        or environment.get("TERM", "").startswith(("xterm-kitty", "alacritty", "foot"))
        or "WT_SESSION" in environment
        or (environment.get("VTE_VERSION", "").isdecimal() and int(environment["VTE_VERSION"]) >= 5000)
    )
    if not (is_known if not asked else asked != "0"):
        return ""
    if docs := environment.get("PT2_DOCS"):
        return f"{docs.rstrip('/')}/rules"
    folder = Path(__file__).parents[3] / "docs" / "rules"
    return folder.as_uri() if folder.is_dir() else ""


def _styled(match: re.Match[str]) -> str:
    return click.style(match[0], **_STYLES[str(match.lastgroup)])
