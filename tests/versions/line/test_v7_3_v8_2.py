"""Schema 7.3 and 8.2 say the same of a program."""

from __future__ import annotations

from tests.versions.programs import copied, golden

from pt2kit.versions.check import check_tree
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line.v7_3_v8_2 import downgrade, upgrade


def test_up_and_down_is_the_same_tree():
    """Nothing of a 7.3 program is lost."""
    tree = golden("7.3")
    before = copied(tree)
    log = ConversionLog("x")
    new = upgrade(tree, log)
    assert tree == before
    check_tree(new, "8.2", "x")
    assert downgrade(new, log) == before
    assert log.notes == ()


def test_none_is_true():
    """In all three unions that have it."""
    text = str(upgrade(golden("7.3"), ConversionLog("x")))
    assert "'as_none': True" in text
    assert "'as_none': []" not in text


def test_what_7_3_cannot_say():
    """Symbolic floats block, names of arguments are lost."""
    log = ConversionLog("x")
    new = downgrade(golden("8.2"), log)
    assert "sym_float_values" not in new["graph_module"]["graph"]
    assert {(note.kind, note.name or note.message) for note in log.notes} == {
        ("blocked", "the symbolic float 'f'"),
        ("blocked", "the symbolic float 'f2'"),
        ("lost", "forward_arg_names"),
    }
