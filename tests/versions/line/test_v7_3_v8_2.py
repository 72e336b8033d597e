"""Schema 7.3 and 8.2 say the same of a program."""

from __future__ import annotations

import pytest
from tests.versions.programs import golden, round_trip

from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line.v7_3_v8_2 import downgrade, upgrade


def test_up_and_down_is_the_same_tree():
    """Nothing of a 7.3 program is lost."""
    _, log = round_trip("7.3", upgrade, downgrade, "8.2")
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


@pytest.mark.parametrize(("before", "after"), [("ATEN", "TRAINING"), ("TRAINING", "TRAINING"), ("EDGE", "EDGE")])
def test_rrelu_writes_to_its_arguments(before, after):
    """Torch 2.5 declared it as functional; a later one loads such a program in the dialect TRAINING alone."""
    tree = golden("7.3")
    target = "torch.ops.aten.rrelu_with_noise.default"
    tree["graph_module"]["graph"]["nodes"][0]["target"] = target
    log = ConversionLog("x")
    assert upgrade({**tree, "verifiers": [before]}, log)["verifiers"] == [after]
    expected = f"the dialect ATEN became TRAINING: {target} writes to its arguments"
    assert [note.message for note in log.notes] == [expected] * (before != after)


def test_calls_get_an_entry_each():
    """Non-strict export of 2.5 lists the values of all calls of a module in its only entry."""
    x, y, z, k = ({"as_tensor": {"name": name}} for name in "xyzk")
    leaf = '{"type": null, "context": null, "children_spec": []}'
    spec = f'[1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{leaf}, {leaf}]}}]'
    one = {"inputs": [x, k], "outputs": [y], "in_spec": spec, "out_spec": f"[1, {leaf}]"}
    both = {**one, "inputs": [x, k, y, k], "outputs": [y, z]}
    uneven = {**both, "inputs": [x, k, y]}
    tree = golden("7.3")
    entries = [
        {"fqn": name, "signature": signature}
        for name, signature in (("", both), ("m", both), ("n", one), ("o", uneven), ("p", {**both, "in_spec": "["}))
    ]
    module = {**tree["graph_module"], "module_call_graph": entries}
    log = ConversionLog("x")
    new = upgrade({**tree, "graph_module": module}, log)["graph_module"]["module_call_graph"]
    assert [entry["fqn"] for entry in new] == ["", "m", "n", "o", "p", "m@1"]
    values = [(entry["signature"]["inputs"], entry["signature"]["outputs"]) for entry in new]
    assert values[1:3] == [([x, k], [y]), ([x, k], [y])]
    assert values[3:] == [([x, k, y], [y, z]), ([x, k, y, k], [y, z]), ([y, k], [z])]
    assert [note.message for note in log.notes] == ["2 calls of 'm' got an entry each"]


def test_sizes_are_tuples():
    """Torch 2.5 has no name for torch.Size in a tree spec, which later releases rebuild as a tuple."""
    tree = golden("8.2")
    signature = tree["graph_module"]["module_call_graph"][0]["signature"]
    leaf = '{"type": null, "context": null, "children_spec": []}'
    text = f'[1, {{"type": "torch.Size", "context": "null", "children_spec": [{leaf}, {leaf}]}}]'
    signature["out_spec"] = text
    new = downgrade(tree, ConversionLog("x"))["graph_module"]["module_call_graph"][0]["signature"]
    assert new["out_spec"] == text.replace("torch.Size", "builtins.tuple")
    assert new["in_spec"] == signature["in_spec"]
