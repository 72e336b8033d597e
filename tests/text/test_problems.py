"""Problems as lines and as data."""

from __future__ import annotations

from pt2kit.checks import FAMILIES, RULES
from pt2kit.errors import Problem
from pt2kit.text.problems import MAX_LISTED, problem_lines, problems_tree, rule_order, verdict

ERROR = Problem("models/m.json: $.a", "G2", "expected one, got two")
FINDING = Problem("models/m.json: $.b", "X7", "torch looks up 'os.x'", "safety")
COMPILED = Problem("data/aotinductor/m/", "X8", "torch loads compiled code", "safety")
CLASSES = Problem("data/sample_inputs/m.pt", "X1", "torch unpickles: calls make.NT", "warning")
WARNING = Problem("models/m.json: $.c", "G5", "expected none, got one", "warning")
NOTE = Problem("data/sample_inputs/m.pt", "X1", "torch unpickles: plain data", "note")


def test_lines() -> None:
    """Groups by weight, rules in order with their text, problems under them, then what to do."""
    lines = list(problem_lines("m.pt2", [NOTE, WARNING, FINDING, CLASSES, ERROR, COMPILED]))
    assert lines == [
        "m.pt2: 2 errors, 3 warnings, 1 note",
        "",
        "errors",
        "  G2  a value is defined once",
        "      models/m.json: $.a: expected one, got two",
        f"      -> {RULES['G2'].hint}",
        "",
        "what torch would run on loading this",
        "  X1  sample inputs are a pickle",
        "      data/sample_inputs/m.pt: torch unpickles: calls make.NT",
        f"      -> {RULES['X1'].hint}",
        "  X7  an operator is looked up outside the dispatcher and the usual functions",
        "      models/m.json: $.b: torch looks up 'os.x'",
        f"      -> {RULES['X7'].hint}",
        "  X8  compiled code is loaded into the process",
        "      data/aotinductor/m/: torch loads compiled code",
        f"      -> {RULES['X8'].hint}",
        "",
        "warnings",
        "  G5  the value tables have no entry for a name that the graph does not define",
        "      models/m.json: $.c: expected none, got one",
        f"      -> {RULES['G5'].hint}",
        "",
        "notes",
        "  X1  sample inputs are a pickle",
        "      data/sample_inputs/m.pt: torch unpickles: plain data",
    ]


def test_verdict() -> None:
    """One line says how many there are of each weight, or that the file is sound."""
    assert verdict([]) == "sound"
    assert verdict([NOTE, NOTE]) == "sound, 2 notes"
    assert verdict([COMPILED]) == "1 warning"
    assert verdict([FINDING, WARNING, NOTE]) == "1 error, 1 warning, 1 note"


def test_long_lists_are_cut() -> None:
    """Of one rule the first few are printed, unless all are asked for."""
    many = [Problem(f"p{number}", "G2", "x") for number in range(MAX_LISTED + 3)]
    lines = list(problem_lines("m.pt2", many))
    assert "      … 3 more: pt2 check --full" in lines
    assert len(list(problem_lines("m.pt2", many, full=True))) == len(lines) + 2


def test_nothing_plays_with_the_terminal() -> None:
    """Names from the file are escaped and cut."""
    bad = Problem("a\x1b[31m", "G2", "x" * 5000 + "\n")
    lines = list(problem_lines("f\x07.pt2", [bad]))
    assert all(line.isprintable() and len(line) < 1000 for line in lines)


def test_tree() -> None:
    """As data: counts, and for each problem its rule's text and hint."""
    tree = problems_tree("m.pt2", [ERROR, COMPILED, NOTE])
    assert (tree["file"], tree["errors"], tree["warnings"], tree["notes"]) == ("m.pt2", 1, 1, 1)
    assert tree["problems"][1] == {
        "rule": "X8",
        "kind": "safety",
        "severity": "warning",
        "loc": "data/aotinductor/m/",
        "message": "torch loads compiled code",
        "text": RULES["X8"].text,
        "hint": RULES["X8"].hint,
    }


def test_order() -> None:
    """Rules stand family by family, in the order of their numbers."""
    assert sorted(["X2", "G10", "A3", "G9", "?"], key=rule_order) == ["A3", "G9", "G10", "X2", "?"]
    assert list(RULES) == sorted(RULES, key=rule_order)
    assert len(FAMILIES) == len({rule_order(f"{letter}1") for letter in FAMILIES})
