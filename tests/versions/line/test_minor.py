"""The minors of schema 8 add, and only what says something stands in the way of going back."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from tests.versions.programs import golden, node, round_trip

from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line.minor import block_misfits, downgrade_minor, own_name, upgrade_minor
from pt2kit.versions.steps import MINORS

STEPS = list(pairwise(MINORS))


def downgraded(tree, newer, older, log):
    """A program of one minor as one of the minor before."""
    return block_misfits(downgrade_minor(newer)(tree, log), older, newer, log)


@pytest.mark.parametrize(("older", "newer"), STEPS)
def test_up_and_down_is_the_same_tree(older, newer):
    """Nothing is lost, and what came in is not changed."""
    _, log = round_trip(
        older, upgrade_minor(older, newer), lambda tree, log: downgraded(tree, newer, older, log), newer
    )
    assert log.notes == ()


@pytest.mark.parametrize(("older", "newer"), STEPS)
def test_every_new_field_is_written_out(older, newer):
    """No field of the newer table is left to its default."""
    from pt2kit.versions import encoding

    new = upgrade_minor(older, newer)(golden(older), ConversionLog("x"))
    assert encoding.from_wire(new, newer, "x") == new


@pytest.mark.parametrize(("older", "newer"), STEPS)
def test_new_arms_and_members_block(older, newer):
    """Of the fields, none does."""
    log = ConversionLog("x")
    downgraded(golden(newer), newer, older, log)
    arms_and_members = re.compile(r"the arm \w+ of \w+|the \w+ \d+")
    assert all(arms_and_members.fullmatch(note.message) for note in log.notes if note.kind == "blocked")


def test_defaults_are_not_shared():
    """Two programs never have one list."""
    first, second = (upgrade_minor("8.8", "8.14")(golden("8.8"), ConversionLog("x")) for _ in range(2))
    assert first["guards_code"] is not second["guards_code"]


def test_optional_tensors_as_2_7_wrote_them():
    """They are tensors, or None."""
    arguments = golden("8.8")["graph_module"]["graph"]["nodes"][1]["inputs"]
    count = sum("as_optional_tensor" in named["arg"] for named in arguments)
    program = downgrade_minor("8.8")(golden("8.8"), ConversionLog("x"))
    left = program["graph_module"]["graph"]["nodes"][1]["inputs"]
    assert count == 2
    assert not any("as_optional_tensor" in named["arg"] for named in left)
    assert len(left) == len(arguments)


def test_losses_have_names():
    """Guards, and names of nodes that are not those of their results."""
    log = ConversionLog("x")
    downgraded(golden("8.17"), "8.17", "8.15", log)
    downgraded(golden("8.14"), "8.14", "8.8", log)
    assert [(note.kind, note.name, note.since) for note in log.notes if note.kind == "lost"] == [
        ("lost", "node_names", "8.17"),
        ("lost", "guards_code", "8.14"),
    ]


NAMES = [
    ([{"as_tensor": {"name": "t"}}], None, "t"),
    ([{"as_tensor": {"name": "t"}}], True, "t"),
    ([{"as_tensor": {"name": "t"}}], False, None),
    ([{"as_sym_int": {"as_name": "n"}}], None, "n"),
    ([{"as_sym_float": {"as_name": "f"}}], None, "f"),
    ([{"as_sym_bool": {"as_name": "b"}}], None, "b"),
    ([{"as_sym_int": {"as_int": 3}}], None, None),
    ([{"as_tensors": [{"name": "t"}]}], None, None),
    ([{"as_tensor": {"name": "t"}}, {"as_tensor": {"name": "u"}}], None, None),
    ([{"as_none": True}], None, None),
    ([], None, None),
]


@pytest.mark.parametrize(("outputs", "single", "name"), NAMES)
def test_nodes_are_called_like_their_one_result(outputs, single, name):
    """As torch calls them where the file does not."""
    assert own_name(node("f", [], outputs, is_hop_single_tensor_return=single)) == name


def test_a_name_that_follows_from_the_result_is_not_lost():
    """Going back drops it without a word."""
    tree = golden("8.15")
    new = upgrade_minor("8.15", "8.17")(tree, ConversionLog("x"))
    assert [one["name"] for one in new["graph_module"]["graph"]["nodes"]] == [None, "k", "c", None]
