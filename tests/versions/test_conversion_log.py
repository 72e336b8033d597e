"""A conversion says everything it did, once, and refuses with everything that is in its way."""

from __future__ import annotations

import pytest

from pt2kit.errors import ConversionError
from pt2kit.versions.conversion_log import HARMLESS, ConversionLog, SideInputs, raise_if_blocked


def test_equal_notes_are_joined():
    """With their places, of which ten are kept and one is printed."""
    log = ConversionLog("x")
    for index in range(12):
        log.changed("moved", ("nodes", index))
    log.changed("other")
    first, second = log.notes
    assert (first.count, len(first.places), first.places[:2]) == (12, 10, ("$.nodes[0]", "$.nodes[1]"))
    assert str(first) == "moved: $.nodes[0] and 11 more"
    assert str(second) == "other: $"


def test_everything_in_the_way_is_listed():
    """Blocked places, and losses that were not allowed, each with what to do."""
    log = ConversionLog("models/m.json")
    log.blocked("the arm as_complex of Argument", ("a", 0), "8.14")
    log.lost("guards_code", "ExportedProgram.guards_code", ("guards_code",), "8.14")
    log.lost("node_names", "Node.name", ("n",), "8.17")
    with pytest.raises(ConversionError) as caught:
        raise_if_blocked(log.notes, "models/m.json", "8.8", {"node_names"})
    assert str(caught.value).splitlines() == [
        "models/m.json: expected a program that schema 8.8 can express, got one with:",
        "  the arm as_complex of Argument (since 8.14): $.a[0]",
        "  ExportedProgram.guards_code (since 8.14); allow 'guards_code' to drop it: $.guards_code [M3]",
    ]
    assert caught.value.rule == "M3"


def test_what_is_allowed_is_no_obstacle():
    """Then there is nothing to raise, and the notes still say it."""
    log = ConversionLog("x")
    log.lost("guards_code", "ExportedProgram.guards_code", ("guards_code",), "8.14")
    raise_if_blocked(log.notes, "x", "8.8", HARMLESS)
    assert [note.name for note in log.notes] == ["guards_code"]


def test_what_lies_beside_is_copied():
    """A step may add to it without changing what the caller gave."""
    given = SideInputs(constants={"c": b"1"})
    log = ConversionLog("x", side_inputs=given)
    log.constants["d"] = b"2"
    assert given.constants == {"c": b"1"}
