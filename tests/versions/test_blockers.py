"""All that an older version cannot express is found, wherever it is."""

from __future__ import annotations

import pytest
from tests.versions.programs import VERSIONS, golden

from pt2kit.schema.fieldtable import Ref, frozen_table
from pt2kit.versions.check import check_tree, fits
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line.minor import block_misfits, smallest
from pt2kit.versions.steps import STEPS, Step


def test_a_tree_that_fits_is_the_same_object():
    """Nothing to note, nothing to change."""
    tree = golden("8.7")
    log = ConversionLog("x")
    assert block_misfits(tree, "8.7", "8.8", log) is tree
    assert log.notes == ()


def test_everything_new_is_noted_and_replaced():
    """The tree fits afterwards, so that older steps can look for more."""
    tree = golden("8.20")
    log = ConversionLog("x")
    new = block_misfits(tree, "8.17", "8.20", log)
    check_tree(new, "8.17", "x")
    assert tree == golden("8.20")
    assert {note.message for note in log.notes} == {
        "the arm as_float_lists of Argument",
        "the ScalarType 33",
        "the ScalarType 34",
        "the ScalarType 35",
    }
    assert {(note.kind, note.since) for note in log.notes} == {("blocked", "8.20")}


def test_fields_that_say_something_are_noted():
    """Those with a name can be allowed to go, as what no table knows; a field with its default goes without a word."""
    tree = golden("8.14")
    tree["graph_module"]["graph"]["nodes"][0]["colour"] = "red"
    log = ConversionLog("x")
    new = block_misfits(tree, "8.8", "8.14", log)
    assert fits(new, "8.8")
    noted = {note.message: (note.kind, note.name) for note in log.notes}
    assert noted["ExportedProgram.guards_code"] == ("lost", "guards_code")
    assert noted["Node.colour, which no schema here knows"] == ("lost", "unknown_keys")


def test_fields_without_a_name_block():
    """Metadata of the graph module is dropped by its step only; empty, it says nothing."""
    tree = golden("7.3")
    older = {**tree, "dialect": "ATEN", "graph_module": {**tree["graph_module"], "metadata": {}}}
    for metadata, messages in (({}, set()), ({"key": "text"}, {"GraphModule.metadata"})):
        older["graph_module"]["metadata"] = metadata
        log = ConversionLog("x")
        assert "metadata" not in block_misfits(older, "5.3", "7.3", log)["graph_module"]
        assert {note.message for note in log.notes if note.message.startswith("GraphModule")} == messages


@pytest.mark.parametrize("step", STEPS[1:], ids=lambda step: f"{step.newer} to {step.older}")
def test_only_types_that_lost_a_part_are_visited(step: Step) -> None:
    """Without unknown keys, visiting the types that differ between two tables finds what visiting all types finds."""
    after = step.apply(golden(step.newer), ConversionLog("x"), upwards=False)
    logs = ConversionLog("x"), ConversionLog("x")
    some, whole = (
        block_misfits(after, step.older, step.newer, log, exact=exact)
        for log, exact in zip(logs, (True, False), strict=True)
    )
    assert some == whole
    assert logs[0].notes == logs[1].notes
    check_tree(some, step.older, "x")


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != "draft"])
def test_the_smallest_values_fit(version):
    """Of every type of every version."""
    for name in frozen_table(version).definitions:
        assert fits(smallest(Ref(name), version), version, root=name), name
