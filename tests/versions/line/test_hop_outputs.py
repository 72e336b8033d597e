"""Calls of higher-order operators mean the same in the forms of all releases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.versions.programs import node

from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line import hops as hops

COND = "torch.ops.higher_order.cond"
ADD = "torch.ops.aten.add.Tensor"
A, B = {"name": "a"}, {"name": "b"}
SPREAD = [
    # (target, outputs of 2.2, outputs of 2.3)
    (COND, [{"as_tensors": [A, B]}], [{"as_tensor": A}, {"as_tensor": B}]),
    (COND, [{"as_tensors": [A]}], [{"as_tensors": [A]}]),
    (COND, [{"as_tensor": A}], [{"as_tensor": A}]),
    ("torch.ops.aten.split.Tensor", [{"as_tensors": [A, B]}], [{"as_tensors": [A, B]}]),
]
SINGLE = [
    # (target, outputs of 2.6, outputs of 2.7, flag)
    (COND, [{"as_tensors": [A]}], [{"as_tensor": A}], False),
    (COND, [{"as_tensor": A}], [{"as_tensor": A}], True),
    (COND, [{"as_tensor": A}, {"as_tensor": B}], [{"as_tensor": A}, {"as_tensor": B}], False),
    (COND, [{"as_sym_int": {"as_name": "n"}}], [{"as_sym_int": {"as_name": "n"}}], True),
    (COND, [{"as_none": True}], [{"as_none": True}], False),
    (COND, [], [], False),
    (ADD, [{"as_tensor": A}], [{"as_tensor": A}], None),
    ("torch.ops.aten.split.Tensor", [{"as_tensors": [A]}], [{"as_tensors": [A]}], None),
]
BODY = ("", {"as_graph": {"name": "body", "graph": {}}})
X, Y = ("", {"as_tensor": {"name": "x"}}), ("", {"as_tensor": {"name": "y"}})


@pytest.mark.parametrize(("target", "old", "new"), SPREAD)
def test_tuples_are_spread(target, old, new):
    """2.2 lists a tuple's tensors, 2.3 spreads more than one; operators with schemas are left alone."""
    log = ConversionLog("x")
    before = node(target, [], old)
    after = hops.spread_outputs(before)
    assert after["outputs"] == new
    assert hops.gather_outputs(after, (), log) == before
    assert log.notes == ()


def test_a_mixed_tuple_is_blocked_for_2_2():
    """A token and None have no form there."""
    log = ConversionLog("x")
    call = node("torch.ops.higher_order.with_effects", [], [{"as_tensor": A}, {"as_none": []}])
    assert hops.gather_outputs(call, ("n",), log)["outputs"] == []
    assert [(note.kind, note.places) for note in log.notes] == [("blocked", ("$.n.outputs",))]


@pytest.mark.parametrize(("target", "old", "new", "single"), SINGLE)
def test_single_results_are_told_from_tuples_of_one(target, old, new, single):
    """The flag of 2.7 says what the grouping of 2.6 says."""
    log = ConversionLog("x")
    before = node(target, [], old)
    after = hops.unwrap_outputs(before)
    assert (after["outputs"], after["is_hop_single_tensor_return"]) == (new, single)
    assert hops.wrap_outputs(after, (), log) == before
    assert log.notes == ()


def test_a_tuple_of_one_symbol_is_blocked_for_2_6():
    """2.6 has no list of symbolic results."""
    log = ConversionLog("x")
    call = node(COND, [], [{"as_sym_int": {"as_name": "n"}}], is_hop_single_tensor_return=False)
    hops.wrap_outputs(call, (), log)
    assert [note.kind for note in log.notes] == ["blocked"]


def test_a_flag_that_was_left_out_is_made_up():
    """A development state without the flag is read like 2.6; a flag that is there is believed."""
    assert hops.mark_outputs(node(COND, [], [{"as_tensors": [A]}]))["is_hop_single_tensor_return"] is False
    said = node(COND, [], [{"as_tensor": A}], is_hop_single_tensor_return=False)
    assert hops.mark_outputs(said) is said
    other = node(ADD, [], [{"as_tensor": A}], is_hop_single_tensor_return=None)
    assert hops.mark_outputs(other) is other


def test_map_takes_lists_since_2_3():
    """map_impl(body, 1, x, y) is map_impl(body, [x], [y])."""
    log = ConversionLog("x")
    before = node("torch.ops.higher_order.map_impl", [BODY, ("", {"as_int": 1}), X, Y], [])
    after = hops.regroup_map(before, (), log)
    assert [named["arg"] for named in after["inputs"][1:]] == [
        {"as_tensors": [{"name": "x"}]},
        {"as_tensors": [{"name": "y"}]},
    ]
    assert hops.ungroup_map(after, (), log) == before
    assert [note.kind for note in log.notes] == ["changed"]
    assert hops.regroup_map(after, (), log) is after


@pytest.mark.parametrize("count", [-1, 3])
def test_a_count_that_is_none_is_left_alone(count):
    """A number of mapped values that the call does not have is for the reader to refuse."""
    call = node("torch.ops.higher_order.map_impl", [BODY, ("", {"as_int": count}), X, Y], [])
    assert hops.regroup_map(call, (), ConversionLog("x")) is call


@pytest.mark.parametrize(
    "inputs",
    [[BODY], [BODY, ("", {"as_floats": [0.5]}), ("", {"as_tensors": []})], [BODY, X, ("", {"as_tensors": []})]],
)
def test_a_map_that_2_2_cannot_write_is_blocked(inputs):
    """Only lists of tensors and symbols can be flattened."""
    log = ConversionLog("x")
    hops.ungroup_map(node("torch.ops.higher_order.map_impl", inputs, []), (), log)
    assert [note.kind for note in log.notes] == ["blocked"]


def test_mixed_values_are_no_list():
    """A tensor and a symbol cannot be in one list."""
    log = ConversionLog("x")
    symbol = ("", {"as_sym_int": {"as_name": "n"}})
    call = node("torch.ops.higher_order.map_impl", [BODY, ("", {"as_int": 2}), X, symbol], [])
    hops.regroup_map(call, (), log)
    assert "several kinds" in next(note.message for note in log.notes if note.kind == "blocked")


def test_invoke_subgraph_takes_operands_one_by_one_since_2_8():
    """invoke_subgraph(body, name, [x, y]) is invoke_subgraph(body, name, x, y)."""
    log = ConversionLog("x")
    kinds = {"kind": 1}
    operands = ("", {"as_tensors": [{"name": "x"}, {"name": "y"}]})
    before = node("torch.ops.higher_order.invoke_subgraph", [BODY, ("", {"as_string": "s"}), operands], [])
    before["inputs"] = [{**named, **kinds} for named in before["inputs"]]
    after = hops.spread_operands(before, (), log)
    assert [named["arg"] for named in after["inputs"][2:]] == [X[1], Y[1]]
    assert hops.gather_operands(after, (), log) == before
    assert hops.gather_operands(before, (), log) is before
    nothing = {**before, "inputs": before["inputs"][:2]}
    assert hops.gather_operands(nothing, (), log)["inputs"][2]["arg"] == {"as_tensors": []}


@pytest.mark.parametrize("function", [hops.spread_operands])
def test_other_operators_are_left_alone(function):
    """A node that is not the operator is the same object afterwards."""
    other = node(ADD, [X, Y], [])
    assert function(other, (), ConversionLog("x")) is other
    assert hops.gather_operands(other, (), ConversionLog("x")) is other
    assert hops.ungroup_map(other, (), ConversionLog("x")) is other


SCAN, ASSOCIATIVE = "torch.ops.higher_order.scan", "torch.ops.higher_order.associative_scan"
LISTED = ("", {"as_tensors": [A]})
NONE: tuple[str, dict[str, Any]] = ("", {"as_tensors": []})
ZERO, FORWARDS = ("", {"as_int": 0}), ("", {"as_bool": False})


@pytest.mark.parametrize(
    ("target", "old", "new"),
    [
        (SCAN, [BODY, LISTED, LISTED, ZERO, FORWARDS, NONE], [BODY, LISTED, LISTED, NONE]),
        (ASSOCIATIVE, [BODY, LISTED, ZERO], [BODY, LISTED, NONE]),
    ],
)
def test_scans_took_a_dimension_up_to_2_6(target, old, new):
    """The first, forwards: all that later releases do."""
    log = ConversionLog("x")
    before = node(target, old, [])
    after = hops.drop_scan_options(before, (), log)
    assert after["inputs"] == node(target, new, [])["inputs"]
    assert hops.add_scan_options(after, (), log) == before
    assert {note.kind for note in log.notes} == {"changed"}


def scan_of(dim: int, **values: list[int]):
    """A graph of 2.6 with a scan backwards of `x`, whose results are a carry and `y`."""
    tables = {name: {"sizes": sizes, "strides": sizes[::-1]} for name, sizes in values.items()}
    operands, option = ("", {"as_tensors": [{"name": "x"}]}), ("", {"as_int": dim})
    outputs = [{"as_tensor": {"name": name}} for name in ("carry", "y")]
    scan = node(SCAN, [BODY, LISTED, operands, option, ("", {"as_bool": True}), NONE], outputs)
    return {"nodes": [{**scan, "metadata": {"stack_trace": "s", "torch_fn": "t"}}], "tensor_values": tables}


def test_scans_of_other_dimensions_are_written_out():
    """The operands are flipped and moved to the front, the stacked results flipped; carries stay, traces are kept."""
    graph = hops.plain_scans(scan_of(1, x=[4, 5], carry=[4], y=[5, 4], flip_1=[1]))
    names = [[held["as_tensor"]["name"] for held in each["outputs"]] for each in graph["nodes"]]
    assert names == [["flip_2"], ["permute_1"], ["carry", "flip_3"], ["y"]]
    assert [named["arg"] for named in graph["nodes"][1]["inputs"]] == [
        {"as_tensor": {"name": "flip_2"}},
        {"as_ints": [1, 0]},
    ]
    assert graph["nodes"][2]["inputs"][2]["arg"] == {"as_tensors": [{"name": "permute_1"}]}
    assert graph["tensor_values"]["permute_1"] == {"sizes": [5, 4], "strides": [4, 5]}
    assert [each["metadata"] for each in graph["nodes"][::3]] == [{"stack_trace": "s"}] * 2
    log = ConversionLog("x")
    hops.drop_scan_options(graph["nodes"][2], (), log)
    assert {note.kind for note in log.notes} == {"changed"}


@pytest.mark.parametrize(
    "graph",
    [scan_of(2, x=[4, 5], carry=[4], y=[5, 4]), scan_of(0, carry=[4], y=[5]), scan_of(0, x=[4], carry=[4])],
    ids=["no such dimension", "unknown operand", "unknown result"],
)
def test_scans_that_contradict_their_graph_stay(graph):
    """Such a file is no program; its options are noted as lost."""
    assert hops.plain_scans(graph) is graph


def test_a_scan_along_another_dimension_is_noted():
    """Later releases move it to the front before the call; dropping it needs permission."""
    log = ConversionLog("x")
    backwards = node(SCAN, [BODY, LISTED, LISTED, ZERO, ("", {"as_bool": True}), NONE], [])
    hops.drop_scan_options(backwards, ("n",), log)
    assert [(note.kind, note.name) for note in log.notes] == [("lost", "scan_options"), ("changed", "")]


def test_an_associative_scan_with_more_values_is_blocked_for_2_6():
    """There is no place for them."""
    log = ConversionLog("x")
    log.since = "8.6"
    hops.add_scan_options(node(ASSOCIATIVE, [BODY, LISTED, LISTED], []), ("n",), log)
    assert [(note.kind, note.message, note.since) for note in log.notes] == [
        ("blocked", "associative_scan with values in addition to those that it scans", "8.6")
    ]
