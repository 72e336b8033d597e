"""Every test of an error looks at what the error says: a type alone passes for the wrong reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("test_*.py"))


def unread(source: str) -> Iterator[int]:
    """The lines of `pytest.raises` that neither match the text nor give it to the test."""
    for part in ast.parse(source).body:
        yield from _unread(part)


def _unread(tree: ast.stmt) -> Iterator[int]:
    read = {
        node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "value" and isinstance(node.value, ast.Name)
    }
    named = {
        id(item.context_expr): item.optional_vars.id
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.optional_vars, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("pytest.raises", "pytest.warns"):
            continue
        matches = any(keyword.arg in ("match", "check") for keyword in node.keywords)
        if not matches and named.get(id(node)) not in read:
            yield node.lineno


def test_errors_are_read() -> None:
    """Each `pytest.raises` has `match`, or a name whose `value` the test looks at."""
    lines = [f"{path.relative_to(TESTS)}:{line}" for path in FILES for line in unread(path.read_text(encoding="utf-8"))]
    assert not lines, f"expected match=... or a look at the error's value, got none: {', '.join(lines)}"


def test_what_counts_as_reading() -> None:
    """A type alone does not; `match`, and a look at the value, do."""
    alone = "def test():\n    with pytest.raises(KeyError):\n        f()\n"
    kept = "def test():\n    with pytest.raises(KeyError) as caught:\n        f()\n"
    elsewhere = "def other():\n    assert caught.value\n"
    assert list(unread(alone)) == list(unread(kept)) == list(unread(kept + elsewhere)) == [2]
    assert not list(unread("def test():\n    with pytest.raises(KeyError, match='x'):\n        f()\n"))
    assert not list(unread(f"{kept}    assert str(caught.value) == 'x'\n"))
