"""Schema 7.3 and 8.2 say the same of a program."""

from __future__ import annotations

from tests.migrate.programs import copied, golden

from pt2kit.migrate.check import check_tree
from pt2kit.migrate.ledger import Ledger
from pt2kit.migrate.v7_3_v8_2 import downgrade, upgrade


def test_up_and_down_is_the_same_tree():
    """Nothing of a 7.3 program is lost."""
    tree = golden("7.3")
    before = copied(tree)
    ledger = Ledger("x")
    new = upgrade(tree, ledger)
    assert tree == before
    check_tree(new, "8.2", "x")
    assert downgrade(new, ledger) == before
    assert ledger.notes == ()


def test_none_is_true():
    """In all three unions that have it."""
    text = str(upgrade(golden("7.3"), Ledger("x")))
    assert "'as_none': True" in text
    assert "'as_none': []" not in text


def test_what_7_3_cannot_say():
    """Symbolic floats block, names of arguments are lost."""
    ledger = Ledger("x")
    new = downgrade(golden("8.2"), ledger)
    assert "sym_float_values" not in new["graph_module"]["graph"]
    assert {(note.kind, note.name or note.message) for note in ledger.notes} == {
        ("blocked", "the symbolic float 'f'"),
        ("blocked", "the symbolic float 'f2'"),
        ("lost", "forward_arg_names"),
    }
