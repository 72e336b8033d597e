"""Schema 5.1 and 5.3 say the same of a program."""

from __future__ import annotations

from tests.versions.programs import golden, node, round_trip

from pt2kit.versions.check import check_tree
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line.v5_1_v5_3 import downgrade, input_names, upgrade


def up(tree, **names):
    log = ConversionLog("x", namedtuples=names)
    new = upgrade(tree, log)
    check_tree(new, "5.3", "x")
    return new, log


def test_up_and_down_is_the_same_tree():
    """Nothing of a 5.1 program is lost."""
    _, log = round_trip("5.1", upgrade, downgrade, "5.3")
    assert {note.kind for note in log.notes} == {"changed"}


def test_constant_inputs_get_names():
    """torch's own for an input without one, which are free."""
    tree = golden("5.1")
    tree["graph_module"]["graph"]["tensor_values"]["arg6"] = tree["graph_module"]["graph"]["tensor_values"]["x"]
    new, _ = up(tree)
    specs = new["graph_module"]["signature"]["input_specs"]
    named = {index: spec["constant_input"] for index, spec in enumerate(specs) if "constant_input" in spec}
    assert [held["name"] for held in named.values()] == ["arg6_1", "arg7", "arg8", "arg9", "arg10"]
    assert named[7]["value"] == {"as_int": 3}
    assert [input_names(new["graph_module"])[index] for index in named] == [held["name"] for held in named.values()]


def test_other_names_are_lost_downwards():
    """2.3 has none at all."""
    log = ConversionLog("x")
    log.namedtuple_fields["golden.NT"] = ["a", "b"]
    tree = golden("5.3")
    downgrade(tree, log)
    lost = [note for note in log.notes if note.kind == "lost"]
    assert {note.name for note in lost} == {"input_names"}
    assert len(lost) == 5


def test_optional_tensors_are_arguments():
    """From a bare name."""
    arguments = [named["arg"] for named in up(golden("5.1"))[0]["graph_module"]["graph"]["nodes"][1]["inputs"]]
    assert {"as_optional_tensors": [{"as_tensor": {"name": "x"}}, {"as_none": []}]} in arguments


def test_named_tuples_are_registered():
    """Every spec of the module call graph is rewritten, fields go into the log."""
    new, log = up(golden("5.1"), NT="my.NT")
    assert log.namedtuple_fields == {"my.NT": ["a", "b"]}
    signature = new["graph_module"]["module_call_graph"][0]["signature"]
    assert '"context": "my.NT"' in signature["in_spec"]
    assert '"context": "my.NT"' in signature["out_spec"]


def test_unbacked_floats_are_renamed():
    """f0 is zuf0 since 2.4."""
    tree = golden("5.1")
    tree["range_constraints"]["f0"] = {"min_val": 0, "max_val": 1}
    new, log = up(tree)
    assert "zuf0" in new["range_constraints"]
    assert "f0" in downgrade(new, log)["range_constraints"]


def test_a_signature_that_does_not_fit_the_graph_is_no_crash():
    """More specs than inputs are left to the reader of signatures."""
    tree = golden("5.1")
    tree["graph_module"]["graph"]["inputs"] = []
    new, _ = up(tree)
    assert "constant_input" in new["graph_module"]["signature"]["input_specs"][-1]


def test_unbacked_symbols_get_ranges():
    """2.3 wrote no range for the symbols of an export that is not strict; a size is at least 0."""
    tree = golden("5.1")
    graph = tree["graph_module"]["graph"]
    meta = graph["tensor_values"]["x"]
    graph["tensor_values"]["x"] = {**meta, "sizes": [{"as_expr": {"expr_str": "u7", "hint": None}}]}
    offset = {"as_expr": {"expr_str": "2*u8", "hint": None}}
    graph["tensor_values"]["y"] = {**meta, "sizes": [offset], "strides": [{"as_int": 1}]}
    new, log = up(tree)
    known = tree["range_constraints"]
    added = {"u7": {"min_val": 0, "max_val": None}, "u8": {"min_val": None, "max_val": None}}
    assert new["range_constraints"] == {**known, **added}
    assert sum("got a range" in str(note) for note in log.notes) == 2


def _while_loop(*more):
    graph: dict[str, object] = {
        "inputs": [],
        "outputs": [],
        "nodes": [],
        "tensor_values": {},
        "sym_int_values": {},
        "sym_bool_values": {},
    }
    body = {"as_graph": {"name": "body", "graph": {**graph, "custom_obj_values": {}, "is_single_tensor_return": False}}}
    arguments = [("", body), ("", body), ("", {"as_tensors": [{"name": "x"}]}), *(("", one) for one in more)]
    return node("torch.ops.higher_order.while_loop", arguments, [{"as_tensor": {"name": "x"}}])


def test_loops_take_additional_inputs():
    """`while_loop` of 2.3 has none; it cannot take those of 2.4."""
    tree = golden("5.1")
    tree["graph_module"]["graph"]["nodes"].append(_while_loop())
    new, log = up(tree)
    loop = new["graph_module"]["graph"]["nodes"][-1]
    assert [next(iter(one["arg"])) for one in loop["inputs"]] == ["as_graph", "as_graph", "as_tensors", "as_tensors"]
    assert loop["inputs"][3]["arg"] == {"as_tensors": []}
    assert len(downgrade(new, log)["graph_module"]["graph"]["nodes"][-1]["inputs"]) == 3
    loop["inputs"][3]["arg"] = {"as_tensors": [{"name": "x"}]}
    downgrade(new, log)
    assert any("additional inputs of while_loop" in str(note) for note in log.notes if note.kind == "blocked")
