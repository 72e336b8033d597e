"""The files of `src/pt2kit` and their syntax trees, each parsed once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "pt2kit"
FILES = sorted(SRC.rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file; all callers share it."""
    return ast.parse(path.read_text(encoding="utf-8"))


def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of each file of `src/pt2kit`, by its path there."""
    return {path.relative_to(SRC).as_posix(): parsed(path) for path in FILES}
