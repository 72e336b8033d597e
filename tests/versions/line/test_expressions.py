"""Expressions change their dialect and their symbols' names, not their meaning."""

from __future__ import annotations

from typing import Any

import pytest
from tests.versions.programs import copied, golden, release_version, stored_programs

from pt2kit import symbols
from pt2kit.codec import parse
from pt2kit.errors import ExpressionError
from pt2kit.versions import encoding
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line.texts import rename_symbols, to_plain, to_structural
from pt2kit.versions.rewrite import rewrite


def expressions(tree, version):
    """The texts of all expressions of a program, in order."""
    found: list[str] = []

    def take(value: Any, _: Any) -> Any:
        found.append(value["expr_str"])
        return value

    rewrite(tree, version, {"SymExpr": take})
    return found


def with_expression(version, text):
    """A golden program with another expression for the symbolic int n."""
    tree = golden(version)
    tree["graph_module"]["graph"]["sym_int_values"]["n"] = {"as_expr": {"expr_str": text, "hint": None}}
    return tree


@pytest.mark.parametrize("release", ["2.3.1", "2.4.1", "2.5.1"])
def test_texts_of_old_releases_come_back(release):
    """str -> srepr -> str gives the text that the release wrote, and both parse to the same tree."""
    version = release_version(release)
    for path, record, data in stored_programs(release):
        tree = encoding.from_wire(parse(data, record, bare_literals=True), version, record)
        new = rewrite(tree, version, {"SymExpr": to_structural(ConversionLog(record))})
        for old, text in zip(expressions(tree, version), expressions(new, version), strict=True):
            assert symbols.parse_str(old) == symbols.parse_srepr(text), path.stem
        assert rewrite(new, version, {"SymExpr": to_plain(ConversionLog(record))}) == tree


def test_assumptions_that_a_plain_text_loses_are_noted():
    """An integer input may be 0 or negative, which only srepr says of s0."""
    tree = with_expression("8.2", "Symbol('s0', integer=True)")
    log = ConversionLog("x")
    log.since = "8.2"
    assert "s0" in expressions(rewrite(tree, "8.2", {"SymExpr": to_plain(log)}), "8.2")
    (note,) = log.notes
    assert (note.kind, note.name, note.since) == ("lost", "assumptions", "8.2")
    assert note.places == ("$.graph_module.graph.sym_int_values.n.as_expr.expr_str",)


def test_no_expression_is_refused_with_its_place():
    """A text that is none ends the conversion; nothing of it is evaluated."""
    tree = with_expression("7.3", "__import__('os').system('true')")
    place = r"^x: \$\.graph_module\.graph\.sym_int_values\.n\.as_expr\.expr_str: "
    with pytest.raises(ExpressionError, match=place):
        rewrite(tree, "7.3", {"SymExpr": to_structural(ConversionLog("x"))})


RENAMED = [
    ("i0", "u0"),
    ("i12 + s0", "u12 + s0"),
    ("Max(i0, i1) <= 4", "Max(u0, u1) <= 4"),
    ("s0//i3", "s0//u3"),
    ("si0 + i0x + xi0", "si0 + i0x + xi0"),
    ("ni0", "ni0"),
]


@pytest.mark.parametrize(("old", "new"), RENAMED)
def test_symbols_are_renamed_whole(old, new):
    """i0 becomes u0 where it is a symbol, and only there; the opposite gives the text back."""
    tree = with_expression("2", old)
    tree["range_constraints"] = {"i0": {"min_val": 2, "max_val": 3}, "s0": {"min_val": 2, "max_val": 4}}
    up = rename_symbols(tree, "2", "i", "u", {})
    assert new in expressions(up, "2")
    assert list(up["range_constraints"]) == ["u0", "s0"]
    assert rename_symbols(up, "2", "u", "i", {}) == tree


def test_names_that_are_taken_stay():
    """If both names have a range, the older is no unbacked symbol."""
    tree = with_expression("2", "i0 + u0")
    tree["range_constraints"] = {"i0": {"min_val": 2, "max_val": 3}, "u0": {"min_val": 2, "max_val": 4}}
    before = copied(tree)
    assert rename_symbols(tree, "2", "i", "u", {}) == before
