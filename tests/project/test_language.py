"""Prose uses the field's terms: no phrase of the project's old private vocabulary, in folders that are clean.

Prose is docstrings, comments and messages of Python files, and text of pages. Code spans, code blocks, targets of links
and identifiers (also parameters in `Args:`) are exempt. Add a folder to `CLEAN` once its prose is fixed.
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

ROOT = Path(__file__).parents[2]
CLEAN = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs",
    "src/pt2kit/__init__.py",
    "src/pt2kit/__main__.py",
    "src/pt2kit/bridge",
    "src/pt2kit/canonical",
    "src/pt2kit/checks",
    "src/pt2kit/cli",
    "src/pt2kit/codec",
    "src/pt2kit/comparing",
    "src/pt2kit/costs",
    "src/pt2kit/dataflow",
    "src/pt2kit/diffs",
    "src/pt2kit/digests",
    "src/pt2kit/editing",
    "src/pt2kit/errors.py",
    "src/pt2kit/fleet",
    "src/pt2kit/front_door.py",
    "src/pt2kit/graph",
    "src/pt2kit/idl",
    "src/pt2kit/integrations",
    "src/pt2kit/messages.py",
    "src/pt2kit/node_metadata",
    "src/pt2kit/operators",
    "src/pt2kit/package",
    "src/pt2kit/pickles",
    "src/pt2kit/release",
    "src/pt2kit/runtime",
    "src/pt2kit/sanitizing",
    "src/pt2kit/schema",
    "src/pt2kit/signature",
    "src/pt2kit/signing",
    "src/pt2kit/symbols",
    "src/pt2kit/tensors",
    "src/pt2kit/text",
    "src/pt2kit/treespec",
    "src/pt2kit/versions",
    "src/pt2kit/viewing",
    "src/pt2kit/zip",
    "benchmarks",
    "tests",
    "tools",
)
"""Files and folders whose prose holds no phrase of the list."""
EVERYWHERE = ("benchmarks", "src", "tests", "tools")
"""Folders whose prose holds none of the phrases of `JARGON`."""
JARGON = (
    r"\bthe house\b",
    r"(?<!has )(?<!leave )\brooms?\b(?! for|:)",
    r"front[ -]door",
    r"\bbeside\b(?!\.)",
    r"\blet go of\b",
)
"""Words that readers of any file would have to learn."""
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


def files() -> list[Path]:
    """The files whose prose is held to the list."""
    found = []
    for name in CLEAN:
        path = ROOT / name
        for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if one.suffix in (".md", ".py", ".ipynb") and one != Path(__file__):
                found.append(one)
    return found


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
    for node in ast.walk(ast.parse(text)):
        literal = node if are_messages else getattr(node, "value", None) if isinstance(node, ast.Expr) else None
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str) and " " in literal.value:
            yield literal.lineno, _without_code(literal.value)


def _without_code(text: str) -> str:
    """Return prose with its code spans blanked and the lines kept."""
    return _SPAN.sub(lambda found: "\n" * found[0].count("\n") or "x", text)


@pytest.mark.parametrize("folder", CLEAN)
def test_prose_uses_the_words_of_the_field(folder: str) -> None:
    """No phrase of the list is in the prose of a folder that is clean."""
    bad = []
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        if name != folder and not name.startswith(f"{folder}/"):
            continue
        for line, text in prose(path):
            bad += [f"{name}:{line}: {found[0]!r} in {text.strip()[:90]!r}" for found in _PATTERN.finditer(text)]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("folder", EVERYWHERE)
def test_no_private_jargon(folder: str) -> None:
    """Docstrings, comments and messages of all Python files do without the words of `JARGON`."""
    pattern = re.compile("|".join(JARGON), re.IGNORECASE)
    bad = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        if path != Path(__file__):
            bad += [
                f"{path.relative_to(ROOT)}:{line}: {found[0]!r} in {text.strip()[:90]!r}"
                for line, text in prose(path)
                for found in pattern.finditer(text)
            ]
    assert not bad, "\n".join(bad)


def test_code_and_names_are_exempt() -> None:
    """A code span, a link's target and a fence may hold any word; prose may not."""
    assert not _PATTERN.search(_without_code("`aten.floor` rounds, see [layers](rooms.md#floor)"))
    assert _PATTERN.search(_without_code("a room on the upper floor"))
    assert "floor" not in _FENCE.sub("", "```python\nfloor(x)\n```")
