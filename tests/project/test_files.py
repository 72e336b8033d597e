"""The files of the project: what each says of itself, how long it may be, what it must not hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
CODE = sorted(
    path for folder in ("src", "tests", "tools", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.py")
)
TEXTS = [
    *CODE,
    *sorted(path for folder in ("docs", "changes") for path in (ROOT / folder).rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")),
]
MAX_LINES = 500
LONGER = {"src/pt2kit/schema/types.py": "one class for each type of the format"}


def relative(path: Path) -> str:
    """A path as it stands in the repository."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", CODE, ids=relative)
def test_modules_say_what_they_are(path: Path) -> None:
    """Every module begins with a docstring; those of the package end their first sentence."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, "expected a docstring"
    if path in SOURCES:
        assert re.search(r"[.:]$|[.:]\s", docstring.split("\n\n")[0]), "expected a sentence"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_files_are_short(path: Path) -> None:
    """A file has one subject and stays under 500 lines; the exceptions have reasons."""
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines < MAX_LINES or relative(path) in LONGER


MACHINE = re.compile(r"/(?:work|root|tmp)/")
ABOUT_PATHS = {
    "src/pt2kit/node_metadata/redaction.py",
    "tests/node_metadata/test_redaction.py",
    "tests/project/test_files.py",
}
"""Files whose subject is such paths."""


@pytest.mark.parametrize("path", TEXTS, ids=relative)
def test_texts_speak_of_the_project_alone(path: Path) -> None:
    """No file holds a path of somebody's machine."""
    if relative(path) not in ABOUT_PATHS:
        assert MACHINE.findall(path.read_text(encoding="utf-8")) == []


def test_nothing_is_left_to_do() -> None:
    """No source file holds a note to oneself."""
    notes = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
    assert [relative(path) for path in SOURCES if notes.search(path.read_text(encoding="utf-8"))] == []
