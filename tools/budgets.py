"""Print the code lines of each subpackage next to its budget in `docs/architecture.md`.

    python -m tools.budgets

Code lines are lines that hold code: no docstrings, comments, blank lines or imports. `make lint` prints the table;
`tests/project/test_budgets.py` fails where a limit is exceeded by more than 5 %.

Needs nothing but Python.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "pt2kit"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- budgets: tools/budgets.py -->", "<!-- end of budgets -->"
FOUNDATIONS = "foundations"
"""The row of the modules that lie in no subpackage."""
_NO_CODE = {getattr(tokenize, name) for name in ["COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER"]}


class Budget(NamedTuple):
    """A row of the table: code lines aimed at, and code lines that a change may not exceed."""

    target: int
    limit: int


def code_lines(source: str) -> int:
    """Count the lines of a module that hold code."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                left_out.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - left_out)


def modules(source: Path = SOURCE) -> dict[str, list[Path]]:
    """Return the modules of each subpackage; those in none of them are in `FOUNDATIONS`."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).parts
        found[parts[0] if len(parts) > 1 else FOUNDATIONS].append(path)
    return found


def counted(source: Path = SOURCE) -> dict[str, int]:
    """Count the code lines of each subpackage."""
    return {
        name: sum(code_lines(path.read_text(encoding="utf-8")) for path in paths)
        for name, paths in modules(source).items()
    }


def budgets(page: str) -> dict[str, Budget]:
    """Read the table of budgets: one row per subpackage, with its target and its limit."""
    table = page.partition(BEGIN)[2].partition(END)[0]
    rows = re.findall(r"^\| `?(\w+)`? \| ([\d,]+) \| ([\d,]+) \|", table, re.MULTILINE)
    return {name: Budget(*(int(number.replace(",", "")) for number in numbers)) for name, *numbers in rows}


def main() -> None:
    """Print the table, the largest excess over a target first."""
    lines, limits = counted(), budgets(PAGE.read_text(encoding="utf-8"))
    print(f"{'subpackage':14}{'code lines':>11}{'target':>9}{'limit':>8}")
    for name in sorted(lines, key=lambda name: limits[name].target - lines[name] if name in limits else 0):
        target, limit = limits.get(name, Budget(0, 0))
        mark = "  over its limit" if lines[name] > limit * 1.05 else ""
        print(f"{name:14}{lines[name]:>11,}{target:>9,}{limit:>8,}{mark}")
    print(f"{'sum':14}{sum(lines.values()):>11,}{sum(row.target for row in limits.values()):>9,}")


if __name__ == "__main__":
    main()
