"""Schema 1 and 2 say the same of a program."""

from __future__ import annotations

import base64

import pytest
from tests.versions.programs import copied, golden

from pt2kit.pickles.values import PickledTensor
from pt2kit.versions.check import check_tree
from pt2kit.versions.conversion_log import ConversionLog, SideInputs
from pt2kit.versions.line.v1_v2 import downgrade, upgrade


def up(tree):
    log = ConversionLog("x")
    new = upgrade(tree, log)
    check_tree(new, "2", "x")
    return new, log


def down(tree, log=None):
    log = log or ConversionLog("x")
    new = downgrade(tree, log)
    check_tree(new, "1", "x")
    return new, log


def blocked(log):
    return [note.message for note in log.notes if note.kind == "blocked"]


def test_up_and_down_is_the_same_tree():
    """With the bytes of its constants at hand, nothing of the program is lost."""
    tree = golden("1")
    before = copied(tree)
    new, log = up(tree)
    assert tree == before
    assert down(new, ConversionLog("x", side_inputs=SideInputs(constants=log.constants)))[0] == before
    assert {note.kind for note in log.notes} == {"changed"}


def test_signature_tables_become_specs():
    """In the order of the graph's inputs and outputs; constants stand before the user's inputs."""
    signature = up(golden("1"))[0]["graph_module"]["signature"]
    assert signature["input_specs"] == [
        {"parameter": {"arg": {"name": "p"}, "parameter_name": "a.weight"}},
        {"buffer": {"arg": {"name": "buf"}, "buffer_name": "a.buf"}},
        {"tensor_constant": {"arg": {"name": "cst"}, "tensor_constant_name": "cst"}},
        {"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
    ]
    assert signature["output_specs"] == [
        {"buffer_mutation": {"arg": {"name": "m1"}, "buffer_name": "a.buf"}},
        {"user_output": {"arg": {"as_tensor": {"name": "k"}}}},
        {"loss_output": {"arg": {"name": "loss"}}},
        {"gradient_to_parameter": {"arg": {"name": "g1"}, "parameter_name": "a.weight"}},
        {"gradient_to_user_input": {"arg": {"name": "g2"}, "user_input_name": "x"}},
    ]


def test_a_value_that_is_returned_twice():
    """A mutated buffer that the user also gets has two specs; so has a value that is returned twice."""
    tree = golden("1")
    graph, signature = tree["graph_module"]["graph"], tree["graph_module"]["signature"]
    graph["outputs"] = [{"as_tensor": {"name": name}} for name in ("m1", "m1", "k", "k")]
    signature["user_outputs"] = ["m1", "k", "k"]
    signature["backward_signature"] = None
    specs = up(tree)[0]["graph_module"]["signature"]["output_specs"]
    assert [next(iter(spec)) for spec in specs] == ["buffer_mutation", "user_output", "user_output", "user_output"]


def test_the_call_spec_becomes_the_root_entry():
    """Of the module call graph, with room for keywords; the other entries stay behind it."""
    tree = golden("1")
    entries = up(tree)[0]["graph_module"]["module_call_graph"]
    assert [entry["fqn"] for entry in entries] == ["", "a", "b"]
    assert entries[0]["signature"]["inputs"] == []
    assert '"builtins.dict", "context": "[]"' in entries[0]["signature"]["in_spec"]
    assert entries[0]["signature"]["out_spec"] == tree["graph_module"]["call_spec"]["out_spec"]


def test_custom_objects_get_names():
    """Their bytes go next to the program."""
    new, log = up(golden("1"))
    arguments = [named["arg"] for named in new["graph_module"]["graph"]["nodes"][1]["inputs"]]
    assert {"as_custom_obj": {"name": "_lifted_custom_obj0"}} in arguments
    assert log.constants["_lifted_custom_obj0"] == b"torchbind"


def test_what_has_no_place_is_noted():
    """Example inputs, and equalities that the symbols do not express; others are in the symbols."""
    tree = golden("1")
    tree["example_inputs"] = [[base64.b64encode(b"x").decode()], {}]
    tree["equality_constraints"] = [[["size_0", 0], ["size_2", 0]], [["size_0", 0], ["x", 0]], [["x", 9], ["y", 0]]]
    _, log = up(tree)
    lost = {note.name: note.places for note in log.notes if note.kind == "lost"}
    assert lost == {
        "example_inputs": ("$.example_inputs",),
        "equality_constraints": ("$.equality_constraints[1]", "$.equality_constraints[2]"),
    }


def test_equalities_are_found_again():
    """Dimensions of user inputs that share a symbol, each with the first, as 2.1 wrote them."""
    tree = golden("2")
    graph, signature = tree["graph_module"]["graph"], tree["graph_module"]["signature"]
    symbol = {"as_expr": {"expr_str": "s0", "hint": {"as_int": 4}}}
    for name in ("x", "y", "p"):
        graph["tensor_values"][name] = {**graph["tensor_values"]["x"], "sizes": [symbol, {"as_int": 2}]}
    signature["input_specs"].append({"user_input": {"arg": {"as_tensor": {"name": "y"}}}})
    new, _ = down(tree)
    assert new["equality_constraints"] == [[["y", 0], ["x", 0]]]


DOWN = [
    # (what to change in a schema 2 program, what is then noted)
    (lambda t: t.update(dialect="EDGE"), ("lost", "dialect", "the dialect 'EDGE'")),
    (lambda t: value(t).update(hint={"as_float": 0.5}), ("lost", "hints", "a hint that is no int")),
    (lambda t: truth(t).update(hint={"as_int": 1}), ("lost", "hints", "the hint of a truth value")),
    (
        lambda t: calls(t).pop(0),
        ("blocked", "", "a module call graph without a root entry, which says how the program is called"),
    ),
    (lambda t: None, ("blocked", "", "a constant as a user input")),
    (lambda t: None, ("blocked", "", "the constant 'a.cst', whose bytes are not given")),
    (lambda t: None, ("blocked", "", "a custom object whose bytes are not given")),
    (
        lambda t: outputs(t).append({"user_output": {"arg": {"as_none": []}}}),
        ("blocked", "", "a constant as a user output"),
    ),
]


def value(tree):
    return tree["graph_module"]["graph"]["sym_int_values"]["n"]["as_expr"]


def truth(tree):
    return tree["graph_module"]["graph"]["sym_bool_values"]["b"]["as_expr"]


def calls(tree):
    return tree["graph_module"]["module_call_graph"]


def outputs(tree):
    return tree["graph_module"]["signature"]["output_specs"]


@pytest.mark.parametrize(("change", "note"), DOWN)
def test_what_schema_1_cannot_say(change, note):
    """Each is noted by its kind and name; the tree fits all the same, so that everything is found at once."""
    tree = golden("2")
    change(tree)
    _, log = down(tree)
    assert note in [(found.kind, found.name, found.message) for found in log.notes]


def test_tensors_are_written_as_torch_save():
    """A constant may be given as a description of its bytes."""
    from tools.golden_maker import tensor

    tree = golden("2")
    tree["graph_module"]["signature"]["input_specs"] = tree["graph_module"]["signature"]["input_specs"][:4]
    constants: dict[str, bytes | PickledTensor] = {"a.cst": tensor(), "obj": b"torchbind"}
    new, log = down(tree, ConversionLog("x", side_inputs=SideInputs(constants=constants)))
    assert "a.cst" not in str(blocked(log))
    again, after = up(new)
    assert isinstance(after.constants["cst"], bytes)
    assert {"tensor_constant": {"arg": {"name": "cst"}, "tensor_constant_name": "cst"}} in again["graph_module"][
        "signature"
    ]["input_specs"]
