"""Mutants of the source: each kind of fault where it fits, nothing that no test has to notice, the same for a seed."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from tools.budgets import ROOT
from tools.code_mutants import diff, drawn, mutants


def changed(source: str) -> list[tuple[str, str]]:
    """Return the kind of each mutant of a module, and its text."""
    return [(one.kind, one.mutated(source.encode()).decode()) for one in mutants("m.py", source.encode())]


@pytest.mark.parametrize(
    ("source", "kind", "expected"),
    [
        ("x < y", "comparison", "x <= y"),
        ("x is not y", "comparison", "x is y"),
        ("(x or y) and z", "and for or", "((x or y) or z)"),
        ("x - 'é' + y", "sum for difference", "x - 'é' - y"),
        ("x += y", "sum for difference", "x -= y"),
        ("f(é, 3)", "off by one", "f(é, 4)"),
        ("f('é', 'a')", "text", "f('é', 'a_')"),
        ("f(y=True)", "flag", "f(y=False)"),
        ("def f(x=0): g()", "default", "def f(x=1): g()"),
        ("def f(*, x=True): g()", "default", "def f(*, x=False): g()"),
        ("x = 1 if y else z", "condition negated", "x = 1 if not (y) else z"),
        ("[x for x in y if z]", "condition negated", "[x for x in y if not (z)]"),
        ("def f(): return x", "result", "def f(): return None"),
        ("def f(): return not x", "result", "def f(): return not (not x)"),
        ("for x in y: continue", "continue for break", "for x in y: break"),
        ("x.append(y)", "deleted statement", "pass"),
        ("raise ValueError('1 < 2')", "deleted statement", "pass"),
    ],
)
def test_faults(source: str, kind: str, expected: str) -> None:
    """Each kind of fault changes its own part of the text, and nothing around it."""
    assert (kind, expected) in changed(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""Text."""',
        "def f(x: Literal['a']) -> 'b':\n    'Text.'",
        "Kind = Literal['a', 'b']",
        "__all__ = ['a']",
        "@f(1)\nclass C:\n    pass",
        "if TYPE_CHECKING:\n    x = 1",
        "def __repr__(self):\n    return 'a'",
        "x = f'{y} of {1}'",
        "x = 'some words'",
        "def f(): return None",
    ],
)
def test_left_out(source: str) -> None:
    """Documentation, types, and text for people have no mutants."""
    assert changed(source) == []


def test_errors_are_deleted_only() -> None:
    """The text of an error is no fault that a test has to notice."""
    assert changed("raise ValueError('a')") == [("deleted statement", "pass")]


def test_a_seed_draws_the_same() -> None:
    """Mutants parse, differ from the source, and are spread over its folders by their code lines."""
    folder = ROOT / "src" / "pt2kit" / "versions"
    found = drawn(7, 20, folder)
    assert found == drawn(7, 20, folder)
    assert len(set(found)) == 20
    places = Counter(one.path.partition("/")[0] for one in found)
    assert places["line"] > places["draft"] > 0
    for one in found:
        before = (folder / one.path).read_bytes()
        assert ast.dump(ast.parse(one.mutated(before))) != ast.dump(ast.parse(before))


def test_diff(tmp_path: Path) -> None:
    """A mutant is printed as a patch of the repository."""
    (tmp_path / "m.py").write_text("a\nx = y < z\nb\n")
    [mutant] = mutants("m.py", (tmp_path / "m.py").read_bytes())
    assert diff(mutant, tmp_path) == (
        "--- a/src/pt2kit/m.py\n+++ b/src/pt2kit/m.py\n@@ -1,3 +1,3 @@\n a\n-x = y < z\n+x = y <= z\n b\n"
    )
