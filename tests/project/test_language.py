"""Prose uses the field's terms: no phrase of the project's old private vocabulary.

Prose is docstrings, comments and messages of Python files, and text of pages. Code spans, code blocks, targets of links
and identifiers (also parameters in `Args:`) are exempt.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.project.sources import parsed

ROOT = Path(__file__).parents[2]
PLACES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs", "src", "benchmarks", "tests", "tools")
"""Files and folders whose prose holds no phrase of the list."""
PHRASES = (
    r"the house\b",
    r"(?<!has )(?<!leave )\brooms?\b(?! for|:)",
    r"\bfloors?\b(?![(,]| ceiling\b)",
    r"front[ -]door",
    r"\bbeside\b",
    r"\blet go of\b",
    r"\bwhat (?:stays|is held|becomes of)\b",
    r"\bstays? as (?:it is|they are)\b",
    r"\bvouch\w*",
    r"\bsays? so\b",
    r"\bis told\b",
    r"\bstand-ins?\b",
    r"\bin the place of\b",
    r"\bmisfit\w*",
    r"\btroubles?\b",
    r"\bmended\b",
    r"\ba hole\b",
    r"\beveryday\b",
    r"\bwish(?:es)?\b",
    r"\bworks? of fleet\b",
    r"\bthe road\b",
    r"\bkitchen\b",
    r"^(?:#+ )?(?-i:What|Where|Whether)\b(?!.*\?)",
    r"\bwhoever\b(?! wrote the file)",
    r"\bnumbers? of (?:the )?weights\b",
    r"\bthat there (?:is|are)\b",
)
"""Phrases of the old vocabulary. Say subpackage, layer, public API, external, next to, freed, stable, trusts, fixed."""
_PATTERN = re.compile("|".join(f"(?:{phrase})" for phrase in PHRASES), re.IGNORECASE)
_SPAN = re.compile(r"``[^`]+``|`[^`\n]*(?:\n[^`\n]*)?`|(?<=\]\()[^)]*\)|^ {4,}\w+(?=: )", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"<!-- generated")


def files(place: str) -> list[Path]:
    """Return the files of a place whose prose is held to the list."""
    path = ROOT / place
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [one for one in found if one.suffix in (".md", ".py", ".ipynb") and one != Path(__file__)]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text): docstrings, comments and string literals of Python, lines of a page without code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            for line in "".join(cell["source"]).splitlines() if cell["cell_type"] == "markdown" else []:
                yield 0, _without_code(line if line.startswith("#") else f" {line}")
        return
    if path.suffix == ".md":
        if not _GENERATED.search(text):
            kept = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
            for number, line in enumerate(_without_code(kept).splitlines(), 1):
                yield number, line if line.startswith("#") else f" {line}"  # a line of a paragraph begins no sentence
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], _without_code(token.string.lstrip("# "))
    are_messages = path.is_relative_to(ROOT / "src")  # elsewhere, other literals than docstrings are data
    for node in ast.walk(parsed(path) if are_messages else ast.parse(text)):
        literal = node if are_messages else getattr(node, "value", None) if isinstance(node, ast.Expr) else None
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str) and " " in literal.value:
            yield literal.lineno, _without_code(literal.value)


def _without_code(text: str) -> str:
    """Return prose with its code spans blanked and the lines kept."""
    return _SPAN.sub(lambda found: "\n" * found[0].count("\n") or "x", text)


@pytest.mark.parametrize("place", PLACES)
def test_prose_uses_the_words_of_the_field(place: str) -> None:
    """No phrase of the list is in the prose of a file."""
    bad = [
        f"{path.relative_to(ROOT)}:{line}: {found[0]!r} in {text.strip()[:90]!r}"
        for path in files(place)
        for line, text in prose(path)
        for found in _PATTERN.finditer(text)
    ]
    assert not bad, "\n".join(bad)


def test_code_and_names_are_exempt() -> None:
    """A code span, a link's target and a fence may hold any word; prose may not."""
    assert not _PATTERN.search(_without_code("`aten.floor` rounds, see [layers](rooms.md#floor)"))
    assert _PATTERN.search(_without_code("a room on the upper floor"))
    assert "floor" not in _FENCE.sub("", "```python\nfloor(x)\n```")
