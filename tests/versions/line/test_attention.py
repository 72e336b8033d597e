"""Flash attention on the CPU is called by its new name, and goes back to what 2.2 wrote."""

from __future__ import annotations

import pytest
from tests.versions.programs import node

from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.operator_calls import FLASH, FLASH_CPU, from_cpu_operator, to_cpu_operator

NAMES = ["out", *(f"flash_unused_{place}" for place in (1, 2, 3, 6, 7, 8))]


def meta(device="cpu", dtype=7, sizes=(4,)):
    return {
        "dtype": dtype,
        "sizes": [{"as_int": size} for size in sizes],
        "requires_grad": False,
        "device": {"type": device, "index": None},
        "strides": [{"as_int": 1} for _ in sizes],
        "storage_offset": 0,
        "layout": 7,
    }


def graph(device="cpu", used=()):
    """A graph as 2.2 writes it, with nodes that use some of the results."""
    tensors = [("query", {"as_tensor": {"name": "q"}}), ("key", {"as_tensor": {"name": "q"}})]
    flash = node(FLASH, [*tensors, ("return_debug_mask", {"as_bool": False})], [])
    flash["outputs"] = [{"as_tensor": {"name": name}} for name in NAMES]
    scalars = dict(zip(NAMES[2:], (4, 4, 5, 5, 7), strict=True))
    values = {"q": meta(device), "out": meta(device), NAMES[1]: meta(device)}
    values |= {name: meta(device, dtype, ()) for name, dtype in scalars.items()}
    return {
        "inputs": [],
        "nodes": [flash, node("f", [("x", argument) for argument in used], [])],
        "outputs": [{"as_tensor": {"name": "out"}}],
        "tensor_values": values,
    }


def test_the_operator_of_2_3():
    """Two results are left; the others were used by nothing."""
    log = ConversionLog("x")
    before = graph()
    after = to_cpu_operator(before, ("g",), log)
    flash = after["nodes"][0]
    assert flash["target"] == FLASH_CPU
    assert [output["as_tensor"]["name"] for output in flash["outputs"]] == NAMES[:2]
    assert [named["name"] for named in flash["inputs"]] == ["query", "key"]
    assert list(after["tensor_values"]) == ["q", "out", NAMES[1]]
    assert [note.places for note in log.notes] == [("$.g.nodes[0].target",)]


def test_the_way_back():
    """Names, types and order of the other results are those that 2.2 gave them."""
    log = ConversionLog("x")
    before = graph()
    before["nodes"][0]["inputs"].pop()
    back = from_cpu_operator(to_cpu_operator(before, (), log), (), log)
    assert back == before
    assert list(back["tensor_values"]) == list(before["tensor_values"])


@pytest.mark.parametrize(
    "kept",
    [
        graph(device="cuda"),
        graph(used=[{"as_tensor": {"name": NAMES[4]}}]),
        graph(used=[{"as_tensors": [{"name": NAMES[2]}]}]),
        graph(used=[{"as_optional_tensors": [{"as_tensor": NAMES[2]}]}]),
        {**graph(), "outputs": [{"as_tensor": {"name": NAMES[6]}}]},
    ],
)
def test_calls_that_stay(kept):
    """On another device, or where one of the other results is used."""
    assert to_cpu_operator(kept, (), ConversionLog("x")) == kept


def test_graphs_without_attention_are_the_same_objects():
    """There is nothing to do in most."""
    other = {"nodes": [node("f", [], [])]}
    assert to_cpu_operator(other, (), ConversionLog("x")) is other
    assert from_cpu_operator(other, (), ConversionLog("x")) is other


def test_a_mask_is_blocked_for_2_2():
    """The old operator has no attention mask."""
    log = ConversionLog("x")
    after = to_cpu_operator(graph(), (), log)
    mask = {"name": "attn_mask", "arg": {"as_tensor": {"name": "q"}}}
    after["nodes"][0]["inputs"].append(mask)
    assert from_cpu_operator(after, (), log)["nodes"][0]["target"] == FLASH
    assert [note.message for note in log.notes if note.kind == "blocked"] == [f"the argument attn_mask of {FLASH_CPU}"]


def test_names_are_made_up_where_there_are_none():
    """A program whose logsumexp is used has no name to follow; the ones made up are free."""
    after = to_cpu_operator(graph(), (), ConversionLog("x"))
    flash = after["nodes"][0]
    flash["outputs"][1] = {"as_tensor": {"name": "q"}}
    after["tensor_values"]["out_flash_unused_2"] = meta()
    names = [
        output["as_tensor"]["name"]
        for output in from_cpu_operator(after, (), ConversionLog("x"))["nodes"][0]["outputs"]
    ]
    assert names[2:] == [f"out_flash__unused_{place}" for place in (2, 3, 6, 7, 8)]
