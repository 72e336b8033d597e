"""Schema 5.3 and 7.3 say the same of a program."""

from __future__ import annotations

import pytest
from tests.versions.programs import golden, node, round_trip

from pt2kit.versions.check import check_tree
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line.v5_3_v7_3 import downgrade, upgrade

IN_PLACE = [
    ("torch.ops.aten.add_.Tensor", True),
    ("torch.ops.aten.copy_.default", True),
    ("torch.ops.corpus.inc_.default", True),
    ("torch.ops.aten.add.out", True),
    ("torch.ops.aten.max.dim_out", True),
    ("torch.ops.aten.add.Tensor", False),
    ("torch.ops.aten.__and__.Tensor", False),
    ("torch.ops.higher_order.scan_", False),
    ("_operator.add", False),
]


def test_up_and_down_is_the_same_tree():
    """Nothing of a 5.3 program is lost."""
    new, log = round_trip("5.3", upgrade, downgrade, "7.3")
    assert (new["verifiers"], new["torch_version"], new["graph_module"]["metadata"]) == (["ATEN"], "<=2.4", {})
    assert log.notes == ()


def test_operators_move():
    """Those that 2.4 calls by their modules, also where they are arguments."""
    tree = golden("5.3")
    old, new = "torch._higher_order_ops.effects.with_effects", "torch.ops.higher_order.with_effects"
    tree["graph_module"]["graph"]["nodes"].append(node(old, [("", {"as_operator": old})], []))
    log = ConversionLog("x")
    up = upgrade(tree, log)
    moved = up["graph_module"]["graph"]["nodes"][-1]
    assert (moved["target"], moved["inputs"][0]["arg"]) == (new, {"as_operator": new})
    assert downgrade(up, log) == tree


def test_provenance_and_metadata_are_lost_downwards():
    """They have names by which that is allowed; the metadata waits in the log for a draft."""
    tree = golden("7.3")
    log = ConversionLog("x")
    check_tree(downgrade(tree, log), "5.3", "x")
    assert {note.name for note in log.notes} == {"torch_version", "graph_metadata"}
    assert log.graph_metadata == {"key": "text"}


@pytest.mark.parametrize(("verifiers", "dialect"), [([], ""), (["EDGE"], "EDGE"), (["TRAINING"], "ATEN")])
def test_dialects(verifiers, dialect):
    """One verifier is a dialect; TRAINING without changes in place is ATEN."""
    tree = {**golden("7.3"), "verifiers": verifiers}
    assert downgrade(tree, ConversionLog("x"))["dialect"] == dialect


def test_several_verifiers_are_blocked():
    """There is room for one dialect."""
    log = ConversionLog("x")
    downgrade({**golden("7.3"), "verifiers": ["ATEN", "EDGE"]}, log)
    assert [note.message for note in log.notes if note.kind == "blocked"] == ["several verifiers (ATEN, EDGE)"]


@pytest.mark.parametrize(("target", "in_place"), IN_PLACE)
def test_changes_in_place_are_blocked(target, in_place):
    """Programs of 2.4 are functional."""
    tree = {**golden("7.3"), "verifiers": ["TRAINING"]}
    tree["graph_module"]["graph"]["nodes"].append(node(target, [], []))
    log = ConversionLog("x")
    downgrade(tree, log)
    assert bool([note for note in log.notes if note.kind == "blocked"]) is in_place
