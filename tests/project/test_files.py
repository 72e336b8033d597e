"""The files of the project: what each says of itself, how long it may be, what it must not hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
CODE = sorted(
    path
    for folder in ("src", "tests", "tools", "examples", "benchmarks", "conformance")
    for path in (ROOT / folder).rglob("*.py")
)
TEXTS = [
    *CODE,
    *sorted(path for folder in ("docs", "changes") for path in (ROOT / folder).rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")),
]
MAX_LINES = 800
LONGER = {"src/pt2kit/schema/types.py": "one class for each type of the format"}


def relative(path: Path) -> str:
    """Return a path relative to the repository."""
    return path.relative_to(ROOT).as_posix()


def test_modules_say_what_they_are() -> None:
    """Every module begins with a docstring; those of the package end their first sentence."""
    bad = []
    for path in CODE:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        sentence = re.search(r"[.:]$|[.:]\s", docstring.split("\n\n")[0])
        bad += [relative(path)] if not docstring or (path in SOURCES and not sentence) else []
    assert not bad, f"expected a docstring that begins with a sentence: {', '.join(bad)}"


def test_files_are_short() -> None:
    """A file has one subject and stays under 800 lines; the exceptions have reasons."""
    long = [relative(path) for path in SOURCES if path.read_text(encoding="utf-8").count("\n") >= MAX_LINES]
    assert set(long) <= set(LONGER)


def test_the_formatter_decides() -> None:
    """No file keeps lines from the formatter."""
    kept = re.compile(r"#\s*fmt:")
    assert [relative(path) for path in CODE if kept.search(path.read_text(encoding="utf-8"))] == []


MACHINE = re.compile(r"/(?:work|root|tmp)/")
ABOUT_PATHS = {
    "src/pt2kit/node_metadata/redaction.py",
    "tests/node_metadata/test_redaction.py",
    "tests/project/test_files.py",
}
"""Files whose subject is such paths."""


def test_texts_speak_of_the_project_alone() -> None:
    """No file holds a path of somebody's machine."""
    bad = [relative(path) for path in TEXTS if MACHINE.search(path.read_text(encoding="utf-8"))]
    assert set(bad) <= ABOUT_PATHS


def test_nothing_is_left_to_do() -> None:
    """No source file holds a note to oneself."""
    notes = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
    assert [relative(path) for path in SOURCES if notes.search(path.read_text(encoding="utf-8"))] == []
