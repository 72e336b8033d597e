"""Schema 8.2 and 8.6 say the same of a program."""

from __future__ import annotations

import pytest
from tests.versions.programs import golden, node, round_trip

from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line.v8_2_v8_6 import downgrade, upgrade

KINDS = [
    ("torch.ops.aten.add.Tensor", "self", None),
    ("torch.ops.higher_order.cond", "", 1),
    ("torch.ops.higher_order.auto_functionalized", "x", 2),
    ("_operator.add", "a", 1),
    ("torch.sym_max", "a", 1),
    ("math.floor", "a", 1),
]


def test_up_and_down_is_the_same_tree():
    """Nothing of an 8.2 program is lost."""
    _, log = round_trip("8.2", upgrade, downgrade, "8.6")
    assert log.notes == ()


@pytest.mark.parametrize(("target", "name", "kind"), KINDS)
def test_kinds_of_arguments(target, name, kind):
    """If no schema declares whether an argument is positional, its name does."""
    tree = golden("8.2")
    tree["graph_module"]["graph"]["nodes"].append(node(target, [(name, {"as_int": 1})], []))
    log = ConversionLog("x")
    new = upgrade(tree, log)
    assert new["graph_module"]["graph"]["nodes"][-1]["inputs"][0]["kind"] == kind
    assert downgrade(new, log) == tree


def test_field_names_come_from_the_ledger():
    """Those of the named tuples in the program's specs, from older forms of it and back to them."""
    log = ConversionLog("x")
    log.namedtuple_fields = {"golden.NT": ["a", "b"], "other.NT": ["c"]}
    new = upgrade(golden("8.2"), log)
    assert new["graph_module"]["treespec_namedtuple_fields"] == {"golden.NT": {"field_names": ["a", "b"]}}
    fresh = ConversionLog("x")
    downgrade(new, fresh)
    assert fresh.namedtuple_fields == {"golden.NT": ["a", "b"]}


def test_positional_arguments_with_names_are_blocked():
    """2.6 would take them for keywords, where no schema says otherwise."""
    tree = golden("8.6")
    call = node("torch.ops.higher_order.triton", [("x", {"as_int": 1})], [], is_hop_single_tensor_return=False)
    call["inputs"][0]["kind"] = 1
    tree["graph_module"]["graph"]["nodes"].append(call)
    log = ConversionLog("x")
    downgrade(tree, log)
    assert [note.message for note in log.notes if note.kind == "blocked"] == [
        "the positional argument 'x' of an operator without a schema"
    ]
