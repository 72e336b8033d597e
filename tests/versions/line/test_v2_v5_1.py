"""Schema 2 and 5.1 say the same of a program."""

from __future__ import annotations

from tests.versions.programs import both, golden, node, round_trip

from pt2kit.versions.check import check_tree
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.operator_calls import FLASH, FLASH_CPU
from pt2kit.versions.steps import STEPS

upgrade, downgrade = both(STEPS[2])


def up(tree):
    log = ConversionLog("x")
    new = upgrade(tree, log)
    check_tree(new, "5.1", "x")
    return new, log


def test_up_and_down_is_the_same_tree():
    """Nothing of a schema 2 program is lost."""
    _, log = round_trip("2", upgrade, downgrade, "5.1")
    assert {note.kind for note in log.notes} == {"changed"}


def test_new_fields_are_written_out():
    """Persistent buffers, class names, offsets as numbers of a union, the table of custom objects."""
    module = up(golden("2"))[0]["graph_module"]
    buffer = next(spec["buffer"] for spec in module["signature"]["input_specs"] if "buffer" in spec)
    assert buffer["persistent"] is True
    assert module["graph"]["tensor_values"]["x"]["storage_offset"] == {"as_int": 0}
    assert module["graph"]["custom_obj_values"] == {"obj": {"name": "obj", "class_fqn": ""}}


def test_custom_objects_are_lifted():
    """Those that a node names come in as inputs, in front of the user's."""
    module = up(golden("2"))[0]["graph_module"]
    specs = module["signature"]["input_specs"]
    place = next(index for index, spec in enumerate(specs) if "custom_obj" in spec)
    assert specs[place] == {"custom_obj": {"arg": {"name": "obj", "class_fqn": ""}, "custom_obj_name": "obj"}}
    assert module["graph"]["inputs"][place] == {"as_custom_obj": {"name": "obj", "class_fqn": ""}}
    assert "user_input" in specs[place + 1]


def test_unbacked_symbols_are_renamed():
    """In ranges and expressions."""
    assert "u0" in up(golden("2"))[0]["range_constraints"]


def test_attention_is_called_by_its_new_name():
    """The graph's own step is part of this one."""
    tree = golden("2")
    graph = tree["graph_module"]["graph"]
    arguments = [("query", {"as_tensor": {"name": "x"}})]
    graph["nodes"].append(node(FLASH, arguments, [{"as_tensor": {"name": "layout_1"}}]))
    new, log = up(tree)
    assert new["graph_module"]["graph"]["nodes"][-1]["target"] == FLASH_CPU
    assert downgrade(new, log)["graph_module"]["graph"]["nodes"][-1]["target"] == FLASH


def test_what_schema_2_cannot_say():
    """Buffers that are not persistent, symbolic offsets, class names, tuples of other things."""
    tree = golden("5.1")
    tree["graph_module"]["graph"]["tensor_values"]["x"]["storage_offset"] = {
        "as_expr": {"expr_str": "s0", "hint": None}
    }
    mixed = node("torch.ops.higher_order.with_effects", [], [{"as_tensor": {"name": "x"}}, {"as_none": []}])
    tree["graph_module"]["graph"]["nodes"].append(mixed)
    log = ConversionLog("x")
    downgrade(tree, log)
    noted = {(note.kind, note.name or note.message) for note in log.notes}
    assert {
        ("lost", "persistent"),
        ("lost", "class_fqn"),
        ("blocked", "a symbolic storage_offset"),
        ("blocked", "a tuple of other things than tensors from a higher-order operator"),
    } <= noted


def test_signatures_of_values_that_are_gone_are_dropped():
    """2.2 left old names in kept signatures when it decomposed a program; which values they mean is not in the file."""
    tree = golden("2")
    calls = tree["graph_module"]["module_call_graph"]
    root = calls[0]["signature"]
    for fqn, name in (("kept", "x"), ("stale", "nobody")):
        signature = {**root, "inputs": [{"as_tensor": {"name": name}}], "outputs": []}
        calls.append({"fqn": fqn, "signature": signature})
    new, log = up(tree)
    entries = {entry["fqn"]: entry["signature"] for entry in new["graph_module"]["module_call_graph"]}
    assert entries["kept"]["inputs"] == [{"as_tensor": {"name": "x"}}]
    assert entries["stale"] is None
    assert any("the graph has no value 'nobody'" in str(note) for note in log.notes)
