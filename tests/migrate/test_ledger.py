"""A conversion says everything it did, once, and refuses with everything that is in its way."""

from __future__ import annotations

import pytest

from pt2kit.errors import ConversionError
from pt2kit.migrate.ledger import HARMLESS, Beside, Ledger


def test_equal_notes_are_joined():
    """With their places, of which ten are kept."""
    ledger = Ledger("x")
    for index in range(12):
        ledger.changed("moved", ("nodes", index))
    ledger.changed("other")
    first, second = ledger.notes
    assert (first.count, len(first.places), first.places[:2]) == (12, 10, ("$.nodes[0]", "$.nodes[1]"))
    assert str(first).endswith("$.nodes[9] and 2 more: moved")
    assert str(second) == "$: other"


def test_everything_in_the_way_is_listed():
    """Blocked places, and losses that were not allowed, each with what to do."""
    ledger = Ledger("models/m.json")
    ledger.blocked("the arm as_complex of Argument", ("a", 0), "8.14")
    ledger.lost("guards_code", "ExportedProgram.guards_code", ("guards_code",), "8.14")
    ledger.lost("node_names", "Node.name", ("n",), "8.17")
    with pytest.raises(ConversionError) as caught:
        ledger.settle("8.8", allow={"node_names"})
    assert str(caught.value).splitlines() == [
        "models/m.json: expected a program that schema 8.8 can express, got one with:",
        "  $.a[0]: the arm as_complex of Argument (since 8.14)",
        "  $.guards_code: ExportedProgram.guards_code (since 8.14); allow 'guards_code' to drop it [M3]",
    ]
    assert caught.value.rule == "M3"


def test_what_is_allowed_is_no_obstacle():
    """Then there is nothing to raise, and the notes still say it."""
    ledger = Ledger("x")
    ledger.lost("guards_code", "ExportedProgram.guards_code", ("guards_code",), "8.14")
    ledger.settle("8.8", allow=HARMLESS)
    assert [note.name for note in ledger.notes] == ["guards_code"]


def test_what_lies_beside_is_copied():
    """A step may add to it without changing what the caller gave."""
    given = Beside(constants={"c": b"1"})
    ledger = Ledger("x", beside=given)
    ledger.constants["d"] = b"2"
    assert given.constants == {"c": b"1"}
